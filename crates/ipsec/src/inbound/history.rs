//! Packets that came alone, coded against earlier ones of the peer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use strait_compress::BlockError;
use strait_compress::history::cache::{CachePosition, CacheReceiver};
use strait_compress::history::{BulkReceiver, HistoryError, LoneDecoded, LoneReceiver, UnitNumber};
use strait_wire::Esn;
use strait_wire::block::BlockKind;
use strait_wire::history::{
    BlockCache, BlockHistory, CacheDigests, CacheQuestion, LoneHead, Receipt, Receipts,
};

use super::expand::{ExpandScratch, not_expanded};
use super::payload::{OpenedPayload, Unpacker};
use super::{Inlet, Origin, work};
use crate::orders::{HistoryOrder, SenderOrder};
use crate::{HistoryTerms, PeerCaches, PeerId, Reason};

/// What is kept of a peer's packets.
#[derive(Debug)]
pub(super) struct PeerHistory {
    receiver: Option<Box<LoneReceiver>>,
    blocks: Option<Box<BulkReceiver>>,
    /// The byte caches of trust domains.
    caches: Arc<PeerCaches>,
    /// What was agreed with the process that sends now, and with the one before it.
    terms: HistoryTerms,
    former: HistoryTerms,
    /// Associations on which lone units came, in the order of their first.
    associations: u32,
}

impl PeerHistory {
    pub(super) fn new(caches: Arc<PeerCaches>) -> PeerHistory {
        let (terms, former) = (HistoryTerms::default(), HistoryTerms::default());
        PeerHistory { receiver: None, blocks: None, caches, terms, former, associations: 0 }
    }

    /// What is kept where other terms were agreed is forgotten: its sender does not count on it any more, and has begun to number from
    /// the beginning. Byte caches of which both ends agree again are kept: their sender asks what is in them. What still comes of the
    /// former terms is late, and refused.
    fn agree(&mut self, terms: HistoryTerms) -> Result<(), Reason> {
        if terms == self.former && terms.epoch != self.terms.epoch {
            return Err(Reason::HistoryGone);
        }
        if terms != self.terms {
            (self.receiver, self.blocks) = (None, None);
            self.caches.agree_receivers(&terms.caches);
            self.former = core::mem::replace(&mut self.terms, terms);
        }
        Ok(())
    }

    /// Forgets blocks if none was to be kept since this was last called.
    pub(super) fn forget_unused(&mut self) {
        if let Some(blocks) = &mut self.blocks {
            blocks.forget_unused();
        }
    }

    /// Puts what a block was compressed behind into `prefix`.
    pub(super) fn prefix(
        &mut self,
        terms: HistoryTerms,
        said: &SaidOfBlock,
        prefix: &mut Vec<u8>,
    ) -> Result<(), Reason> {
        if terms.contexts == 0 {
            return Err(Reason::UnknownPayload);
        }
        self.agree(terms)?;
        prefix.clear();
        if let Some(cache) = &said.cache {
            terms.caches.get(cache.cache).ok_or(Reason::HistoryOverBudget)?;
        }
        let Some(said) = &said.history else { return Ok(()) };
        let share = || self.caches.share();
        let blocks =
            self.blocks.get_or_insert_with(|| Box::new(BulkReceiver::new(terms.streams()).within(share())));
        blocks.prefix(said, prefix).map_err(reason)
    }

    /// Does something with the byte cache in this place, if there is one.
    fn cache<R>(&self, place: u8, act: impl FnOnce(&mut CacheReceiver) -> R) -> Option<R> {
        self.caches.with_receiver(self.terms.caches.get(place)?, act)
    }
}

/// What a block that came says of earlier ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct SaidOfBlock {
    /// Which it is compressed behind.
    history: Option<BlockHistory>,
    /// What it has from a byte cache, if it has anything.
    pub(super) cache: Option<BlockCache>,
    /// The number of the datagram that made it whole.
    esn: Esn,
}

