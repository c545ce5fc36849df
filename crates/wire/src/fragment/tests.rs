use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::checksum::Sum;
use crate::ip::Packet;
use crate::sample;

/// An IPv6 packet that is a fragment, its header's word as given.
fn v6_fragment(word: u16, payload: &[u8]) -> Vec<u8> {
    let [w0, w1] = word.to_be_bytes();
    sample::v6(Protocol::FRAGMENT, &[&[Protocol::UDP.0, 0, w0, w1, 1, 2, 3, 4][..], payload].concat())
}

fn what(bytes: &[u8]) -> Result<Option<(u16, bool, usize)>, &'static str> {
    let place =
        |fragment: Fragment<'_>| (fragment.header.offset, fragment.header.more, fragment.payload.len());
    Fragment::parse(bytes).map(|fragment| fragment.map(place)).map_err(|malformed| malformed.what)
}

/// RFC 8200 section 4.5, RFC 791 section 3.2; the same cases in both versions.
#[test]
fn parse() {
    let (ragged, beyond) = (Err("length of a fragment"), Err("end of a fragment"));
    for (units, more, len, expected) in [
        (0, true, 8, Ok(Some((0, true, 8)))),
        (0, true, 0, ragged),
        (0, true, 7, ragged),
        (1, true, 16, Ok(Some((8, true, 16)))),
        (1, true, 9, ragged),
        (1, false, 9, Ok(Some((8, false, 9)))),
        (1, false, 0, ragged),
        (8191, true, 8, beyond),
        (8189, true, 8, Ok(Some((65_512, true, 8)))),
    ] {
        let payload = vec![1; len];
        let v4 = sample::v4_with(Protocol::UDP, units | u16::from(more) << 13, &payload);
        // In IPv4 the header counts too, so 20 bytes less fit.
        let v4_expected = if units == 8189 { beyond } else { expected };
        assert_eq!(what(&v4), v4_expected, "v4 {units} {more} {len}");
        let v6 = v6_fragment(units << 3 | u16::from(more), &payload);
        assert_eq!(what(&v6), expected, "v6 {units} {more} {len}");
    }
    for len in [0, 7, 8] {
        assert_eq!(what(&sample::v4(Protocol::UDP, &vec![1; len])), Ok(None));
        assert_eq!(what(&v6_fragment(0, &vec![1; len])), Ok(Some((0, false, len))), "RFC 6946");
    }
}

#[test]
fn longest_packet() {
    for (units, len, v4_ok, v6_ok) in
        [(8186, 27, true, true), (8186, 28, false, true), (8186, 47, false, true), (8186, 48, false, false)]
    {
        let payload = vec![1; len];
        assert_eq!(what(&sample::v4_with(Protocol::UDP, units, &payload)).is_ok(), v4_ok, "v4 {len}");
        assert_eq!(what(&v6_fragment(units << 3, &payload)).is_ok(), v6_ok, "v6 {len}");
    }
}

#[test]
fn whole_packets_front() {
    let v4 = sample::v4_with(Protocol::UDP, 0x6000, &[1; 8]);
    let fragment = Fragment::parse(&v4).unwrap().unwrap();
    let mut front = [0xff; 21];
    fragment.emit_front(&mut front, 100).unwrap();
    assert_eq!((&front[2..4], &front[6..8], front[20]), (&[0, 120][..], &[0x40, 0][..], 0xff));
    assert!(Sum::ZERO.add_bytes(&front[..20]).is_valid());
    assert!(fragment.emit_front(&mut front[..19], 100).is_err());
    assert!(fragment.emit_front(&mut front, 65_516).is_err());

    let chain =
        [&[Protocol::FRAGMENT.0, 0, 1, 4, 0, 0, 0, 0][..], &[Protocol::AH.0, 0, 0, 1, 1, 2, 3, 4], &[7; 8]];
    let v6 = sample::v6(Protocol::HOP_BY_HOP, &chain.concat());
    let fragment = Fragment::parse(&v6).unwrap().unwrap();
    let mut front = [0xff; 49];
    fragment.emit_front(&mut front, 16).unwrap();
    let expected =
        sample::v6(Protocol::HOP_BY_HOP, &[&[Protocol::AH.0, 0, 1, 4, 0, 0, 0, 0][..], &[0xff; 16]].concat());
    assert_eq!((&front[..48], front[48]), (&expected[..48], 0xff));
    for payload_len in [65_528, usize::MAX] {
        assert!(fragment.emit_front(&mut front, payload_len).is_err());
    }
}

