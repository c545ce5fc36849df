//! Packets that came alone, coded against earlier ones of the peer.

use strait_compress::history::{BulkReceiver, HistoryError, LoneDecoded, LoneReceiver, UnitNumber};
use strait_wire::Esn;
use strait_wire::history::{BlockHistory, LoneHead, Receipt, Receipts};

use super::payload::{OpenedPayload, Unpacker};
use super::{Inlet, Origin, work};
use crate::orders::{HistoryOrder, SenderOrder};
use crate::{HistoryTerms, PeerId, Reason};

/// What is kept of a peer's packets.
#[derive(Debug, Default)]
pub(super) struct PeerHistory {
    receiver: Option<Box<LoneReceiver>>,
    blocks: Option<Box<BulkReceiver>>,
    /// What was agreed with the process that sends now, and with the one before it.
    terms: HistoryTerms,
    former: HistoryTerms,
    /// Associations on which lone units came, in the order of their first.
    associations: u32,
}

impl PeerHistory {
    /// What is kept where other terms were agreed is forgotten: its sender does not count on it any more, and has begun to number from
    /// the beginning. What still comes of the former terms is late, and refused.
    fn agree(&mut self, terms: HistoryTerms) -> Result<(), Reason> {
        if terms == self.former && terms.epoch != self.terms.epoch {
            return Err(Reason::HistoryGone);
        }
        if terms != self.terms {
            (self.receiver, self.blocks) = (None, None);
            self.former = core::mem::replace(&mut self.terms, terms);
        }
        Ok(())
    }

    /// Puts what a block was compressed behind into `prefix`.
    pub(super) fn prefix(
        &mut self,
        terms: HistoryTerms,
        said: &BlockHistory,
        prefix: &mut Vec<u8>,
    ) -> Result<(), Reason> {
        if terms.contexts == 0 {
            return Err(Reason::UnknownPayload);
        }
        self.agree(terms)?;
        let blocks = self.blocks.get_or_insert_with(|| Box::new(BulkReceiver::new(terms.streams())));
        blocks.prefix(said, prefix).map_err(reason)
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
        let receiver = history.receiver.get_or_insert_with(|| Box::new(LoneReceiver::new(contexts)));
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

    /// Keeps the payloads of a block that was delivered, if it says so; the datagram with this number made it whole.
    pub(super) fn keep(&mut self, peer: PeerId, (said, esn): (BlockHistory, Esn), kept: &mut Vec<u8>) {
        if said.behind.is_some() {
            self.inbox.counters.history.in_blocks.add(1);
        }
        let terms = self.inbox.history.terms;
        let history = self.peers.get_mut(&peer).map(|memory| &mut memory.history);
        let blocks = history.filter(|it| it.terms == terms).and_then(|it| it.blocks.as_mut());
        if blocks.is_some_and(|blocks| blocks.keep(&said, kept)) {
            let receipt = Receipt::new(self.inbox.spi, esn.0);
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
