//! Bundles that a peer with the keys makes to do harm: lengths that lie, overlap or never end, and packets that are never
//! complete.

use strait_clock::{Random, Time};
use strait_compress::{CodecSet, Codecs, Method};
use strait_ipsec::{Payloads, Reason};
use strait_sim::{Conversation, Filler, Halves, HalvesSettings, is_intact};
use strait_wire::{Protocol, block};

use crate::stage::{A, B, v4};

const NOW: Time = Time::from_millis(1000);
/// Where IPv4 says how long a packet is (RFC 791 section 3.1).
const LENGTH: core::ops::Range<usize> = 2..4;

fn halves() -> Halves {
    let payloads = Payloads::Strait { codecs: CodecSet::ALL, block_cap: 65_536 };
    Halves::new(HalvesSettings { payloads, ..HalvesSettings::default() }, NOW)
}

fn packets(count: usize, len: usize) -> Vec<Vec<u8>> {
    let mut talk = Conversation::new(v4(A, B, 80), Filler::Text);
    (0..count).map(|_| talk.next_packet(len)).collect()
}

/// An AGGFRAG payload of sub-type 0 whose first `offset` bytes go on with a packet from before (RFC 9347 section 6.1.1).
fn bundle(offset: u16, region: &[u8]) -> Vec<u8> {
    let [high, low] = offset.to_be_bytes();
    [&[0, 0, high, low], region].concat()
}

/// The packet with another length in its header.
fn saying(mut packet: Vec<u8>, len: u16) -> Vec<u8> {
    packet[LENGTH].copy_from_slice(&len.to_be_bytes());
    packet
}

/// What arrives of one payload under the right key; all of it is whole.
fn receive(halves: &mut Halves, payload: &[u8]) -> Vec<Vec<u8>> {
    let sealed = halves.seal(Protocol::AGGFRAG, payload);
    let arrived = halves.receive(&sealed, NOW);
    assert!(arrived.iter().all(|packet| strait_wire::ip::Packet::parse(packet).is_ok()));
    arrived
}

fn refused(halves: &Halves) -> u64 {
    Reason::ALL.iter().map(|reason| halves.refused(*reason)).sum()
}

#[test]
fn a_packet_that_says_it_is_longer_costs_itself_alone() {
    let mut halves = halves();
    let good = packets(3, 100);
    let liar = saying(good[1].clone(), 1_400);
    let region = [good[0].clone(), liar.clone()].concat();
    assert_eq!(receive(&mut halves, &bundle(0, &region)), [good[0].clone()]);
    // What comes next does not go on with it.
    assert_eq!(receive(&mut halves, &bundle(0, &good[2])), [good[2].clone()]);
    assert_eq!(receive(&mut halves, &bundle(0, &liar)), Vec::<Vec<u8>>::new());
    assert_eq!(halves.refused(Reason::FragmentIncomplete), 1, "the first liar, for which the second came");
    assert_eq!(receive(&mut halves, &bundle(50, &[&[7; 50][..], &good[2]].concat())), [good[2].clone()]);
}

#[test]
fn a_packet_that_says_it_is_shorter_is_cut_there_and_what_follows_is_refused() {
    let mut halves = halves();
    let good = packets(2, 100);
    for len in [0, 1, 19, 20, 28, 60, 127] {
        let region = [saying(good[0].clone(), len), good[1].clone()].concat();
        let before = refused(&halves);
        for packet in receive(&mut halves, &bundle(0, &region)) {
            assert!(packet.len() <= usize::from(len) || is_intact(&packet), "{len}: {packet:02x?}");
        }
        assert!(refused(&halves) > before || len >= 20, "{len} bytes");
    }
    assert_eq!(receive(&mut halves, &bundle(0, &good[1])), [good[1].clone()], "it goes on");
}