#[test]
fn header_truncation() {
    let header = Header { id: 7, offset: 8, more: true };
    for len in 0..HEADER_LEN {
        assert!(Header::parse(&[0; HEADER_LEN][..len]).is_err(), "{len} bytes");
        assert!(header.emit(Protocol::UDP, &mut [0; HEADER_LEN][..len]).is_err(), "buffer of {len}");
    }
    for packet in [v6_fragment(1, &[1; 8]), sample::v4_with(Protocol::UDP, 1, &[1; 8])] {
        for len in 0..packet.len() {
            assert!(Fragment::parse(&packet[..len]).is_err(), "{len} bytes");
        }
    }
}

/// All fragments, each in a buffer of just `mtu` bytes.
fn cut(packet: &[u8], mtu: usize) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut cutter = Cutter::new(packet, mtu, 0x0102_0304).map_err(|malformed| malformed.what)?;
    let mut fragments = Vec::new();
    let mut buf = vec![0xff; mtu];
    while let Some(len) = cutter.cut(&mut buf).map_err(|malformed| malformed.what)? {
        fragments.push(buf[..len].to_vec());
    }
    assert_eq!(cutter.cut(&mut buf), Ok(None));
    Ok(fragments)
}

/// The example of RFC 791 section 3.2, figure 8 and 9: 452 bytes over a network that takes 280.
#[test]
fn rfc791_example() {
    let fragments = cut(&sample::v4(Protocol::TCP, &[5; 452]), 280).unwrap();
    let lens: Vec<usize> = fragments.iter().map(Vec::len).collect();
    assert_eq!(lens, [276, 216]);
    assert_eq!(
        (&fragments[0][..8], &fragments[1][..8]),
        (&[0x45, 0x2a, 1, 20, 0x12, 0x34, 0x20, 0][..], &[0x45, 0x2a, 0, 216, 0x12, 0x34, 0, 32][..],)
    );
}

#[test]
fn options_with_the_copied_flag_are_in_every_fragment() {
    let mut packet = sample::v4(Protocol::UDP, &[1; 12 + 100]);
    // No operation, record route (not copied), sender directed delivery (copied), end.
    packet[20..32].copy_from_slice(&[1, 7, 3, 4, 149, 6, 1, 2, 3, 4, 0, 9]);
    packet[0] = 0x48;
    let fragments = cut(&packet, 76).unwrap();
    assert_eq!((fragments.len(), fragments[0].len(), fragments[1].len()), (3, 72, 76));
    assert_eq!(fragments[0][20..32], packet[20..32]);
    assert_eq!((fragments[1][0], &fragments[1][20..28]), (0x47, &[149, 6, 1, 2, 3, 4, 0, 0][..]));
    assert!(fragments.iter().all(|fragment| {
        let header_len = usize::from(fragment[0] & 0xf) * 4;
        Sum::ZERO.add_bytes(&fragment[..header_len]).is_valid()
    }));
}

#[test]
fn v6_header_goes_behind_the_routing_header() {
    let routing = [Protocol::DEST_OPTS.0, 0, 0, 0, 0, 0, 0, 0];
    let options = [Protocol::AH.0, 0, 1, 4, 0, 0, 0, 0];
    let packet = sample::v6(Protocol::ROUTING, &[&routing[..], &options, &[9; 50]].concat());
    let fragments = cut(&packet, 96).unwrap();
    let header = |more| [Protocol::DEST_OPTS.0, 0, 0, more, 1, 2, 3, 4];
    assert_eq!(fragments[0][40..56], [[Protocol::FRAGMENT.0, 0, 0, 0, 0, 0, 0, 0], header(1)].concat());
    assert_eq!(fragments[0][56..64], options);
    assert_eq!(fragments.iter().map(Vec::len).collect::<Vec<_>>(), [96, 56 + 18]);
}

