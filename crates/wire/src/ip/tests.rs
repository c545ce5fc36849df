use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::checksum::Sum;
use crate::sample;
use crate::tos::Ecn;

fn what(bytes: &[u8]) -> Result<usize, &'static str> {
    Packet::parse(bytes).map(|packet| packet.header_len()).map_err(|malformed| malformed.what)
}

#[test]
fn parse_v4() {
    let bytes = [&sample::v4(Protocol::UDP, &[0, 53, 0x12, 0x34, 5])[..], &[0xff; 3]].concat();
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(packet.bytes(), &bytes[..25]);
    assert_eq!((packet.version(), packet.tos(), packet.ttl()), (Version::V4, Tos(0x2a), 61));
    assert_eq!((packet.src().to_string(), packet.dst().to_string()), ("10.0.0.1".into(), "10.0.0.2".into()));
    assert_eq!(
        (packet.protocol(), packet.header_len(), packet.payload()),
        (Protocol::UDP, 20, &bytes[20..25])
    );
    assert_eq!((packet.id(), packet.dont_fragment(), packet.is_fragment()), (Some(0x1234), false, false));
    assert_eq!(packet.flow().to_string(), "udp 10.0.0.1:53 -> 10.0.0.2:4660");
    assert!(Sum::ZERO.add_bytes(&bytes[..20]).is_valid());
}

#[test]
fn parse_v6() {
    let bytes = [&sample::v6(Protocol::TCP, &[0, 22, 0x12, 0x34])[..], &[0xff; 3]].concat();
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(packet.bytes(), &bytes[..44]);
    assert_eq!((packet.version(), packet.tos(), packet.ttl()), (Version::V6, Tos(0x2a), 62));
    assert_eq!(
        (packet.protocol(), packet.header_len(), packet.payload()),
        (Protocol::TCP, 40, &bytes[40..44])
    );
    assert_eq!((packet.id(), packet.dont_fragment(), packet.is_fragment()), (None, true, false));
    assert_eq!(packet.flow().to_string(), "tcp [2001:db8::1]:22 -> [2001:db8::2]:4660");
}

#[test]
fn addresses_byte_by_byte() {
    let mut v4 = sample::v4(Protocol::UDP, &[]);
    v4[12..20].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let packet = Packet::parse(&v4).unwrap();
    assert_eq!((packet.src().to_string(), packet.dst().to_string()), ("1.2.3.4".into(), "5.6.7.8".into()));
    let mut v6 = sample::v6(Protocol::UDP, &[]);
    for (byte, value) in v6[8..40].iter_mut().zip(1..) {
        *byte = value;
    }
    let packet = Packet::parse(&v6).unwrap();
    assert_eq!(packet.src(), IpAddr::from(<[u8; 16]>::try_from(&v6[8..24]).unwrap()));
    assert_eq!(packet.dst(), IpAddr::from(<[u8; 16]>::try_from(&v6[24..40]).unwrap()));
}

#[test]
fn ports_of_every_protocol_that_has_them() {
    for number in 0..=u8::MAX {
        let bytes = sample::v4(Protocol(number), &[0, 1, 0, 2]);
        let flow = Packet::parse(&bytes).unwrap().flow();
        let has_ports = [6, 17, 33, 132, 136].contains(&number);
        assert_eq!((flow.src_port, flow.dst_port), if has_ports { (1, 2) } else { (0, 0) }, "{number}");
    }
}

#[test]
fn v4_edges() {
    for (first, total, given, expected) in [
        (0x45, 20u16, 20, Ok(20)),
        (0x45, 21, 21, Ok(20)),
        (0x45, 21, 20, Err("ip packet cut short")),
        (0x45, 0, 40, Err("ipv4 length")),
        (0x45, 1, 40, Err("ipv4 length")),
        (0x45, 19, 40, Err("ipv4 length")),
        (0x40, 40, 40, Err("ipv4 length")),
        (0x44, 40, 40, Err("ipv4 length")),
        (0x46, 23, 40, Err("ipv4 length")),
        (0x46, 24, 40, Ok(24)),
        (0x4f, 59, 60, Err("ipv4 length")),
        (0x4f, 60, 60, Ok(60)),
        (0x45, u16::MAX, 65_535, Ok(20)),
        (0x45, u16::MAX, 65_534, Err("ip packet cut short")),
        (0x55, 40, 40, Err("ip version")),
    ] {
        let mut bytes = vec![0; given];
        bytes[0] = first;
        bytes[2..4].copy_from_slice(&total.to_be_bytes());
        assert_eq!(what(&bytes), expected, "{first:#x}, length {total} in {given} bytes");
    }
}

