//! Packets of which seeds are made.

use strait_sim::{FlowShape, NodeId};
use strait_wire::{Protocol, ip, udp};

pub fn v4(protocol: Protocol, fragment_word: u16, payload: &[u8]) -> Vec<u8> {
    let [l0, l1] = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
    let [f0, f1] = fragment_word.to_be_bytes();
    let mut header = [0x45, 2, l0, l1, 0, 1, f0, f1, 64, protocol.0, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let checksum = ip::v4_header_checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&checksum);
    [&header[..], payload].concat()
}

pub fn v6(next: Protocol, payload: &[u8]) -> Vec<u8> {
    let [l0, l1] = u16::try_from(payload.len()).unwrap().to_be_bytes();
    let mut header = [0; 40];
    header[..8].copy_from_slice(&[0x60, 0x20, 0, 0, l0, l1, next.0, 64]);
    (header[8], header[9], header[23]) = (0xfd, 0x01, 1);
    (header[24], header[25], header[39]) = (0xfd, 0x01, 2);
    [&header[..], payload].concat()
}

pub fn tcp(flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let offset = u8::try_from((20 + options.len()) / 4).unwrap() << 4;
    let fixed = [0x13, 0x88, 0, 22, 0, 0, 0, 1, 0, 0, 0, 2, offset, flags, 0xff, 0xff, 0, 0, 0, 0];
    [&fixed[..], options, payload].concat()
}

pub fn datagram(payload: &[u8]) -> Vec<u8> {
    let mut bytes = [&[0; udp::HEADER_LEN][..], payload].concat();
    udp::emit(&mut bytes, 5353, 53, payload.len()).unwrap();
    bytes
}

pub fn shapes() -> [FlowShape; 2] {
    let (a, b) = (NodeId(0), NodeId(1));
    [FlowShape::new(a.inner_v4(5), b.inner_v4(6)), FlowShape::new(a.inner_v6(5), b.inner_v6(6))]
}
