use proptest::prelude::*;
use strait_wire::ip::Version;
use strait_wire::{Protocol, vnet};

use super::{PIECES_MAX, Run, TOTAL_MAX, UdpOffload};
use crate::sample::{Shape, cut, without_id};

const EACH: [(Version, Protocol); 4] = [
    (Version::V4, Protocol::TCP),
    (Version::V6, Protocol::TCP),
    (Version::V4, Protocol::UDP),
    (Version::V6, Protocol::UDP),
];

/// What a run of these packets, one after another in a buffer, delivers in how many pieces.
fn joined(packets: &[Vec<u8>], udp: UdpOffload) -> Vec<(vnet::Header, Vec<u8>, usize)> {
    let mut buffer = packets.concat();
    let mut run = Run::new(udp);
    let mut delivered = Vec::new();
    let mut deliver = |header: &vnet::Header, pieces: &[std::io::IoSlice<'_>]| {
        delivered.push((*header, pieces.iter().flat_map(|piece| piece.to_vec()).collect(), pieces.len()));
    };
    let mut start = 0;
    for packet in packets {
        run.offer(&mut buffer, start..start + packet.len(), &mut deliver);
        start += packet.len();
    }
    run.finish(&mut buffer, &mut deliver);
    run.finish(&mut buffer, &mut deliver);
    delivered
}

/// A stream of `count` segments of 100 bytes, the last of 60.
fn stream(version: Version, protocol: Protocol, count: usize) -> Shape {
    Shape::new(version, protocol, (0..count * 100 - 40).map(|n| u8::try_from(n % 239).unwrap()).collect())
}

#[test]
fn the_segments_of_a_super_packet_are_one_again() {
    for (version, protocol) in EACH {
        let mut shape = stream(version, protocol, 5);
        shape.dont_fragment = false;
        shape.flags = 0x18;
        let segments = shape.segments(100);
        let delivered = joined(&segments, UdpOffload::Supported);
        let [(header, bytes, 5)] = delivered.as_slice() else {
            panic!("{version:?} {protocol:?} {delivered:?}")
        };
        let (expected, offload) = shape.super_packet(100);
        assert_eq!((header, bytes), (&offload, &expected));
        assert_eq!(cut(header, bytes), segments);
    }
}

#[test]
fn udp_stays_apart_where_the_host_cannot_take_it() {
    let segments = stream(Version::V4, Protocol::UDP, 5).segments(100);
    let delivered = joined(&segments, UdpOffload::Unsupported);
    assert_eq!(delivered.iter().map(|(_, bytes, _)| bytes.clone()).collect::<Vec<_>>(), segments);
}

