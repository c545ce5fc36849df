//! What a peer that has the keys can send, and what comes of it: counted, bounded, never more.

use core::time::Duration;

use strait_clock::{Random, Time};
use strait_compress::{Blocks, Codec, CodecSet, Codecs, Coding, Method};
use strait_ipsec::{Payloads, Reason};
use strait_sim::{Filler, Halves, HalvesSettings, SimDatagram};
use strait_wire::{Cpi, Protocol, Spi, aggfrag, block, condition, delivery, ipcomp, probe};

use crate::stage::{A, B, v4};

const NOW: Time = Time::from_millis(1000);

fn halves(block_cap: u32) -> Halves {
    let payloads = Payloads::Strait { codecs: CodecSet::ALL, block_cap };
    Halves::new(HalvesSettings { payloads, ..HalvesSettings::default() }, NOW)
}

fn compressed(method: &str, plain: &[u8]) -> Vec<u8> {
    let method: Method = method.parse().unwrap();
    let mut output = vec![0; plain.len()];
    let len = Codecs::new().compress(method, plain, &mut output).unwrap();
    output.truncate(len);
    output
}

fn part(codec: Codec, id: u16, (part, parts): (u8, u8), bytes: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; block::HEADER_LEN];
    block::Header { codec: codec.id(), kind: block::BlockKind::Alone, id, part, parts }
        .emit(&mut payload)
        .unwrap();
    [payload, bytes.to_vec()].concat()
}

/// Packets of text, `bytes` of them at least.
fn packets(bytes: usize) -> Vec<u8> {
    let mut talk = strait_sim::Conversation::new(v4(A, B, 80), Filler::Text);
    let mut plain = Vec::new();
    while plain.len() < bytes {
        plain.extend(talk.next_packet(972));
    }
    plain
}

#[test]
fn a_block_that_expands_beyond_the_cap_is_a_bomb() {
    for method in ["zstd-3", "deflate-6", "lz4"] {
        let codec = method.parse::<Method>().unwrap().codec;
        let mut halves = halves(16_384);
        let fits = compressed(method, &packets(15_000));
        let fits = halves.seal(Protocol::AGGFRAG, &part(codec, 1, (0, 1), &fits));
        assert_eq!(halves.receive(&fits, NOW).len(), 15);
        let bomb = compressed(method, &packets(16_385));
        let bomb = halves.seal(Protocol::AGGFRAG, &part(codec, 2, (0, 1), &bomb));
        assert_eq!(halves.receive(&bomb, NOW), Vec::<Vec<u8>>::new());
        assert_eq!(halves.refused(Reason::BlockTooLong), 1, "{method}");
        let zeros = compressed(method, &vec![0; 10_000_000]);
        for chunk in [zeros.len().min(60_000), 1000] {
            let bomb =
                halves.seal(Protocol::AGGFRAG, &part(codec, 3, (0, 1), &zeros[..chunk.min(zeros.len())]));
            assert!(halves.receive(&bomb, NOW).is_empty());
        }
        let counted = halves.refused(Reason::BlockTooLong) + halves.refused(Reason::MalformedBlock);
        assert_eq!(counted, 3, "{method}");
        let after = halves.seal(Protocol::IPIP, &packets(100));
        assert_eq!(halves.receive(&after, NOW).len(), 1, "it goes on");
    }
}

#[test]
fn an_ipcomp_bomb_ends_at_64_kib() {
    let mut halves = halves(65_536);
    let zeros = compressed("deflate-6", &vec![0; 1_000_000]);
    let mut payload = vec![0; ipcomp::HEADER_LEN];
    ipcomp::Header { next: Protocol::IPIP, cpi: Cpi::DEFLATE }.emit(&mut payload).unwrap();
    let bomb = halves.seal(Protocol::IPCOMP, &[payload, zeros].concat());
    assert!(halves.receive(&bomb, NOW).is_empty());
    assert_eq!(halves.refused(Reason::BlockTooLong), 1);
}

#[test]
fn a_codec_that_was_not_agreed_is_refused() {
    let payloads = Payloads::Strait { codecs: CodecSet::EMPTY.with(Codec::Lz4), block_cap: 65_536 };
    let mut halves = Halves::new(HalvesSettings { payloads, ..HalvesSettings::default() }, NOW);
    let plain = packets(3000);
    for (method, arrives) in [("zstd-3", false), ("deflate-6", false), ("lz4", true)] {
        let codec = method.parse::<Method>().unwrap().codec;
        let one = halves.seal(Protocol::AGGFRAG, &part(codec, 1, (0, 1), &compressed(method, &plain)));
        assert_eq!(!halves.receive(&one, NOW).is_empty(), arrives, "{method}");
    }
    let unknown = [&[9][..], &part(Codec::Lz4, 1, (0, 1), b"x")[1..]].concat();
    let mut header = part(Codec::Lz4, 1, (0, 1), &unknown);
    header[1] = 0xee;
    let strange = halves.seal(Protocol::AGGFRAG, &header);
    assert!(halves.receive(&strange, NOW).is_empty());
    assert!(halves.refused(Reason::UnknownCodec) >= 2);
}

