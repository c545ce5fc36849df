//! Blocks whose payloads are said by copies from what the peer has kept of the trust domain.

use std::collections::VecDeque;

use strait_clock::Time;
use strait_compress::Blocks;
use strait_compress::history::cache::{CachePosition, CacheSender};
use strait_compress::history::{SentNumbers, UnitNumber};
use strait_wire::history::{BlockCache, BlockHistory, Receipt};

use super::group::Group;
use super::job::CompressUnit;
use crate::{CacheList, DomainTag};

/// Packets of fewer bytes together are not worth the work: what they save, headers of lone packets save as well.
const LEAST: usize = 256;
/// Blocks that may wait for their receipts: as many as the cache lets wait.
const WAITING_MAX: usize = 4_096;

/// What a unit has from a cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedUnit {
    /// The place of the cache.
    pub(super) place: u8,
    /// At which position the peer is to keep its payloads.
    pub(super) keep: Option<CachePosition>,
    /// Whether the headers of its packets are coded.
    pub(super) headers: bool,
    /// Bytes that are copied.
    pub(super) copied: usize,
    /// How often caches were forgotten before.
    turn: u32,
}

impl CachedUnit {
    /// Bytes that a block says of the cache.
    pub(super) fn head_len(&self) -> usize {
        self.said(None).head_len()
    }

    /// What a block says of the cache, and of history.
    pub(super) fn said(&self, history: Option<BlockHistory>) -> BlockCache {
        BlockCache { cache: self.place, keep: self.keep.map(|position| position.0), history }
    }
}

/// The caches of one peer, as the sender has them.
#[derive(Debug, Default)]
pub(super) struct LinkCaches {
    agreed: CacheList,
    senders: Vec<Option<Box<CacheSender>>>,
    waiting: VecDeque<WaitingBlock>,
    turn: u32,
}

/// A block that waits for its receipt.
#[derive(Clone, Copy, Debug)]
struct WaitingBlock {
    place: u8,
    position: CachePosition,
    numbers: SentNumbers,
}

impl LinkCaches {
    pub(super) fn new(agreed: CacheList) -> LinkCaches {
        LinkCaches { agreed, ..LinkCaches::default() }
    }

    /// The peer has forgotten everything, or other caches are agreed on.
    pub(super) fn clear(&mut self, agreed: CacheList) {
        *self = LinkCaches { turn: self.turn.wrapping_add(1), ..LinkCaches::new(agreed) };
    }

    /// Whether the domain has a cache with this peer.
    pub(super) fn has(&self, domain: DomainTag) -> bool {
        self.agreed.place(domain).is_some()
    }

    /// Says the packets by copies, into the buffers of `work`; `None` where they are too few or their group has no cache.
    pub(super) fn stage(
        &mut self,
        blocks: &mut Blocks,
        (group, headers, packets): (&Group, bool, &[u8]),
        work: &mut CompressUnit,
        now: Time,
    ) -> Option<CachedUnit> {
        let place = self.agreed.place(group.cache?)?;
        let capacity = self.agreed.get(place)?.capacity;
        if packets.len() < LEAST {
            return None;
        }
        let at = usize::from(place);
        if self.senders.len() <= at {
            self.senders.resize_with(at + 1, || None);
        }
        let sender = self.senders.get_mut(at)?.get_or_insert_with(|| Box::new(CacheSender::new(capacity)));
        let CompressUnit { staged, history, .. } = work;
        let (headers, coded) = blocks.stage(headers, packets, sender, staged, &mut history.kept);
        // What the peer expands is not to be more than the packets.
        if staged.len() > packets.len() {
            return None;
        }
        let keep = if coded.worth_keeping { sender.keep(&history.kept, now) } else { None };
        Some(CachedUnit { place, keep, headers, copied: coded.copied, turn: self.turn })
    }

    /// Whether what a unit was made of still counts.
    pub(super) const fn counts(&self, unit: &CachedUnit) -> bool {
        self.turn == unit.turn
    }

    /// The block left in datagrams with these numbers.
    pub(super) fn sent(&mut self, unit: &CachedUnit, numbers: SentNumbers) {
        let Some(position) = unit.keep.filter(|_| self.counts(unit)) else { return };
        self.waiting.push_back(WaitingBlock { place: unit.place, position, numbers });
        if self.waiting.len() > WAITING_MAX
            && let Some(gone) = self.waiting.pop_front()
        {
            self.lose(gone.place, gone.position);
        }
    }

    /// The unit did not leave as a block.
    pub(super) fn not_sent(&mut self, unit: &CachedUnit) {
        if let Some(position) = unit.keep.filter(|_| self.counts(unit)) {
            self.lose(unit.place, position);
        }
    }

    fn lose(&mut self, place: u8, position: CachePosition) {
        if let Some(sender) = self.senders.get_mut(usize::from(place)).and_then(Option::as_mut) {
            sender.lost(position);
        }
    }

    /// The peer has kept the block of which this is a receipt.
    pub(super) fn acknowledged(&mut self, receipt: Receipt, newest: UnitNumber) {
        let Some(at) = self.waiting.iter().rposition(|block| block.numbers.is_of(receipt, newest)) else {
            return;
        };
        let Some(WaitingBlock { place, position, .. }) = self.waiting.remove(at) else { return };
        if let Some(sender) = self.senders.get_mut(usize::from(place)).and_then(Option::as_mut) {
            sender.acknowledged(position);
        }
    }

    /// Another association is used from now on: receipts for the one before are not taken any more.
    pub(super) fn new_association(&mut self) {
        while let Some(gone) = self.waiting.pop_front() {
            self.lose(gone.place, gone.position);
        }
    }

    /// Bytes that the peer is known to hold.
    pub(super) fn held_bytes(&self) -> u64 {
        self.senders.iter().flatten().map(|sender| sender.held_bytes()).sum()
    }
}
