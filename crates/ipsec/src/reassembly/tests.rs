use proptest::collection::vec;
use proptest::prelude::*;
use strait_wire::fragment::Cutter;
use strait_wire::ip::{self, V4Header, V6Header};
use strait_wire::{Ecn, Protocol, Tos};

use super::slot::{BYTES_MAX, PIECES_MAX};
use super::*;

/// A whole packet of `len` bytes payload, with ECN-capable transport.
fn packet(four: bool, id: u16, len: usize) -> Vec<u8> {
    let payload = (0..len).map(|at| (at * 7 + at / 256) as u8).collect::<Vec<_>>();
    packet_with(four, id, Protocol::ESP, &payload)
}

fn packet_with(four: bool, id: u16, protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    let (tos, payload_len) = (Tos(Ecn::Ect0 as u8), payload.len());
    let mut bytes = vec![0; if four { 20 } else { 40 }];
    if four {
        let (src, dst) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        V4Header { src, dst, tos, id, dont_fragment: false, protocol, payload_len }.emit(&mut bytes).unwrap();
    } else {
        let (src, dst) = ([0x20; 16].into(), [0x21; 16].into());
        V6Header { src, dst, tos, next: protocol, payload_len }.emit(&mut bytes).unwrap();
    }
    bytes.extend_from_slice(payload);
    bytes
}

fn cut(packet: &[u8], mtu: usize, id: u32) -> Vec<Vec<u8>> {
    let mut cutter = Cutter::new(packet, mtu, id).unwrap();
    let mut buf = vec![0; mtu];
    core::iter::from_fn(|| cutter.cut(&mut buf).unwrap().map(|len| buf[..len].to_vec())).collect()
}

/// Two fragments of 16 bytes each.
fn two_halves(four: bool) -> Vec<Vec<u8>> {
    cut(&packet(four, 1, 32), if four { 36 } else { 64 }, 1)
}

/// A fragment by hand: its share of the sample packet, or other bytes there.
fn piece(four: bool, start: u16, bytes: &[u8], more: bool) -> Vec<u8> {
    if four {
        let mut fragment = packet_with(true, 1, Protocol::ESP, bytes);
        let word = start >> 3 | u16::from(more) << 13;
        fragment[6..8].copy_from_slice(&word.to_be_bytes());
        return fragment;
    }
    let [w0, w1] = (start | u16::from(more)).to_be_bytes();
    let header = [Protocol::ESP.0, 0, w0, w1, 0, 0, 0, 1];
    packet_with(false, 0, Protocol::FRAGMENT, &[&header[..], bytes].concat())
}

/// Its sender is a peer.
fn of_peer(packet: &Packet<'_>) -> FragmentShare {
    FragmentShare { owner: packet.src(), known: true }
}

/// What one fragment gives.
type Added = Result<Option<Vec<u8>>, Reason>;

/// What comes of these, one after another, and how many datagrams were lost by the way.
fn add_all(reassembly: &mut Reassembly, fragments: &[Vec<u8>], at: u64) -> (Vec<Added>, u64) {
    let mut lost = 0;
    let now = Time::from_millis(at);
    let add = |fragment: &Vec<u8>| {
        reassembly.add(fragment, of_peer, now, &mut lost).map(|whole| whole.map(|packet| packet.to_vec()))
    };
    (fragments.iter().map(add).collect(), lost)
}

/// The last result of these in a new reassembly, the others being "not yet".
fn last_of(fragments: &[Vec<u8>]) -> Added {
    let (mut results, lost) = add_all(&mut Reassembly::new(), fragments, 0);
    assert_eq!(lost, 0);
    let last = results.pop().unwrap();
    assert!(results.iter().all(|result| *result == Ok(None)), "{results:?}");
    last
}

#[test]
fn pieces_in_any_order_make_the_packet() {
    for four in [true, false] {
        let whole = packet(four, 1, 50);
        let fragments = cut(&whole, if four { 44 } else { 72 }, 1);
        assert_eq!(fragments.len(), 3);
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let fragments = order.map(|at| fragments[at].clone());
            assert_eq!(last_of(&fragments), Ok(Some(whole.clone())), "{order:?}");
        }
    }
}