#[test]
fn unfragmentable_packets_and_small_mtus_are_refused() {
    let forbidden = sample::v4_with(Protocol::UDP, 0x4000, &[1; 100]);
    assert_eq!(cut(&forbidden, 100), Err("packet that may not be fragmented"));
    assert_eq!(cut(&forbidden, 120).unwrap(), [&forbidden[..]]);
    assert_eq!(cut(&v6_fragment(0, &[1; 100]), 100), Err("packet that is a fragment"));
    assert_eq!(cut(&sample::v4(Protocol::UDP, &[1; 100]), 27), Err("mtu"));
    assert_eq!(cut(&sample::v4(Protocol::UDP, &[1; 16]), 28).unwrap().len(), 2);
    assert_eq!(cut(&sample::v6(Protocol::UDP, &[1; 100]), 55), Err("mtu"));
    assert_eq!(cut(&sample::v6(Protocol::UDP, &[1; 16]), 55), Err("mtu"));
    // All front, nothing to share out.
    let mut options = sample::v4(Protocol::UDP, &[0; 40]);
    options[0] = 0x4f;
    let routed = sample::v6(Protocol::ROUTING, &[Protocol::NO_NEXT.0, 4, 0, 0].repeat(10));
    for packet in [options, routed] {
        let mut cutter = Cutter::new(&packet, 50, 0).unwrap();
        assert_eq!(cutter.cut(&mut [0; 200]).map_err(|malformed| malformed.what), Err("mtu"));
    }
    let mut broken = sample::v4(Protocol::UDP, &[1; 100]);
    (broken[0], broken[20], broken[21]) = (0x46, 7, 9);
    assert_eq!(cut(&broken, 100), Err("option past the end of its header"));
    for (units, expected) in [(58, Ok(())), (59, Err("length of the headers in front"))] {
        let mut routed = vec![0; units * 8 + 100];
        (routed[0], routed[1]) = (Protocol::UDP.0, u8::try_from(units - 1).unwrap());
        assert_eq!(cut(&sample::v6(Protocol::ROUTING, &routed), 560).map(|_| ()), expected, "{units}");
    }
    let packet = sample::v4(Protocol::UDP, &[1; 100]);
    let mut cutter = Cutter::new(&packet, 68, 0).unwrap();
    assert!(cutter.cut(&mut [0; 67]).is_err());
    assert_eq!(cutter.cut(&mut [0; 68]), Ok(Some(68)), "nothing is lost");
}

/// A packet of either version, with options or extension headers by `headers`.
fn packet(four: bool, headers: usize, payload: &[u8]) -> Vec<u8> {
    if four {
        let options = [148, 4, 0, 0, 7, 3, 4, 0].repeat(headers);
        let mut packet = sample::v4(Protocol::UDP, &[&options, payload].concat());
        packet[0] = 0x45 + u8::try_from(2 * headers).unwrap();
        let header_len = 20 + 8 * headers;
        let checksum = crate::ip::v4_header_checksum(&packet[..header_len]).to_be_bytes();
        packet[10..12].copy_from_slice(&checksum);
        return packet;
    }
    let chain = [Protocol::HOP_BY_HOP, Protocol::ROUTING, Protocol::ROUTING, Protocol::DEST_OPTS];
    let nexts = chain.iter().take(headers).skip(1).chain([&Protocol::UDP]);
    let mut bytes: Vec<u8> = nexts.flat_map(|next| [next.0, 0, 0, 0, 0, 0, 0, 0]).collect();
    bytes.truncate(8 * headers);
    bytes.extend(payload);
    sample::v6(if headers == 0 { Protocol::UDP } else { chain[0] }, &bytes)
}

