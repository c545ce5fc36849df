//! Fragments in any order, overlapping, contradicting, from several datagrams at once: what comes out was sent.

use std::collections::BTreeMap;
use std::time::Duration;

use strait_clock::Time;
use strait_ipsec::reassembly::{FragmentShare, Reassembly};
use strait_wire::fragment;
use strait_wire::ip::{Front, Packet, V4Header, V6Header, Version};
use strait_wire::{Protocol, Tos};

/// What was sent of a datagram: each byte's possible values by place, and the ends that were claimed.
#[derive(Default)]
struct Sent {
    bytes: BTreeMap<usize, Vec<u8>>,
    ends: Vec<usize>,
}

/// A byte of settings: whether what follows is one raw fragment, and whether its sender is a peer; or records of four bytes: place in units of 8
/// bytes, length, flags (more, version, two of identification, two of mark), quarters of a second to wait before.
pub fn check(data: &[u8]) {
    let Some((&settings, records)) = data.split_first() else { return };
    let mut reassembly = Reassembly::new();
    let (mut now, mut lost) = (Time::from_millis(1_000), 0);
    let share_of = |packet: &Packet<'_>| FragmentShare { owner: packet.src(), known: settings & 2 != 0 };
    if settings & 1 != 0 {
        let _ = reassembly
            .add(records, share_of, now, &mut lost)
            .map(|whole| whole.map(|packet| check_packet(packet)));
        return;
    }
    let mut sent: BTreeMap<(bool, u8), Sent> = BTreeMap::new();
    for (&[units, len, flags, wait], fill) in records.as_chunks().0.iter().zip(1..=u8::MAX) {
        now += Duration::from_millis(u64::from(wait) * 250);
        let (four, id, more) = (flags & 2 != 0, flags >> 2 & 3, flags & 1 != 0);
        // The place of bit 6 is far off, near the end of the longest packet.
        let offset = u16::from(units & 0x3f) * 8 + u16::from(units >> 6 & 1) * 64_992;
        let payload = vec![fill; usize::from(len)];
        let header = fragment::Header { id: u32::from(id), offset, more };
        let bytes = if four { v4(header, flags >> 4, &payload) } else { v6(header, flags >> 4, &payload) };
        let so_far = sent.entry((four, id)).or_default();
        for at in usize::from(offset)..usize::from(offset) + payload.len() {
            so_far.bytes.entry(at).or_default().push(fill);
        }
        if !more {
            so_far.ends.push(usize::from(offset) + payload.len());
        }
        if let Ok(Some(packet)) = reassembly.add(&bytes, share_of, now, &mut lost) {
            check_packet(packet);
            check_sent(packet, so_far);
        }
    }
    assert!(lost <= records.len() as u64 / 4);
}

/// It is whole, and no fragment.
fn check_packet(bytes: &[u8]) {
    let front = Front::parse(bytes).unwrap();
    assert_eq!(front.fragment, None);
    if let Ok(packet) = Packet::parse(bytes) {
        assert_eq!(packet.bytes().len(), bytes.len());
        assert!(packet.version() == Version::V6 || !packet.is_fragment());
    }
}

fn check_sent(bytes: &[u8], sent: &Sent) {
    let front = Front::parse(bytes).unwrap();
    assert_eq!(front.next, Protocol::ESP);
    let payload = &bytes[front.len..];
    assert!(sent.ends.contains(&payload.len()));
    for (at, byte) in payload.iter().enumerate() {
        assert!(sent.bytes[&at].contains(byte), "byte {at}");
    }
}

fn v4(header: fragment::Header, mark: u8, payload: &[u8]) -> Vec<u8> {
    let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let fixed = V4Header {
        src,
        dst,
        tos: Tos(mark & 3),
        id: header.id as u16,
        dont_fragment: false,
        protocol: Protocol::ESP,
        payload_len: payload.len(),
    };
    let mut bytes = vec![0; 20];
    fixed.emit(&mut bytes).unwrap();
    let word = header.offset >> 3 | u16::from(header.more) << 13;
    bytes[6..8].copy_from_slice(&word.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn v6(header: fragment::Header, mark: u8, payload: &[u8]) -> Vec<u8> {
    let (src, dst) = ([0xfd; 16].into(), [0xfe; 16].into());
    let payload_len = fragment::HEADER_LEN + payload.len();
    let fixed = V6Header { src, dst, tos: Tos(mark & 3), next: Protocol::FRAGMENT, payload_len };
    let mut bytes = vec![0; 48];
    fixed.emit(&mut bytes).unwrap();
    header.emit(Protocol::ESP, &mut bytes[40..]).unwrap();
    bytes.extend_from_slice(payload);
    bytes
}