/// Each is refused as the last of its list, and so is all that comes of the datagram later.
#[test]
fn overlaps_and_contradictions_end_the_datagram() {
    let (bytes, other) = ([1; 32], [2; 32]);
    for four in [true, false] {
        let piece = |start: u16, len: usize, more| piece(four, start, &bytes[..len], more);
        let other = piece_of(four, &other);
        for (what, fragments) in [
            ("teardrop: the second ends within the first", vec![piece(0, 32, true), piece(24, 4, false)]),
            ("over the end of one", vec![piece(0, 16, true), piece(8, 16, true)]),
            ("over the start of one", vec![piece(16, 16, true), piece(8, 16, true)]),
            ("around one", vec![piece(8, 8, true), piece(0, 24, true)]),
            ("within one", vec![piece(0, 24, true), piece(8, 8, true)]),
            ("the same start, shorter", vec![piece(0, 16, true), piece(0, 8, true)]),
            ("the same place, other bytes", vec![piece(8, 16, true), other(8, 16, true)]),
            ("the last one again, longer", vec![piece(16, 8, false), piece(16, 12, false)]),
            ("the last one again, further on", vec![piece(16, 8, false), piece(24, 8, false)]),
            ("the last one again, earlier", vec![piece(16, 8, false), piece(8, 8, false)]),
            ("the last one, now not the last", vec![piece(16, 8, false), piece(16, 8, true)]),
            ("not the last one, now the last", vec![piece(16, 8, true), piece(16, 8, false)]),
            ("beyond the last", vec![piece(16, 8, false), piece(24, 8, true)]),
            ("up to the last, but not it", vec![piece(24, 8, false), piece(16, 16, true)]),
            ("the last before another", vec![piece(24, 8, true), piece(16, 4, false)]),
        ] {
            let mut reassembly = Reassembly::new();
            let (results, _) = add_all(&mut reassembly, &fragments, 0);
            assert_eq!(results, [Ok(None), Err(Reason::FragmentsOverlap)], "{what}, {four}");
            let rest = [piece(0, 8, true), piece(8, 4, false)];
            let (results, lost) = add_all(&mut reassembly, &rest, 59_000);
            assert_eq!(results, [Err(Reason::FragmentsOverlap), Err(Reason::FragmentsOverlap)], "{what}");
            // It was counted when it was refused.
            assert_eq!((add_all(&mut reassembly, &rest, 61_000).1, lost), (0, 0), "{what}");
        }
    }
}

fn piece_of(four: bool, bytes: &[u8]) -> impl Fn(u16, usize, bool) -> Vec<u8> {
    move |start, len, more| piece(four, start, &bytes[..len], more)
}

#[test]
fn exact_duplicate_fragments_are_ignored() {
    for four in [true, false] {
        let whole = packet(four, 1, 50);
        let fragments = cut(&whole, if four { 44 } else { 72 }, 1);
        let twice = [0, 0, 2, 2, 0, 1].map(|at| fragments[at].clone());
        assert_eq!(last_of(&twice), Ok(Some(whole)));
    }
}

#[test]
fn malformed_fragments_are_refused() {
    let short = [1; 7];
    let chain_is_cut = piece_with_next(Protocol::DEST_OPTS, 1, &[Protocol::ESP.0, 1, 0, 0, 0, 0, 0, 0]);
    for bytes in [
        packet(true, 1, 20),
        packet(false, 1, 20),
        vec![],
        piece(true, 0, &short, true),
        piece(false, 0, &short, true),
        piece(true, 65_528, &[1; 8], false),
        piece(false, 65_528, &[1; 8], false),
        piece(true, 8, &[], false),
        chain_is_cut,
    ] {
        assert_eq!(last_of(&[bytes]), Err(Reason::MalformedFragment));
    }
}

/// An IPv6 fragment with offset 0.
fn piece_with_next(next: Protocol, more: u8, payload: &[u8]) -> Vec<u8> {
    let header = [next.0, 0, 0, more, 0, 0, 0, 1];
    packet_with(false, 0, Protocol::FRAGMENT, &[&header[..], payload].concat())
}

/// RFC 6946: it neither waits for others of its name nor is hurt by them.
#[test]
fn atomic_fragment_is_a_whole_packet() {
    let whole = packet(false, 0, 20);
    let atomic = piece_with_next(Protocol::ESP, 0, &whole[40..]);
    assert_eq!(last_of(std::slice::from_ref(&atomic)), Ok(Some(whole.clone())));
    let other = piece(false, 8, &[1; 8], true);
    assert_eq!(last_of(&[other.clone(), atomic.clone()]), Ok(Some(whole.clone())));
    let (results, _) = add_all(&mut Reassembly::new(), &[other.clone(), atomic, other], 0);
    assert_eq!(results, [Ok(None), Ok(Some(whole)), Ok(None)]);
}

