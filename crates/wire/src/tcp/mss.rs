//! The maximum segment size that a SYN announces (RFC 9293 section 3.7.1), lowered where a packet passes that knows of a smaller path.

use super::{CHECKSUM, Segment, TcpFlags};
use crate::checksum::Sum;
use crate::ip::{self, Packet, Version};
use crate::{Protocol, field};

/// Ends the options (RFC 9293 section 3.1).
const END: u8 = 0;
/// Fills one byte between options (RFC 9293 section 3.1).
const NO_OPERATION: u8 = 1;
/// Maximum segment size (RFC 9293 section 3.1).
const MSS: u8 = 2;
/// Its kind, its length and two bytes of size.
const MSS_LEN: usize = 4;

/// The state of a checksum field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumField {
    /// It covers the segment, so that it changes with it.
    Whole,
    /// It holds the pseudo-header's sum or less; the segment is summed when it leaves.
    Unfinished,
}

/// Returns true for a packet that begins a TCP connection, or answers one that begins; false for fragments without the TCP header.
#[must_use]
pub fn is_syn(packet: &Packet<'_>) -> bool {
    packet.protocol() == Protocol::TCP
        && packet.payload().get(super::FLAGS).is_some_and(|flags| flags & TcpFlags::SYN.bits() != 0)
        && !packet.is_later_fragment()
}

/// Lowers the maximum segment size that a SYN in the IP packet at the beginning of `bytes` announces to what fits packets of `mtu`
/// bytes: without the fixed headers of IP and TCP, whatever options there are (RFC 6691). True if that changed the packet.
///
/// A size that is small enough is left alone, and so is a SYN without the option, for which the other end assumes a size that fits
/// any path (RFC 9293 section 3.7.1), any other packet, and one whose headers or options are damaged.
pub fn lower_mss(bytes: &mut [u8], mtu: usize, checksum: ChecksumField) -> bool {
    let Some((at, header_len, most)) = Packet::parse(bytes).ok().and_then(|packet| limit(&packet, mtu))
    else {
        return false;
    };
    let header = bytes.get_mut(at..at + header_len).unwrap_or_default();
    let (mut lowered, mut from) = (false, super::MIN_HEADER_LEN);
    while let Ok(Some(place)) = next_mss(header, from) {
        from = place + MSS_LEN;
        lowered |= lower(header, place + 2, most, checksum);
    }
    lowered
}

/// The place and the length of a SYN's TCP header, and the largest segment that fits packets of `mtu` bytes.
fn limit(packet: &Packet<'_>, mtu: usize) -> Option<(usize, usize, u16)> {
    let segment = is_syn(packet).then(|| Segment::parse(packet.payload()).ok())??;
    let ip_len = match packet.version() {
        Version::V4 => ip::V4_HEADER_LEN,
        Version::V6 => ip::V6_HEADER_LEN,
    };
    let most = u16::try_from(mtu.checked_sub(ip_len + super::MIN_HEADER_LEN)?).unwrap_or(u16::MAX);
    let header = segment.bytes().get(..segment.header_len())?;
    // Damage behind the first option is seen before that is changed.
    let mut from = super::MIN_HEADER_LEN;
    while let Some(place) = next_mss(header, from).ok()? {
        from = place + MSS_LEN;
    }
    Some((packet.header_len(), header.len(), most))
}

/// An option that is cut short, or whose length is not its own.
struct Damaged;

/// The next option with a maximum segment size, from the option at `at` of a TCP header on.
fn next_mss(header: &[u8], mut at: usize) -> Result<Option<usize>, Damaged> {
    loop {
        let len = match header.get(at) {
            None | Some(&END) => return Ok(None),
            Some(&NO_OPERATION) => 1,
            Some(kind) => {
                let len = header.get(at + 1).map(|len| usize::from(*len)).ok_or(Damaged)?;
                let fits = len >= 2 && at + len <= header.len();
                match (kind, fits) {
                    (&MSS, true) if len == MSS_LEN => return Ok(Some(at)),
                    (&MSS, _) | (_, false) => return Err(Damaged),
                    (_, true) => len,
                }
            }
        };
        at += len;
    }
}

/// Lowers the size at `at` of a TCP header to `most`, and the checksum with it; true if it was larger.
fn lower(header: &mut [u8], at: usize, most: u16, checksum: ChecksumField) -> bool {
    let Some(size) = field::u16_at(header, at).filter(|size| *size > most) else { return false };
    if field::put(header, at, most.to_be_bytes()).is_none() {
        return false;
    }
    if checksum == ChecksumField::Whole
        && let Some(sum) = field::u16_at(header, CHECKSUM.start)
    {
        // HC' = ~(~HC + ~m + m') (RFC 1624 section 3, equation 3). The halves of a field that lies across two words change places
        // (RFC 1071 section 2 (B)).
        let word = |size: u16| if at.is_multiple_of(2) { size } else { size.swap_bytes() };
        let sum = Sum::ZERO.add_u16(!sum).add_u16(!word(size)).add_u16(word(most));
        field::put(header, CHECKSUM.start, sum.finish().to_be_bytes());
    }
    true
}

#[cfg(test)]
mod tests;