#[test]
fn v6_edges() {
    for (payload_len, given, expected) in [
        (0u16, 40, Ok(40)),
        (1, 41, Ok(40)),
        (1, 40, Err("ip packet cut short")),
        (u16::MAX, 65_575, Ok(40)),
        (u16::MAX, 65_574, Err("ip packet cut short")),
    ] {
        let mut bytes = vec![0; given];
        (bytes[0], bytes[6]) = (0x60, Protocol::NO_NEXT.0);
        bytes[4..6].copy_from_slice(&payload_len.to_be_bytes());
        assert_eq!(what(&bytes), expected, "length {payload_len} in {given} bytes");
    }
}

#[test]
fn truncation() {
    let extended = [&[Protocol::UDP.0, 0, 0, 0, 0, 0, 0, 0][..], &[9; 8]].concat();
    for bytes in [sample::v4(Protocol::UDP, &[1; 8]), sample::v6(Protocol::DEST_OPTS, &extended)] {
        assert!(Packet::parse(&bytes).is_ok());
        for len in 0..bytes.len() {
            assert!(Packet::parse(&bytes[..len]).is_err(), "{len} bytes");
        }
    }
}

#[test]
fn declared_len_needs_only_the_first_bytes() {
    let (v4, v6) = (sample::v4(Protocol::UDP, &[0; 9]), sample::v6(Protocol::UDP, &[0; 9]));
    for (bytes, needed, len) in [(v4, 4, 29), (v6, 6, 49)] {
        for given in 0..needed {
            assert!(declared_len(&bytes[..given]).is_err(), "{given} bytes");
        }
        for given in needed..bytes.len() {
            assert_eq!(declared_len(&bytes[..given]), Ok(len), "{given} bytes");
        }
    }
}

#[test]
fn v4_fragments() {
    for (word, fragment, later, dont) in [
        (0x0000, false, false, false),
        (0x4000, false, false, true),
        (0x2000, true, false, false),
        (0x2001, true, true, false),
        (0x0001, true, true, false),
        (0x1fff, true, true, false),
        (0x8000, false, false, false),
    ] {
        let bytes = sample::v4_with(Protocol::UDP, word, &[0, 1, 0, 2]);
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!(
            (packet.is_fragment(), packet.is_later_fragment(), packet.dont_fragment()),
            (fragment, later, dont),
            "{word:#06x}"
        );
        let ports = if later { (0, 0) } else { (1, 2) };
        assert_eq!((packet.flow().src_port, packet.flow().dst_port), ports, "{word:#06x}");
    }
}

/// An extension header of `len` bytes that names `next`.
fn extension(next: Protocol, length_field: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    (bytes[0], bytes[1]) = (next.0, length_field);
    bytes
}

#[test]
fn v6_extension_chain() {
    let chain = [
        extension(Protocol::ROUTING, 0, 8),
        extension(Protocol::DEST_OPTS, 2, 24),
        extension(Protocol::AH, 1, 16),
        extension(Protocol::FRAGMENT, 4, 24),
        vec![Protocol::UDP.0, 0, 0, 1, 0, 0, 0, 7],
        vec![0, 1, 0, 2],
    ]
    .concat();
    let bytes = sample::v6(Protocol::HOP_BY_HOP, &chain);
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!((packet.protocol(), packet.header_len()), (Protocol::UDP, 40 + 80));
    assert!(packet.is_fragment() && !packet.is_later_fragment());
    assert_eq!((packet.flow().src_port, packet.flow().dst_port), (1, 2));
}

