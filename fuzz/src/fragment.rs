//! Fragments: what one says, and that those a packet is cut in are that packet.

use strait_wire::fragment::{Cutter, Fragment};
use strait_wire::ip::{self, Front, Version};

/// Two bytes of MTU, then a packet.
pub fn check(data: &[u8]) {
    let Some((mtu, packet)) = data.split_first_chunk() else { return };
    let mtu = usize::from(u16::from_be_bytes(*mtu));
    if let Ok(Some(fragment)) = Fragment::parse(packet) {
        check_view(packet, &fragment);
    }
    let Some(fragments) = cut(packet, mtu) else { return };
    let packet = &packet[..ip::declared_len(packet).unwrap()];
    if packet.len() <= mtu {
        assert_eq!(fragments, [packet]);
        return;
    }
    let views: Vec<_> = fragments.iter().map(|bytes| Fragment::parse(bytes).unwrap().unwrap()).collect();
    for (one, next) in views.iter().zip(&views[1..]) {
        assert!(one.header.more);
        assert_eq!(one.header.id, next.header.id);
        assert_eq!(usize::from(one.header.offset) + one.payload.len(), usize::from(next.header.offset));
    }
    let payload: Vec<u8> = views.iter().flat_map(|view| view.payload).copied().collect();
    let mut whole = vec![0; views[0].front.len];
    views[0].emit_front(&mut whole, payload.len()).unwrap();
    whole.extend_from_slice(&payload);
    let mut expected = packet.to_vec();
    if ip::version_of(packet) == Some(Version::V4) {
        // A fragment that was cut again is still one; the reserved flag is not passed on, a wrong checksum neither.
        expected[6..8].copy_from_slice(&[0, 0]);
        let front = Front::parse(packet).unwrap();
        front.refit(&mut expected, front.next, packet.len()).unwrap();
    }
    assert_eq!(whole, expected);
}

fn check_view(packet: &[u8], fragment: &Fragment<'_>) {
    let offset = usize::from(fragment.header.offset);
    assert!(offset.is_multiple_of(8) && offset + fragment.payload.len() <= 65_535);
    assert!(!fragment.header.more || fragment.payload.len().is_multiple_of(8));
    let mut whole = vec![0; fragment.front.len];
    fragment.emit_front(&mut whole, fragment.payload.len()).unwrap();
    whole.extend_from_slice(fragment.payload);
    assert!(whole.len() <= packet.len());
    assert_eq!(ip::declared_len(&whole), Ok(whole.len()));
}

/// All fragments; `None` when the packet cannot be cut.
fn cut(packet: &[u8], mtu: usize) -> Option<Vec<Vec<u8>>> {
    let mut cutter = Cutter::new(packet, mtu, 7).ok()?;
    let mut buf = vec![0; mtu];
    let mut fragments = Vec::new();
    while let Some(len) = cutter.cut(&mut buf).ok()? {
        fragments.push(buf[..len].to_vec());
    }
    Some(fragments)
}