#[test]
fn a_lost_part_loses_its_block_and_no_other() {
    let mut halves = halves(65_536);
    let plain = packets(4000);
    let chunks: Vec<&[u8]> = plain.chunks(1200).collect();
    let parts = u8::try_from(chunks.len()).unwrap();
    let (mut arrived, mut random) = (0, Random::new(1));
    for id in 0..200 {
        let lost = random.below(4) == 0;
        let mut sealed: Vec<SimDatagram> = (0..parts)
            .zip(&chunks)
            .map(|(at, chunk)| halves.seal(Protocol::AGGFRAG, &part(Codec::None, id, (at, parts), chunk)))
            .collect();
        if lost {
            sealed.remove(usize::try_from(random.below(parts.into())).unwrap());
        }
        let turn = usize::try_from(random.below(sealed.len() as u64)).unwrap();
        sealed.rotate_left(turn);
        let got: usize = sealed.iter().map(|one| halves.receive(one, NOW).len()).sum();
        assert_eq!(got, if lost { 0 } else { 4 }, "block {id}");
        arrived += u32::from(!lost);
    }
    assert!(arrived > 100);
    // Once the missing parts do not come any more, the next part of any block shows that they were given up.
    let after = halves.seal(Protocol::AGGFRAG, &part(Codec::None, 200, (0, 2), &plain[..1000]));
    assert!(halves.receive(&after, NOW + Duration::from_secs(6)).is_empty());
    assert_eq!(halves.refused(Reason::BlockIncomplete), u64::from(200 - arrived));
}

#[test]
fn first_parts_without_end_take_bounded_room() {
    let mut halves = halves(65_536);
    for id in 0..5000 {
        let one = halves.seal(Protocol::AGGFRAG, &part(Codec::None, id, (0, 64), &[0x45; 1300]));
        assert!(halves.receive(&one, NOW).is_empty());
    }
    let held = (5000 - halves.refused(Reason::BlockIncomplete)) * 1300;
    assert!(held <= 8 << 20, "{held} bytes");
    let mut whole = packets(2000);
    whole.truncate(2000);
    for (at, chunk) in (0..2).zip(whole.chunks(1000)) {
        let one = halves.seal(Protocol::AGGFRAG, &part(Codec::None, 9000, (at, 2), chunk));
        assert_eq!(halves.receive(&one, NOW).len(), usize::from(at) * 2);
    }
    assert_eq!(halves.refused(Reason::BlockIncomplete), 5000);
}

#[test]
fn malformed_payloads_under_the_right_key_deliver_only_whole_packets() {
    let mut halves = halves(65_536);
    let mut random = Random::new(7);
    let nexts = [4, 41, 108, 144, 59, 17, 0, 255].map(Protocol);
    for round in 0..20_000_u64 {
        let len = usize::try_from(random.below(200)).unwrap();
        let mut payload: Vec<u8> = (0..len).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
        // Most begin as something that is looked at closely.
        if let Some(first) = payload.first_mut().filter(|_| round % 4 > 0) {
            *first = [0x45, 0x60, 0, 1, 0xf0, 0xf1, 0xf2][usize::try_from(random.below(7)).unwrap()];
        }
        let next = nexts[usize::try_from(random.below(8)).unwrap()];
        let one = halves.seal(next, &payload);
        assert_whole(&halves.receive(&one, NOW));
    }
}

/// Packets that are whole, and from the peer.
fn assert_whole(packets: &[Vec<u8>]) {
    for packet in packets {
        let parsed = strait_wire::ip::Packet::parse(packet).unwrap();
        assert_eq!(parsed.bytes().len(), packet.len());
        let from = parsed.src().to_string();
        assert!(from.starts_with("10.0.1.") || from.starts_with("fd00:0:0:1:"), "{from}");
    }
}

/// One good payload for each decoder of the receiver, by name.
fn good_payloads() -> Vec<(String, Protocol, Vec<u8>)> {
    let plain = packets(3_000);
    let (mut blocks, mut output) = (Blocks::new(), vec![0; plain.len()]);
    let mut good = vec![
        ("packet".to_owned(), Protocol::IPIP, packets(100)),
        ("bundle".to_owned(), Protocol::AGGFRAG, [&[0; 4][..], &plain[..1_400]].concat()),
        ("coded headers".to_owned(), Protocol::AGGFRAG, {
            let len = blocks.headers.encode(&plain, &mut output).unwrap();
            block_of(Coding::HEADERS, (0, 1), &output[..len])
        }),
    ];
    for method in ["zstd-3", "lz4", "deflate-6", "lzs"] {
        for headers in [false, true] {
            let made = blocks.make(method.parse().unwrap(), headers, &plain, &mut output).unwrap();
            assert_eq!(made.coding.headers, headers);
            let name = format!("{method}, headers {headers}");
            good.push((name, Protocol::AGGFRAG, block_of(made.coding, (0, 1), &output[..made.len])));
        }
    }
    let mut ipcomp = vec![0; ipcomp::HEADER_LEN];
    ipcomp::Header { next: Protocol::IPIP, cpi: Cpi::DEFLATE }.emit(&mut ipcomp).unwrap();
    let packet = compressed("deflate-6", &packets(100));
    good.push(("ipcomp".to_owned(), Protocol::IPCOMP, [ipcomp, packet].concat()));
    good
}