#[test]
fn v6_extension_edges() {
    let short = "ipv6 extension header";
    for (first, chain, expected) in [
        (Protocol::DEST_OPTS, vec![], Err(short)),
        (Protocol::DEST_OPTS, extension(Protocol::UDP, 0, 7), Err(short)),
        (Protocol::DEST_OPTS, extension(Protocol::UDP, 0, 8), Ok(48)),
        (Protocol::DEST_OPTS, extension(Protocol::UDP, 1, 15), Err(short)),
        (Protocol::DEST_OPTS, extension(Protocol::UDP, 255, 2047), Err(short)),
        (Protocol::DEST_OPTS, extension(Protocol::UDP, 255, 2048), Ok(40 + 2048)),
        (Protocol::AH, extension(Protocol::UDP, 0, 40), Err(short)),
        (Protocol::AH, extension(Protocol::UDP, 1, 11), Err(short)),
        (Protocol::AH, extension(Protocol::UDP, 1, 12), Ok(52)),
        (Protocol::AH, extension(Protocol::UDP, 255, 1027), Err(short)),
        (Protocol::AH, extension(Protocol::UDP, 255, 1028), Ok(40 + 1028)),
        (Protocol::FRAGMENT, extension(Protocol::UDP, 0, 7), Err(short)),
        (Protocol::FRAGMENT, extension(Protocol::UDP, 0, 8), Ok(48)),
        (Protocol::NO_NEXT, vec![], Ok(40)),
        (Protocol::ESP, vec![1; 3], Ok(40)),
    ] {
        let bytes = sample::v6(first, &chain);
        assert_eq!(what(&bytes), expected, "{first} of {} bytes", chain.len());
    }
}

#[test]
fn v6_chain_is_bounded() {
    let dest_opts = extension(Protocol::DEST_OPTS, 0, 8);
    let last = extension(Protocol::UDP, 0, 8);
    let eight = sample::v6(Protocol::DEST_OPTS, &[dest_opts.repeat(7), last.clone()].concat());
    assert_eq!(what(&eight), Ok(40 + 64));
    let nine = sample::v6(Protocol::DEST_OPTS, &[dest_opts.repeat(8), last].concat());
    assert_eq!(what(&nine), Err("number of ipv6 extension headers"));
}

#[test]
fn v6_later_fragment_is_not_parsed_further() {
    // The next header says destination options, but what follows is data from the middle of them.
    for (offset_word, later) in [([0, 0], false), ([0, 8], true), ([0, 9], true), ([0xff, 0xf8], true)] {
        let fragment = [&[Protocol::DEST_OPTS.0, 0][..], &offset_word, &[0, 0, 0, 7], &[0xff; 3]].concat();
        let bytes = sample::v6(Protocol::FRAGMENT, &fragment);
        let packet = Packet::parse(&bytes);
        assert_eq!(packet.is_ok(), later, "{offset_word:?}");
        if let Ok(packet) = packet {
            assert!(packet.is_later_fragment());
            assert_eq!((packet.protocol(), packet.payload()), (Protocol::DEST_OPTS, &[0xff; 3][..]));
        }
    }
}

#[test]
fn v6_atomic_fragment_is_whole() {
    let bytes = sample::v6(Protocol::FRAGMENT, &[Protocol::UDP.0, 0, 0, 0, 0, 0, 0, 7, 0, 1, 0, 2]);
    let packet = Packet::parse(&bytes).unwrap();
    assert!(!packet.is_fragment());
    assert_eq!(packet.flow().dst_port, 2);
}

#[test]
fn ports_of_a_short_payload_are_zero() {
    for protocol in [Protocol::TCP, Protocol::UDP] {
        for len in 0..4 {
            let bytes = sample::v4(protocol, &[1, 2, 3, 4][..len]);
            let flow = Packet::parse(&bytes).unwrap().flow();
            assert_eq!((flow.src_port, flow.dst_port), (0, 0), "{len} bytes");
        }
    }
    let icmp = sample::v4(Protocol::ICMP, &[8, 0, 1, 2]);
    assert_eq!(Packet::parse(&icmp).unwrap().flow().src_port, 0);
}

