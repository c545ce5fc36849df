//! Blocks of one flow that leave with a history.

use std::sync::atomic::Ordering;

use strait_clock::Time;
use strait_compress::history::{BlockPlan, SentNumbers, UnitNumber};
use strait_wire::history::{BlockHistory, Receipt};

use crate::outbound::job::CompressUnit;
use crate::outbound::link::Link;

impl Link {
    /// What a block that leaves now says of history; `None` where it must not leave, since the peer may not have what it was compressed
    /// behind any more.
    pub(super) fn commit(
        &mut self,
        plan: &BlockPlan,
        work: &CompressUnit,
        now: Time,
    ) -> Option<BlockHistory> {
        self.history.as_mut()?.bulk.commit(plan, work.history.kept.len(), now)
    }

    /// The number of the datagram that is sealed next.
    pub(super) fn next_number(&self) -> u64 {
        self.association.sa.as_ref().map_or(0, |sa| sa.numbers.last().0.saturating_add(1))
    }

    /// Whether what a unit has from a byte cache still counts at the peer.
    pub(super) fn counts_cached(&self, work: &CompressUnit) -> bool {
        let counts = |cached| self.history.as_ref().is_some_and(|history| history.caches.counts(cached));
        work.cached.as_ref().is_none_or(counts)
    }

    /// A unit does not leave as the block that has something from a byte cache.
    pub(super) fn not_cached(&mut self, work: &CompressUnit) {
        if let Some((history, cached)) = self.history.as_mut().zip(work.cached.as_ref()) {
            history.caches.not_sent(cached);
        }
    }

    /// The block that says so of history left in datagrams from number `first` on.
    pub(super) fn sent_block(
        &mut self,
        said: Option<&BlockHistory>,
        first: u64,
        work: &mut CompressUnit,
        now: Time,
    ) {
        let counters = &self.spec.counters.history;
        if said.is_some_and(|said| said.behind.is_some()) {
            counters.out_blocks.add(1);
        }
        if let Some((alone, behind)) = work.compared {
            counters.compared_alone.add(alone as u64);
            counters.compared_behind.add(behind as u64);
        }
        let Some((history, sa)) = self.history.as_mut().zip(self.association.sa.as_ref()) else { return };
        let last = history.newest(sa);
        let low = Receipt::new(sa.spi, first);
        let numbers = SentNumbers::new(UnitNumber { number: first, ..last }, last.number, low);
        if let Some(cached) = &work.cached {
            history.caches.sent(cached, numbers);
            if cached.copied > 0 {
                counters.out_copies.add(1);
                counters.out_copied.add(cached.copied as u64);
            }
        }
        if let Some(said) = said {
            history.bulk.sent(said, numbers, &mut work.history.kept, now);
        }
    }

    /// Counts what the peer is known to hold in byte caches, after it said something of them.
    pub(super) fn count_held(&self) {
        if let Some(history) = &self.history {
            self.spec.counters.history.out_held.store(history.caches.held_bytes(), Ordering::Relaxed);
        }
    }
}
