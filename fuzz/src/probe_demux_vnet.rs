//! Path probes, what changed at the other end, pieces of streams, the kinds of datagram on the port, and the tunnel device's own header.

use strait_wire::demux::{DatagramKind, classify};
use strait_wire::lane::{LaneHeader, PACKET_MAX};
use strait_wire::{condition, probe, vnet};

/// One buffer, read as each.
pub fn check(data: &[u8]) {
    if let Ok(parsed) = probe::Probe::parse(data) {
        let mut bytes = [0xff; probe::LEN];
        parsed.emit(&mut bytes).unwrap();
        assert_eq!(bytes[..6], data[..6]);
        assert_eq!(bytes[6..], [0, 0]);
    }
    if let Ok(parsed) = condition::Condition::parse(data) {
        let mut bytes = [0xff; condition::LEN];
        parsed.emit(&mut bytes).unwrap();
        assert_eq!((bytes[0], &bytes[2..]), (data[0], &data[2..condition::LEN]));
    }
    if let Ok((header, piece)) = LaneHeader::parse(data) {
        let mut bytes = [0xff; PACKET_MAX];
        let len = header.emit(&piece, &mut bytes);
        // Zeros that need not travel may have.
        assert!(len <= data.len());
        assert_eq!(LaneHeader::parse(&bytes[..len]), Ok((header, piece)));
    }
    if let Ok((header, rest)) = vnet::Header::parse(data) {
        let mut bytes = [0; vnet::LEN];
        header.emit(&mut bytes);
        assert_eq!((&bytes[..], rest), data.split_at(vnet::LEN));
    }
    let expected = match (data.first(), data.len()) {
        (Some(0xff), 1) => DatagramKind::Keepalive,
        (Some(first), _) if *first > 0x3f => DatagramKind::Quic,
        (Some(first), _) if first >> 4 == 1 => DatagramKind::Sessionless,
        (Some(first), _) if *first < 0x10 && *first > 3 => DatagramKind::Esp,
        _ => DatagramKind::Unknown,
    };
    assert_eq!(classify(data), expected);
}
