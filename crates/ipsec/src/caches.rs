//! Byte caches: which trust domains of two nodes have one, and how large.

use strait_compress::history::cache::CacheCapacity;
use strait_wire::history::CACHES_MAX;

/// A trust domain by its name, as two nodes know it: 8 bytes of the name's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainTag(pub u64);

/// The byte cache of a trust domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DomainCache {
    /// Whose data it has.
    pub domain: DomainTag,
    /// How much is kept for each peer and each direction.
    pub capacity: CacheCapacity,
}

/// The byte caches that a node keeps, or that two nodes agreed on, in the order of their tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheList([Option<DomainCache>; CACHES_MAX]);

impl CacheList {
    /// None.
    pub const NONE: CacheList = CacheList([None; CACHES_MAX]);

    /// These; of those beyond the first [`CACHES_MAX`] domains, none.
    pub fn of(caches: impl IntoIterator<Item = DomainCache>) -> CacheList {
        let mut all: Vec<DomainCache> = caches.into_iter().collect();
        all.sort_unstable();
        all.dedup_by_key(|cache| cache.domain);
        let mut list = CacheList::NONE;
        for (place, cache) in list.0.iter_mut().zip(all) {
            *place = Some(cache);
        }
        list
    }

    /// Those of domains that both have, as large as the smaller of both.
    #[must_use]
    pub fn common(&self, other: &CacheList) -> CacheList {
        let both = |mine: DomainCache| {
            let theirs = other.iter().find(|theirs| theirs.domain == mine.domain)?;
            Some(DomainCache { capacity: mine.capacity.min(theirs.capacity), ..mine })
        };
        CacheList::of(self.iter().filter_map(both))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = DomainCache> {
        self.0.iter().copied().flatten()
    }

    /// The one in this place.
    #[must_use]
    pub fn get(&self, place: u8) -> Option<DomainCache> {
        self.0.get(usize::from(place)).copied().flatten()
    }

    /// In which place the cache of a domain is.
    #[must_use]
    pub fn place(&self, domain: DomainTag) -> Option<u8> {
        let at = self.iter().position(|cache| cache.domain == domain)?;
        u8::try_from(at).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_find_the_same_caches_in_the_same_order() {
        let cache = |tag, mib: u64| DomainCache {
            domain: DomainTag(tag),
            capacity: CacheCapacity::new(mib << 20).unwrap(),
        };
        let here = CacheList::of([cache(9, 64), cache(3, 8), cache(5, 16)]);
        let there = CacheList::of([cache(5, 32), cache(9, 32), cache(7, 8)]);
        let common = here.common(&there);
        assert_eq!(common, there.common(&here));
        assert_eq!(common.iter().collect::<Vec<_>>(), [cache(5, 16), cache(9, 32)]);
        assert_eq!((common.place(DomainTag(9)), common.place(DomainTag(3))), (Some(1), None));
        assert_eq!((common.get(0), common.get(2)), (Some(cache(5, 16)), None));
        assert_eq!(CacheList::of((0..20).map(|tag| cache(tag, 8))).iter().count(), CACHES_MAX);
    }
}