#[test]
fn fragments_of_fragments_are_refused() {
    let inner = [Protocol::ESP.0, 0, 0, 0, 0, 0, 0, 9, 1, 2, 3, 4];
    assert_eq!(last_of(&[piece_with_next(Protocol::FRAGMENT, 0, &inner)]), Err(Reason::MalformedFragment));
    let first = piece_with_next(Protocol::FRAGMENT, 1, &inner[..8]);
    let last = piece(false, 8, &inner[8..], false);
    assert_eq!(last_of(&[first, last]), Err(Reason::MalformedFragment));
}

/// The first brings the headers; without it there is no packet, whatever the others say.
#[test]
fn headers_are_those_of_the_first() {
    let whole = packet(true, 1, 32);
    let mut fragments = two_halves(true);
    for fragment in &mut fragments[1..] {
        fragment[8] = 1;
    }
    fragments.reverse();
    assert_eq!(last_of(&fragments[..1]), Ok(None));
    assert_eq!(last_of(&fragments), Ok(Some(whole)));
}

/// The longest packet there is, and one byte too many by the headers of the first alone.
#[test]
fn longest_packet() {
    for (four, len) in [(true, 65_515), (false, 65_535)] {
        let whole = packet(four, 1, len);
        let mut fragments = cut(&whole, 1_500, 1);
        assert_eq!(last_of(&fragments), Ok(Some(whole)));
        let first = &mut fragments[0];
        if four {
            first.splice(20..20, [0; 4]);
            first[0] = 0x46;
        } else {
            first.splice(40..40, [Protocol::FRAGMENT.0, 0, 1, 4, 0, 0, 0, 0]);
            first[6] = Protocol::HOP_BY_HOP.0;
        }
        let at = if four { 2 } else { 4 };
        let said = u16::try_from(first.len() - if four { 0 } else { 40 }).unwrap();
        first[at..at + 2].copy_from_slice(&said.to_be_bytes());
        fragments.reverse();
        assert_eq!(last_of(&fragments), Err(Reason::MalformedFragment));
    }
}

#[test]
fn fragments_of_different_datagrams_are_kept_apart() {
    let fragments = two_halves(true);
    for (at, value) in [(5, 2), (9, Protocol::AH.0), (15, 9), (19, 9)] {
        let mut other = fragments[1].clone();
        other[at] = value;
        assert_eq!(last_of(&[fragments[0].clone(), other]), Ok(None), "byte {at}");
    }
    let fragments = two_halves(false);
    for (at, value, same) in [(23, 9, false), (39, 9, false), (47, 9, false), (40, Protocol::AH.0, true)] {
        let mut other = fragments[1].clone();
        other[at] = value;
        assert_eq!(last_of(&[fragments[0].clone(), other]).unwrap().is_some(), same, "byte {at}");
    }
}

/// RFC 3168 section 5.3.
#[test]
fn congestion_marks() {
    use Ecn::{Ce, Ect0, Ect1, NotEct};
    for (marks, expected) in [
        ([Ect0, Ect0], Ok(Ect0)),
        ([Ect1, Ce], Ok(Ce)),
        ([Ce, Ect0], Ok(Ce)),
        ([NotEct, NotEct], Ok(NotEct)),
        ([NotEct, Ce], Err(Reason::CongestionMark)),
        ([Ce, NotEct], Err(Reason::CongestionMark)),
        ([Ect0, NotEct], Ok(Ect0)),
    ] {
        for four in [true, false] {
            let mut fragments = two_halves(four);
            for (fragment, mark) in fragments.iter_mut().zip(marks) {
                ip::set_ecn(fragment, mark);
            }
            let ecn = last_of(&fragments).map(|whole| Packet::parse(&whole.unwrap()).unwrap().tos().ecn());
            assert_eq!(ecn, expected, "{marks:?}");
        }
    }
}

