//! Headers of packets in a bundle: each set against the packet before of the same flow, gathered in front of the payloads.
//!
//! Works on whole IP packets one after another, as a bundle holds them, and on nothing else: no state outlives a
//! bundle, so a lost one costs no other. What comes out is shorter by itself, and what a codec makes of it is shorter
//! than what it makes of the packets, since headers that count upwards look different every time.
//!
//! ```text
//! length of the headers | headers of every packet | payloads
//!
//! headers of one packet: change | more | slot | fields that are not as expected
//! ```
//!
//! A field takes room only when it is not what the packet before lets expect, in the way of RFC 1144, RFC 2507 and the
//! profiles of robust header compression for TCP (RFC 6846) and UDP (RFC 3095); unlike there, what is expected comes from
//! the same bundle. Lengths follow from the payload's. Checksums that are right are left out and made again.
//!
//! Coded are IPv4 without options and IPv6, and behind them UDP, TCP and ICMP; behind anything else, such as extension
//! headers, fragments or ESP, the IP header alone. A packet whose headers would not come back bit for bit stays as it
//! is, and so do bytes that are no packet.
//!
//! Headers interleaved packet by packet are shorter than a column a field, whatever codec follows: in bundles of 8 by
//! 1.5 % of everything before Zstandard, and by 0.4 % still in bundles of 32.

mod change;
mod flow;
mod header;
mod lone;
mod options;
mod side;
mod slots;

use std::ops::Range;

use strait_wire::checksum::{Sum, copy_and_sum};
use strait_wire::ip;

use change::Change;
use header::{ChecksumKind, HeaderFields, LEN_MAX, Upper};
pub(crate) use lone::{ContextKey, PacketHeaders};
use side::CodingSide;
use slots::{Guesses, Slots};

/// Most packets of a bundle or a block, at both ends: the largest aggregation window, and so the most that a sender finds together.
/// What expands to more was made to do harm: 228 bytes can become 3,276 packets of 20.
pub const PACKETS_MAX: usize = 2_048;

/// Why a bundle could not be expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadersError {
    /// The bytes are not what [`Coder::encode`] writes.
    #[error("the headers of the block are not coded as they can be")]
    Malformed,
    /// They are more packets than allowed.
    #[error("the block has more than {most} packets")]
    TooMany {
        /// Packets allowed.
        most: usize,
    },
    /// The packets would be more bytes than agreed.
    #[error("the packets of the block are more than the {cap} bytes agreed")]
    TooLong {
        /// Bytes allowed.
        cap: usize,
    },
}

/// A field that is not as it is written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MalformedField;

impl From<MalformedField> for HeadersError {
    fn from(_: MalformedField) -> HeadersError {
        HeadersError::Malformed
    }
}

/// Packets that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FittingPackets {
    /// Bytes that they are.
    pub bytes: usize,
    /// Bytes that they are coded.
    pub len: usize,
}

/// Codes bundles, each by itself. It allocates nothing once it has seen a bundle as large as those to come.
#[derive(Debug)]
pub struct Coder {
    slots: Slots,
    guesses: Guesses,
    /// The headers of the bundle.
    headers: Vec<u8>,
    /// Where its payloads stand among its packets.
    payloads: Vec<Range<usize>>,
}

impl Default for Coder {
    fn default() -> Coder {
        Coder::new()
    }
}

impl Coder {
    /// A coder for bundles either way; it takes some 50 KiB.
    #[must_use]
    pub fn new() -> Coder {
        Coder { slots: Slots::new(), guesses: Guesses::new(), headers: Vec::new(), payloads: Vec::new() }
    }

    /// Codes `packets`, whole IP packets one after another, into the front of `output` and says how many bytes that took.
    ///
    /// `None` when it is not shorter, or does not fit: the caller says by the length of `output` how short it must be.
    pub fn encode(&mut self, packets: &[u8], output: &mut [u8]) -> Option<usize> {
        self.clear();
        let mut at = 0;
        while self.payloads.len() < PACKETS_MAX
            && let Some(packet) = packets.get(at..).and_then(first)
        {
            at += self.add(packet, at);
        }
        // What is no packet follows the last one's payload, and so do more packets than a bundle has.
        self.payloads.push(at..packets.len());
        self.gather(packets, output).filter(|len| *len < packets.len())
    }