#[test]
fn set_tos_and_ecn() {
    for bytes in [sample::v4(Protocol::UDP, &[1; 8]), sample::v6(Protocol::UDP, &[1; 8])] {
        for octet in 0..=u8::MAX {
            let mut changed = bytes.clone();
            set_tos(&mut changed, Tos(octet));
            assert_eq!(Packet::parse(&changed).unwrap().tos(), Tos(octet));
            set_ecn(&mut changed, Ecn::Ce);
            assert_eq!(Packet::parse(&changed).unwrap().tos(), Tos(octet | 0b11));
            set_tos(&mut changed, Tos(0x2a));
            assert_eq!(changed, bytes, "the way back from {octet:#04x}");
        }
    }
}

#[test]
fn decrement_to_nothing() {
    for bytes in [sample::v4(Protocol::UDP, &[]), sample::v6(Protocol::UDP, &[])] {
        let mut bytes = bytes;
        let start = Packet::parse(&bytes).unwrap().ttl();
        for left in (0..start).rev() {
            assert_eq!(decrement_ttl(&mut bytes), Some(left));
            assert_eq!(Packet::parse(&bytes).unwrap().ttl(), left);
            if bytes[0] == 0x45 {
                assert!(Sum::ZERO.add_bytes(&bytes[..20]).is_valid());
            }
        }
        let before = bytes.clone();
        assert_eq!(decrement_ttl(&mut bytes), None);
        assert_eq!(bytes, before);
    }
}

#[test]
fn garbage_is_left_alone() {
    let (v4, v6) = (sample::v4(Protocol::UDP, &[]), sample::v6(Protocol::UDP, &[]));
    let mut low_ihl = v4.clone();
    low_ihl[0] = 0x44;
    for bytes in [&[][..], &v4[..19], &v6[..39], &low_ihl, &[0x55; 60]] {
        let mut changed = bytes.to_vec();
        set_tos(&mut changed, Tos(0xff));
        set_ecn(&mut changed, Ecn::Ce);
        assert_eq!(decrement_ttl(&mut changed), None);
        assert_eq!(changed, bytes);
    }
}

#[test]
fn header_checksum_of_short_headers() {
    assert_eq!(v4_header_checksum(&[]), 0xffff);
    assert_eq!(v4_header_checksum(&[0x12, 0x34]), !0x1234);
    assert_eq!(v4_header_checksum(&[0; 11]), 0xffff);
}

proptest! {
    #[test]
    fn header_checksum_survives_any_change(mut header: [u8; 20], tos: u8, ttl in 1u8..) {
        header[0] = 0x45;
        header[8] = ttl;
        let checksum = v4_header_checksum(&header).to_be_bytes();
        header[10..12].copy_from_slice(&checksum);
        set_tos(&mut header, Tos(tos));
        decrement_ttl(&mut header);
        prop_assert_eq!([header[10], header[11]], v4_header_checksum(&header).to_be_bytes());
    }

    #[test]
    fn parse_invariants_hold_for_any_bytes(mut bytes in vec(any::<u8>(), 0..200), six: bool, short_chain: bool) {
        // Mostly legal first bytes, or nearly every case would end at the version.
        if let Some(first) = bytes.first_mut() {
            *first = if six { 0x60 } else { 0x45 };
        }
        if let Some(lengths) = bytes.get_mut(2..6) {
            lengths.copy_from_slice(&[0, 40, 0, 60]);
        }
        if let (Some(next), true) = (bytes.get_mut(6), short_chain) {
            *next = Protocol::DEST_OPTS.0;
        }
        if let Ok(packet) = Packet::parse(&bytes) {
            prop_assert!(bytes.starts_with(packet.bytes()));
            prop_assert_eq!(declared_len(&bytes), Ok(packet.bytes().len()));
            prop_assert_eq!(&packet.bytes()[packet.header_len()..], packet.payload());
            prop_assert_eq!(packet.flow().src, packet.src());
            prop_assert!(packet.is_fragment() || !packet.is_later_fragment());
        }
    }
}