#[test]
fn a_packet_that_never_ends_is_given_up_at_its_length() {
    let mut halves = halves();
    let endless = saying(packets(1, 1_000)[0].clone(), 65_535);
    assert!(receive(&mut halves, &bundle(0, &endless)).is_empty());
    let more = vec![0x45; 1_000];
    let mut arrived = 0;
    for _ in 0..5_000 {
        // All of it belongs to what was begun, and more than is there.
        arrived += receive(&mut halves, &bundle(60_000, &more)).len();
    }
    // Once it is as long as it says, it is a packet, whatever is in it; after that there is nothing to go on with.
    assert!(arrived <= 1, "{arrived}");
    let given_up = halves.refused(Reason::FragmentIncomplete);
    assert!(given_up >= 5_000 - 66, "{given_up} refused");
    let good = packets(1, 200);
    assert_eq!(receive(&mut halves, &bundle(0, &good[0])), good);
}

#[test]
fn beginnings_without_ends_take_one_packets_room() {
    let mut halves = halves();
    let good = packets(1, 200);
    let begun = saying(packets(1, 1_000)[0].clone(), 60_000);
    for _ in 0..5_000 {
        let region = [good[0].clone(), begun.clone()].concat();
        assert_eq!(receive(&mut halves, &bundle(0, &region)), good, "what is whole arrives");
    }
    assert_eq!(halves.refused(Reason::FragmentIncomplete), 5_000 - 1);
}

#[test]
fn a_rest_without_a_beginning_or_after_a_gap_is_refused() {
    let mut halves = halves();
    let [packet] = &packets(1, 900)[..] else { unreachable!() };
    let (front, back) = packet.split_at(400);
    let rest = u16::try_from(back.len()).unwrap();
    assert!(receive(&mut halves, &bundle(rest, back)).is_empty());
    assert!(receive(&mut halves, &bundle(0, front)).is_empty());
    // One that is lost in between.
    let _ = halves.seal(Protocol::NO_NEXT, &[]);
    assert!(receive(&mut halves, &bundle(rest, back)).is_empty());
    assert_eq!(halves.refused(Reason::FragmentIncomplete), 2);
    assert!(receive(&mut halves, &bundle(0, front)).is_empty());
    assert_eq!(receive(&mut halves, &bundle(rest, back)), core::slice::from_ref(packet));
}

#[test]
fn block_with_wrong_packet_length_delivers_packets_before_it() {
    let good = packets(6, 300);
    for method in ["zstd-3", "lz4", "deflate-6"] {
        let method: Method = method.parse().unwrap();
        for len in [0, 10, 19, 2_000, 65_535] {
            let mut halves = halves();
            let mut plain = good[..3].concat();
            plain.extend(saying(good[3].clone(), len));
            plain.extend(good[4..].concat());
            let mut compressed = vec![0; plain.len()];
            let size = Codecs::new().compress(method, &plain, &mut compressed).unwrap();
            let mut payload = vec![0; block::HEADER_LEN];
            block::Header {
                codec: method.codec.id(),
                kind: block::BlockKind::Alone,
                id: 1,
                part: 0,
                parts: 1,
            }
            .emit(&mut payload)
            .unwrap();
            payload.extend_from_slice(&compressed[..size]);
            assert_eq!(receive(&mut halves, &payload), good[..3], "{method}, {len}");
            assert_eq!(refused(&halves), 1, "{method}, {len}");
        }
    }
}

#[test]
fn changed_bundles_deliver_only_what_is_whole() {
    let mut random = Random::new(5);
    let good = packets(8, 120);
    let region = good.concat();
    let mut halves = halves();
    for _ in 0..5_000 {
        let mut payload = bundle(0, &region);
        for _ in 0..=random.below(3) {
            let at = usize::try_from(random.below(payload.len() as u64)).unwrap();
            payload[at] = u8::try_from(random.below(256)).unwrap();
        }
        payload.truncate(payload.len() - usize::try_from(random.below(200)).unwrap());
        receive(&mut halves, &payload);
    }
    assert_eq!(receive(&mut halves, &bundle(0, &good[0])), good[..1], "it goes on");
}
