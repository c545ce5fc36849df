//! What a TCP segment tells of what its sender received, and when a later segment tells all of it (RFC 3449 section 5.2.1).

use super::{Segment, TcpFlags};
use crate::checksum::pseudo;
use crate::ip::{self, Packet, Version};
use crate::{Ecn, Protocol, Tos};

/// End of the option list, and an option of one byte (RFC 9293 section 3.2).
const END: u8 = 0;
const NOP: u8 = 1;
/// Ranges that came out of order (RFC 2018 section 3).
const SACK: u8 = 5;
/// Two timestamps (RFC 7323 section 3.2).
const TIMESTAMPS: u8 = 8;
/// Ranges for which there is room beside nothing else.
const RANGES_MAX: usize = 4;
/// The four bits behind the data offset: reserved, but for the last, which is AE (RFC 9768 section 3.1.2).
const RESERVED: u8 = 0x0f;
const AE: u8 = 0x01;
/// All that a segment may be marked with whose acknowledgement replaces an earlier one.
const PLAIN: u8 = TcpFlags::FIN.0 | TcpFlags::PSH.0 | TcpFlags::ACK.0 | TcpFlags::ECE.0 | TcpFlags::CWR.0;

/// A range of sequence numbers: its first, and the first behind it.
type SackRange = [u32; 2];

/// The acknowledgement in a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    seq: u32,
    ack: u32,
    window: u16,
    /// ECE, CWR and AE.
    echo: u8,
    stamps: Option<[u32; 2]>,
    ranges: [SackRange; RANGES_MAX],
    tos: Tos,
    /// Whether the segment has nothing but this to tell: no data, no end, and no other option.
    pure: bool,
}

impl Acknowledgement {
    /// That of a whole packet, if it is a TCP segment with one and without SYN, RST and URG.
    #[must_use]
    pub fn of(packet: &Packet<'_>) -> Option<Acknowledgement> {
        if packet.protocol() != Protocol::TCP || packet.is_fragment() {
            return None;
        }
        let segment = Segment::parse(packet.payload()).ok()?;
        let (flags, reserved) = (segment.flags(), segment.bytes().get(12)? & RESERVED);
        if !flags.contains(TcpFlags::ACK) || flags.bits() & !PLAIN != 0 || reserved & !AE != 0 {
            return None;
        }
        let options = AckOptions::read(segment.options());
        let bare = match packet.version() {
            Version::V4 => packet.header_len() == ip::V4_HEADER_LEN,
            Version::V6 => packet.header_len() == ip::V6_HEADER_LEN,
        };
        let ends = flags.bits() & (TcpFlags::FIN.0 | TcpFlags::PSH.0) != 0;
        Some(Acknowledgement {
            seq: segment.seq(),
            ack: segment.ack(),
            window: segment.window(),
            echo: flags.bits() & (TcpFlags::ECE.0 | TcpFlags::CWR.0) | reserved,
            stamps: options.stamps,
            ranges: options.ranges,
            tos: packet.tos(),
            pure: bare && !ends && segment.payload().is_empty() && options.known,
        })
    }

    /// Whether the checksum of the segment that this is of is right: only then does its receiver take it.
    #[must_use]
    pub fn is_intact(packet: &Packet<'_>) -> bool {
        let Ok(len) = u32::try_from(packet.payload().len()) else { return false };
        pseudo(packet.src(), packet.dst(), Protocol::TCP, len).add_bytes(packet.payload()).is_valid()
    }

