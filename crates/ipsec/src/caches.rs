//! Byte caches: which trust domains of two nodes have one, and how large; and what a node has of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use strait_compress::history::cache::{CacheCapacity, CacheReceiver, CacheRole, CacheSender};
use strait_compress::history::{MemoryShare, PeerMemory};
use strait_wire::history::{CACHES_MAX, CacheDigests, CacheQuestion};

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

/// The byte caches that a node has with one peer, in both directions, and the memory for all that is kept of its data. They outlive
/// associations and sessions; the packet path fills them, and another thread may store what changed. Each side of the packet path takes its
/// own lock, two or three times a block, and only waits for that thread, for as long as 1 MiB is copied.
#[derive(Debug, Default)]
pub struct PeerCaches {
    senders: Mutex<CacheSet<CacheSender>>,
    receivers: Mutex<CacheSet<CacheReceiver>>,
    /// Nothing where there is no limit.
    memory: Option<Arc<PeerMemory>>,
}

/// The caches of one direction.
#[derive(Debug)]
struct CacheSet<T> {
    /// Whether what was stored is still being read: until then there is no cache.
    loading: bool,
    caches: Vec<(DomainTag, Box<T>)>,
}

impl<T> Default for CacheSet<T> {
    fn default() -> CacheSet<T> {
        CacheSet { loading: false, caches: Vec::new() }
    }
}

impl<T> CacheSet<T> {
    fn get(&mut self, domain: DomainTag) -> Option<&mut Box<T>> {
        self.caches.iter_mut().find(|(known, _)| *known == domain).map(|(_, cache)| cache)
    }

    /// The cache of a domain with this capacity; one with another begins anew.
    fn with(
        &mut self,
        DomainCache { domain, capacity }: DomainCache,
        new: impl Fn(CacheCapacity) -> T,
        capacity_of: fn(&T) -> CacheCapacity,
    ) -> Option<&mut T> {
        if self.loading {
            return None;
        }
        let known = self.caches.iter().position(|(known, _)| *known == domain);
        let at = known.unwrap_or_else(|| {
            self.caches.push((domain, Box::new(new(capacity))));
            self.caches.len() - 1
        });
        let (_, cache) = self.caches.get_mut(at)?;
        if capacity_of(cache) != capacity {
            **cache = new(capacity);
        }
        Some(cache)
    }

    /// Forgets those of other domains.
    fn retain(&mut self, agreed: &CacheList) {
        if !self.loading {
            self.caches.retain(|(domain, _)| agreed.place(*domain).is_some());
        }
    }
}

impl PeerCaches {
    /// Takes its memory, and that for the peer's history, from this.
    #[must_use]
    pub fn within(memory: Arc<PeerMemory>) -> PeerCaches {
        PeerCaches { memory: Some(memory), ..PeerCaches::default() }
    }

    /// A share of the peer's memory with nothing in it.
    #[must_use]
    pub fn share(&self) -> MemoryShare {
        self.memory.clone().map(MemoryShare::of).unwrap_or_default()
    }

    /// Bytes of memory that is taken for the peer's caches and history.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.used())
    }

    /// What was stored is to be read first: until then there are no caches.
    pub fn begin_loading(&self) {
        self.senders().loading = true;
        self.receivers().loading = true;
    }

    /// What was stored is read.
    pub fn loaded(
        &self,
        senders: Vec<(DomainTag, Box<CacheSender>)>,
        receivers: Vec<(DomainTag, Box<CacheReceiver>)>,
    ) {
        *self.senders() = CacheSet { loading: false, caches: senders };
        *self.receivers() = CacheSet { loading: false, caches: receivers };
    }

    /// Writes a segment that changed since it was written last to the end of `out`, and says its number; `None` where there is none.
    pub fn store_changed(&self, (domain, role): (DomainTag, CacheRole), out: &mut Vec<u8>) -> Option<u64> {
        match role {
            CacheRole::Sender => self.senders().get(domain)?.store_changed(out),
            CacheRole::Receiver => self.receivers().get(domain)?.store_changed(out),
        }
    }

    /// Does something with the sender's end of a cache; `None` while what was stored is read.
    pub(crate) fn with_sender<R>(
        &self,
        cache: DomainCache,
        act: impl FnOnce(&mut CacheSender) -> R,
    ) -> Option<R> {
        let new = |capacity| CacheSender::new(capacity).within(self.share());
        self.senders().with(cache, new, CacheSender::capacity).map(act)
    }

    /// The same with the receiver's end.
    pub(crate) fn with_receiver<R>(
        &self,
        cache: DomainCache,
        act: impl FnOnce(&mut CacheReceiver) -> R,
    ) -> Option<R> {
        let new = |capacity| CacheReceiver::new(capacity).within(self.share());
        self.receivers().with(cache, new, CacheReceiver::capacity).map(act)
    }

    /// The peer's process may be another from now on, and these caches are agreed on: nothing is referred to before the peer has said
    /// that it has it.
    pub(crate) fn doubt_senders(&self, agreed: &CacheList) {
        let mut set = self.senders();
        set.retain(agreed);
        set.caches.iter_mut().for_each(|(_, cache)| cache.clear());
    }

    /// The same at the receiver's end, which goes on with what it has.
    pub(crate) fn agree_receivers(&self, agreed: &CacheList) {
        self.receivers().retain(agreed);
    }

    /// What is held here of a cache of the peer's, of the segments that it asks for, in at most `room` bytes; `None` while what was
    /// stored is read.
    pub fn digests(&self, cache: DomainCache, question: CacheQuestion, room: usize) -> Option<CacheDigests> {
        self.with_receiver(cache, |receiver| receiver.digests(question, room))
    }

    /// Bytes that the peer is known to hold.
    pub(crate) fn held_there(&self) -> u64 {
        self.senders().caches.iter().map(|(_, cache)| cache.held_bytes()).sum()
    }

    /// Bytes that are held of the peer's.
    pub(crate) fn held_here(&self) -> u64 {
        self.receivers().caches.iter().map(|(_, cache)| cache.held_bytes()).sum()
    }

    fn senders(&self) -> MutexGuard<'_, CacheSet<CacheSender>> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receivers(&self) -> MutexGuard<'_, CacheSet<CacheReceiver>> {
        self.receivers.lock().unwrap_or_else(PoisonError::into_inner)
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