/// The fragments' shares side by side, behind the first one's front.
fn joined(fragments: &[Vec<u8>]) -> Vec<u8> {
    let views: Vec<_> = fragments.iter().map(|bytes| Fragment::parse(bytes).unwrap().unwrap()).collect();
    let payload: Vec<u8> = views.iter().flat_map(|view| view.payload).copied().collect();
    let mut whole = vec![0; views[0].front.len];
    views[0].emit_front(&mut whole, payload.len()).unwrap();
    [whole, payload].concat()
}

proptest! {
    #[test]
    fn header_round_trip(id: u32, units in 0u16..8192, more: bool, next: u8) {
        let header = Header { id, offset: units << 3, more };
        let mut bytes = [0xff; HEADER_LEN];
        header.emit(Protocol(next), &mut bytes).unwrap();
        prop_assert_eq!(Header::parse(&bytes).unwrap(), (header, Protocol(next), &[][..]));
        let mut v4 = [0xff; V4_HEADER_LEN];
        header.put_v4(&mut v4).unwrap();
        prop_assert_eq!(Header::from_v4(&v4), Header { id: 0xffff, ..header });
        prop_assert_eq!(v4[6] & 0xc0, 0x40);
    }

    #[test]
    fn fragments_side_by_side_are_the_packet(
        four: bool, headers in 0usize..5, payload in vec(any::<u8>(), 1..600), mtu in 100usize..700,
    ) {
        let packet = packet(four, headers, &payload);
        let fragments = cut(&packet, mtu).unwrap();
        if packet.len() <= mtu {
            prop_assert_eq!(fragments, [packet]);
            return Ok(());
        }
        let mut offset = 0;
        for (at, bytes) in fragments.iter().enumerate() {
            let view = Fragment::parse(bytes).unwrap().unwrap();
            prop_assert!(bytes.len() <= mtu);
            prop_assert_eq!(view.header.offset, offset);
            prop_assert_eq!(view.header.more, at + 1 < fragments.len());
            prop_assert_eq!(view.header.id, if four { 0x1234 } else { 0x0102_0304 });
            prop_assert!(!four || Sum::ZERO.add_bytes(&bytes[..bytes.len() - view.payload.len()]).is_valid());
            prop_assert_eq!(Packet::parse(bytes).unwrap().is_fragment(), true);
            offset += u16::try_from(view.payload.len()).unwrap();
        }
        prop_assert_eq!(joined(&fragments), packet);
    }

    /// A router cuts a fragment again; the end of the datagram stays where it was.
    #[test]
    fn v4_fragments_are_cut_again(payload in vec(any::<u8>(), 200..600), headers in 0usize..3) {
        let packet = packet(true, headers, &payload);
        let coarse = cut(&packet, 180).unwrap();
        let fine: Vec<Vec<u8>> = coarse.iter().flat_map(|fragment| cut(fragment, 100).unwrap()).collect();
        prop_assert!(fine.len() > coarse.len());
        prop_assert_eq!(joined(&fine), packet);
    }

    #[test]
    fn any_bytes(mut bytes in vec(any::<u8>(), 20..300), four: bool, first: bool, mtu in 0usize..200) {
        let len = u16::try_from(bytes.len() - if four { 0 } else { 40.min(bytes.len()) }).unwrap();
        bytes[0] = if four { 0x40 | bytes[0] & 0xf } else { 0x60 };
        let at = if four { 2 } else { 4 };
        bytes[at..at + 2].copy_from_slice(&len.to_be_bytes());
        if first && !four {
            bytes[6] = Protocol::FRAGMENT.0;
        }
        let _ = what(&bytes);
        if let Ok(fragments) = cut(&bytes, mtu) {
            prop_assert!(fragments.iter().all(|fragment| fragment.len() <= mtu));
        }
    }
}
