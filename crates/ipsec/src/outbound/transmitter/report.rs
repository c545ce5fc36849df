//! What a Strait peer is sent beside packets: a changed condition, and delivery reports (AGGFRAG sub-type 1, RFC 9347 section
//! 6.1.2).

use core::time::Duration;

use strait_clock::Time;
use strait_wire::aggfrag::{self, CONGESTION_LEN};
use strait_wire::condition::{self, Condition};
use strait_wire::{Protocol, Tos};

use super::Transmitter;
use crate::outbound::context::{CONTROL_TOS, Outlet, TxContext};
use crate::outbound::link::Link;
use crate::reports::{REPORT_LEN, Reception};
use crate::wrap::Head;

impl Transmitter {
    /// Tells a peer that reads more than the standards have what changed here; what is lost is ordered again.
    pub(in crate::outbound) fn report_condition(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        condition: Condition,
    ) {
        if !tx.link.association.takes_blocks() || tx.link.association.endpoint.is_none() {
            return;
        }
        self.departure.begin_train(tx.link.spec.id);
        let _ = self.seal_fresh(tx, Protocol::AGGFRAG, condition::LEN, CONTROL_TOS, |payload| {
            let _ = condition.emit(payload);
        });
        self.departure.depart(tx);
    }

    /// Sends a peer a delivery report, unless the budget for reports is spent.
    pub(in crate::outbound) fn report_reception(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        reception: &Reception,
    ) {
        let association = &tx.link.association;
        if !association.takes_blocks() || association.endpoint.is_none() {
            return;
        }
        let Some(sa) = &association.sa else { return };
        let sealed = sa.sealed_len(sa.front_len(Head::Fresh(Tos(0))), REPORT_LEN);
        let bytes = sealed + association.outer_len() + tx.own.overhead;
        let rate = tx.link.pacing.known_rate(tx.own.rate);
        let budget = &mut tx.link.pacing.budget;
        budget.note(&reception.delivery);
        if !budget.allows(bytes, rate, tx.now) {
            return;
        }
        let report = congestion(tx.link, reception, tx.now);
        self.departure.begin_train(tx.link.spec.id);
        let told = self.seal_fresh(tx, Protocol::AGGFRAG, REPORT_LEN, CONTROL_TOS, |payload| {
            let _ = aggfrag::emit_congestion(payload, 0, &report);
            let _ = reception.delivery.emit(payload.get_mut(CONGESTION_LEN..).unwrap_or_default());
        });
        tx.link.spec.counters.reports_out.add(u64::from(told.is_ok()));
        self.departure.depart(tx);
    }
}

/// What RFC 9347 has fields for.
fn congestion(link: &Link, reception: &Reception, now: Time) -> aggfrag::CongestionReport {
    let micros = |span: Duration| u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
    let (techo, echo_delay) = reception.echo.map_or((0, 0), |(tval, came)| (tval, micros(now.since(came))));
    let outer = link.association.path.outer();
    aggfrag::CongestionReport {
        plpmtud: link.association.path.is_searching(),
        congestion: reception.marked,
        loss_event_rate: reception.loss_event_rate,
        rtt: link.pacing.round_trip().map_or(0, micros),
        echo_delay,
        transmit_delay: link.pacing.own_rate().map_or(0, |rate| micros(rate.time_for(outer.into()))),
        // The low half of this clock.
        tval: (now.as_nanos() / 1000) as u32,
        techo,
    }
}
