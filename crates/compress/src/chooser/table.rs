//! A table of flows that never grows: what does not fit pushes out what rested longest.

use core::hash::{Hash, Hasher};

use strait_clock::Time;

/// Entries a set: a flow can stand in any of them.
const WAYS: usize = 4;

/// No entry yet.
const NOTHING: u16 = u16::MAX;

/// A set-associative table of `K` to `V`. Its memory is taken at once, and touched only as entries come: a node at rest has none.
pub(super) struct ClassTable<K, V> {
    /// Where the entries of each set are.
    sets: Box<[[u16; WAYS]]>,
    entries: Vec<TableEntry<K, V>>,
    seed: u64,
}

struct TableEntry<K, V> {
    key: K,
    value: V,
    touched: Time,
}

impl<K: Hash + Eq, V> ClassTable<K, V> {
    /// A table of `capacity` entries, 65,000 at most, rounded up to whole sets; `seed` decides who shares a set.
    pub(super) fn new(capacity: usize, seed: u64) -> ClassTable<K, V> {
        let sets = capacity.div_ceil(WAYS).clamp(1, usize::from(NOTHING) / WAYS);
        let entries = Vec::with_capacity(sets * WAYS);
        ClassTable { sets: vec![[NOTHING; WAYS]; sets].into_boxed_slice(), entries, seed }
    }

    /// The value of `key`.
    pub(super) fn get_mut(&mut self, key: &K, now: Time) -> Option<&mut V> {
        let set = self.set(key);
        let known = self.find(set, key)?;
        let found = self.entries.get_mut(known)?;
        found.touched = now;
        Some(&mut found.value)
    }

    /// The value of `key`, made by `begin` if it is not there.
    pub(super) fn get_or_insert_with(&mut self, key: K, now: Time, begin: impl FnOnce() -> V) -> &mut V {
        let set = self.set(&key);
        let place = self.find(set, &key).unwrap_or_else(|| {
            let entry = TableEntry { key, value: begin(), touched: now };
            self.put(set, entry)
        });
        let entry = &mut self.entries[place];
        entry.touched = now;
        &mut entry.value
    }

    /// Where the entry of `key` is, which can only be in this set.
    fn find(&self, set: usize, key: &K) -> Option<usize> {
        let mut places = self.sets[set].iter().map(|place| usize::from(*place));
        places.find(|place| self.entries.get(*place).is_some_and(|entry| entry.key == *key))
    }

    /// Puts an entry into a set: in place of nothing, or of what was touched longest ago. Says where it is.
    fn put(&mut self, set: usize, entry: TableEntry<K, V>) -> usize {
        let ways = &mut self.sets[set];
        if let Some(way) = ways.iter_mut().find(|way| **way == NOTHING) {
            let place = self.entries.len();
            *way = u16::try_from(place).unwrap_or(NOTHING);
            self.entries.push(entry);
            return place;
        }
        let touched = |place: &usize| self.entries[*place].touched;
        let rested = ways.iter().map(|place| usize::from(*place)).min_by_key(touched).unwrap_or(0);
        self.entries[rested] = entry;
        rested
    }

    /// Everything here, with when it was last touched.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V, Time)> {
        self.entries.iter().map(|entry| (&entry.key, &entry.value, entry.touched))
    }

    /// The set of `key`.
    fn set(&self, key: &K) -> usize {
        let mut hasher = Folding(self.seed);
        key.hash(&mut hasher);
        // The remainder is below the number of sets, so it fits whatever a usize is.
        usize::try_from(hasher.finish() % self.sets.len() as u64).unwrap_or(0)
    }
}

/// A hash by folded multiplication (as in wyhash, Wang Yi 2019): the same everywhere for the same seed.
struct Folding(u64);

impl Folding {
    fn mix(&mut self, word: u64) {
        // The odd constant is 2^64 divided by the golden ratio (Knuth, volume 3, section 6.4).
        let product = u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        let [low, high] = [product, product >> 64].map(|half| (half & u128::from(u64::MAX)) as u64);
        self.0 = low ^ high;
    }
}

impl Hasher for Folding {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
        self.mix(bytes.len() as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_set_evicts_least_recently_used() {
        let mut table = ClassTable::<u32, u32>::new(WAYS, 1);
        for key in 0..4 {
            table.get_or_insert_with(key, Time::from_millis(u64::from(key)), || key * 10);
        }
        // 0 is the oldest, but it is touched again; 1 goes.
        assert_eq!(table.get_mut(&0, Time::from_millis(10)), Some(&mut 0));
        assert_eq!(table.get_or_insert_with(9, Time::from_millis(11), || 90), &mut 90);
        let now = Time::from_millis(12);
        let there: Vec<u32> =
            [0, 1, 2, 3, 9].into_iter().filter(|key| table.get_mut(key, now).is_some()).collect();
        assert_eq!(there, [0, 2, 3, 9]);
    }

    #[test]
    fn flows_spread_over_the_sets_and_the_seed_decides_where() {
        for seed in [0, 1, u64::MAX] {
            let mut table = ClassTable::<u32, ()>::new(1_024, seed);
            for key in 0..512 {
                table.get_or_insert_with(key, Time::ZERO, || ());
            }
            let kept = (0..512).filter(|key| table.get_mut(key, Time::ZERO).is_some()).count();
            assert!(kept > 470, "{kept} of 512 kept with seed {seed}");
        }
        let place = |seed| {
            let mut hasher = Folding(seed);
            7_u32.hash(&mut hasher);
            hasher.finish()
        };
        assert_ne!(place(1), place(2));
    }

    #[test]
    fn capacity_is_rounded_up_to_whole_sets() {
        for (asked, sets) in [(0, 1), (1, 1), (4, 1), (5, 2), (1_024, 256)] {
            assert_eq!(ClassTable::<u32, ()>::new(asked, 0).sets.len(), sets);
        }
    }
}
