//! The headers that stay in front of where AH, ESP and IPComp go, and of what fragments share out.

use super::chain::{self, Border};
use super::{
    V4_HEADER_LEN, V4_PROTOCOL_AT, V6_HEADER_LEN, Version, declared_len, v4_header_checksum, v4_header_len,
    version_of,
};
use crate::{Malformed, Protocol, field, fragment};

/// Fronts longer than this are refused: a choice. IPv4 headers have at most 60 bytes; behind an IPv6 header there is
/// room for a routing header with 24 addresses and 80 bytes of options.
pub const FRONT_MAX: usize = 512;

/// Where a packet's headers for the way end and what it carries begins.
///
/// In front are the IPv4 header with its options, or the IPv6 header with hop-by-hop options, routing header and
/// fragment header, and destination options if one of these, AH, ESP or IPComp stands behind them (RFC 8200 section 4.1,
/// RFC 4302 section 3.1.1, RFC 4303 section 3.1.1, RFC 3173 section 3.2). A fragment header is always the last in
/// front: what follows it is only known once the datagram is put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Front {
    /// Bytes in front, 20 to [`FRONT_MAX`].
    pub len: usize,
    /// What follows.
    pub next: Protocol,
    /// Where the front says so, in bytes from the start of the packet; below `len`.
    pub next_at: usize,
    /// The fragment header, also one that says "whole" (RFC 6946); in IPv4 only if this is a piece.
    pub fragment: Option<fragment::Header>,
}

impl Front {
    /// Finds the end of the front, within the packet's own length.
    ///
    /// # Errors
    /// [`Malformed`] when a length is wrong, a header is cut short (a jumbogram's is: RFC 2675 makes its length 0),
    /// hop-by-hop options are not first, 8 extension headers or more come before the end is known, or the front is
    /// longer than [`FRONT_MAX`].
    pub fn parse(bytes: &[u8]) -> Result<Front, Malformed> {
        Front::up_to(Border::Ipsec, bytes)
    }

    /// The same for what every fragment of this packet repeats: destination options stay in front only of a
    /// routing header (RFC 8200 section 4.5).
    ///
    /// # Errors
    /// As [`Front::parse`].
    pub(crate) fn of_fragments(bytes: &[u8]) -> Result<Front, Malformed> {
        Front::up_to(Border::Fragment, bytes)
    }

    fn up_to(border: Border, bytes: &[u8]) -> Result<Front, Malformed> {
        let len = declared_len(bytes)?;
        let packet = bytes.get(..len).ok_or(Malformed::new("ip packet cut short", bytes))?;
        let front = match version_of(packet) {
            Some(Version::V4) => Front::v4(packet),
            Some(Version::V6) => Front::v6(packet, border),
            None => Err(Malformed::new("ip version", packet)),
        }?;
        if front.len > FRONT_MAX {
            return Err(Malformed::new("length of the headers in front", packet));
        }
        Ok(front)
    }

    fn v4(packet: &[u8]) -> Result<Front, Malformed> {
        let (fixed, _) = field::split_header::<V4_HEADER_LEN>("ipv4 header", packet)?;
        let len = v4_header_len(packet).filter(|len| *len <= packet.len());
        let len = len.ok_or(Malformed::new("ipv4 header length", packet))?;
        let fragment = fragment::Header::from_v4(fixed);
        let next = Protocol(fixed[V4_PROTOCOL_AT]);
        Ok(Front { len, next, next_at: V4_PROTOCOL_AT, fragment: Some(fragment).filter(|of| !of.is_whole()) })
    }

    fn v6(packet: &[u8], border: Border) -> Result<Front, Malformed> {
        let (fixed, _) = field::split_header::<V6_HEADER_LEN>("ipv6 header", packet)?;
        let chain::HeaderPlace { at, next, next_at, fragment } = chain::front(fixed, packet, border)?;
        Ok(Front { len: at, next, next_at, fragment })
    }

    /// Makes the front, which `bytes` begins with, say that `next` follows it and that the packet has `packet_len`
    /// bytes, front included; IPv4's checksum is made anew.
    ///
    /// # Errors
    /// [`Malformed`] when `bytes` does not hold the front, `packet_len` is less than the front or more than the
    /// version can say.
    pub fn refit(&self, bytes: &mut [u8], next: Protocol, packet_len: usize) -> Result<(), Malformed> {
        let malformed = Malformed::new("ip packet length", bytes);
        let version = version_of(bytes);
        let front = bytes.get_mut(..self.len).filter(|_| packet_len >= self.len).ok_or(malformed)?;
        let (len_at, said) = match version.ok_or(malformed)? {
            Version::V4 => (2, packet_len),
            Version::V6 => (4, packet_len - V6_HEADER_LEN.min(packet_len)),
        };
        let said = u16::try_from(said).map_err(|_| malformed)?;
        field::put(front, len_at, said.to_be_bytes()).ok_or(malformed)?;
        field::put(front, self.next_at, [next.0]).ok_or(malformed)?;
        if version == Some(Version::V4) {
            let checksum = v4_header_checksum(front).to_be_bytes();
            field::put(front, 10, checksum).ok_or(malformed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