impl SaidOfBlock {
    /// Reads what a block of this kind says of earlier ones, and gives what is behind that.
    pub(super) fn parse(
        kind: BlockKind,
        esn: Esn,
        bytes: &[u8],
    ) -> Result<(Option<SaidOfBlock>, &[u8]), Reason> {
        let of = |history, cache, rest| (Some(SaidOfBlock { history, cache, esn }), rest);
        let said = match kind {
            BlockKind::Alone => return Ok((None, bytes)),
            BlockKind::History => BlockHistory::parse(bytes).map(|(said, rest)| of(Some(said), None, rest)),
            BlockKind::Cache => {
                BlockCache::parse(bytes).map(|(said, rest)| of(said.history, Some(said), rest))
            }
        };
        said.map_err(|_| Reason::MalformedBlock)
    }
}

/// History on one association.
#[derive(Debug)]
pub(super) struct InboxHistory {
    pub(super) terms: HistoryTerms,
    /// Its place in the order; 0 before its first lone unit.
    association: u32,
}

impl InboxHistory {
    pub(super) const fn new(terms: HistoryTerms) -> InboxHistory {
        InboxHistory { terms, association: 0 }
    }
}

impl<I: Inlet> Unpacker<'_, I> {
    /// A packet that came alone.
    pub(super) fn lone(&mut self, opened: OpenedPayload<'_>) -> Result<(), Reason> {
        self.host.finish(opened.bytes, self.inlet);
        let origin = opened.origin;
        let InboxHistory { terms, association } = &mut self.inbox.history;
        let memory = self.peers.get_mut(&origin.peer).ok_or(Reason::UnknownSpi)?;
        if terms.contexts == 0 {
            return Err(Reason::UnknownPayload);
        }
        let history = &mut memory.history;
        if *association == 0 {
            history.associations += 1;
            *association = history.associations;
        }
        history.agree(*terms)?;
        let contexts = terms.contexts;
        let share = || history.caches.share();
        let receiver =
            history.receiver.get_or_insert_with(|| Box::new(LoneReceiver::new(contexts).within(share())));
        let number = UnitNumber { association: *association, number: opened.esn.0 };
        let expanded = &mut self.expander.scratch.expanded;
        let LoneDecoded { len, kept } =
            receiver.decode(opened.payload(), number, expanded).map_err(reason)?;
        self.inbox.counters.history.in_units.add(1);
        if kept {
            let receipt = Receipt::new(self.inbox.spi, number.number);
            self.inlet.order(SenderOrder::History(origin.peer, HistoryOrder::KeptUnit(receipt)));
        }
        let pays = work::pays(opened.range.len(), 1);
        self.working.limit((work::cost(1, len), pays), origin.peer, self.peers)?;
        let result = self.host.packet(origin, &self.inbox.counters, expanded, 0..len, self.inlet);
        self.host.finish(expanded, self.inlet);
        result
    }

    /// Makes the packets of an expanded block from what they copy from a byte cache, in the place of the `len` bytes that it expanded to;
    /// says how many bytes they are. `kept` gets their payloads.
    pub(super) fn unstage(
        &mut self,
        peer: PeerId,
        (said, headers, most): (&SaidOfBlock, bool, usize),
        (expanded, len): (&mut [u8], usize),
        kept: &mut Vec<u8>,
    ) -> Result<usize, Reason> {
        let Some(said) = said.cache else { return Ok(len) };
        let terms = self.inbox.history.terms;
        let ExpandScratch { blocks, staged, .. } = &mut self.expander.scratch;
        staged.clear();
        staged.extend_from_slice(expanded.get(..len).unwrap_or_default());
        let history = self.peers.get(&peer).map(|memory| &memory.history);
        let history = history.filter(|history| history.terms == terms);
        let made = history.and_then(|history| {
            history.cache(said.cache, |cache| blocks.unstage((headers, most), staged, cache, kept, expanded))
        });
        let len = made.ok_or(Reason::HistoryGone)?.map_err(|error| match error {
            BlockError::History(error) => reason(error),
            error => not_expanded(error, most),
        })?;
        self.inbox.counters.history.in_copies.add(u64::from(staged.len() < kept.len()));
        Ok(len)
    }

    /// Keeps the payloads of a block that was delivered, if it says so. A receipt goes back if all was kept that was to be.
    pub(super) fn keep(&mut self, peer: PeerId, said: &SaidOfBlock, kept: &mut Vec<u8>) {
        let counters = &self.inbox.counters.history;
        if said.history.is_some_and(|said| said.behind.is_some()) {
            counters.in_blocks.add(1);
        }
        let terms = self.inbox.history.terms;
        let history = self.peers.get_mut(&peer).map(|memory| &mut memory.history);
        let Some(history) = history.filter(|history| history.terms == terms) else { return };
        let (mut asked, mut whole) = (false, true);
        if let Some((place, position)) = said.cache.and_then(|said| Some((said.cache, said.keep?))) {
            let is_kept = history.cache(place, |it| it.keep(CachePosition(position), kept).is_ok());
            (asked, whole) = (true, is_kept == Some(true));
            let held = history.caches.held_here();
            counters.in_held.store(held, Ordering::Relaxed);
        }
        if let Some(said) = said.history.filter(|said| said.keep.is_some()) {
            asked = true;
            whole &= history.blocks.as_mut().is_some_and(|blocks| blocks.keep(&said, kept));
        }
        if asked && whole {
            let receipt = Receipt::new(self.inbox.spi, said.esn.0);
            self.inlet.order(SenderOrder::History(peer, HistoryOrder::KeptBlock(receipt)));
        }
    }

    /// Receipts that ride in a lone unit; the unit itself is taken apart in its turn.
    pub(super) fn riding_receipts(&mut self, origin: Origin, payload: &[u8]) -> Result<(), Reason> {
        let (head, _) = LoneHead::parse(payload).map_err(|_| Reason::MalformedEsp)?;
        if head.receipts.is_empty() {
            return Ok(());
        }
        self.take_receipts(origin, HistoryOrder::Receipts(head.receipts))
    }

    /// Receipts that came alone.
    pub(super) fn receipts(&mut self, origin: Origin, payload: &[u8]) -> Result<(), Reason> {
        let (receipts, blocks) = Receipts::parse_alone(payload).map_err(|_| Reason::MalformedEsp)?;
        let order = if blocks { HistoryOrder::BlockReceipts } else { HistoryOrder::Receipts };
        self.take_receipts(origin, order(receipts))
    }

    /// The peer asks what is held of one of its byte caches. It is another process after a restart, so what was agreed on counts now.
    pub(super) fn cache_question(&mut self, origin: Origin, payload: &[u8]) -> Result<(), Reason> {
        let question = CacheQuestion::parse(payload).map_err(|_| Reason::MalformedEsp)?;
        let terms = self.inbox.history.terms;
        terms.caches.get(question.cache).ok_or(Reason::UnknownPayload)?;
        let memory = self.peers.get_mut(&origin.peer).ok_or(Reason::UnknownSpi)?;
        memory.history.agree(terms)?;
        if !memory.questions.take(1, origin.now) {
            return Err(Reason::TooOften);
        }
        self.inlet.order(SenderOrder::History(origin.peer, HistoryOrder::CacheQuestion(question)));
        Ok(())
    }

    /// The peer says what it holds of one of this end's byte caches.
    pub(super) fn cache_digests(&mut self, origin: Origin, payload: &[u8]) -> Result<(), Reason> {
        let digests = CacheDigests::parse(payload).map_err(|_| Reason::MalformedEsp)?;
        self.inbox.history.terms.caches.get(digests.question.cache).ok_or(Reason::UnknownPayload)?;
        self.inlet.order(SenderOrder::History(origin.peer, HistoryOrder::CacheDigests(Box::new(digests))));
        Ok(())
    }

    fn take_receipts(&mut self, origin: Origin, receipts: HistoryOrder) -> Result<(), Reason> {
        if self.inbox.history.terms.contexts == 0 {
            return Err(Reason::UnknownPayload);
        }
        self.inlet.order(SenderOrder::History(origin.peer, receipts));
        Ok(())
    }
}

fn reason(error: HistoryError) -> Reason {
    match error {
        HistoryError::Gone => Reason::HistoryGone,
        HistoryError::OverBudget { .. } => Reason::HistoryOverBudget,
        HistoryError::Malformed | HistoryError::TooLong { .. } => Reason::MalformedBlock,
    }
}
