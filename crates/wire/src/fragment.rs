//! Fragments of both versions: where one lies in its datagram (RFC 791 section 3.1, RFC 8200 section 4.5).

use crate::ip::V4_HEADER_LEN;
use crate::{Malformed, Protocol, field};

/// The fragment header of IPv6.
pub const HEADER_LEN: usize = 8;

/// "More fragments" in IPv4's flags and fragment offset.
const V4_MORE: u16 = 0x2000;
/// The offset there, in units of 8 bytes.
const V4_OFFSET: u16 = 0x1fff;
/// "More fragments" beside the offset of IPv6's fragment header.
const V6_MORE: u16 = 1;
/// The offset there, a multiple of 8 bytes as it stands.
const V6_OFFSET: u16 = 0xfff8;

/// Where a fragment lies in its datagram: the fields that IPv4 has in every header, and IPv6 in one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// Names the datagram among those of the same source and destination (and protocol, in IPv4).
    pub id: u32,
    /// How many bytes of the datagram come before, a multiple of 8 up to 65,528.
    pub offset: u16,
    /// Whether others come behind.
    pub more: bool,
}

impl Header {
    /// From the fixed IPv4 header.
    pub(crate) fn from_v4(fixed: &[u8; V4_HEADER_LEN]) -> Header {
        let id = u32::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let word = u16::from_be_bytes([fixed[6], fixed[7]]);
        Header { id, offset: (word & V4_OFFSET) << 3, more: word & V4_MORE != 0 }
    }

    /// IPv6's fragment header, and what follows it.
    ///
    /// # Errors
    /// [`Malformed`] when there are fewer than 8 bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Header, Protocol, &[u8]), Malformed> {
        let (&[next, _, w0, w1, a, b, c, d], rest) = field::split_header("ipv6 fragment header", bytes)?;
        let word = u16::from_be_bytes([w0, w1]);
        let id = u32::from_be_bytes([a, b, c, d]);
        Ok((Header { id, offset: word & V6_OFFSET, more: word & V6_MORE != 0 }, Protocol(next), rest))
    }

    /// Whether this is the only fragment of its datagram, which IPv6 calls atomic (RFC 6946).
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.offset == 0 && !self.more
    }
}
