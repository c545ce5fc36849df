//! What a peer that has the keys can send, and what comes of it: counted, bounded, never more.

use core::time::Duration;

use strait_clock::{Random, Time};
use strait_compress::{Codec, CodecSet, Codecs, Method};
use strait_ipsec::{Payloads, Reason};
use strait_sim::{Filler, Halves, HalvesSettings, SimDatagram};
use strait_wire::{Cpi, Protocol, block, ipcomp};

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
    block::Header { codec: codec.id(), id, part, parts }.emit(&mut payload).unwrap();
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
            *first = [0x45, 0x60, 0, 1, 0xe0, 0xe1][usize::try_from(random.below(6)).unwrap()];
        }
        let next = nexts[usize::try_from(random.below(8)).unwrap()];
        let one = halves.seal(next, &payload);
        for packet in halves.receive(&one, NOW) {
            let parsed = strait_wire::ip::Packet::parse(&packet).unwrap();
            assert_eq!(parsed.bytes().len(), packet.len());
            assert!(
                parsed.src().to_string().starts_with("10.0.1.")
                    || parsed.src().to_string().starts_with("fd00:0:0:1:")
            );
        }
    }
}
