//! A packet that leaves alone: coded against earlier ones that the peer has kept.

use strait_clock::Time;
use strait_compress::history::LoneTerms;
use strait_wire::history::{CacheQuestion, QUESTION_LEN, Receipt, Receipts};
use strait_wire::{Protocol, Tos};

use super::report::sealed;
use super::{Transmitter, needs_mark, put};
use crate::Reason;
use crate::offload::SuperPacket;
use crate::orders::HistoryOrder;
use crate::outbound::context::{CONTROL_TOS, Outlet, TxContext};
use crate::outbound::group::Group;
use crate::outbound::history::{LinkHistory, PACKET_MAX};
use crate::outbound::link::Link;
use crate::repair::is_pure_acknowledgement;

/// How a packet of `len` bytes may be tried, if it may.
fn terms(tx: &mut TxContext<'_, impl Outlet>, packet: &[u8], len: usize, group: &Group) -> Option<LoneTerms> {
    if len > PACKET_MAX || group.stream {
        return None;
    }
    let scope = group.history?;
    // A report that rides saves a datagram, which is more than history saves.
    if tx.link.reporting.may_ride(tx.now) {
        return None;
    }
    // The peer lets an acknowledgement pass what waits for repairs, but not one that it has to decode first.
    if tx.link.association.keeps && tx.link.pacing.loss() > 0.0 && is_pure_acknowledgement(packet) {
        return None;
    }
    if !tx.link.history.as_mut()?.may_try(tx.now) || needs_mark(tx, packet, len) {
        return None;
    }
    let payload = group.allowed.something() && group.policy.shows_lengths();
    // A domain's number means nothing under other rules.
    let share = u64::from(group.edition) << u16::BITS | group.domain.map_or(0, |domain| u64::from(domain.0));
    Some(LoneTerms { scope, share, payload, invest: INVEST })
}

/// Bytes that a unit may take more than the packet without history, so that the peer keeps it: one step of ESP's alignment, which the next
/// packet gets back several times.
const INVEST: usize = 4;

impl Transmitter {
    /// Sends one packet as a lone unit, if that takes fewer bytes than the `otherwise` bytes of payload that it would be; or little more,
    /// where later ones are shorter for it.
    pub(super) fn send_lone(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        packet: &[u8],
        (group, tos): (&Group, Tos),
        otherwise: usize,
    ) -> Option<Result<(), Reason>> {
        let terms = terms(tx, packet, packet.len(), group)?;
        let mut history = tx.link.history.take()?;
        let sent = self.send_coded_alone(tx, &mut history, (packet, tos), terms, otherwise);
        tx.link.history = Some(history);
        sent
    }

    /// The same of one segment, which is written only if it may be tried.
    pub(super) fn send_lone_segment(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        packet: &SuperPacket<'_>,
        index: usize,
        (group, tos): (&Group, Tos),
    ) -> Option<Result<(), Reason>> {
        let len = packet.len(index);
        let terms = terms(tx, packet.ip().bytes(), len, group)?;
        let mut history = tx.link.history.take()?;
        let mut room = core::mem::take(&mut history.packet);
        let sent = room.get_mut(..len).and_then(|whole| {
            packet.write(index, whole);
            self.send_coded_alone(tx, &mut history, (whole, tos), terms, len)
        });
        history.packet = room;
        tx.link.history = Some(history);
        sent
    }

    fn send_coded_alone(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        history: &mut LinkHistory,
        (packet, tos): (&[u8], Tos),
        terms: LoneTerms,
        otherwise: usize,
    ) -> Option<Result<(), Reason>> {
        let apart = sealed(tx.link, otherwise)?;
        // ESP aligns what it carries, so a byte less may be none less on the wire.
        let mut below = otherwise;
        while below > 0 && sealed(tx.link, below - 1)? == apart {
            below -= 1;
        }
        let receipts = history.owed.to_ride(tx.now);
        let room = &mut history.room[..tx.link.association.part_room().min(PACKET_MAX)];
        let coded = history.sender.encode(packet, terms, (receipts, tx.now), below, room)?;
        let unit = history.room.get(..coded.len)?;
        let sent = self.seal_fresh(tx, Protocol::AGGFRAG, unit.len(), tos, |payload| put(payload, 0, unit));
        if sent.is_ok()
            && let Some(sa) = &tx.link.association.sa
        {
            history.sent(packet, sa, receipts, tx.now);
            let counters = &tx.link.spec.counters.history;
            counters.out_units.add(1);
            counters.out_before.add(apart as u64);
            counters.out_after.add(sealed(tx.link, coded.len)? as u64);
        }
        Some(sent)
    }

    /// Something of the peer's was kept here: the receipt rides in the next lone unit, or leaves alone when enough wait. Or the peer has
    /// kept something.
    pub(in crate::outbound) fn obey_history(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        order: HistoryOrder,
    ) {
        let (receipt, blocks) = match order {
            HistoryOrder::KeptUnit(receipt) => (receipt, false),
            HistoryOrder::KeptBlock(receipt) => (receipt, true),
            HistoryOrder::Receipts(receipts) => return tx.link.take_receipts(&receipts, false),
            HistoryOrder::BlockReceipts(receipts) => return tx.link.take_receipts(&receipts, true),
            HistoryOrder::CacheQuestion(question) => return self.answer_question(tx, question),
            HistoryOrder::CacheDigests(answer) => {
                if let Some(history) = &mut tx.link.history {
                    history.caches.compare(&answer);
                }
                return tx.link.count_held();
            }
        };
        if tx.link.owe(receipt, blocks, tx.now) {
            self.send_receipts(tx, blocks);
        }
    }