#[test]
fn memory_is_bounded_in_datagrams_and_bytes() {
    let mut reassembly = Reassembly::new();
    assert_eq!(reassembly.slots.capacity(), 0);
    let mut lost = 0;
    for id in 0..1_000 {
        let mut fragment = piece(true, 65_496, &[1; 8], true);
        fragment[4..6].copy_from_slice(&u16::to_be_bytes(id));
        let (results, more) = add_all(&mut reassembly, &[fragment], u64::from(id));
        assert_eq!(results, [Ok(None)]);
        lost += more;
    }
    assert_eq!((reassembly.slots.len(), lost), (SLOTS, 1_000 - SLOTS as u64));
    assert!(reassembly.slots.iter().all(|slot| slot.room() <= BYTES_MAX));
    // The oldest went first: the last one is still there, and then all are too old.
    let mut rest = piece(true, 65_504, &[1; 8], false);
    rest[4..6].copy_from_slice(&u16::to_be_bytes(999));
    assert_eq!(add_all(&mut reassembly, &[rest.clone()], 2_000), (vec![Ok(None)], 0));
    assert_eq!(add_all(&mut reassembly, &[rest], 61_000), (vec![Ok(None)], SLOTS as u64));
}

/// The first and the second half of datagram `id` of the host 192.0.2.`host`.
fn halves_of(host: u8, id: u16) -> [Vec<u8>; 2] {
    [(0, true), (16, false)].map(|(start, more)| {
        let mut fragment = piece(true, start, &[1; 16], more);
        fragment[4..6].copy_from_slice(&id.to_be_bytes());
        fragment[15] = host;
        fragment
    })
}

/// What comes of a fragment a microsecond after the one before; its sender is a peer if it is one of the hosts up to 99.
fn add_one((reassembly, at): &mut (Reassembly, u64), fragment: &[u8]) -> Added {
    *at += 1;
    let share_of = |packet: &Packet<'_>| {
        let share = of_peer(packet);
        FragmentShare { known: packet.bytes()[15] < 100, ..share }
    };
    let added = reassembly.add(fragment, share_of, Time::from_nanos(*at * 1_000), &mut 0);
    added.map(|whole| whole.map(|packet| packet.to_vec()))
}

#[test]
fn flood_of_first_fragments_of_one_peer_leaves_others_theirs() {
    let mut reassembly = (Reassembly::new(), 0);
    for round in 0..50 {
        for id in 0..200 {
            assert_eq!(add_one(&mut reassembly, &halves_of(1, round * 200 + id)[0]), Ok(None));
        }
        // Each of three others has three datagrams in the making, through more of the flood.
        let others = || (2..5).flat_map(|host| (0..3).map(move |id| (host, round * 3 + id)));
        for (host, id) in others() {
            assert_eq!(add_one(&mut reassembly, &halves_of(host, id)[0]), Ok(None));
        }
        for id in 0..200 {
            assert_eq!(add_one(&mut reassembly, &halves_of(1, 30_000 + round * 200 + id)[0]), Ok(None));
        }
        for (host, id) in others() {
            let whole = add_one(&mut reassembly, &halves_of(host, id)[1]);
            assert!(whole.unwrap().is_some(), "host {host}, datagram {id}");
        }
    }
    assert_eq!(reassembly.0.slots.len(), SLOTS);
    // Of its own, the oldest went first.
    let last = halves_of(1, 30_000 + 49 * 200 + 199);
    assert!(add_one(&mut reassembly, &last[1]).unwrap().is_some());
}

#[test]
fn flood_of_fragments_from_many_strangers_leaves_peers_theirs() {
    let mut reassembly = (Reassembly::new(), 0);
    let peers = || (0..SLOTS as u16).map(|id| (id as u8 % 100, id));
    for (host, id) in peers() {
        assert_eq!(add_one(&mut reassembly, &halves_of(host, id)[0]), Ok(None));
    }
    for id in 0..5_000 {
        assert_eq!(add_one(&mut reassembly, &halves_of(100 + (id % 150) as u8, id)[0]), Ok(None));
    }
    assert_eq!(reassembly.0.slots.len(), SLOTS + SLOTS_STRANGERS);
    for (host, id) in peers() {
        assert!(add_one(&mut reassembly, &halves_of(host, id)[1]).unwrap().is_some(), "{host} {id}");
    }
    // The newest of strangers are kept, the oldest not.
    assert_eq!(add_one(&mut reassembly, &halves_of(100, 0)[1]), Ok(None));
    let newest = halves_of(100 + (4_999 % 150) as u8, 4_999);
    assert!(add_one(&mut reassembly, &newest[1]).unwrap().is_some());
}