/// One change to the second of two segments, and what it is called.
type Change = (&'static str, fn(&mut Shape));

#[test]
fn segments_with_different_headers_are_not_coalesced() {
    let changes: [Change; 13] = [
        ("a gap", |shape| shape.seq += 1),
        ("sent again", |shape| shape.seq -= 100),
        ("another acknowledgement", |shape| shape.ack += 1),
        ("another window", |shape| shape.window += 1),
        ("another option", |shape| shape.options[5] = 9),
        ("no options", |shape| shape.options.clear()),
        ("another port", |shape| shape.ports[0] += 1),
        ("another host", |shape| shape.host += 1),
        ("another hop count", |shape| shape.ttl -= 1),
        ("another class", |shape| shape.tos = 0x20),
        ("a congestion mark", |shape| shape.tos = 3),
        ("longer than the first", |shape| shape.payload.push(0)),
        ("nothing in it", |shape| shape.payload.clear()),
    ];
    for version in [Version::V4, Version::V6] {
        let first = Shape {
            tos: 2,
            options: vec![1, 1, 8, 2, 7, 7, 7, 7, 1, 1, 1, 1],
            ..Shape::new(version, Protocol::TCP, vec![1; 100])
        };
        let second = Shape { seq: first.seq + 100, id: first.id + 1, ..first.clone() };
        assert_eq!(joined(&[first.packet(), second.packet()], UdpOffload::Supported).len(), 1);
        for (what, change) in changes {
            let mut second = second.clone();
            change(&mut second);
            let packets = [first.packet(), second.packet()];
            let delivered = joined(&packets, UdpOffload::Supported);
            assert_eq!(delivered.len(), 2, "{version:?} {what}");
            assert_eq!([&delivered[0].1, &delivered[1].1], [&packets[0], &packets[1]], "{what}");
        }
        for flags in (0..=u8::MAX).filter(|flags| flags & !0x08 != 0x10) {
            for flags in [[flags, 0x10], [0x10, flags]] {
                let packets = [(&first, flags[0]), (&second, flags[1])]
                    .map(|(shape, flags)| Shape { flags, ..shape.clone() }.packet());
                assert_eq!(joined(&packets, UdpOffload::Supported).len(), 2, "{flags:02x?}");
            }
        }
    }
}

#[test]
fn fragmentable_packets_coalesce_only_with_consecutive_ip_ids() {
    let first = Shape { dont_fragment: false, ..Shape::new(Version::V4, Protocol::TCP, vec![1; 100]) };
    for (id, dont_fragment, count) in [(2, false, 1), (3, false, 2), (1, false, 2), (2, true, 2)] {
        let second = Shape { id, dont_fragment, seq: first.seq + 100, ..first.clone() };
        let delivered = joined(&[first.packet(), second.packet()], UdpOffload::Supported);
        assert_eq!(delivered.len(), count, "{id} {dont_fragment}");
    }
}

#[test]
fn wrong_checksum_stays_wrong() {
    for (version, protocol) in EACH {
        let segments = stream(version, protocol, 3).segments(100);
        // Every field that a checksum covers and nothing else would notice.
        let ip = if version == Version::V4 { &[10, 11][..] } else { &[] };
        let end = segments[1].len() - 1;
        for at in ip.iter().copied().chain([end]) {
            let mut segments = segments.clone();
            segments[1][at] ^= 0x40;
            let delivered = joined(&segments, UdpOffload::Supported);
            let bytes: Vec<_> = delivered.iter().map(|(_, bytes, _)| bytes.clone()).collect();
            assert_eq!(bytes, segments, "{version:?} {protocol:?} {at}");
            assert_eq!(delivered[1].0, vnet::Header::default(), "a broken checksum is not vouched for");
        }
    }
}

#[test]
fn datagrams_without_checksum_stay_apart() {
    let mut segments = stream(Version::V4, Protocol::UDP, 2).segments(100);
    for segment in &mut segments {
        segment[26..28].fill(0);
    }
    assert_eq!(joined(&segments, UdpOffload::Supported).len(), 2);
}

#[test]
fn options_and_fragments_stay_apart() {
    let segments = stream(Version::V4, Protocol::TCP, 3).segments(100);
    let header = |segment: &[u8], change: fn(&mut Vec<u8>)| {
        let mut ip = segment[..20].to_vec();
        change(&mut ip);
        let len = u16::try_from(ip.len() + segment.len() - 20).unwrap();
        ip[2..4].copy_from_slice(&len.to_be_bytes());
        ip[10..12].fill(0);
        let sum = !crate::sample::slow_sum(&[&ip]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        [&ip, &segment[20..]].concat()
    };
    let changes: [fn(&mut Vec<u8>); 3] = [
        |ip| {
            ip[0] = 0x46;
            ip.extend([1, 1, 1, 1]);
        },
        |ip| ip[6] = 0x20,
        |ip| ip[7] = 1,
    ];
    for change in changes {
        let segments: Vec<_> = segments.iter().map(|segment| header(segment, change)).collect();
        let delivered = joined(&segments, UdpOffload::Supported);
        assert_eq!(delivered.iter().map(|(_, bytes, _)| bytes.clone()).collect::<Vec<_>>(), segments);
    }
}

#[test]
fn psh_or_shorter_segment_ends_coalesced_run() {
    let shape = stream(Version::V6, Protocol::TCP, 6);
    let mut segments = shape.segments(100);
    let third = Shape {
        seq: shape.seq + 200,
        flags: 0x18,
        payload: shape.payload[200..300].to_vec(),
        ..shape.clone()
    };
    segments[2] = third.packet();
    let pieces: Vec<_> =
        joined(&segments, UdpOffload::Supported).iter().map(|(_, _, pieces)| *pieces).collect();
    assert_eq!(pieces, [3, 3]);
    let short = Shape { payload: vec![5; 60], ..Shape::new(Version::V6, Protocol::TCP, Vec::new()) };
    let next = Shape { seq: short.seq + 60, ..short.clone() };
    let after = Shape { seq: short.seq + 120, payload: vec![5; 10], ..short.clone() };
    let last = Shape { seq: short.seq + 130, ..short.clone() };
    let packets = [short, next, after, last].map(|shape| shape.packet());
    let pieces: Vec<_> =
        joined(&packets, UdpOffload::Supported).iter().map(|(_, _, pieces)| *pieces).collect();
    assert_eq!(pieces, [3, 1]);
}

#[test]
fn pieces_and_bytes_are_bounded() {
    for step in [10, 1400] {
        let payload = vec![1; step * 300];
        let base = Shape::new(Version::V4, Protocol::UDP, Vec::new());
        let packets: Vec<_> = payload
            .chunks(step)
            .map(|chunk| Shape { payload: chunk.to_vec(), ..base.clone() }.packet())
            .collect();
        let delivered = joined(&packets, UdpOffload::Supported);
        assert!(delivered.iter().all(|(_, bytes, pieces)| bytes.len() <= TOTAL_MAX && *pieces <= PIECES_MAX));
        assert_eq!(delivered.iter().map(|(_, _, pieces)| pieces).sum::<usize>(), 300);
        assert!(delivered.len() <= 7, "{}", delivered.len());
    }
}

/// A packet of one of a few streams that mostly go on and sometimes do something odd.
fn packets() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let step = (0..8_usize, 0..24_u8, 1..4_usize, any::<u8>());
    (proptest::collection::vec(step, 1..80), any::<bool>()).prop_map(|(steps, dont_fragment)| {
        let mut streams = EACH.map(|(version, protocol)| Shape {
            dont_fragment,
            seq: u32::MAX - 700,
            id: u16::MAX - 3,
            ..Shape::new(version, protocol, Vec::new())
        });
        let mut which = 0;
        let next = |(turn, odd, size, byte): (usize, u8, usize, u8)| {
            if turn < 4 {
                which = turn;
            }
            let stream = &mut streams[which];
            let mut shape = Shape { payload: vec![byte; if size == 1 { 50 } else { 100 }], ..stream.clone() };
            match odd {
                0 => shape.flags = 0x18,
                1 => shape.flags = byte,
                2 => shape.seq = shape.seq.wrapping_add(1),
                3 => stream.window ^= 1,
                4 => stream.tos ^= 1,
                5 => shape.id = shape.id.wrapping_add(9),
                6 => shape.payload.clear(),
                _ => {}
            }
            stream.seq = stream.seq.wrapping_add(u32::try_from(shape.payload.len()).unwrap());
            stream.id = stream.id.wrapping_add(1);
            let mut packet = shape.packet();
            if odd == 7 {
                let at = packet.len() - 1;
                packet[at] ^= 1;
            }
            packet
        };
        steps.into_iter().map(next).collect()
    })
}

proptest! {
    #[test]
    fn cutting_what_was_joined_gives_the_same_packets(packets in packets()) {
        let delivered = joined(&packets, UdpOffload::Supported);
        let again: Vec<_> = delivered.iter().flat_map(|(header, bytes, _)| cut(header, bytes)).collect();
        let same = |packets: Vec<Vec<u8>>| packets.into_iter().map(without_id).collect::<Vec<_>>();
        prop_assert_eq!(same(again), same(packets));
    }
}
