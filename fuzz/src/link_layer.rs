//! What stands in front of IP: a link type, then a frame of it.

use strait_advise::{LinkType, Mender, link_layer};
use strait_wire::ip::Packet;

/// One frame, kept whole and in part.
pub fn check(data: &[u8]) {
    let Some((link, frame)) = data.split_first_chunk() else { return };
    let Ok(Some(ip)) = link_layer::ip_bytes(LinkType(u16::from_be_bytes(*link)), frame) else { return };
    assert!(frame.ends_with(ip));
    let mut mender = Mender::default();
    for more in [0, 1, 1_500, 100_000] {
        let Some(mended) = mender.mend(ip, ip.len() + more) else { continue };
        assert!(mended.missing <= more);
        if let Ok(packet) = Packet::parse(mended.bytes) {
            assert_eq!(packet.bytes(), mended.bytes);
        }
    }
}
