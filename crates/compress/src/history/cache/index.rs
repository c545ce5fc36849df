//! Where in the log the anchors stand.

use super::anchors::BYTES_PER_ANCHOR;

/// Bits of an entry that say a position; the others have its hash.
const POSITION_BITS: u32 = 36;
const POSITIONS: u64 = (1 << POSITION_BITS) - 1;
/// Bits of a hash that an entry has, and so the most that the number of buckets may need.
const HASH_BITS: u32 = u64::BITS - POSITION_BITS;
/// Entries of a bucket: a cache line.
const BUCKET: usize = 8;
/// The table grows where so many anchors came for each bucket: of 100 buckets with 5 entries on average, 7 are full.
const LOAD: usize = 5;
/// Buckets at first: 4 KiB.
const FIRST: usize = 64;
/// Buckets that are split for each anchor until the table has doubled: within a twentieth of the time until it must double again.
const SPLITS: usize = 4;

/// Positions of anchors by their hash. In a bucket that is full a new one replaces the oldest.
///
/// The table doubles with the log until it has an entry for [`BYTES_PER_ANCHOR`] bytes of the capacity, which is a sixteenth of it.
/// It does so by linear hashing (Litwin, 1980), one bucket after the other, so there is never a pause for all of them.
#[derive(Debug)]
pub(super) struct AnchorIndex {
    /// An entry is zero where there is none: no anchor stands at position 0.
    buckets: Vec<[u64; BUCKET]>,
    most: usize,
    /// Anchors that came.
    anchors: usize,
}

/// An entry's hash, or that of an anchor as an entry has it.
const fn hash_of(entry: u64) -> u64 {
    entry >> POSITION_BITS
}

const fn shortened(hash: u32) -> u64 {
    (hash >> (u32::BITS - HASH_BITS)) as u64
}

impl AnchorIndex {
    /// For a log of so many bytes.
    pub(super) fn new(capacity: u64) -> AnchorIndex {
        let most = (capacity / (BYTES_PER_ANCHOR * BUCKET) as u64).min(1 << HASH_BITS);
        let most = usize::try_from(most).unwrap_or(usize::MAX).max(FIRST);
        AnchorIndex { buckets: Vec::new(), most, anchors: 0 }
    }

    /// Bytes of memory that it takes.
    pub(super) fn allocated(&self) -> usize {
        self.buckets.capacity() * size_of::<[u64; BUCKET]>()
    }

    /// The bucket of a hash: its low bits, one more of them where the bucket was split since their number was a power of two.
    fn bucket(&self, hash: u64) -> usize {
        let len = self.buckets.len();
        let mask = len.next_power_of_two().wrapping_sub(1) as u64;
        let bucket = (hash & mask) as usize;
        if bucket < len { bucket } else { (hash & mask >> 1) as usize }
    }

    /// Notes that an anchor with this hash stands at this position, which is not before those noted earlier by more than the
    /// capacity.
    pub(super) fn put(&mut self, hash: u32, position: u64) {
        self.grow();
        let hash = shortened(hash);
        let bucket = self.bucket(hash);
        let Some(bucket) = self.buckets.get_mut(bucket) else { return };
        // The one of the same hash, or else an empty one, or else the oldest.
        let value = |entry: u64| match entry {
            0 => u64::MAX - 1,
            _ if hash_of(entry) == hash => u64::MAX,
            _ => position.wrapping_sub(entry) & POSITIONS,
        };
        if let Some(entry) = bucket.iter_mut().max_by_key(|entry| value(**entry)) {
            *entry = hash << POSITION_BITS | position & POSITIONS;
        }
    }

    /// A position before `end` that this hash may stand for; it may be another's, or one of long ago.
    pub(super) fn get(&self, hash: u32, end: u64) -> Option<u64> {
        let hash = shortened(hash);
        let bucket = self.buckets.get(self.bucket(hash))?;
        let entry = *bucket.iter().find(|entry| **entry != 0 && hash_of(**entry) == hash)?;
        end.checked_sub(end.wrapping_sub(entry) & POSITIONS)
    }

    /// Makes room for one more anchor.
    fn grow(&mut self) {
        self.anchors = self.anchors.saturating_add(1);
        let wanted = (self.anchors / LOAD).next_power_of_two().clamp(FIRST, self.most);
        if self.buckets.is_empty() {
            self.buckets.resize(FIRST, [0; BUCKET]);
        }
        for _ in 0..SPLITS.min(wanted.saturating_sub(self.buckets.len())) {
            self.split();
        }
    }

    /// Adds a bucket, which takes over what falls to it from one other.
    fn split(&mut self) {
        let new = self.buckets.len();
        let half = new.checked_ilog2().map_or(0, |bits| 1 << bits);
        let mut bucket = [0; BUCKET];
        if let Some(from) = self.buckets.get_mut(new - half) {
            for (entry, moved) in from.iter_mut().zip(&mut bucket) {
                if hash_of(*entry) as usize & half != 0 {
                    *moved = core::mem::take(entry);
                }
            }
        }
        self.buckets.push(bucket);
    }

    /// Forgets all anchors.
    pub(super) fn clear(&mut self) {
        self.buckets.fill([0; BUCKET]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u64 = 1 << 24;

    fn hash(number: u64) -> u32 {
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }

    fn position(number: u64) -> u64 {
        number * BYTES_PER_ANCHOR as u64
    }

    #[test]
    fn entries_are_found_again_while_the_table_grows_to_its_most() {
        let mut index = AnchorIndex::new(CAPACITY);
        let mut random = strait_clock::Random::new(4);
        let most = CAPACITY / BYTES_PER_ANCHOR as u64;
        let hashes: Vec<u32> = (0..3 * most).map(|_| hash(random.next_u64())).collect();
        let found = |index: &AnchorIndex, numbers: core::ops::Range<usize>| {
            let end = position(numbers.end as u64) + 1;
            let is_found = |number: &usize| index.get(hashes[*number], end) == Some(position(*number as u64));
            100 * numbers.clone().filter(is_found).count() / numbers.len()
        };
        for (number, hash) in hashes.iter().enumerate() {
            index.put(*hash, position(number as u64));
            if number == 2_000 {
                assert!(found(&index, 1..2_000) >= 95, "{} %", found(&index, 1..2_000));
            }
        }
        let most = most as usize;
        assert_eq!(index.buckets.len(), most / BUCKET);
        assert!(found(&index, 2 * most..3 * most) >= 80, "{} %", found(&index, 2 * most..3 * most));
        index.clear();
        assert_eq!(found(&index, 2 * most..3 * most), 0);
    }

    #[test]
    fn positions_beyond_36_bits_are_told_by_where_the_log_ends() {
        let mut index = AnchorIndex::new(CAPACITY);
        let position = (5 << POSITION_BITS) - 3;
        index.put(77 << 4, position);
        assert_eq!(index.get(77 << 4, position + 10), Some(position));
        assert_eq!(index.get(77 << 4, position + (1 << 35)), Some(position));
        assert_eq!(index.get(78 << 4, position + 10), None, "nothing is there");
    }

    #[test]
    fn an_index_that_is_not_used_takes_no_memory() {
        assert_eq!(AnchorIndex::new(1 << 35).allocated(), 0);
    }
}
