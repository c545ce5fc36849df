//! TCP, UDP and the checksum they share.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use strait_wire::checksum::{Sum, copy_and_sum, pseudo, pseudo_v4, pseudo_v6};
use strait_wire::ip::Version;
use strait_wire::tcp::{ChecksumField, TcpFlags, lower_mss};
use strait_wire::{Protocol, Tos, ip, tcp, udp};

/// One buffer, read as each.
pub fn check(data: &[u8]) {
    check_tcp(data);
    check_acknowledgement(data);
    check_mss(data);
    check_udp(data);
    check_checksum(data);
}

fn check_tcp(data: &[u8]) {
    let Ok(segment) = tcp::Segment::parse(data) else { return };
    assert_eq!(segment.bytes(), data);
    assert!((tcp::MIN_HEADER_LEN..=60).contains(&segment.header_len()));
    assert_eq!(&data[segment.header_len()..], segment.payload());
    assert_eq!(&data[tcp::MIN_HEADER_LEN..segment.header_len()], segment.options());
    assert_eq!(data[tcp::SEQ], segment.seq().to_be_bytes());
    assert_eq!(data[tcp::FLAGS], segment.flags().bits());
    assert_eq!(data[tcp::CHECKSUM], segment.checksum().to_be_bytes());
    assert_eq!(data[..4], [segment.src_port().to_be_bytes(), segment.dst_port().to_be_bytes()].concat());
    assert_eq!(data[8..12], segment.ack().to_be_bytes());
    assert_eq!(data[14..16], segment.window().to_be_bytes());
    assert!((segment.flags() | TcpFlags::FIN).contains(TcpFlags::FIN));
}

/// A SYN whose segments are lowered changes in no more than that, and a sum that was right stays right.
fn check_mss(data: &[u8]) {
    for version in [Version::V4, Version::V6] {
        let Some(sent) = around(version, data) else { return };
        for mtu in [0, 100, 1280, 70_000] {
            let mut bytes = sent.clone();
            let lowered = lower_mss(&mut bytes, mtu, ChecksumField::Whole);
            assert_eq!(lowered, bytes != sent);
            assert_eq!(sum_of(&bytes), sum_of(&sent));
            assert!(!lower_mss(&mut bytes, mtu, ChecksumField::Whole), "once is enough");
            let front = sent.len() - data.len();
            let before_sum = sent.len().min(front + 16);
            assert_eq!(bytes[..before_sum], sent[..before_sum]);
            let mut unfinished = sent.clone();
            assert_eq!(lower_mss(&mut unfinished, mtu, ChecksumField::Unfinished), lowered);
            assert!(!lowered || unfinished[front + 16..front + 18] == sent[front + 16..front + 18]);
        }
    }
    let mut bytes = data.to_vec();
    assert!(lower_mss(&mut bytes, 1280, ChecksumField::Whole) || bytes == data);
}

/// The segment in a packet.
fn around(version: Version, segment: &[u8]) -> Option<Vec<u8>> {
    let (tos, payload_len) = (Tos(0), segment.len());
    let mut packet = vec![0; if version == Version::V4 { ip::V4_HEADER_LEN } else { ip::V6_HEADER_LEN }];
    match version {
        Version::V4 => {
            let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
            let (id, dont_fragment, protocol) = (0, true, Protocol::TCP);
            let header = ip::V4Header { src, dst, tos, id, dont_fragment, protocol, payload_len };
            header.emit(&mut packet).ok()?;
        }
        Version::V6 => {
            let (src, dst) = (Ipv6Addr::from(1), Ipv6Addr::from(2));
            ip::V6Header { src, dst, tos, next: Protocol::TCP, payload_len }.emit(&mut packet).ok()?;
        }
    }
    packet.extend_from_slice(segment);
    Some(packet)
}

