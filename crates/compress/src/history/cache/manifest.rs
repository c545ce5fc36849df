//! Whether both ends hold the same, after they were apart: a root first, and a hash for each segment where that differs.
//!
//! ```text
//! manifest: count | { number less the one before, ranges, { bytes between, length } of each, hash 16 } of each segment
//! agreed:   a bit for each segment of the manifest, the lowest of the first byte for its first
//! ```
//!
//! Numbers are in LEB128. The receiver says the root of what it holds. Where the sender knows of other receipts, it asks for the
//! manifest and answers which of it has the same bytes at its end, acknowledged or not.

use std::ops::Range;

use super::super::HistoryError;
use super::copies::{put, take_bytes, take_number};
use super::ring::{Ring, SEGMENT_LEN};
use super::stored::{RANGES_MAX, positions};
use super::{CacheCapacity, SEGMENT};

/// Bytes of a segment's hash: BLAKE3, cut to what no accident makes equal. Both ends are honest to each other here: who could make
/// two segments alike sends them anyway.
const HASH: usize = 16;
/// What roots are of, so that no other hash is one.
const ROOT_CONTEXT: &str = "strait cache manifest 1";

/// What is held of one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentDigest {
    pub(super) number: u64,
    pub(super) held: Vec<Range<u64>>,
    hash: [u8; HASH],
}

/// What one end holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    pub(super) segments: Vec<SegmentDigest>,
}

/// Which segments of a receiver's manifest the sender has as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed(Vec<u8>);

impl Manifest {
    /// That of a ring. It takes as long as BLAKE3 takes for all that is held.
    pub(super) fn of(ring: &Ring) -> Manifest {
        let digest = |number| {
            let held: Vec<Range<u64>> = ring.held_in(number).collect();
            let hash = hash(ring, &held);
            SegmentDigest { number, held, hash }
        };
        Manifest { segments: ring.held_segments().map(digest).collect() }
    }

    /// Where the last of it ends.
    pub(super) fn end(&self) -> u64 {
        self.segments.last().and_then(|segment| segment.held.last()).map_or(0, |range| range.end)
    }

    /// The same for two manifests only if they are the same.
    #[must_use]
    pub fn root(&self) -> [u8; 32] {
        blake3::derive_key(ROOT_CONTEXT, &self.message())
    }

    /// How it is sent.
    #[must_use]
    pub fn message(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.segments.len() as u64);
        let mut next = 0;
        for segment in &self.segments {
            put(&mut out, segment.number - next);
            next = segment.number + 1;
            put(&mut out, segment.held.len() as u64);
            let mut at = positions(segment.number).start;
            for range in &segment.held {
                put(&mut out, range.start - at);
                put(&mut out, range.end - range.start);
                at = range.end;
            }
            out.extend_from_slice(&segment.hash);
        }
        out
    }

    /// Reads one of a cache with this capacity.
    ///
    /// # Errors
    /// [`HistoryError::OverBudget`] where it has more segments than that, [`HistoryError::Malformed`] where it is not what
    /// [`Manifest::message`] writes.
    pub fn parse(mut message: &[u8], capacity: CacheCapacity) -> Result<Manifest, HistoryError> {
        let most = usize::try_from(capacity.bytes() / SEGMENT_LEN).unwrap_or(usize::MAX);
        let count = take_number(&mut message)?;
        if count > most as u64 {
            return Err(HistoryError::OverBudget { most });
        }
        let (mut segments, mut next) = (Vec::new(), 0_u64);
        for _ in 0..count {
            let number = next.checked_add(take_number(&mut message)?).ok_or(HistoryError::Malformed)?;
            if number >= u64::MAX / SEGMENT_LEN {
                return Err(HistoryError::Malformed);
            }
            next = number + 1;
            segments.push(SegmentDigest::parse(number, &mut message)?);
        }
        if message.is_empty() { Ok(Manifest { segments }) } else { Err(HistoryError::Malformed) }
    }
}

impl SegmentDigest {
    fn parse(number: u64, message: &mut &[u8]) -> Result<SegmentDigest, HistoryError> {
        let segment = positions(number);
        let count = take_number(message)?;
        if count > RANGES_MAX as u64 {
            return Err(HistoryError::Malformed);
        }
        let (mut held, mut at) = (Vec::new(), segment.start);
        for _ in 0..count {
            let between = take_number(message)?;
            let len = take_number(message)?;
            let is_possible = len > 0
                && len <= SEGMENT as u64
                && between < SEGMENT as u64
                && (between > 0 || held.is_empty());
            let (start, end) = (at.saturating_add(between), at.saturating_add(between).saturating_add(len));
            if !is_possible || end > segment.end {
                return Err(HistoryError::Malformed);
            }
            held.push(start..end);
            at = end;
        }
        let hash = take_bytes(message)?;
        if held.is_empty() { Err(HistoryError::Malformed) } else { Ok(SegmentDigest { number, held, hash }) }
    }

    /// Whether these bytes are in the ring too.
    pub(super) fn is_in(&self, ring: &Ring) -> bool {
        hash(ring, &self.held) == self.hash
    }
}

/// Of the bytes of these ranges, held or not.
fn hash(ring: &Ring, ranges: &[Range<u64>]) -> [u8; HASH] {
    let mut hasher = blake3::Hasher::new();
    for chunk in ranges.iter().flat_map(|range| ring.chunks(range.clone())) {
        hasher.update(chunk);
    }
    let mut hash = [0; HASH];
    hasher.finalize_xof().fill(&mut hash);
    hash
}

impl Agreed {
    /// A bit for each.
    pub(super) fn of(bits: impl Iterator<Item = bool>) -> Agreed {
        let mut bytes = Vec::new();
        for (at, bit) in bits.enumerate() {
            if at % 8 == 0 {
                bytes.push(0);
            }
            if let Some(byte) = bytes.last_mut() {
                *byte |= u8::from(bit) << (at % 8);
            }
        }
        Agreed(bytes)
    }

    /// How it is sent.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.0
    }

    /// Reads the answer to `manifest`.
    ///
    /// # Errors
    /// [`HistoryError::Malformed`] where it is the answer to another.
    pub fn parse(message: &[u8], manifest: &Manifest) -> Result<Agreed, HistoryError> {
        let count = manifest.segments.len();
        let beyond = message.last().map_or(0, |last| u16::from(*last) >> ((count + 7) % 8 + 1));
        if message.len() != count.div_ceil(8) || beyond != 0 {
            return Err(HistoryError::Malformed);
        }
        Ok(Agreed(message.to_vec()))
    }

    /// Whether both ends hold the segment with this place in the manifest.
    pub(super) fn has(&self, at: usize) -> bool {
        self.0.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
    }
}
