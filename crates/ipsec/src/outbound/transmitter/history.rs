//! Blocks of one flow that leave with a history.

use strait_clock::Time;
use strait_compress::history::{BlockPlan, UnitNumber};
use strait_wire::history::{BlockHistory, Receipt};

use crate::outbound::job::CompressUnit;
use crate::outbound::link::Link;

impl Link {
    /// What a block that leaves now says of history, which is written in front of it; `None` where it must not leave, since the peer may
    /// not have what it was compressed behind any more.
    pub(super) fn commit(
        &mut self,
        plan: &BlockPlan,
        work: &mut CompressUnit,
        now: Time,
    ) -> Option<BlockHistory> {
        let history = self.history.as_mut()?.bulk.commit(plan, work.history.kept.len(), now)?;
        work.write_history(&history);
        Some(history)
    }

    /// The number of the datagram that is sealed next.
    pub(super) fn next_number(&self) -> u64 {
        self.association.sa.as_ref().map_or(0, |sa| sa.numbers.last().0.saturating_add(1))
    }

    /// The block with this history left in datagrams from number `first` on.
    pub(super) fn sent_block(&mut self, said: &BlockHistory, first: u64, work: &mut CompressUnit, now: Time) {
        let counters = &self.spec.counters.history;
        if said.behind.is_some() {
            counters.out_blocks.add(1);
        }
        if let Some((alone, behind)) = work.compared {
            counters.compared_alone.add(alone as u64);
            counters.compared_behind.add(behind as u64);
        }
        let Some((history, sa)) = self.history.as_mut().zip(self.association.sa.as_ref()) else { return };
        let last = history.newest(sa);
        let range = (UnitNumber { number: first, ..last }, last.number);
        history.bulk.sent(said, range, Receipt::new(sa.spi, first), &mut work.history.kept, now);
    }
}