    /// Asks the peer what it holds of a byte cache, if that is to be known.
    pub(in crate::outbound) fn ask_of_caches(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        if tx.own.quiet {
            return;
        }
        let history = tx.link.history.as_deref_mut();
        let Some(question) = history.and_then(|history| history.caches.take_question(tx.now)) else { return };
        // One that does not leave is asked again.
        let sent = self.seal_fresh(tx, Protocol::AGGFRAG, QUESTION_LEN, CONTROL_TOS, |payload| {
            let _ = question.emit(payload);
        });
        count_sent(tx.link, sent, QUESTION_LEN);
    }

    /// Says what is held of one of the peer's byte caches.
    fn answer_question(&mut self, tx: &mut TxContext<'_, impl Outlet>, question: CacheQuestion) {
        let room = tx.link.association.part_room();
        let history = tx.link.history.as_deref().filter(|_| tx.link.association.can_send());
        let Some(answer) = history.and_then(|history| history.caches.digests(question, room)) else { return };
        self.departure.begin_train(tx.link.spec.id);
        let sent = self.seal_fresh(tx, Protocol::AGGFRAG, answer.wire_len(), CONTROL_TOS, |payload| {
            let _ = answer.emit(payload);
        });
        count_sent(tx.link, sent, answer.wire_len());
        self.departure.depart(tx);
    }

    /// Sends the receipts for blocks that no other block came for in time.
    pub(in crate::outbound) fn receipts_due(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        if tx.own.quiet {
            return;
        }
        let due = tx.link.history.as_ref().and_then(|history| history.owed_blocks.due());
        if due.is_some_and(|due| due <= tx.now) {
            self.send_receipts(tx, true);
        }
    }

    /// Sends the receipts that are to leave alone now, within what may go back to the peer.
    fn send_receipts(&mut self, tx: &mut TxContext<'_, impl Outlet>, blocks: bool) {
        if tx.own.quiet {
            return;
        }
        let Some(receipts) = tx.link.pay_receipts(blocks, (tx.now, tx.own.overhead)) else { return };
        self.departure.begin_train(tx.link.spec.id);
        let sent = self.seal_fresh(tx, Protocol::AGGFRAG, receipts.alone_len(), CONTROL_TOS, |payload| {
            let _ = receipts.emit_alone(blocks, payload);
        });
        count_sent(tx.link, sent, receipts.alone_len());
        self.departure.depart(tx);
    }
}

/// Counts a datagram of this payload that has nothing but what keeps both ends' history alike.
fn count_sent(link: &Link, sent: Result<(), Reason>, payload: usize) {
    if let (Ok(()), Some(bytes)) = (sent, sealed(link, payload)) {
        let counters = &link.spec.counters.history;
        counters.receipts_out.add(1);
        counters.receipts_wire.add((bytes + link.association.outer_len()) as u64);
    }
}

impl Link {
    /// A receipt is owed to the peer, for a block or a lone unit; whether it can be given.
    fn owe(&mut self, receipt: Receipt, block: bool, now: Time) -> bool {
        let Some(history) = self.history.as_mut().filter(|_| self.association.can_send()) else {
            return false;
        };
        history.owed_for(block).note_kept(receipt, now);
        true
    }

    /// Takes the receipts that are to leave alone now, if what came pays for their datagram, which takes `overhead` more bytes of the
    /// link than it has.
    fn pay_receipts(&mut self, blocks: bool, (now, overhead): (Time, usize)) -> Option<Receipts> {
        let in_wire = self.spec.counters.in_wire.get();
        let around = self.association.outer_len() + overhead;
        let receipts = self.history.as_deref_mut()?.owed_for(blocks).to_leave(now)?;
        let sealed = sealed(self, receipts.alone_len());
        let history = self.history.as_deref_mut()?;
        let Some(bytes) = sealed else {
            history.owed_for(blocks).clear();
            return None;
        };
        let (own, shared, wire) = (&mut history.budget, &mut self.reporting.budget, bytes + around);
        own.note(in_wire, false);
        shared.note(in_wire, false);
        let is_paid = shared.take(wire, false) || shared.is_pressed() && own.take(wire, false);
        if !is_paid {
            history.owed_for(blocks).postpone(now);
            return None;
        }
        history.owed_for(blocks).left();
        Some(receipts)
    }

    /// Returns the time at which a delivery report, receipts for blocks or a probe of a silent path leave alone: never from a node that
    /// is `quiet`.
    pub(in crate::outbound) fn return_due(&self, quiet: bool) -> Option<Time> {
        if quiet {
            return None;
        }
        let receipts = self.history.as_ref().and_then(|history| history.owed_blocks.due());
        [self.reporting.due(), receipts, self.outage_due()].into_iter().flatten().min()
    }

    /// The peer has kept these units, or blocks.
    fn take_receipts(&mut self, receipts: &Receipts, blocks: bool) {
        match (&mut self.history, &self.association.sa) {
            (Some(history), Some(sa)) if blocks => history.acknowledged_blocks(receipts, sa),
            (Some(history), Some(sa)) => history.acknowledged(receipts, sa),
            _ => {}
        }
        if blocks {
            self.count_held();
        }
    }
}
