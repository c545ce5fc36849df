//! Packets as a host hands them to the tunnel device.

use std::net::Ipv4Addr;

use strait_wire::{ip, vnet};

/// Inner addresses of the sending and the receiving host.
pub(super) const FROM: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub(super) const TO: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

/// Headers of IPv4 and TCP without options.
const HEADERS: usize = 40;
/// Payload of a 1,400-byte packet.
const STEP: u16 = 1360;
/// Payload of the longest super-packet of whole segments: 47 of them.
pub(super) const SUPER: usize = STEP as usize * 47;
/// Payload of a 100-byte packet.
pub(super) const SMALL: usize = 60;

/// A packet and what the host says of it.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) header: vnet::Header,
    pub(super) bytes: Vec<u8>,
}

impl Given {
    /// How many packets it makes on the wire.
    pub(super) fn count(&self) -> u64 {
        let payload = self.bytes.len() - HEADERS;
        payload.div_ceil(usize::from(STEP)) as u64
    }

    /// Moves its place in the TCP stream, as in a real one.
    pub(super) fn set_seq(&mut self, seq: u32) {
        self.bytes[24..28].copy_from_slice(&seq.to_be_bytes());
    }
}

/// A TCP packet with `payload`, to be cut if it is longer than one packet, its checksum left to the device.
pub(super) fn tcp(payload: &[u8]) -> Given {
    let mut bytes = vec![0; HEADERS];
    let total = u16::try_from(HEADERS + payload.len()).unwrap_or(u16::MAX);
    // RFC 791 section 3.1: version and length, do not fragment, 64 hops, TCP.
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&total.to_be_bytes());
    bytes[6] = 0x40;
    bytes[8] = 64;
    bytes[9] = 6;
    bytes[12..16].copy_from_slice(&FROM.octets());
    bytes[16..20].copy_from_slice(&TO.octets());
    let sum = ip::v4_header_checksum(&bytes[..20]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    // RFC 9293 section 3.1: ports, five words of header, ACK.
    bytes[20..24].copy_from_slice(&[0x9c, 0x40, 0x13, 0x89]);
    bytes[32] = 0x50;
    bytes[33] = 0x10;
    bytes.extend_from_slice(payload);
    let (gso_type, gso_size) =
        if payload.len() > usize::from(STEP) { (vnet::GSO_TCPV4, STEP) } else { (vnet::GSO_NONE, 0) };
    let header = vnet::Header {
        flags: vnet::NEEDS_CSUM,
        gso_type,
        hdr_len: 40,
        gso_size,
        csum_start: 20,
        csum_offset: 16,
    };
    // The device leaves the pseudo-header's sum in the checksum's field.
    let len = total - 20;
    let pseudo = strait_wire::checksum::pseudo_v4(FROM, TO, strait_wire::Protocol::TCP, u32::from(len));
    bytes[36..38].copy_from_slice(&(!pseudo.finish()).to_be_bytes());
    Given { header, bytes }
}
