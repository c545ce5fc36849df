//! History of one peer, as the sender has it: what the peer has kept, and receipts for what was kept here.

use std::sync::Arc;

use strait_clock::Time;
use strait_compress::history::{BulkSender, LoneSender, ReceiptQueue, StreamKey, UnitNumber};
use strait_scheduler::Budget;
use strait_wire::history::{Receipt, Receipts};

use super::bulk_flows::BulkFlows;
use super::cache::LinkCaches;
use super::group::Group;
use super::return_budget::ReturnBudget;
use crate::{HistoryTerms, OutboundSa, PeerCaches};

/// Packets a second that are tried, and so many at once. A try takes some 10 microseconds with the payload, so they take 2 % of a processor
/// at most; 2,000 packets a second are 40 telephones, or more than 1 Mbit/s of the shortest packets.
const TRIES: u64 = 2_000;
const TRIES_BURST: u64 = 256;
/// The largest packet that is tried. What comes alone and again on the links of plants, meters and telephones is shorter; longer ones are of
/// transfers, where a header is 3 % of a packet and packets share blocks as soon as the link is full.
pub(super) const PACKET_MAX: usize = 700;

/// What both ends remember of packets that left alone.
#[derive(Debug)]
pub(crate) struct LinkHistory {
    pub(super) sender: LoneSender,
    /// Blocks of one flow.
    pub(super) bulk: BulkSender,
    /// Which flows get blocks of their own.
    pub(super) flows: BulkFlows,
    /// Byte caches of trust domains.
    pub(super) caches: LinkCaches,
    /// What is owed for packets from the peer.
    pub(super) owed: ReceiptQueue,
    /// What is owed for blocks.
    pub(super) owed_blocks: ReceiptQueue,
    /// What receipts that leave alone may cost where the reports' budget is taken by what is pressing.
    pub(super) budget: ReturnBudget,
    /// The association in use, counted from 1.
    association: u32,
    terms: HistoryTerms,
    tries: Budget,
    /// Room for a unit.
    pub(super) room: Box<[u8; PACKET_MAX]>,
    /// Room for a packet that the host has not made whole.
    pub(super) packet: Box<[u8]>,
}

impl LinkHistory {
    fn new(terms: HistoryTerms, caches: &Arc<PeerCaches>) -> LinkHistory {
        LinkHistory {
            sender: LoneSender::new(terms.contexts).within(caches.share()),
            bulk: BulkSender::new(terms.streams()).within(caches.share()),
            flows: BulkFlows::default(),
            caches: LinkCaches::new(terms.caches, Arc::clone(caches)),
            owed: ReceiptQueue::default(),
            owed_blocks: ReceiptQueue::for_blocks(),
            budget: ReturnBudget::default(),
            association: 0,
            terms,
            tries: Budget::new(TRIES, TRIES_BURST),
            room: Box::new([0; PACKET_MAX]),
            packet: vec![0; PACKET_MAX].into_boxed_slice(),
        }
    }

    /// Packets leave on another association from now on. A receiver that was restarted has forgotten everything.
    pub(super) fn renew(history: &mut Option<Box<LinkHistory>>, sa: &OutboundSa, caches: &Arc<PeerCaches>) {
        let terms = sa.history;
        if terms.contexts == 0 {
            *history = None;
            return;
        }
        let history = history.get_or_insert_with(|| Box::new(LinkHistory::new(terms, caches)));
        if history.terms == terms {
            history.sender.new_association();
            history.bulk.new_association();
            history.caches.new_association();
        } else {
            history.terms = terms;
            history.sender.clear(terms.contexts);
            history.bulk.clear(terms.streams());
            history.caches.renew(terms.caches);
            history.owed.clear();
            history.owed_blocks.clear();
        }
        history.association += 1;
    }

    /// Receipts that are owed for blocks, or for lone units.
    pub(super) const fn owed_for(&mut self, blocks: bool) -> &mut ReceiptQueue {
        if blocks { &mut self.owed_blocks } else { &mut self.owed }
    }

    /// Whether another packet may be tried now.
    pub(super) fn may_try(&mut self, now: Time) -> bool {
        self.tries.take(1, now)
    }

    /// The unit that `packet` was coded to left last on `sa`.
    pub(super) fn sent(&mut self, packet: &[u8], sa: &OutboundSa, receipts: Receipts, now: Time) {
        let number = self.newest(sa);
        self.sender.sent(packet, number, Receipt::new(sa.spi, number.number), now);
        if !receipts.is_empty() {
            self.owed.rode(now);
        }
    }

    /// The peer has kept these.
    pub(super) fn acknowledged(&mut self, receipts: &Receipts, sa: &OutboundSa) {
        let newest = self.newest(sa);
        for receipt in receipts.as_slice() {
            self.sender.acknowledged(*receipt, newest);
        }
    }

    /// The peer has kept these blocks.
    pub(super) fn acknowledged_blocks(&mut self, receipts: &Receipts, sa: &OutboundSa) {
        let newest = self.newest(sa);
        for receipt in receipts.as_slice() {
            self.bulk.acknowledged(*receipt, newest);
            self.caches.acknowledged(*receipt, newest);
        }
    }

    pub(super) fn newest(&self, sa: &OutboundSa) -> UnitNumber {
        UnitNumber { association: self.association, number: sa.numbers.last().0 }
    }
}

/// Whose history blocks of this group have, if they have one: those of one flow that may be compressed, and whose lengths need not tell
/// less.
pub(super) fn stream_of(group: &Group) -> Option<StreamKey> {
    let shows = group.policy.shows_lengths();
    if group.flow == 0 || group.history.is_none() || !group.allowed.something() || !shows {
        return None;
    }
    Some(StreamKey { flow: group.flow, domain: group.domain?.0, edition: group.edition })
}
