//! The bytes of the newest part of a log, and which of them count.

use std::collections::BTreeSet;
use std::ops::Range;

use strait_wire::history::HASH_LEN;

use super::super::MemoryShare;
use super::ranges::{Added, Ranges};
use super::{CacheCapacity, SEGMENT};

/// A segment's bytes as positions are counted.
pub(super) const SEGMENT_LEN: u64 = SEGMENT as u64;
/// What hashes are of, so that no other hash is one.
const HASH_CONTEXT: &str = "strait cache segment 1: compared";
/// A held range for so many bytes of the capacity: more gaps than units of 16 KiB that are lost every other one.
const BYTES_PER_RANGE: u64 = 1 << 14;

/// Bytes of memory for a segment: it, and a sixteenth for what leads to it.
const SEGMENT_BYTES: usize = SEGMENT + SEGMENT / 16;

/// A ring of segments. Each takes its memory when it is first written.
#[derive(Debug)]
pub(super) struct Ring {
    capacity: CacheCapacity,
    segments: Vec<Option<Box<[u8]>>>,
    held: Ranges,
    /// Where the log ends.
    end: u64,
    /// Segments of which more is held than when they were stored.
    changed: BTreeSet<u64>,
    share: MemoryShare,
    /// Segments that take memory.
    count: usize,
}

impl Ring {
    pub(super) fn new(capacity: CacheCapacity) -> Ring {
        let (held, changed) = (Ranges::default(), BTreeSet::new());
        let share = MemoryShare::default();
        Ring { capacity, segments: Vec::new(), held, end: 0, changed, share, count: 0 }
    }

    /// Takes its memory from this share, while it has none yet.
    pub(super) fn within(self, share: MemoryShare) -> Ring {
        Ring { share, ..self }
    }

    /// Forgets everything, and where the log ends.
    pub(super) fn clear(&mut self) {
        let mut share = core::mem::take(&mut self.share);
        share.resize(0);
        *self = Ring::new(self.capacity).within(share);
    }

    /// Makes room for bytes at these positions; false where there is no memory for them.
    pub(super) fn make_room(&mut self, range: Range<u64>) -> bool {
        let mut at = range.start;
        while at < range.end {
            let (number, _) = self.place(at);
            if self.segments.len() <= number {
                self.segments.resize_with(number + 1, || None);
            }
            if let Some(segment) = self.segments.get_mut(number).filter(|segment| segment.is_none()) {
                if !self.share.resize((self.count + 1) * SEGMENT_BYTES) {
                    return false;
                }
                *segment = Some(vec![0; SEGMENT].into_boxed_slice());
                self.count += 1;
            }
            at = (at - at % SEGMENT_LEN).saturating_add(SEGMENT_LEN);
        }
        true
    }

    pub(super) const fn capacity(&self) -> CacheCapacity {
        self.capacity
    }

    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    pub(super) const fn held(&self) -> &Ranges {
        &self.held
    }

    /// Most ranges that may be held.
    pub(super) fn most_ranges(&self) -> usize {
        usize::try_from(self.capacity.bytes() / BYTES_PER_RANGE).unwrap_or(usize::MAX)
    }

    /// Bytes of memory that segments take.
    pub(super) const fn allocated(&self) -> usize {
        self.count * SEGMENT
    }

    /// The log ends here now, if it ended before: what this overwrites is held no more.
    pub(super) fn extend(&mut self, end: u64) {
        if end > self.end {
            self.end = end;
            let oldest = self.capacity.oldest(end);
            self.held.drop_before(oldest);
            while self.changed.first().is_some_and(|first| *first < oldest / SEGMENT_LEN) {
                self.changed.pop_first();
            }
        }
    }

    /// Nothing is held any more. The log goes on where it ends.
    pub(super) fn forget(&mut self) {
        self.held.clear();
    }

    /// From now on these positions are held.
    pub(super) fn hold(&mut self, range: Range<u64>) -> Added {
        let added = self.hold_again(range.clone());
        if added == Added::New {
            self.changed.extend(range.start / SEGMENT_LEN..range.end.div_ceil(SEGMENT_LEN));
        }
        added
    }

    /// The same of what was held when it was stored.
    pub(super) fn hold_again(&mut self, range: Range<u64>) -> Added {
        self.held.add(range, self.most_ranges())
    }

    /// The number of a segment that is not stored as it is; it counts as stored from now on.
    pub(super) fn next_changed(&mut self) -> Option<u64> {
        self.changed.pop_first()
    }

    /// Of the bytes that are written at these positions, held or not.
    pub(super) fn hash(&self, ranges: impl Iterator<Item = Range<u64>>) -> [u8; HASH_LEN] {
        let mut hasher = blake3::Hasher::new_derive_key(HASH_CONTEXT);
        for chunk in ranges.flat_map(|range| self.chunks(range)) {
            hasher.update(chunk);
        }
        let mut hash = [0; HASH_LEN];
        hasher.finalize_xof().fill(&mut hash);
        hash
    }

