//! IP packets in IP packets, which drivers join while their streams go on (GRO): cut again, with their checksums.
//!
//! What ESP, AH and IPComp protect is never joined. What IPComp did not make smaller comes without any of them, and the
//! kernel does not say where it was joined; a stream may as well be cut elsewhere.

use strait_ipsec::{SuperPacket, Unusable};
use strait_wire::{Protocol, ip, vnet};

/// Payload of a piece: with TCP's and IPv6's headers, what every path takes (RFC 8200 section 5).
const PIECE: u16 = 1280 - 40 - 20;
/// Where UDP's checksum stands in its header (RFC 768).
const UDP_CHECKSUM_AT: u16 = 6;

/// Gives `each` the packets of which `packet`, whose innermost checksum is not made yet, consists; they are made in
/// `room`.
///
/// # Errors
/// [`Unusable`] when it is no IP in IP, or `room` is smaller than a piece.
pub(super) fn apart(packet: &[u8], room: &mut [u8], mut each: impl FnMut(&mut [u8])) -> Result<(), Unusable> {
    let front = ip::Front::parse(packet).map_err(|_| Unusable)?;
    let (outer, inner) = packet.split_at_checked(front.len).ok_or(Unusable)?;
    let joined = SuperPacket::new(inner, &offload(&ip::Packet::parse(inner).map_err(|_| Unusable)?))?;
    for index in 0..joined.count() {
        let len = outer.len() + joined.len(index);
        let piece = room.get_mut(..len).ok_or(Unusable)?;
        let (head, body) = piece.split_at_mut_checked(outer.len()).ok_or(Unusable)?;
        head.copy_from_slice(outer);
        joined.write(index, body);
        front.refit(piece, front.next, len).map_err(|_| Unusable)?;
        each(piece);
    }
    Ok(())
}

/// What is left to do about `inner`.
fn offload(inner: &ip::Packet<'_>) -> vnet::Header {
    let gso_type = match (inner.protocol(), inner.version()) {
        (Protocol::TCP, ip::Version::V4) => vnet::GSO_TCPV4,
        (Protocol::TCP, ip::Version::V6) => vnet::GSO_TCPV6,
        (Protocol::UDP, _) => {
            let csum_start = u16::try_from(inner.header_len()).unwrap_or(u16::MAX);
            let csum_offset = UDP_CHECKSUM_AT;
            return vnet::Header { flags: vnet::NEEDS_CSUM, csum_start, csum_offset, ..vnet::Header::PLAIN };
        }
        _ => return vnet::Header::PLAIN,
    };
    vnet::Header { flags: vnet::NEEDS_CSUM, gso_type, gso_size: PIECE, ..vnet::Header::PLAIN }
}

#[cfg(test)]
mod tests;