    /// Codes as many of `packets` from the front as fit in `output`; `None` when that is none of them, or not shorter.
    pub fn encode_front(&mut self, packets: &[u8], output: &mut [u8]) -> Option<FittingPackets> {
        self.clear();
        let (mut bytes, mut payloads) = (0, 0);
        while self.payloads.len() < PACKETS_MAX
            && let Some(packet) = packets.get(bytes..).and_then(first)
        {
            let before = self.headers.len();
            self.add(packet, bytes);
            payloads += self.payloads.last().map_or(0, Range::len);
            if self.head().1 + self.headers.len() + payloads > output.len() {
                self.headers.truncate(before);
                self.payloads.pop();
                break;
            }
            bytes += packet.len();
        }
        let len = self.gather(packets, output)?;
        (len < bytes).then_some(FittingPackets { bytes, len })
    }

    fn clear(&mut self) {
        self.slots.clear();
        self.guesses.clear();
        self.headers.clear();
        self.payloads.clear();
    }

    /// One more packet, which stands at `at`; gives its length.
    fn add(&mut self, packet: &[u8], at: usize) -> usize {
        let end = at + packet.len();
        let headers = self.encode_headers(packet).unwrap_or(0);
        self.payloads.push(at + headers..end);
        packet.len()
    }

    /// The headers of one packet; gives their length in the packet, or none if it stays as it is.
    fn encode_headers(&mut self, packet: &[u8]) -> Option<usize> {
        let Some((mut header, len)) = read(packet) else {
            let mut change = Change::RAW;
            change.carry(&mut self.headers, &mut 0).ok()?;
            return None;
        };
        let mut slot = self.guesses.find(&self.slots, &header);
        let next = self.slots.get(slot)?.next();
        let expected = next.toward(header.kind);
        let mut change = Change::between(&next, &expected, &header, slot != self.slots.last());
        change.carry(&mut self.headers, &mut slot).ok()?;
        change.carry_kind(&mut self.headers, &mut header.kind).ok()?;
        change.carry_fields(&mut self.headers, &expected, &mut header).ok()?;
        let kept = self.slots.keep(slot, header);
        if kept != slot {
            self.guesses.note(&header, kept);
        }
        Some(len)
    }

    /// How long the headers are, as it is written, and how many bytes of that are.
    fn head(&self) -> ([u8; 5], usize) {
        // Headers of one bundle are less than its bytes.
        side::number(u32::try_from(self.headers.len()).unwrap_or(u32::MAX))
    }

    /// Puts headers and payloads together.
    fn gather(&self, packets: &[u8], output: &mut [u8]) -> Option<usize> {
        let (head, mut at) = (self.head(), 0);
        let mut put = |bytes: &[u8]| -> Option<()> {
            output.get_mut(at..at + bytes.len())?.copy_from_slice(bytes);
            at += bytes.len();
            Some(())
        };
        let (number, len) = head;
        put(number.get(..len)?)?;
        put(&self.headers)?;
        for payload in &self.payloads {
            put(packets.get(payload.clone())?)?;
        }
        Some(at)
    }

    /// Puts the packets of `coded` into the front of `output` and says how many bytes they are.
    ///
    /// The length of `output` is the cap: nothing is written past it. After an error the bytes of `output` mean nothing.
    ///
    /// # Errors
    /// [`HeadersError::TooLong`] when the packets do not fit in `output`, [`HeadersError::TooMany`] when they are more than
    /// [`PACKETS_MAX`], [`HeadersError::Malformed`] when `coded` is not what [`Coder::encode`] writes.
    pub fn expand(&mut self, coded: &[u8], output: &mut [u8]) -> Result<usize, HeadersError> {
        self.expand_at_most(PACKETS_MAX, coded, output)
    }

