//! TCP, UDP and the checksum they share.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use strait_wire::checksum::{Sum, copy_and_sum, pseudo, pseudo_v4, pseudo_v6};
use strait_wire::tcp::TcpFlags;
use strait_wire::{Protocol, Tos, ip, tcp, udp};

/// One buffer, read as each.
pub fn check(data: &[u8]) {
    check_tcp(data);
    check_acknowledgement(data);
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

/// One tells nothing new of itself, and of a packet nothing but the packet's own.
fn check_acknowledgement(data: &[u8]) {
    let mut packet = vec![0; ip::V4_HEADER_LEN];
    let header = ip::V4Header {
        src: Ipv4Addr::new(10, 0, 0, 1),
        dst: Ipv4Addr::new(10, 0, 0, 2),
        tos: Tos(0),
        id: 0,
        dont_fragment: true,
        protocol: Protocol::TCP,
        payload_len: data.len(),
    };
    if header.emit(&mut packet).is_err() {
        return;
    }
    packet.extend_from_slice(data);
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
