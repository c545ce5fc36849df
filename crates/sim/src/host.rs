//! The host behind a node: what it was given, cut to single packets again.

use std::io::IoSlice;

use strait_clock::Time;
use strait_wire::checksum::{Sum, pseudo};
use strait_wire::tcp::{self, Segment, TcpFlags};
use strait_wire::{Protocol, ip, udp, vnet};

use crate::packet::{is_intact, low16, put16};

/// A packet that the host received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// When.
    pub at: Time,
    /// The IP packet.
    pub packet: Vec<u8>,
}

/// What one host received.
#[derive(Debug, Default)]
pub struct SimHost {
    delivered: Vec<Delivered>,
    writes: u64,
    damaged: u64,
}

impl SimHost {
    /// Takes a write to the device: one packet, or several as one super-packet.
    pub(crate) fn take(&mut self, header: &vnet::Header, bytes: &[u8], now: Time) {
        self.writes += 1;
        for packet in split(header, bytes) {
            self.damaged += u64::from(!is_intact(&packet));
            self.delivered.push(Delivered { at: now, packet });
        }
    }

    pub(crate) fn delivered(&self) -> &[Delivered] {
        &self.delivered
    }

    pub(crate) fn take_delivered(&mut self) -> Vec<Delivered> {
        core::mem::take(&mut self.delivered)
    }

    /// Writes to the device, each of one packet or several.
    #[must_use]
    pub const fn writes(&self) -> u64 {
        self.writes
    }

    /// Packets that were not whole or had a wrong checksum.
    #[must_use]
    pub const fn damaged(&self) -> u64 {
        self.damaged
    }
}

/// The bytes of a packet that comes in pieces.
pub(crate) fn joined(pieces: &[IoSlice<'_>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
    pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
    bytes
}

/// Cuts a super-packet as the kernel's generic segmentation does. It shares nothing with how super-packets are
/// made or cut on the packet path, so that each checks the other.
pub(crate) fn split(header: &vnet::Header, bytes: &[u8]) -> Vec<Vec<u8>> {
    let Ok(packet) = ip::Packet::parse(bytes) else { return vec![bytes.to_vec()] };
    if header.gso_type == vnet::GSO_NONE {
        let mut whole = bytes.to_vec();
        if header.flags & vnet::NEEDS_CSUM != 0 {
            finish(&mut whole, header);
        }
        return vec![whole];
    }
    let transport = match packet.protocol() {
        Protocol::TCP => Segment::parse(packet.payload()).map_or(0, |segment| segment.header_len()),
        _ => udp::HEADER_LEN,
    };
    let at = packet.header_len();
    let Some((headers, payload)) = bytes.split_at_checked(at + transport) else {
        return vec![bytes.to_vec()];
    };
    let step = usize::from(header.gso_size).max(1);
    let count = payload.len().div_ceil(step);
    let piece = |(index, chunk): (usize, &[u8])| {
        let mut piece = [headers, chunk].concat();
        segment(&mut piece, at, &packet, index, (index + 1 == count, index * step));
        piece
    };
    payload.chunks(step).enumerate().map(piece).collect()
}

/// Makes the headers of `piece` those of segment `index`, which begins `offset` bytes into the payload.
fn segment(
    piece: &mut [u8],
    at: usize,
    packet: &ip::Packet<'_>,
    index: usize,
    (last, offset): (bool, usize),
) {
    let len = piece.len();
    match packet.version() {
        ip::Version::V4 => {
            put16(piece, 2, low16(len));
            put16(piece, 4, packet.id().unwrap_or(0).wrapping_add(low16(index)));
            put16(piece, 10, 0);
            let sum = piece.get(..at).map_or(0, ip::v4_header_checksum);
            put16(piece, 10, sum);
        }
        ip::Version::V6 => put16(piece, 4, low16(len - ip::V6_HEADER_LEN)),
    }
    let field = match packet.protocol() {
        Protocol::TCP => {
            if let Some(seq) = piece.get_mut(at + tcp::SEQ.start..at + tcp::SEQ.end) {
                let first = seq.iter().fold(0_u32, |seq, byte| seq << 8 | u32::from(*byte));
                let number = first.wrapping_add(u32::try_from(offset).unwrap_or(0));
                seq.copy_from_slice(&number.to_be_bytes());
            }
            if !last && let Some(flags) = piece.get_mut(at + tcp::FLAGS) {
                *flags &= !(TcpFlags::PSH.bits() | TcpFlags::FIN.bits());
            }
            at + tcp::CHECKSUM.start
        }
        _ => {
            put16(piece, at + 4, low16(len - at));
            at + 6
        }
    };
    put16(piece, field, 0);
    let covered = u32::try_from(len - at).unwrap_or(0);
    let sum = pseudo(packet.src(), packet.dst(), packet.protocol(), covered)
        .add_bytes(piece.get(at..).unwrap_or_default())
        .finish();
    // UDP alone keeps zero for "no checksum" (RFC 768).
    let nothing = sum == 0 && packet.protocol() == Protocol::UDP;
    put16(piece, field, if nothing { 0xffff } else { sum });
}

fn finish(packet: &mut [u8], header: &vnet::Header) {
    let start = usize::from(header.csum_start);
    let sum = Sum::ZERO.add_bytes(packet.get(start..).unwrap_or_default()).finish();
    put16(packet, start + usize::from(header.csum_offset), if sum == 0 { 0xffff } else { sum });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowShape;

    #[test]
    fn super_packets_fall_into_the_segments_a_host_would_have_made() {
        for (src, dst) in [("10.0.1.1:1000", "10.0.2.1:2000"), ("[fd00::1]:1000", "[fd00::2]:2000")] {
            let shape = FlowShape::new(src.parse().unwrap(), dst.parse().unwrap());
            let payload: Vec<u8> = (0..=255).cycle().take(3001).collect();
            let (packet, header) = shape.tcp_super(u32::MAX - 500, &payload, 1000);
            let expected: Vec<Vec<u8>> = payload
                .chunks(1000)
                .zip(0..)
                .map(|(chunk, index): (&[u8], u32)| {
                    let flags = TcpFlags(if index == 3 { TcpFlags::PSH.bits() } else { 0 });
                    let mut one = shape.tcp((u32::MAX - 500).wrapping_add(index * 1000), flags, chunk);
                    if src.starts_with("10") {
                        put16(&mut one, 4, low16(index as usize));
                        put16(&mut one, 10, 0);
                        let sum = ip::v4_header_checksum(&one[..20]);
                        put16(&mut one, 10, sum);
                    }
                    one
                })
                .collect();
            assert_eq!(split(&header, &packet), expected);
            let (packet, header) = shape.udp_super(&payload, 700);
            let pieces = split(&header, &packet);
            assert_eq!(pieces.len(), 5);
            assert!(pieces.iter().all(|piece| is_intact(piece)));
        }
    }
}
