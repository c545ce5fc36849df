//! Captures.

use strait_wire::ip::V4Header;
use strait_wire::{Protocol, Tos, udp};

/// A UDP packet of IPv4.
pub(crate) fn packet(src: [u8; 4], dst: [u8; 4], port: u16, payload: &[u8]) -> Vec<u8> {
    let header = V4Header {
        src: src.into(),
        dst: dst.into(),
        tos: Tos(0),
        id: 0,
        dont_fragment: false,
        protocol: Protocol::UDP,
        payload_len: udp::HEADER_LEN + payload.len(),
    };
    let mut bytes = vec![0; 28];
    header.emit(&mut bytes).unwrap();
    udp::emit(&mut bytes[20..], 50_000, port, payload.len()).unwrap();
    [bytes, payload.to_vec()].concat()
}

/// A pcap file of raw packets, a millisecond apart.
pub(crate) fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let word = |value: usize| u32::try_from(value).unwrap().to_le_bytes();
    let mut bytes = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 101].map(word).concat();
    for (at, packet) in packets.iter().enumerate() {
        bytes.extend([at / 1_000, at % 1_000 * 1_000, packet.len(), packet.len()].map(word).concat());
        bytes.extend(packet);
    }
    bytes
}
