//! Changing a packet in place, its checksum kept right. Bytes that are not an IP header are left alone.

use super::{V4_HEADER_LEN, V6_HEADER_LEN, Version, v4_header_len, version_of};
use crate::checksum::Sum;
use crate::tos::{Ecn, Tos};

/// The fixed header, to write to.
enum RewrittenFields<'a> {
    V4(&'a mut [u8; V4_HEADER_LEN]),
    V6(&'a mut [u8; V6_HEADER_LEN]),
}

fn fixed(packet: &mut [u8]) -> Option<RewrittenFields<'_>> {
    match version_of(packet)? {
        Version::V4 => {
            v4_header_len(packet)?;
            packet.first_chunk_mut().map(RewrittenFields::V4)
        }
        Version::V6 => packet.first_chunk_mut().map(RewrittenFields::V6),
    }
}

/// Updates the header checksum for one changed word: HC' = ~(~HC + ~m + m') (RFC 1624 section 3, equation 3).
fn update_checksum(header: &mut [u8; V4_HEADER_LEN], old: [u8; 2], new: [u8; 2]) {
    let checksum = u16::from_be_bytes([header[10], header[11]]);
    let sum = Sum::ZERO.add_u16(!checksum).add_u16(!u16::from_be_bytes(old)).add_u16(u16::from_be_bytes(new));
    [header[10], header[11]] = sum.finish().to_be_bytes();
}

/// Writes type of service or traffic class.
pub fn set_tos(packet: &mut [u8], tos: Tos) {
    match fixed(packet) {
        Some(RewrittenFields::V4(header)) => {
            let old = [header[0], header[1]];
            header[1] = tos.0;
            update_checksum(header, old, [header[0], header[1]]);
        }
        Some(RewrittenFields::V6(header)) => {
            header[0] = header[0] & 0xf0 | tos.0 >> 4;
            header[1] = header[1] & 0x0f | tos.0 << 4;
        }
        None => {}
    }
}

/// Writes the congestion bits and leaves the code point.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    let tos = match fixed(packet) {
        Some(RewrittenFields::V4(header)) => Tos(header[1]),
        Some(RewrittenFields::V6(header)) => Tos(header[0] << 4 | header[1] >> 4),
        None => return,
    };
    set_tos(packet, tos.with_ecn(ecn));
}

/// Takes one from time to live or hop limit and returns what is left; `None` when it was 0 already or this
/// is no IP header. A packet with nothing left must not be forwarded (RFC 1812 section 5.3.1).
pub fn decrement_ttl(packet: &mut [u8]) -> Option<u8> {
    match fixed(packet)? {
        RewrittenFields::V4(header) => {
            let old = [header[8], header[9]];
            header[8] = header[8].checked_sub(1)?;
            update_checksum(header, old, [header[8], header[9]]);
            Some(header[8])
        }
        RewrittenFields::V6(header) => {
            header[7] = header[7].checked_sub(1)?;
            Some(header[7])
        }
    }
}

/// The checksum an IPv4 header (with its options, no more) should have; the field itself counts as 0
/// (RFC 791 section 3.1).
#[must_use]
pub fn v4_header_checksum(header: &[u8]) -> u16 {
    let before = header.get(..10).unwrap_or(header);
    let after = header.get(12..).unwrap_or_default();
    Sum::ZERO.add_bytes(before).add_bytes(after).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc1624_example() {
        // Section 4: HC 0xdd2f, m 0x5555, m' 0x3285 gives 0x0000, which the older equation 2 gets wrong.
        let mut header = [0; V4_HEADER_LEN];
        header[10..12].copy_from_slice(&[0xdd, 0x2f]);
        update_checksum(&mut header, [0x55, 0x55], [0x32, 0x85]);
        assert_eq!(header[10..12], [0, 0]);
    }
}