#[test]
fn time_is_bounded() {
    let fragments = two_halves(true);
    for (at, whole, lost) in [(60_000, true, 0), (60_001, false, 1)] {
        let mut reassembly = Reassembly::new();
        add_all(&mut reassembly, &fragments[..1], 0).0[0].clone().unwrap();
        let (results, given_up) = add_all(&mut reassembly, &fragments[1..], at);
        assert_eq!((results[0].clone().unwrap().is_some(), given_up), (whole, lost), "after {at} ms");
    }
}

#[test]
fn pieces_are_bounded() {
    let tiny = |at: usize| piece(true, u16::try_from(at * 16).unwrap(), &[1; 8], true);
    let mut fragments: Vec<_> = (0..=PIECES_MAX).map(tiny).collect();
    assert_eq!(last_of(&fragments), Err(Reason::FragmentsIncomplete));
    // The smallest packets every host takes, all the way to the longest one.
    let whole = packet(true, 1, 65_515);
    fragments = cut(&whole, 576, 1);
    assert_eq!(last_of(&fragments), Ok(Some(whole)));
}

/// Room is made as it is needed, and ends where a datagram must.
#[test]
fn room_grows_to_its_bound() {
    let mut fragments = cut(&packet(false, 1, 65_535), 1_280, 1);
    fragments.pop();
    let mut reassembly = Reassembly::new();
    for (count, room) in [(1, 2_048), (2, 4_096), (53, BYTES_MAX)] {
        add_all(&mut reassembly, &fragments[..count], 0);
        assert_eq!(reassembly.slots[0].room(), room, "{count} fragments");
    }
}

/// What a datagram left behind in a slot never shows in a later one.
#[test]
fn slots_are_used_again() {
    let mut reassembly = Reassembly::new();
    for len in [900, 30, 1_000, 16] {
        let whole = packet(true, 1, len);
        let (results, lost) = add_all(&mut reassembly, &cut(&whole, 28, 1), 0);
        assert_eq!((results.last().unwrap(), lost), (&Ok(Some(whole)), 0));
    }
    assert_eq!(reassembly.slots.len(), 1);
}

#[test]
fn truncation() {
    for fragment in [piece(true, 8, &[1; 8], true), piece(false, 8, &[1; 8], true)] {
        for len in 0..fragment.len() {
            assert_eq!(last_of(&[fragment[..len].to_vec()]), Err(Reason::MalformedFragment), "{len} bytes");
        }
    }
}

proptest! {
    #[test]
    fn cut_shuffled_and_doubled_is_the_packet(
        four: bool, len in 1usize..4_000, mtu in 100usize..1_500, order in vec(any::<prop::sample::Index>(), 1..60),
    ) {
        let whole = packet(four, 7, len);
        let mut fragments = cut(&whole, mtu, 7);
        prop_assume!(fragments.len() > 1);
        // Some twice, in any order; then all, so that none is missing.
        let mut sent: Vec<_> = order.iter().map(|at| at.get(&fragments).clone()).collect();
        for (at, other) in order.iter().enumerate() {
            let (at, other) = (at % fragments.len(), other.index(fragments.len()));
            fragments.swap(at, other);
        }
        sent.append(&mut fragments);
        let (results, lost) = add_all(&mut Reassembly::new(), &sent, 0);
        prop_assert_eq!(lost, 0);
        prop_assert!(results.iter().all(Result::is_ok));
        prop_assert_eq!(results.into_iter().flatten().flatten().next(), Some(whole));
    }

    /// Whatever comes, what is given is a packet of what was sent, and no more is kept than may be.
    #[test]
    fn any_fragments_reassemble_to_valid_packets(
        pieces in vec((0u16..12, 0usize..40, any::<bool>(), any::<bool>(), any::<bool>(), 0u64..40_000), 1..60),
    ) {
        let mut reassembly = Reassembly::new();
        let mut now = 0;
        let mut lost = 0;
        for (units, len, more, four, other, wait) in pieces {
            now += wait;
            let bytes = vec![u8::from(other); len];
            let fragment = piece(four, units * 8, &bytes, more);
            if let Ok(Some(whole)) = reassembly.add(&fragment, of_peer, Time::from_millis(now), &mut lost) {
                prop_assert_eq!(Packet::parse(whole).unwrap().bytes().len(), whole.len());
                prop_assert_eq!(Front::parse(whole).unwrap().fragment, None);
            }
            prop_assert!(reassembly.slots.len() <= SLOTS);
        }
    }
}
