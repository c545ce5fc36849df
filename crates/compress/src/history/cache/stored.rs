//! A segment of a log as it is stored, before it is [sealed](super::SegmentVault).
//!
//! ```text
//! version 1 | number 8 | count 2 | { start 4, length 4 } of what is held, in order | the segment's bytes up to the log's end
//! ```
//!
//! Numbers are in network order. A segment's number is its position divided by [`SEGMENT`], starts are counted from there.

use std::ops::Range;

use strait_wire::history::SegmentDigest;

use super::SEGMENT;
use super::ranges::Ranges;
use super::ring::{Ring, SEGMENT_LEN};

const VERSION: u8 = 1;
/// Bytes before the ranges, and of each range.
const HEAD: usize = 11;
const RANGE: usize = 8;
/// Most ranges of a segment: as many as lost units of 1,024 bytes leave. What is beyond is not stored.
pub(super) const RANGES_MAX: usize = SEGMENT / 1_024;

/// Most bytes of a segment as it is stored.
pub const STORED_MAX: usize = HEAD + RANGES_MAX * RANGE + SEGMENT;

/// Why a stored segment is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// It is not what was stored.
    #[error("the segment is not stored as it can be")]
    Malformed,
    /// The log reaches there already: segments come in the order of their numbers, before anything else.
    #[error("the log ends behind the start of segment {number}")]
    Order {
        /// The segment's number.
        number: u64,
    },
    /// The node's memory for what it keeps of peers is used up.
    #[error("there is no memory to keep segment {number} in")]
    NoMemory {
        /// The segment's number.
        number: u64,
    },
}

/// A stored segment that was parsed.
struct Stored<'a> {
    number: u64,
    held: Vec<Range<u64>>,
    bytes: &'a [u8],
}

impl<'a> Stored<'a> {
    fn parse(stored: &'a [u8]) -> Option<Stored<'a>> {
        let (&[version], rest) = stored.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let count = usize::from(u16::from_be_bytes(*count));
        let number = u64::from_be_bytes(*number);
        let (ranges, bytes) = rest.split_at_checked(count * RANGE)?;
        let first = number.checked_mul(SEGMENT_LEN)?;
        let end = first.checked_add(bytes.len() as u64)?;
        if version != VERSION || count > RANGES_MAX || bytes.len() > SEGMENT {
            return None;
        }
        Some(Stored { number, held: parse_held(ranges, first..end)?, bytes })
    }
}

/// Ranges of these positions, in order, none of which touches the next.
fn parse_held(ranges: &[u8], within: Range<u64>) -> Option<Vec<Range<u64>>> {
    let mut held: Vec<Range<u64>> = Vec::with_capacity(ranges.len() / RANGE);
    for [a, b, c, d, e, f, g, h] in ranges.as_chunks::<RANGE>().0 {
        let start = within.start.checked_add(u32::from_be_bytes([*a, *b, *c, *d]).into())?;
        let end = start.checked_add(u32::from_be_bytes([*e, *f, *g, *h]).into())?;
        if start >= end || end > within.end || held.last().is_some_and(|before| start <= before.end) {
            return None;
        }
        held.push(start..end);
    }
    Some(held)
}

/// The positions that a digest says are held.
pub(super) fn held(digest: &SegmentDigest) -> impl Iterator<Item = Range<u64>> {
    let first = positions(digest.number).start;
    digest.ranges().iter().map(move |(start, len)| {
        let start = first.saturating_add(u64::from(*start));
        start..start.saturating_add(u64::from(*len))
    })
}

/// The positions of a segment.
pub(super) fn positions(number: u64) -> Range<u64> {
    let start = number.saturating_mul(SEGMENT_LEN);
    start..start.saturating_add(SEGMENT_LEN)
}

impl Ring {
    /// The numbers of the segments below this one of which something is held and nothing was overwritten, from the highest down.
    pub(super) fn held_below(&self, number: u64) -> impl Iterator<Item = u64> {
        let first = self.capacity().oldest(self.end()).div_ceil(SEGMENT_LEN);
        let end = self.end().div_ceil(SEGMENT_LEN).min(number);
        (first..end).rev().filter(|number| self.held_in(*number).next().is_some())
    }

    /// What is held of a segment.
    pub(super) fn held_in(&self, number: u64) -> impl Iterator<Item = Range<u64>> {
        self.held().within(positions(number)).take(RANGES_MAX)
    }

    /// Writes a segment as it is stored to the end of `out`; false where nothing of it is held.
    pub(super) fn store(&self, number: u64, out: &mut Vec<u8>) -> bool {
        let segment = positions(number);
        let count = self.held_in(number).count();
        let Ok(count) = u16::try_from(count) else { return false };
        if count == 0 || segment.start < self.capacity().oldest(self.end()) {
            return false;
        }
        out.push(VERSION);
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&count.to_be_bytes());
        for range in self.held_in(number) {
            for value in [range.start - segment.start, range.end - range.start] {
                // Both are no more than a segment has.
                out.extend_from_slice(&(value as u32).to_be_bytes());
            }
        }
        for chunk in self.chunks(segment.start..segment.end.min(self.end())) {
            out.extend_from_slice(chunk);
        }
        true
    }

    /// The same of a segment that changed, the lowest; its number.
    pub(super) fn store_changed(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        loop {
            let number = self.next_changed()?;
            if self.store(number, out) {
                return Some(number);
            }
        }
    }

    /// Takes a stored segment. Segments come in the order of their numbers, into a ring that is empty.
    pub(super) fn restore(&mut self, stored: &[u8]) -> Result<(), RestoreError> {
        let Stored { number, held, bytes } = Stored::parse(stored).ok_or(RestoreError::Malformed)?;
        let start = positions(number).start;
        if start < self.end() {
            return Err(RestoreError::Order { number });
        }
        if !self.make_room(start..start + bytes.len() as u64) {
            return Err(RestoreError::NoMemory { number });
        }
        self.extend(start + bytes.len() as u64);
        self.write(start, bytes);
        for range in held {
            // What would be in more pieces than a ring may have is forgotten.
            self.hold_again(range);
        }
        Ok(())
    }
}

impl Ranges {
    /// What is held of a part of the log.
    pub(super) fn within(&self, part: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let mut at = part.start;
        core::iter::from_fn(move || {
            let range = self.at_or_after(at).filter(|range| range.start < part.end)?;
            at = range.end;
            Some(range.start.max(part.start)..range.end.min(part.end))
        })
    }
}