    /// The number that it acknowledges: all before it came.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.ack
    }

    /// Whether the segment has nothing else to tell.
    #[must_use]
    pub const fn is_pure(&self) -> bool {
        self.pure
    }

    /// Whether it tells of ranges that came out of order.
    #[must_use]
    pub fn has_ranges(&self) -> bool {
        self.ranges.iter().any(|range| !is_empty(range))
    }

    /// Whether it repeats an earlier one of the same flow (RFC 5681 section 2): a pure one with the same number and window.
    #[must_use]
    pub fn repeats(&self, earlier: &Acknowledgement) -> bool {
        self.pure && (self.seq, self.ack, self.window) == (earlier.seq, earlier.ack, earlier.window)
    }

    /// Whether it acknowledges more than an earlier one of the same flow.
    #[must_use]
    pub fn advances(&self, earlier: &Acknowledgement) -> bool {
        is_before(earlier.ack, self.ack)
    }

    /// Whether who gets this one learns nothing from `earlier`, the segment right before it in the same flow, but that it acknowledged
    /// less or the same: no data, no range, no congestion mark, no timestamp that this one does not have or exceed.
    #[must_use]
    pub fn tells_all_of(&self, earlier: &Acknowledgement) -> bool {
        let ordered = match (earlier.stamps, self.stamps) {
            (None, None) => true,
            (Some(before), Some(now)) => {
                before.iter().zip(&now).all(|(before, now)| !is_before(*now, *before))
            }
            _ => false,
        };
        earlier.pure
            && ordered
            && self.seq == earlier.seq
            && !is_before(self.ack, earlier.ack)
            && self.echo == earlier.echo
            && self.tos.dscp() == earlier.tos.dscp()
            && earlier.tos.ecn() != Ecn::Ce
            && !earlier.tells_of_duplicate()
            && earlier.ranges.iter().all(|range| self.covers(range))
    }

    /// Whether the first range is one that came twice (RFC 2883 section 4).
    fn tells_of_duplicate(&self) -> bool {
        let [first, second, ..] = self.ranges;
        let within = !is_before(first[0], second[0]) && !is_before(second[1], first[1]);
        !is_empty(&first) && (!is_before(self.ack, first[1]) || !is_empty(&second) && within)
    }

    /// Whether this tells that all of a range came.
    fn covers(&self, range: &SackRange) -> bool {
        let [from, to] = *range;
        let mut known = self.ranges.iter().filter(|known| !is_empty(known));
        is_empty(range)
            || !is_before(self.ack, to)
            || known.any(|known| !is_before(from, known[0]) && !is_before(known[1], to))
    }
}

/// The options of a segment that say something of what was received.
#[derive(Default)]
struct AckOptions {
    stamps: Option<[u32; 2]>,
    ranges: [SackRange; RANGES_MAX],
    /// Whether they are all: well formed, each once, and no other.
    known: bool,
}

impl AckOptions {
    fn read(mut bytes: &[u8]) -> AckOptions {
        let mut options = AckOptions { known: true, ..AckOptions::default() };
        loop {
            bytes = match *bytes {
                [] | [END, ..] => return options,
                [NOP, ref rest @ ..] => rest,
                [kind, len, ref rest @ ..] => {
                    let body = usize::from(len).checked_sub(2).and_then(|len| rest.split_at_checked(len));
                    let Some((body, rest)) = body else { return AckOptions::default() };
                    options.known &= options.take(kind, body);
                    rest
                }
                _ => return AckOptions::default(),
            };
        }
    }

    /// Takes one option; false when it is another, or comes again.
    fn take(&mut self, kind: u8, body: &[u8]) -> bool {
        let (pairs, rest) = body.as_chunks::<8>();
        let pair = |&[a, b, c, d, e, f, g, h]: &[u8; 8]| {
            [u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])]
        };
        match (kind, pairs) {
            (TIMESTAMPS, [stamps]) if rest.is_empty() && self.stamps.is_none() => {
                self.stamps = Some(pair(stamps));
                true
            }
            (SACK, [_, ..]) if rest.is_empty() && pairs.len() <= RANGES_MAX && is_empty(&self.ranges[0]) => {
                self.ranges.iter_mut().zip(pairs).for_each(|(range, edges)| *range = pair(edges));
                true
            }
            _ => false,
        }
    }
}

/// No range.
const fn is_empty(range: &SackRange) -> bool {
    range[0] == range[1]
}

/// Whether a number or a timestamp is before another: they wrap (RFC 9293 section 3.4, RFC 7323 section 5.2).
const fn is_before(one: u32, other: u32) -> bool {
    one != other && other.wrapping_sub(one) < 1 << 31
}

#[cfg(test)]
mod tests;
