//! TCP, UDP and the checksum they share.

use strait_wire::checksum::{Sum, copy_and_sum};
use strait_wire::{tcp, udp};

/// One buffer, read as each.
pub fn check(data: &[u8]) {
    check_tcp(data);
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
}

fn check_udp(data: &[u8]) {
    let Ok(datagram) = udp::Datagram::parse(data) else { return };
    assert!(data.starts_with(datagram.bytes()));
    assert_eq!(datagram.len(), udp::HEADER_LEN + datagram.payload().len());
    let mut header = [0; udp::HEADER_LEN];
    udp::emit(&mut header, datagram.src_port(), datagram.dst_port(), datagram.payload().len()).unwrap();
    assert_eq!(header[..6], data[..6]);
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
}
