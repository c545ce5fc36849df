//! What a Strait peer is sent beside packets: a changed condition, and delivery reports (AGGFRAG sub-type 1, RFC 9347 section
//! 6.1.2).

use core::time::Duration;

use strait_clock::Time;
use strait_wire::aggfrag::{self, CONGESTION_LEN};
use strait_wire::condition::{self, Condition};
use strait_wire::{Protocol, Tos};

use super::Transmitter;
use crate::Reason;
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
        if tx.own.quiet {
            return;
        }
        if !tx.link.association.takes_blocks() || tx.link.association.endpoint.is_none() {
            return;
        }
        self.departure.begin_train(tx.link.spec.id);
        let _ = self.seal_fresh(tx, Protocol::AGGFRAG, condition::LEN, CONTROL_TOS, |payload| {
            let _ = condition.emit(payload);
        });
        self.departure.depart(tx);
    }

    /// Takes what arrived from a peer, for a delivery report to it: with the next datagram that goes there, or alone.
    pub(in crate::outbound) fn report_reception(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        reception: Reception,
    ) {
        let Link { association, reporting, spec, .. } = &mut *tx.link;
        if association.takes_reports() && association.endpoint.is_some() {
            reporting.note(reception, &spec.counters, tx.now);
            self.report_due(tx);
        }
    }

    /// Sends the delivery report that waits alone, if it is due and within what may go back to the peer.
    pub(in crate::outbound) fn report_due(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        if tx.own.quiet {
            return;
        }
        let Some(bytes) = alone(tx) else { return tx.link.reporting.renew() };
        let path = tx.link.pacing.return_path(tx.own.rate);
        if let Some(reception) = tx.link.reporting.take_due(bytes, path, tx.now) {
            tx.link.spec.counters.reports_wire.add((bytes - tx.own.overhead) as u64);
            self.departure.begin_train(tx.link.spec.id);
            let _ = self.send_with_report(tx, &reception, 0, CONTROL_TOS, |_| {});
            self.departure.depart(tx);
        }
    }

    /// Takes the delivery report that waits, if it can ride in a datagram with `len` bytes of packets, which takes `otherwise`
    /// bytes of payload without it: the path carries both, they are no more than two datagrams would be, and what goes back pays. Where
    /// packets wait at the peer for repairs, it would wait with them, and latency-sensitive ones could not pass with it.
    pub(super) fn take_riding(
        &self,
        tx: &mut TxContext<'_, impl Outlet>,
        len: usize,
        otherwise: usize,
    ) -> Option<Reception> {
        if !tx.link.reporting.is_waiting() || tx.link.is_held_back() {
            return None;
        }
        let together = REPORT_LEN + len;
        let association = &tx.link.association;
        if !association.takes_reports() || together > association.payload_room() {
            return None;
        }
        let apart = sealed(tx.link, otherwise)?;
        let more = sealed(tx.link, together)?.saturating_sub(apart);
        if more > alone(tx)? {
            return None;
        }
        let path = tx.link.pacing.return_path(tx.own.rate);
        let reception = tx.link.reporting.take_riding(more, path, tx.now)?;
        tx.link.spec.counters.reports_wire.add(more as u64);
        Some(reception)
    }

    /// A datagram with `len` bytes of whole packets, which `write` puts in their place, and behind them a delivery report.
    pub(super) fn send_with_report(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        reception: &Reception,
        len: usize,
        tos: Tos,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), Reason> {
        let report = congestion(tx.link, reception, tx.now);
        let before = tx.link.sealed;
        self.seal_fresh(tx, Protocol::AGGFRAG, REPORT_LEN + len, tos, |payload| {
            let _ = aggfrag::emit_congestion(payload, 0, &report);
            write(payload.get_mut(CONGESTION_LEN..CONGESTION_LEN + len).unwrap_or_default());
            let _ = reception.delivery.emit(payload.get_mut(CONGESTION_LEN + len..).unwrap_or_default());
        })?;
        // What the report takes is nothing that packets became.
        tx.link.sealed.payload -= REPORT_LEN;
        tx.link.sealed.wire = before.wire + (tx.link.sealed.wire - before.wire).saturating_sub(REPORT_LEN);
        tx.link.spec.counters.reports_out.add(1);
        Ok(())
    }
}

/// Bytes of an ESP packet with `len` bytes of payload.
pub(super) fn sealed(link: &Link, len: usize) -> Option<usize> {
    let sa = link.association.sa.as_ref()?;
    Some(sa.sealed_len(sa.front_len(Head::Fresh(Tos(0))), len))
}

/// Wire bytes of a delivery report alone.
fn alone(tx: &TxContext<'_, impl Outlet>) -> Option<usize> {
    Some(sealed(tx.link, REPORT_LEN)? + tx.link.association.outer_len() + tx.own.overhead)
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
