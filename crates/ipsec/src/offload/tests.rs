use proptest::prelude::*;
use strait_wire::ip::Version;
use strait_wire::{Protocol, vnet};

use super::SuperPacket;
use crate::sample::{Shape, cut};

const EACH: [(Version, Protocol); 4] = [
    (Version::V4, Protocol::TCP),
    (Version::V6, Protocol::TCP),
    (Version::V4, Protocol::UDP),
    (Version::V6, Protocol::UDP),
];

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect()
}

fn shape() -> impl Strategy<Value = Shape> {
    let fields = (0..4_usize, any::<[u8; 4]>(), any::<[u16; 3]>(), any::<[u32; 2]>(), 0..11_usize);
    let payload = prop_oneof![Just(0), 1..3000_usize, 1..65_400_usize];
    (fields, any::<bool>(), payload, any::<u8>()).prop_map(|(fields, dont_fragment, len, start)| {
        let (which, [tos, ttl, host, flags], [id, port, window], [seq, ack], options) = fields;
        let (version, protocol) = EACH[which];
        Shape {
            tos,
            ttl,
            id,
            dont_fragment,
            host,
            ports: [port, 443],
            seq,
            ack,
            window,
            flags,
            options: if protocol == Protocol::TCP { bytes(options * 4) } else { Vec::new() },
            payload: bytes(len).into_iter().map(|byte| byte.wrapping_add(start)).collect(),
            ..Shape::new(version, protocol, Vec::new())
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn segments_equal_those_sent_without_offload(shape in shape(), step in 1..3000_u16) {
        // A million segments of a byte show no more than some thousand.
        let step = step.max(u16::try_from(shape.payload.len() / 2000).unwrap());
        let (packet, header) = shape.super_packet(step);
        let expected = shape.segments(step.into());
        let total: usize = expected.iter().map(Vec::len).sum();
        let whole = SuperPacket::new(&packet, &header).unwrap();
        prop_assert_eq!((whole.count(), whole.total_len()), (expected.len(), total));
        prop_assert_eq!(cut(&header, &packet), expected);
    }

    #[test]
    fn an_unfinished_checksum_is_finished(shape in shape()) {
        let (packet, header) = shape.super_packet(0);
        let header = vnet::Header { gso_type: vnet::GSO_NONE, ..header };
        let mut expected = shape.packet();
        let at = shape.ip_len() + shape.checksum_at();
        if expected[at..at + 2] == [0, 0] {
            expected[at..at + 2].fill(0xff);
        }
        prop_assert_eq!(cut(&header, &packet), [expected]);
    }

    #[test]
    fn a_finished_packet_is_left_alone(shape in shape()) {
        let packet = shape.packet();
        prop_assert_eq!(cut(&vnet::Header::default(), &packet), std::slice::from_ref(&packet));
        let verified = vnet::Header { flags: vnet::DATA_VALID, ..vnet::Header::default() };
        prop_assert_eq!(cut(&verified, &packet), [packet]);
    }

    #[test]
    fn any_offload_header_is_refused_or_cut_safely(
        shape in shape(),
        fields: (u8, u8, u16, u16),
        gso_size in prop_oneof![Just(0), any::<u16>()],
        hurt in proptest::collection::vec((0..80_usize, any::<u8>()), 0..4),
        keep in 0..2000_usize,
    ) {
        let (flags, gso_type, csum_start, csum_offset) = fields;
        // Often one with which the other fields matter: none, or the packet's own.
        let kind = match gso_type & 0x60 {
            0 => vnet::GSO_NONE,
            0x20 => shape.super_packet(100).1.gso_type,
            _ => gso_type % 6,
        };
        let gso_type = kind | (gso_type & 0x80);
        let header = vnet::Header { flags, gso_type, hdr_len: 0, gso_size, csum_start, csum_offset };
        let mut packet = shape.packet();
        packet.truncate(keep);
        for (at, byte) in hurt {
            if let Some(field) = packet.get_mut(at) {
                *field = byte;
            }
        }
        if let Ok(whole) = SuperPacket::new(&packet, &header) {
            for index in (0..whole.count()).take(50) {
                let mut out = vec![0xee; whole.len(index)];
                whole.write(index, &mut out);
                prop_assert!(out.len() <= packet.len());
            }
        }
    }
}

#[test]
fn inconsistent_offload_header_is_refused() {
    for (version, protocol) in EACH {
        let shape = Shape::new(version, protocol, bytes(1000));
        let (packet, header) = shape.super_packet(100);
        let usable = |packet: &[u8], header: vnet::Header| SuperPacket::new(packet, &header).is_ok();
        let what = format!("{version:?} {protocol:?}");
        assert!(usable(&packet, header), "{what}");
        assert!(!usable(&packet, vnet::Header { gso_size: 0, ..header }), "{what}");
        for gso_type in (0..=u8::MAX).filter(|kind| kind & 0x7f != 0 && kind & 0x7f != header.gso_type) {
            assert!(!usable(&packet, vnet::Header { gso_type, ..header }), "{what} {gso_type}");
        }
        assert!(usable(&packet, vnet::Header { gso_type: header.gso_type | vnet::GSO_ECN, ..header }));
        for len in 0..shape.header_len() {
            assert!(!usable(&packet[..len], header), "{what} {len}");
        }
        let single = vnet::Header { gso_type: vnet::GSO_NONE, ..header };
        let end = u16::try_from(packet.len()).unwrap();
        for (csum_start, csum_offset) in [
            (0, 10),
            (single.csum_start - 1, 16),
            (end - 1, 0),
            (end, 0),
            (u16::MAX, u16::MAX),
            (20, u16::MAX),
        ] {
            let header = vnet::Header { csum_start, csum_offset, ..single };
            assert!(!usable(&packet, header), "{what} {csum_start} {csum_offset}");
        }
    }
}

#[test]
fn fragments_are_never_cut() {
    for fragment in [[0x20, 0], [0, 1], [0x20, 9]] {
        let (mut packet, header) = Shape::new(Version::V4, Protocol::TCP, bytes(500)).super_packet(100);
        packet[6..8].copy_from_slice(&fragment);
        assert!(SuperPacket::new(&packet, &header).is_err());
    }
    let (packet, header) = Shape::new(Version::V6, Protocol::UDP, bytes(500)).super_packet(100);
    let mut fragment = packet[..40].to_vec();
    fragment[6] = 44;
    fragment[4..6].copy_from_slice(&u16::try_from(packet.len() - 40 + 8).unwrap().to_be_bytes());
    fragment.extend([17, 0, 0, 1, 0, 0, 0, 1]);
    fragment.extend(&packet[40..]);
    assert!(SuperPacket::new(&fragment, &header).is_err());
}

#[test]
fn extension_headers_are_repeated_in_each_segment() {
    let shape = Shape::new(Version::V6, Protocol::TCP, bytes(250));
    let with_options = |packet: &[u8]| {
        let mut longer = packet[..40].to_vec();
        longer[6] = 60;
        longer[4..6].copy_from_slice(&u16::try_from(packet.len() - 40 + 8).unwrap().to_be_bytes());
        longer.extend([6, 0, 1, 4, 0, 0, 0, 0]);
        longer.extend(&packet[40..]);
        longer
    };
    let (packet, header) = shape.super_packet(100);
    let expected: Vec<_> = shape.segments(100).iter().map(|segment| with_options(segment)).collect();
    assert_eq!(cut(&header, &with_options(&packet)), expected);
}

#[test]
fn what_only_one_segment_may_have() {
    let mut shape = Shape::new(Version::V4, Protocol::TCP, bytes(250));
    shape.flags = 0xff;
    let (packet, header) = shape.super_packet(100);
    let flags: Vec<u8> = cut(&header, &packet).iter().map(|segment| segment[33]).collect();
    // CWR on the first, FIN and PSH on the last.
    assert_eq!(flags, [0xf6, 0x76, 0x7f]);
}