    /// The same, if no more than `most` packets have their headers in `coded`. What follows them without is the caller's to count.
    ///
    /// # Errors
    /// As of [`Coder::expand`].
    pub fn expand_at_most(
        &mut self,
        most: usize,
        mut coded: &[u8],
        output: &mut [u8],
    ) -> Result<usize, HeadersError> {
        let mut len = 0;
        coded.number(&mut len)?;
        let len = usize::try_from(len).map_err(|_| MalformedField)?;
        let (mut headers, mut payloads) = coded.split_at_checked(len).ok_or(MalformedField)?;
        self.slots.clear();
        let cap = output.len();
        let mut room = &mut *output;
        let mut packets = 0;
        while !headers.is_empty() {
            packets += 1;
            if packets > most {
                return Err(HeadersError::TooMany { most });
            }
            self.expand_packet(&mut headers, &mut payloads, &mut room, cap)?;
        }
        put(payloads, &mut room, cap)?;
        Ok(cap - room.len())
    }

    /// The next packet to the front of `room`, which becomes what is left of it.
    fn expand_packet(
        &mut self,
        headers: &mut &[u8],
        payloads: &mut &[u8],
        room: &mut &mut [u8],
        cap: usize,
    ) -> Result<(), HeadersError> {
        let mut slot = self.slots.last();
        let mut change = Change::RAW;
        change.carry(headers, &mut slot)?;
        if change == Change::RAW {
            let packet = first(payloads).ok_or(MalformedField)?;
            *payloads = payloads.get(packet.len()..).ok_or(MalformedField)?;
            put(packet, room, cap)?;
            return Ok(());
        }
        let next = self.slots.get(slot).ok_or(MalformedField)?.next();
        let mut kind = next.kind;
        change.carry_kind(headers, &mut kind)?;
        let expected = next.toward(kind);
        let mut header = expected;
        change.carry_fields(headers, &expected, &mut header)?;
        let len = usize::try_from(header.payload_len).map_err(|_| MalformedField)?;
        let payload = payloads.split_off(..len).ok_or(MalformedField)?;
        let place = room.split_off_mut(..header.len()).ok_or(HeadersError::TooLong { cap })?;
        let sum = put(payload, room, cap)?;
        header.write(sum, place).ok_or(MalformedField)?;
        self.slots.keep(slot, header);
        Ok(())
    }
}

/// The payloads in what [`Coder::encode`] wrote; none in anything else.
pub(crate) fn payloads(mut coded: &[u8]) -> &[u8] {
    let mut len = 0;
    let headers = coded.number(&mut len).ok().and_then(|()| usize::try_from(len).ok());
    headers.and_then(|len| coded.get(len..)).unwrap_or_default()
}

/// Copies bytes to the front of `room`, which becomes what is left of it, and gives their sum.
fn put(bytes: &[u8], room: &mut &mut [u8], cap: usize) -> Result<Sum, HeadersError> {
    let place = room.split_off_mut(..bytes.len()).ok_or(HeadersError::TooLong { cap })?;
    Ok(copy_and_sum(place, bytes))
}

/// The packet that stands first, by its own length.
fn first(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(..ip::declared_len(bytes).ok()?)
}

/// The headers of a packet and their length, if they can be made again as they stand.
fn read(packet: &[u8]) -> Option<(HeaderFields, usize)> {
    let (mut header, len) = HeaderFields::read(packet)?;
    let (headers, payload) = packet.split_at_checked(len)?;
    let sum = match header.kind.upper() {
        Upper::Other => Sum::ZERO,
        Upper::Udp | Upper::Tcp | Upper::Icmp => Sum::ZERO.add_bytes(payload),
    };
    let mut made = [0; LEN_MAX];
    let made = made.get_mut(..len)?;
    header.write(sum, made)?;
    if made != headers {
        header.check = ChecksumKind::Kept(header.check_in(headers)?);
        header.write(sum, made)?;
    }
    (made == headers).then_some((header, len))
}

#[cfg(test)]
pub(crate) mod tests;
