//! Probes of the path, their answers, and keepalives.

use strait_wire::{Protocol, probe};

use super::Transmitter;
use crate::Reason;
use crate::outbound::context::{CONTROL_TOS, Outlet, TxContext};
use crate::outbound::path_mtu::{ANY_SIZE, Wanted};
use crate::wrap::Head;

impl Transmitter {
    /// A probe of the path, if the search wants one; only ever called under traffic.
    pub(in crate::outbound) fn probe_path(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        let association = &tx.link.association;
        if !association.takes_blocks() || association.endpoint.is_none() || association.is_one_way() {
            return;
        }
        let heard = &tx.link.spec.counters.in_datagrams;
        if let Some(Wanted { id, size, again }) = tx.link.association.path.poll(tx.now, heard) {
            if again {
                let _ = self.probe(tx, probe::ProbeKind::Request, id, ANY_SIZE);
            }
            let _ = self.probe(tx, probe::ProbeKind::Request, id, size);
            // Alone: the network may refuse it, and then all of its train is lost.
            self.departure.depart(tx);
        }
    }

    /// Asks for a sign of life with the smallest probe; until larger ones are answered too, only what every
    /// path takes is sent.
    pub(in crate::outbound) fn ask_life(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        tx.link.association.path.doubt(tx.now);
        let _ = self.probe(tx, probe::ProbeKind::Request, 0, ANY_SIZE);
        self.probe_path(tx);
        self.departure.depart(tx);
    }

    /// Answers a probe of the peer's; once that can be sealed, as its first packet without a session brings its key and none for
    /// the answer.
    pub(in crate::outbound) fn answer_probe(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        id: u16,
        size: u16,
    ) {
        if tx.link.association.sa.is_none() {
            tx.link.association.unanswered = Some((id, size));
            return;
        }
        let _ = self.probe(tx, probe::ProbeKind::Answer, id, size);
        self.departure.depart(tx);
    }

    /// Sends a packet without content (RFC 4303 section 2.6), the shortest that shows that this end is alive.
    pub(in crate::outbound) fn send_empty(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        if tx.link.association.can_send() {
            self.departure.begin_train(tx.link.spec.id);
            let _ = self.seal_fresh(tx, Protocol::NO_NEXT, 0, CONTROL_TOS, |_| {});
            self.departure.depart(tx);
        }
    }

    /// Sends one byte that keeps a NAT's mapping alive (RFC 3948 section 2.3).
    pub(in crate::outbound) fn send_keepalive(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        if let Some(to) = tx.link.association.endpoint {
            self.departure.send_control(to, &[0xff], tx.now, tx.outlet);
        }
    }

    fn probe(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        kind: probe::ProbeKind,
        id: u16,
        size: u16,
    ) -> Result<(), Reason> {
        let sa = tx.link.association.sa.as_ref().ok_or(Reason::NoSa)?;
        let room = usize::from(size).saturating_sub(tx.link.association.outer_len());
        self.departure.begin_train(tx.link.spec.id);
        let probe = probe::Probe { kind, id, size };
        let padded = match kind {
            probe::ProbeKind::Request => sa.payload_room(sa.front_len(Head::Fresh(CONTROL_TOS)), room),
            probe::ProbeKind::Answer => 0,
        };
        self.seal_fresh(tx, Protocol::AGGFRAG, padded.max(probe::LEN), CONTROL_TOS, |payload| {
            payload.fill(0);
            let _ = probe.emit(payload);
        })
    }
}
