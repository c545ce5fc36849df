//! Fragments of both versions (RFC 791 section 3.2, RFC 8200 section 4.5): what one says, and how a packet is cut in
//! such.

use crate::ip::{
    DONT_FRAGMENT, Front, HeaderPlace, V4_HEADER_LEN, V6_HEADER_LEN, Version, declared_len, version_of,
};
use crate::{Malformed, Protocol, field};

mod cutter;

pub use cutter::Cutter;

/// The fragment header of IPv6.
pub const HEADER_LEN: usize = 8;

/// Where IPv4 has flags and fragment offset.
const V4_WORD_AT: usize = 6;
/// "More fragments" there.
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
    /// Whether more fragments follow this one.
    pub more: bool,
}

impl Header {
    /// From the fixed IPv4 header.
    pub(crate) fn from_v4(fixed: &[u8; V4_HEADER_LEN]) -> Header {
        let id = u32::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let word = u16::from_be_bytes([fixed[V4_WORD_AT], fixed[V4_WORD_AT + 1]]);
        Header { id, offset: (word & V4_OFFSET) << 3, more: word & V4_MORE != 0 }
    }

    /// Into an IPv4 header, whose identification and "don't fragment" stay and whose checksum is no longer right.
    fn put_v4(self, header: &mut [u8]) -> Option<()> {
        let kept = field::u16_at(header, V4_WORD_AT)? & DONT_FRAGMENT;
        let more = if self.more { V4_MORE } else { 0 };
        field::put(header, V4_WORD_AT, (kept | more | self.offset >> 3).to_be_bytes())
    }

    /// IPv6's fragment header, what it says it precedes, and what follows it.
    ///
    /// # Errors
    /// [`Malformed`] when there are fewer than 8 bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Header, Protocol, &[u8]), Malformed> {
        let (&[next, _, w0, w1, a, b, c, d], rest) = field::split_header("ipv6 fragment header", bytes)?;
        let word = u16::from_be_bytes([w0, w1]);
        let id = u32::from_be_bytes([a, b, c, d]);
        Ok((Header { id, offset: word & V6_OFFSET, more: word & V6_MORE != 0 }, Protocol(next), rest))
    }

    /// Writes IPv6's fragment header at the start of `buf`, before something that is `next`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than 8 bytes.
    pub fn emit(self, next: Protocol, buf: &mut [u8]) -> Result<(), Malformed> {
        let more = if self.more { V6_MORE } else { 0 };
        let [w0, w1] = (self.offset & V6_OFFSET | more).to_be_bytes();
        let [a, b, c, d] = self.id.to_be_bytes();
        field::emit_header("buffer for an ipv6 fragment header", buf, [next.0, 0, w0, w1, a, b, c, d])
    }

    /// Whether this is the only fragment of its datagram, which IPv6 calls atomic (RFC 6946).
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.offset == 0 && !self.more
    }
}

/// A fragment that can be a piece of a packet: not empty, and neither ragged nor beyond the longest packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// Its place in the datagram.
    pub header: Header,
    /// What the packet it is of has in front, if this is the first (offset 0); no fragment header is in it.
    pub front: Front,
    /// Its share of what follows the front.
    pub payload: &'a [u8],
    /// The fragment, of which `front` delimits the first bytes.
    packet: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// Reads a fragment, also one that is the whole of an IPv6 packet; `None` when this is none.
    ///
    /// # Errors
    /// [`Malformed`] when [`Front::parse`] says so, when the fragment is empty or not a multiple of 8 long though
    /// others come behind, or reaches beyond the longest packet (RFC 8200 section 4.5).
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Fragment<'a>>, Malformed> {
        let front = Front::parse(bytes)?;
        let packet = bytes.get(..declared_len(bytes)?).unwrap_or_default();
        let Some(header) = front.fragment else { return Ok(None) };
        let payload = packet.get(front.len..).unwrap_or_default();
        let front = match packet.first_chunk() {
            Some(fixed) if version_of(packet) == Some(Version::V6) => before_header(front, fixed, packet)?,
            _ => Front { fragment: None, ..front },
        };
        let fragment = Fragment { header, front, payload, packet };
        fragment.check().map(|()| Some(fragment))
    }

    fn check(&self) -> Result<(), Malformed> {
        let Header { offset, more, .. } = self.header;
        if self.payload.is_empty() && !self.header.is_whole() || more && !self.payload.len().is_multiple_of(8)
        {
            return Err(Malformed::new("length of a fragment", self.payload));
        }
        let end = self.front.len + usize::from(offset) + self.payload.len();
        if end > self.packet_max() {
            return Err(Malformed::new("end of a fragment", self.payload));
        }
        Ok(())
    }

    /// The longest packet the length field can say.
    fn packet_max(&self) -> usize {
        let beside = if version_of(self.packet) == Some(Version::V6) { V6_HEADER_LEN } else { 0 };
        usize::from(u16::MAX) + beside
    }

    /// Writes what the whole packet has in front, when `payload_len` bytes follow, at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than the front or the packet is too long.
    pub fn emit_front(&self, buf: &mut [u8], payload_len: usize) -> Result<(), Malformed> {
        let malformed = Malformed::new("buffer for the headers of a packet", buf);
        let buf = buf.get_mut(..self.front.len).ok_or(malformed)?;
        buf.copy_from_slice(self.packet.get(..self.front.len).ok_or(malformed)?);
        if version_of(buf) == Some(Version::V4) {
            Header { offset: 0, more: false, ..self.header }.put_v4(buf).ok_or(malformed)?;
        }
        self.front.refit(buf, self.front.next, self.front.len.saturating_add(payload_len))
    }
}

/// The front without the fragment header that ends it.
fn before_header(front: Front, fixed: &[u8; V6_HEADER_LEN], packet: &[u8]) -> Result<Front, Malformed> {
    let mut place = HeaderPlace::behind(fixed);
    // The front ends with one, so this does.
    while place.next != Protocol::FRAGMENT {
        place = place.pass(packet)?;
    }
    Ok(Front { len: place.at, next_at: place.next_at, fragment: None, ..front })
}

#[cfg(test)]
mod tests;