fn block_of(coding: Coding, place: (u8, u8), bytes: &[u8]) -> Vec<u8> {
    let mut payload = part(Codec::None, 1, place, bytes);
    payload[1] = coding.id();
    payload
}

#[test]
fn changed_payloads_reach_each_decoder_and_deliver_only_whole_packets() {
    let mut random = Random::new(5);
    for (name, next, good) in good_payloads() {
        let mut halves = halves(65_536);
        let intact = halves.seal(next, &good);
        assert!(!halves.receive(&intact, NOW).is_empty(), "{name} arrives as it is");
        for _ in 0..2_000 {
            let mut payload = good.clone();
            // What says which decoder it is for stays.
            for _ in 0..=random.below(3) {
                let at = usize::try_from(random.below(payload.len() as u64)).unwrap();
                if at > 5 {
                    payload[at] ^= u8::try_from(1 + random.below(255)).unwrap();
                }
            }
            if random.below(4) == 0 {
                payload.truncate(usize::try_from(6 + random.below(payload.len() as u64 - 6)).unwrap());
            }
            let one = halves.seal(next, &payload);
            assert_whole(&halves.receive(&one, NOW));
        }
        let errors =
            [Reason::MalformedBlock, Reason::MalformedInner, Reason::BlockTooLong, Reason::ForeignSource];
        assert!(errors.iter().any(|reason| halves.refused(*reason) > 0), "{name} was refused now and then");
        assert_eq!(
            halves.refused(Reason::UnknownPayload) + halves.refused(Reason::MalformedEsp),
            0,
            "{name}"
        );
    }
}

#[test]
fn each_codec_counts_the_blocks_that_a_hostile_peer_made_for_it() {
    let mut halves = halves(65_536);
    for (_, next, good) in good_payloads() {
        let one = halves.seal(next, &good);
        halves.receive(&one, NOW);
    }
    for codec in [Codec::Zstd, Codec::Lz4, Codec::Deflate, Codec::Lzs] {
        let expanded = halves.receiver().codecs[usize::from(codec.id())].expanded.get();
        assert!(expanded >= 2, "{codec}: {expanded}");
    }
    // A part alone waits; its block is never whole, and goes when its time is over.
    for (id, now) in [(0, NOW), (1, NOW + Duration::from_secs(6))] {
        let one = halves.seal(Protocol::AGGFRAG, &part(Codec::Zstd, id, (0, 2), &[1; 100]));
        halves.receive(&one, now);
    }
    assert_eq!(halves.refused(Reason::BlockIncomplete), 1);
}

#[test]
fn probes_conditions_and_reports_reach_their_decoders() {
    let mut halves = halves(65_536);
    let mut send = |payload: &[u8]| {
        let one = halves.seal(Protocol::AGGFRAG, payload);
        let before = halves.said();
        assert!(halves.receive(&one, NOW).is_empty());
        let after = halves.said();
        ([after[0] - before[0], after[1] - before[1]], halves.refused(Reason::MalformedEsp))
    };
    let mut probe = vec![0; probe::LEN];
    probe::Probe { kind: probe::ProbeKind::Request, id: 1, size: 1_400 }.emit(&mut probe).unwrap();
    // The first datagram also says where the peer is, and that it has the keys.
    send(&[1, 0, 0, 0]);
    let malformed = send(&[0xf1]).1;
    assert_eq!(send(&probe), ([1, 0], malformed), "an order to answer");
    probe[1] = 0xff;
    assert_eq!(send(&probe), ([0, 0], malformed + 1));
    let mut condition = vec![0; condition::LEN];
    condition::Condition { load: 300, down: 1_000_000, estimates: None }.emit(&mut condition).unwrap();
    assert_eq!(send(&condition), ([0, 1], malformed + 1), "a notice");
    assert_eq!(send(&condition[..4]), ([0, 0], malformed + 2));
    let mut report = vec![0; aggfrag::CONGESTION_LEN + delivery::LEN];
    let counts = delivery::Delivery {
        spi: Spi(1),
        gaps: 0,
        datagrams: 1,
        bytes: 2,
        highest: 3,
        received_at: 4,
        marked: Some(0),
    };
    aggfrag::emit_congestion(&mut report, 0, &aggfrag::CongestionReport::default()).unwrap();
    counts.emit(&mut report[aggfrag::CONGESTION_LEN..]).unwrap();
    assert_eq!(send(&report), ([1, 0], malformed + 2), "an order to take it");
}
