//! Blocks whose payloads are said by copies from what the peer has kept of the trust domain.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use strait_clock::Time;
use strait_compress::Blocks;
use strait_compress::history::cache::CachePosition;
use strait_compress::history::{SentNumbers, UnitNumber};
use strait_wire::history::{BlockCache, BlockHistory, CACHES_MAX, CacheDigests, CacheQuestion, Receipt};

use super::group::Group;
use super::job::CompressUnit;
use crate::{CacheList, DomainTag, PeerCaches};

/// Packets of fewer bytes together are not worth the work: what they save, headers of lone packets save as well.
const LEAST: usize = 256;
/// Blocks that may wait for their receipts: as many as the cache lets wait.
const WAITING_MAX: usize = 4_096;
/// The peer is asked again where no answer came; and how long after a question there may be another. A peer answers ten a second.
const ASK_AGAIN: Duration = Duration::from_secs(2);
const ASK_APART: Duration = Duration::from_millis(100);

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
#[derive(Debug)]
pub(super) struct LinkCaches {
    agreed: CacheList,
    shared: Arc<PeerCaches>,
    comparisons: [Comparison; CACHES_MAX],
    waiting: VecDeque<WaitingBlock>,
    turn: u32,
}

/// What is known of what the peer holds of one cache.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    /// Segments below this one were not compared yet.
    below: u64,
    /// When the peer was asked last, and whether the answer is awaited.
    asked: Option<(Time, bool)>,
    /// Whether there was anything to say by the cache.
    wanted: bool,
    /// Whether it is known where the peer's log ends. Before, nothing is given a position.
    knows_end: bool,
    /// Whether there is nothing more to compare.
    done: bool,
}

impl Comparison {
    const NEW: Comparison =
        Comparison { below: u64::MAX, asked: None, wanted: false, knows_end: false, done: false };

    /// Whether the peer is to be asked now.
    fn is_due(&self, now: Time) -> bool {
        let due = |(at, awaited)| now.since(at) >= if awaited { ASK_AGAIN } else { ASK_APART };
        self.wanted && !self.done && self.asked.is_none_or(due)
    }
}

/// A block that waits for its receipt.
#[derive(Clone, Copy, Debug)]
struct WaitingBlock {
    place: u8,
    position: CachePosition,
    numbers: SentNumbers,
}

impl LinkCaches {
    pub(super) fn new(agreed: CacheList, shared: Arc<PeerCaches>) -> LinkCaches {
        shared.doubt_senders(&agreed);
        LinkCaches {
            agreed,
            shared,
            comparisons: [Comparison::NEW; CACHES_MAX],
            waiting: VecDeque::new(),
            turn: 0,
        }
    }

    /// The peer's process may be another, or other caches are agreed on: what it holds has to be compared.
    pub(super) fn renew(&mut self, agreed: CacheList) {
        let turn = self.turn.wrapping_add(1);
        *self = LinkCaches { turn, ..LinkCaches::new(agreed, Arc::clone(&self.shared)) };
    }

    /// What is to be asked of the peer now, which counts as asked then.
    pub(super) fn take_question(&mut self, now: Time) -> Option<CacheQuestion> {
        let mut places = (0_u8..).zip(&mut self.comparisons);
        let (cache, comparison) = places.find(|(_, comparison)| comparison.is_due(now))?;
        comparison.asked = Some((now, true));
        Some(CacheQuestion { cache, below: comparison.below })
    }

    /// The peer says what it holds: what is the same here is referred to from now on.
    pub(super) fn compare(&mut self, answer: &CacheDigests) {
        let CacheQuestion { cache, below } = answer.question;
        let Some(agreed) = self.agreed.get(cache) else { return };
        let Some(comparison) = self.comparisons.get_mut(usize::from(cache)) else { return };
        let Some((at, true)) = comparison.asked.filter(|_| comparison.below == below) else { return };
        comparison.asked = Some((at, false));
        let compared = self.shared.with_sender(agreed, |sender| {
            let is_empty = sender.end() == 0;
            sender.go_on_behind(answer.end);
            for digest in answer.digests() {
                sender.confirm(digest);
            }
            is_empty
        });
        let Some(is_empty) = compared else { return };
        comparison.knows_end = true;
        let last = answer.digests().last();
        comparison.done |= is_empty || last.is_none();
        comparison.below = last.map_or(below, |last| last.number);
    }

    /// What is held of the peer's caches, in at most `room` bytes.
    pub(super) fn digests(&self, question: CacheQuestion, room: usize) -> Option<CacheDigests> {
        self.shared.digests(self.agreed.get(question.cache)?, question, room)
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
        let agreed = self.agreed.get(place)?;
        if packets.len() < LEAST {
            return None;
        }
        let comparison = self.comparisons.get_mut(usize::from(place))?;
        comparison.wanted = true;
        if !comparison.knows_end {
            return None;
        }
        let CompressUnit { staged, history, .. } = work;
        let staged = self.shared.with_sender(agreed, |sender| {
            let (headers, coded) = blocks.stage(headers, packets, sender, staged, &mut history.kept);
            // What the peer expands is not to be more than the packets.
            if staged.len() > packets.len() {
                return None;
            }
            let keep = if coded.worth_keeping { sender.keep(&history.kept, now) } else { None };
            Some((headers, keep, coded.copied))
        });
        let (headers, keep, copied) = staged.flatten()?;
        Some(CachedUnit { place, keep, headers, copied, turn: self.turn })
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

    fn lose(&self, place: u8, position: CachePosition) {
        if let Some(agreed) = self.agreed.get(place) {
            self.shared.with_sender(agreed, |sender| sender.lost(position));
        }
    }

    /// The peer has kept the block of which this is a receipt.
    pub(super) fn acknowledged(&mut self, receipt: Receipt, newest: UnitNumber) {
        let Some(at) = self.waiting.iter().rposition(|block| block.numbers.is_of(receipt, newest)) else {
            return;
        };
        let Some(WaitingBlock { place, position, .. }) = self.waiting.remove(at) else { return };
        if let Some(agreed) = self.agreed.get(place) {
            self.shared.with_sender(agreed, |sender| sender.acknowledged(position));
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
        self.shared.held_there()
    }
}
