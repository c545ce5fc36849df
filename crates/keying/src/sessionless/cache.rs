//! A bounded cache that forgets what was used least recently, with entries that it never forgets, and counts.

use core::time::Duration;
use std::collections::BTreeMap;

use strait_clock::Stopwatch;

/// How a cache did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Entries it has.
    pub entries: usize,
    /// Entries that are pinned.
    pub pinned: usize,
    /// Look-ups that found something.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Entries that made room for others.
    pub evicted: u64,
    /// Time that deriving took of values that were missing.
    pub took: Duration,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    /// When it was used last; none for a pinned entry.
    used: Option<u64>,
}

/// See the head of this module.
#[derive(Debug)]
pub struct Cache<K, V> {
    entries: BTreeMap<K, Entry<V>>,
    /// Keys by when they were used last.
    order: BTreeMap<u64, K>,
    clock: u64,
    most: usize,
    hits: u64,
    misses: u64,
    evicted: u64,
    took: Duration,
}

impl<K: Ord + Copy, V> Cache<K, V> {
    /// A cache of at most `most` entries that are not pinned.
    #[must_use]
    pub const fn new(most: usize) -> Cache<K, V> {
        Cache {
            entries: BTreeMap::new(),
            order: BTreeMap::new(),
            clock: 0,
            most,
            hits: 0,
            misses: 0,
            evicted: 0,
            took: Duration::ZERO,
        }
    }

    /// The value of `key`, which counts as used.
    pub fn get(&mut self, key: K) -> Option<&mut V> {
        let Some(entry) = self.entries.get_mut(&key) else {
            self.misses += 1;
            return None;
        };
        self.hits += 1;
        if let Some(used) = &mut entry.used {
            self.clock += 1;
            self.order.remove(used);
            *used = self.clock;
            self.order.insert(self.clock, key);
        }
        Some(&mut entry.value)
    }

    /// Has the value of `key` there, which counts as used; what is missing is derived, and the time of that counted.
    ///
    /// # Errors
    /// As `derive`; nothing is kept then.
    pub(crate) fn ensure<E>(
        &mut self,
        (key, pinned): (K, bool),
        stopwatch: &mut Stopwatch,
        derive: impl FnOnce() -> Result<V, E>,
    ) -> Result<(), E> {
        if self.get(key).is_some() {
            return Ok(());
        }
        let (derived, nanos) = stopwatch.time(derive);
        self.took += Duration::from_nanos(nanos.unwrap_or(0));
        self.insert(key, derived?, pinned);
        Ok(())
    }

    /// The value of `key`; neither counted nor used.
    pub(crate) fn peek(&mut self, key: K) -> Option<&mut V> {
        self.entries.get_mut(&key).map(|entry| &mut entry.value)
    }

    /// Puts a value in the place of an older one, if any; what made room for it is returned.
    pub fn insert(&mut self, key: K, value: V, pinned: bool) -> Option<(K, V)> {
        self.remove(key);
        let mut evicted = None;
        if !pinned
            && self.order.len() >= self.most.max(1)
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.evicted += 1;
            evicted = self.entries.remove(&oldest).map(|entry| (oldest, entry.value));
        }
        self.clock += 1;
        let used = if pinned { None } else { Some(self.clock) };
        if let Some(used) = used {
            self.order.insert(used, key);
        }
        self.entries.insert(key, Entry { value, used });
        evicted
    }

    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let entry = self.entries.remove(&key)?;
        if let Some(used) = entry.used {
            self.order.remove(&used);
        }
        Some(entry.value)
    }

    /// Removes the entries of which `keep` is false.
    pub(crate) fn retain(&mut self, keep: impl Fn(&K, &V) -> bool) {
        let order = &mut self.order;
        self.entries.retain(|key, entry| {
            let keep = keep(key, &entry.value);
            if let (false, Some(used)) = (keep, entry.used) {
                order.remove(&used);
            }
            keep
        });
    }

    /// Counts of entries, look-ups and the time of misses.
    #[must_use]
    pub fn counts(&self) -> CacheCounts {
        CacheCounts {
            entries: self.entries.len(),
            pinned: self.entries.len() - self.order.len(),
            hits: self.hits,
            misses: self.misses,
            evicted: self.evicted,
            took: self.took,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_used_least_recently_goes_first_and_pinned_entries_stay() {
        let mut cache = Cache::new(2);
        assert_eq!(cache.insert(1, 'a', true), None);
        assert_eq!(cache.insert(2, 'b', false), None);
        assert_eq!(cache.insert(3, 'c', false), None);
        assert_eq!(cache.get(2), Some(&mut 'b'));
        assert_eq!(cache.insert(4, 'd', false), Some((3, 'c')));
        assert_eq!(cache.get(1), Some(&mut 'a'));
        assert_eq!(cache.peek(3), None);
        assert_eq!(cache.get(3), None);
        let expected =
            CacheCounts { entries: 3, pinned: 1, hits: 2, misses: 1, evicted: 1, took: Duration::ZERO };
        assert_eq!(cache.counts(), expected);
    }

    #[test]
    fn misses_cost_what_deriving_takes_and_hits_read_no_clock() {
        let reads = Arc::new(AtomicU64::new(0));
        let read = Arc::clone(&reads);
        let mut stopwatch = Stopwatch::new(move || read.fetch_add(1, Ordering::Relaxed) * 5);
        let mut cache = Cache::new(1);
        let mut ensure = |key, value: Result<char, ()>| cache.ensure((key, false), &mut stopwatch, || value);
        assert_eq!(
            [(1, Ok('a')), (1, Ok('b')), (2, Err(())), (1, Err(()))].map(|(key, value)| ensure(key, value)),
            [Ok(()), Ok(()), Err(()), Ok(())]
        );
        assert_eq!((cache.peek(1), reads.load(Ordering::Relaxed)), (Some(&mut 'a'), 4));
        let counts = cache.counts();
        assert_eq!((counts.hits, counts.misses, counts.took), (2, 2, Duration::from_nanos(10)));
    }

    proptest! {
        #[test]
        fn agrees_with_a_list(operations in proptest::collection::vec((0..4_u8, 0..8_u8), 0..200)) {
            let (mut cache, mut list) = (Cache::new(3), Vec::<u8>::new());
            for (operation, key) in operations {
                let place = list.iter().position(|known| *known == key);
                match operation {
                    0 => {
                        let taken = place.map(|at| list.remove(at));
                        prop_assert_eq!(cache.remove(key), taken);
                    }
                    1 => {
                        prop_assert_eq!(cache.get(key).copied(), place.map(|at| list[at]));
                        if let Some(at) = place {
                            let key = list.remove(at);
                            list.push(key);
                        }
                    }
                    _ => {
                        place.map(|at| list.remove(at));
                        let oldest = if list.len() == 3 { Some(list.remove(0)) } else { None };
                        prop_assert_eq!(cache.insert(key, key, false), oldest.map(|key| (key, key)));
                        list.push(key);
                    }
                }
                prop_assert_eq!(cache.counts().entries, list.len());
                prop_assert_eq!(cache.order.len(), list.len());
            }
            cache.retain(|key, _| key % 2 == 0);
            prop_assert_eq!(cache.counts().entries, list.iter().filter(|key| *key % 2 == 0).count());
            prop_assert_eq!(cache.order.len(), cache.entries.len());
        }
    }
}
