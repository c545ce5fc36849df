//! IP packets of both versions: views agree with each other, rewriting keeps everything else.

use strait_wire::checksum::Sum;
use strait_wire::ip::{self, Packet, Version};
use strait_wire::tos::{Ecn, Tos};

/// One buffer that may hold a packet and bytes behind it.
pub fn check(data: &[u8]) {
    check_garbage(data);
    let Ok(packet) = Packet::parse(data) else { return };
    assert!(data.starts_with(packet.bytes()));
    assert_eq!(ip::declared_len(data), Ok(packet.bytes().len()));
    assert_eq!(ip::version_of(data), Some(packet.version()));
    assert_eq!(&packet.bytes()[packet.header_len()..], packet.payload());
    assert_eq!(packet.id().is_some(), packet.version() == Version::V4);
    assert_eq!(packet.dont_fragment(), packet.version() == Version::V6 || data[6] & 0x40 != 0);
    let flow = packet.flow();
    assert_eq!((flow.src, flow.dst, flow.protocol), (packet.src(), packet.dst(), packet.protocol()));
    if packet.is_later_fragment() {
        assert!(packet.is_fragment());
        assert_eq!((flow.src_port, flow.dst_port), (0, 0));
    }
    check_rewriting(&packet);
}

/// What is no packet may be rewritten too, and keeps its length and, without a version, every byte.
fn check_garbage(data: &[u8]) {
    let mut changed = data.to_vec();
    rewrite(&mut changed, Tos(0x5a));
    let _ = ip::v4_header_checksum(data);
    if ip::version_of(data).is_none() {
        assert_eq!(changed, data);
    }
}

fn check_rewriting(packet: &Packet<'_>) {
    let mut bytes = packet.bytes().to_vec();
    if packet.version() == Version::V4 {
        let header_len = packet.header_len();
        let checksum = ip::v4_header_checksum(&bytes[..header_len]);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    let mut changed = bytes.clone();
    let left = rewrite(&mut changed, Tos(packet.ttl()));
    let after = Packet::parse(&changed).unwrap();
    assert_eq!(left, packet.ttl().checked_sub(1));
    assert_eq!(after.ttl(), packet.ttl().saturating_sub(1));
    assert_eq!(after.tos(), Tos(packet.ttl()).with_ecn(Ecn::Ce));
    assert_eq!((after.flow(), after.payload()), (packet.flow(), packet.payload()));
    if packet.version() == Version::V4 {
        assert!(Sum::ZERO.add_bytes(&changed[..after.header_len()]).is_valid());
    }
}

fn rewrite(bytes: &mut [u8], tos: Tos) -> Option<u8> {
    ip::set_tos(bytes, tos);
    ip::set_ecn(bytes, Ecn::Ce);
    ip::decrement_ttl(bytes)
}