/// The sum of the segment in a packet, which is all ones if its checksum is right.
fn sum_of(packet: &[u8]) -> u16 {
    let packet = ip::Packet::parse(packet).unwrap();
    let len = packet.payload().len() as u32;
    pseudo(packet.src(), packet.dst(), Protocol::TCP, len).add_bytes(packet.payload()).finish()
}

/// One tells nothing new of itself, and of a packet nothing but the packet's own.
fn check_acknowledgement(data: &[u8]) {
    let Some(packet) = around(Version::V4, data) else { return };
    let Some(packet) = ip::Packet::parse(&packet).ok() else { return };
    let Some(ack) = tcp::Acknowledgement::of(&packet) else { return };
    assert_eq!(ack.number().to_be_bytes(), data[8..12]);
    assert!(!ack.advances(&ack) && ack.repeats(&ack) == ack.is_pure());
    assert!(!ack.is_pure() || data.len() == usize::from(data[12] >> 4) * 4);
    assert!(!ack.tells_all_of(&ack) || ack.is_pure());
    let _ = tcp::Acknowledgement::is_intact(&packet);
}

fn check_udp(data: &[u8]) {
    let Ok(datagram) = udp::Datagram::parse(data) else { return };
    assert!(data.starts_with(datagram.bytes()));
    assert_eq!(datagram.len(), udp::HEADER_LEN + datagram.payload().len());
    let mut header = [0; udp::HEADER_LEN];
    udp::emit(&mut header, datagram.src_port(), datagram.dst_port(), datagram.payload().len()).unwrap();
    assert_eq!(header[..6], data[..6]);
    assert_eq!(datagram.checksum().to_be_bytes(), data[6..8]);
}

/// Against RFC 1071's own loop, whole and cut in two.
fn check_checksum(data: &[u8]) {
    let mut reference = 0u32;
    for pair in data.chunks(2) {
        reference += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        reference = (reference & 0xffff) + (reference >> 16);
    }
    let sum = Sum::ZERO.add_bytes(data);
    assert_eq!(u32::from(!sum.finish()), reference);
    assert_eq!(sum.is_valid(), reference == 0xffff);
    let (a, b) = data.split_at((data.len() / 3) & !1);
    assert_eq!(Sum::ZERO.add_bytes(b).add(Sum::ZERO.add_bytes(a)).finish(), sum.finish());
    let mut copy = vec![0; data.len()];
    assert_eq!(copy_and_sum(&mut copy, data).finish(), sum.finish());
    assert_eq!(copy, data);
    check_pseudo(data, sum);
}

/// Against the pseudo-headers of RFC 9293 and RFC 8200, byte by byte.
fn check_pseudo(data: &[u8], sum: Sum) {
    let Some((&[a, b, c, d], _)) = data.split_first_chunk() else { return };
    let len = data.len() as u32;
    let (src, dst) = ([a, b, c, d], [d, c, b, a]);
    let v4 = [&src[..], &dst, &[0, Protocol::TCP.0], &(len as u16).to_be_bytes()].concat();
    let given = pseudo(IpAddr::V4(Ipv4Addr::from(src)), IpAddr::V4(Ipv4Addr::from(dst)), Protocol::TCP, len);
    assert_eq!(given.finish(), pseudo_v4(src.into(), dst.into(), Protocol::TCP, len).finish());
    if len < 0x1_0000 {
        assert_eq!(given.add(sum).finish(), Sum::ZERO.add_bytes(&v4).add(sum).finish());
    }
    let (src, dst) = ([a; 16], [b; 16]);
    let v6 = [&src[..], &dst, &len.to_be_bytes(), &[0, 0, 0, Protocol::UDP.0]].concat();
    let given = pseudo(IpAddr::V6(Ipv6Addr::from(src)), IpAddr::V6(Ipv6Addr::from(dst)), Protocol::UDP, len);
    assert_eq!(given.finish(), pseudo_v6(src.into(), dst.into(), Protocol::UDP, len).finish());
    assert_eq!(given.add(sum).finish(), Sum::ZERO.add_bytes(&v6).add(sum).finish());
}