    /// Writes bytes at a position of the log, which must reach there, with [room](Ring::make_room) for them.
    pub(super) fn write(&mut self, mut position: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (number, offset) = self.place(position);
            let (now, later) = bytes.split_at(bytes.len().min(SEGMENT - offset));
            let segment = self.segments.get_mut(number).and_then(Option::as_mut);
            if let Some(room) = segment.and_then(|segment| segment.get_mut(offset..offset + now.len())) {
                room.copy_from_slice(now);
            }
            position += now.len() as u64;
            bytes = later;
        }
    }

    /// Reads held bytes; false where not all of them are held.
    pub(super) fn read(&self, position: u64, mut out: &mut [u8]) -> bool {
        let Some(end) = position.checked_add(out.len() as u64) else { return false };
        if !self.held.cover(&(position..end)) {
            return false;
        }
        for chunk in self.chunks(position..end) {
            let Some(room) = out.split_off_mut(..chunk.len()) else { return false };
            room.copy_from_slice(chunk);
        }
        out.is_empty()
    }

    /// Whether these bytes are written at a position.
    pub(super) fn has(&self, position: u64, bytes: &[u8]) -> bool {
        self.same_after(position..position.saturating_add(bytes.len() as u64), bytes) == bytes.len()
    }

    /// Which segment has this position, and where in it.
    fn place(&self, position: u64) -> (usize, usize) {
        let at = position % self.capacity.bytes();
        // Both are small: at most 2^15 segments, of 2^20 bytes.
        ((at / SEGMENT_LEN) as usize, (at % SEGMENT_LEN) as usize)
    }

    /// What is written at these positions, segment by segment.
    pub(super) fn chunks(&self, range: Range<u64>) -> impl Iterator<Item = &[u8]> {
        let mut at = range.start;
        core::iter::from_fn(move || {
            let left = usize::try_from(range.end.saturating_sub(at)).ok().filter(|left| *left > 0)?;
            let (number, offset) = self.place(at);
            let segment = self.segments.get(number)?.as_deref()?;
            let chunk = segment.get(offset..offset + left.min(SEGMENT - offset))?;
            at += chunk.len() as u64;
            Some(chunk)
        })
    }

    /// How many bytes from `range.start` on are as `bytes` begin.
    pub(super) fn same_after(&self, range: Range<u64>, bytes: &[u8]) -> usize {
        let end = range.end.min(range.start.saturating_add(bytes.len() as u64));
        let mut same = 0;
        for chunk in self.chunks(range.start..end) {
            let here = common_prefix(chunk, bytes.get(same..).unwrap_or_default());
            same += here;
            if here < chunk.len() {
                break;
            }
        }
        same
    }

    /// How many bytes before `range.end` are as `bytes` end. Stops at the edge of a segment: one
    /// copy in so many begins later than it could.
    pub(super) fn same_before(&self, range: Range<u64>, bytes: &[u8]) -> usize {
        let Some(last) = range.end.checked_sub(1) else { return 0 };
        let edge = last - last % SEGMENT_LEN;
        let start = range.start.max(edge).max(range.end.saturating_sub(bytes.len() as u64));
        self.chunks(start..range.end).next().map_or(0, |chunk| common_suffix(chunk, bytes))
    }
}

/// Compared at once.
const STRIDE: usize = 32;

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let strides = a.as_chunks::<STRIDE>().0.iter().zip(b.as_chunks::<STRIDE>().0);
    let same = STRIDE * strides.take_while(|(a, b)| a == b).count();
    let rest = a.iter().skip(same).zip(b.iter().skip(same));
    same + rest.take_while(|(a, b)| a == b).count()
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let strides = a.as_rchunks::<STRIDE>().1.iter().rev().zip(b.as_rchunks::<STRIDE>().1.iter().rev());
    let same = STRIDE * strides.take_while(|(a, b)| a == b).count();
    let rest = a.iter().rev().skip(same).zip(b.iter().rev().skip(same));
    same + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ring() -> Ring {
        Ring::new(CacheCapacity::new(CacheCapacity::MIN).unwrap())
    }

    #[test]
    fn memory_is_taken_as_the_log_grows() {
        let mut ring = Ring::new(CacheCapacity::new(CacheCapacity::MAX).unwrap());
        assert_eq!(ring.allocated(), 0);
        ring.extend(100);
        assert!(ring.make_room(0..100));
        ring.write(0, &[7; 100]);
        assert_eq!(ring.allocated(), SEGMENT);
    }

    #[test]
    fn only_what_is_held_is_read_also_across_segments_and_the_end_of_the_ring() {
        let mut ring = ring();
        let bytes: Vec<u8> = (0..250).collect();
        for at in [SEGMENT_LEN - 100, CacheCapacity::MIN - 100, 5 * CacheCapacity::MIN - 1] {
            ring.extend(at + 250);
            assert!(ring.make_room(at..at + 250));
            ring.write(at, &bytes);
            let mut out = [0; 250];
            assert!(!ring.read(at, &mut out));
            assert_eq!(ring.hold(at..at + 250), Added::New);
            assert!(ring.read(at, &mut out) && out == bytes[..]);
            assert!(!ring.read(at, &mut [0; 251]) && !ring.read(at - 1, &mut out));
            assert_eq!(ring.same_after(at..at + 250, &bytes), 250);
            assert_eq!(ring.same_after(at + 2..at + 250, &bytes[2..]), 248);
        }
        assert!(!ring.read(SEGMENT_LEN - 100, &mut [0; 250]), "overwritten");
        assert!(!ring.read(u64::MAX, &mut [0; 250]));
    }

    proptest! {
        #[test]
        fn what_is_the_same_is_counted(a in proptest::collection::vec(0..2_u8, 0..200), b: [u8; 3], cut in 0..200_usize) {
            let cut = cut.min(a.len());
            let with = [&a[..cut], &b.map(|b| b | 2)[..]].concat();
            prop_assert_eq!(common_prefix(&a, &with), cut);
            let with = [&b.map(|b| b | 2)[..], &a[cut..]].concat();
            prop_assert_eq!(common_suffix(&a, &with), a.len() - cut);
        }
    }
}
