//! Repair of losses: asking the peer for what did not arrive (AGGFRAG sub-type 0xF3), and sending again what it asks for (0xF4).

use strait_wire::missing::MissingRanges;
use strait_wire::repetition::{self, NOTICE_LEN, Repetition};
use strait_wire::{Ecn, Esn, Protocol, Tos};

use super::{Transmitter, put};
use crate::Reason;
use crate::outbound::context::{CONTROL_TOS, Outlet, TxContext};
use crate::outbound::repair::{Repeat, Way, needs_two};
use crate::wrap::Head;

impl Transmitter {
    /// Asks the peer to send again what is missing here, if that is paid for. It does not wait behind sealed datagrams.
    pub(in crate::outbound) fn ask_again(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        missing: &MissingRanges,
    ) {
        if tx.own.quiet {
            return;
        }
        let association = &tx.link.association;
        let Some(sa) = association.sa.as_ref().filter(|_| association.endpoint.is_some()) else { return };
        let len = missing.wire_len();
        let wire =
            sa.sealed_len(sa.front_len(Head::Fresh(Tos(0))), len) + association.outer_len() + tx.own.overhead;
        if !tx.link.pays_request(wire) {
            return;
        }
        self.departure.begin_train(tx.link.spec.id);
        let asked = self.seal_fresh(tx, Protocol::AGGFRAG, len, CONTROL_TOS, |payload| {
            let _ = missing.emit(payload);
        });
        if asked.is_ok() {
            tx.link.spec.counters.repair.requests.add(1);
            tx.link.spec.counters.repair.wire.add(wire as u64);
        }
        self.depart_first(tx);
    }

    /// Takes the next step of repairing what the peer lacks; false when there is none now.
    pub(in crate::outbound) fn repair(&mut self, tx: &mut TxContext<'_, impl Outlet>) -> bool {
        let idle = tx.link.backlog.is_empty();
        if !tx.link.association.keeps {
            return false;
        }
        let Some(rate) = tx.link.pacing.repair_rate(true, tx.own.rate) else { return false };
        let (round, congested) = (tx.link.pacing.round_trip(), tx.link.pacing.is_congested());
        let way = Way { rate, round, idle, twice: needs_two(tx.link.pacing.loss(), round) };
        let Some(repair) = tx.link.repair.as_mut() else { return false };
        if repair.next_at(idle).is_none_or(|at| at > tx.now) {
            return false;
        }
        if idle && self.end_with_symbols(tx) {
            return true;
        }
        let Some(repair) = tx.link.repair.as_mut() else { return false };
        let hides = |tos: Tos| !congested || tos.ecn() != Ecn::NotEct;
        let (step, refused) = repair.next(way, hides, tx.now);
        for _ in 0..refused {
            self.departure.refuse(Reason::RepeatOverBudget);
        }
        let before = tx.link.sealed.wire;
        match step {
            None => return refused > 0,
            Some(Repeat::Payload(number)) => self.repeat(tx, number, congested),
            Some(Repeat::Nothing(number, count)) => self.notice(tx, number, count),
            Some(Repeat::Notice) => self.notice(tx, Esn(0), 0),
        }
        tx.link.spec.counters.repair.wire.add((tx.link.sealed.wire - before) as u64);
        self.depart_first(tx);
        true
    }

    /// Sends a payload again. A loss that a full link caused is told to hosts that read marks.
    fn repeat(&mut self, tx: &mut TxContext<'_, impl Outlet>, number: Esn, congested: bool) {
        let Some(distance) = distance(tx, number) else { return };
        // Its bytes are copied from the store while the link is borrowed for sealing.
        let Some(mut repair) = tx.link.repair.take() else { return };
        if let Some(payload) = repair.payload(number) {
            let header = Repetition { next: payload.next, distance };
            let len = repetition::HEADER_LEN + payload.bytes.len();
            let tos = if congested { payload.tos.with_ecn(Ecn::Ce) } else { payload.tos };
            let sent = self.seal_fresh(tx, Protocol::AGGFRAG, len, tos, |room| {
                let _ = header.emit(room);
                put(room, repetition::HEADER_LEN, payload.bytes);
            });
            tx.link.spec.counters.repair.repeated.add(u64::from(sent.is_ok()));
        }
        repair.forget_pause();
        tx.link.repair = Some(repair);
    }

    /// Tells the peer that so many numbers from `number` on are not sent again.
    fn notice(&mut self, tx: &mut TxContext<'_, impl Outlet>, number: Esn, count: u16) {
        let distance = if count == 0 { 0 } else { distance(tx, number).unwrap_or(0) };
        let count = if distance == 0 { 0 } else { count };
        let _ = self.seal_fresh(tx, Protocol::AGGFRAG, NOTICE_LEN, CONTROL_TOS, |payload| {
            let _ = repetition::emit_notice(payload, distance, count);
        });
    }

    /// Sends the train, before what is sealed already.
    fn depart_first(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        let promoted = core::mem::replace(&mut tx.promoted, true);
        self.departure.depart(tx);
        tx.promoted = promoted;
    }
}

/// How far a number lies before that of the next datagram; nothing where a repetition cannot say that.
fn distance(tx: &TxContext<'_, impl Outlet>, number: Esn) -> Option<u16> {
    let next = tx.link.association.sa.as_ref()?.numbers.last().0.checked_add(1)?;
    u16::try_from(next.checked_sub(number.0)?).ok()
}
