//! Probes of the path, their answers, and keepalives.

use strait_wire::Protocol;
use strait_wire::probe::{self, Probe, ProbeKind};

use super::{Transmitter, Unsealed};
use crate::outbound::context::{CONTROL_TOS, Outlet, TxContext};
use crate::outbound::direct::DirectProbe;
use crate::outbound::inner_mtu::announce_mtu;
use crate::outbound::path_mtu::{ANY_SIZE, Wanted};
use crate::outbound::train::{Heading, Via};
use crate::wrap::Head;
use crate::{OutboundSa, Payloads, Reason};

impl Transmitter {
    /// Probes of the path, where the searches want them; only ever called under traffic.
    pub(in crate::outbound) fn probe_path(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        if tx.own.quiet {
            return;
        }
        let association = &tx.link.association;
        if !association.takes_blocks() || association.endpoint.is_none() || association.is_one_way() {
            return;
        }
        self.probe_direct(tx);
        let searched = tx.link.association.path.is_searching();
        while let Some(Wanted { id, size, again }) =
            tx.link.association.path.poll(tx.now, &tx.link.spec.counters.in_datagrams)
        {
            let via = tx.link.association.via();
            if again {
                let _ = self.probe(tx, via, Probe { kind: ProbeKind::Request, id, size: ANY_SIZE });
            }
            let _ = self.probe(tx, via, Probe { kind: ProbeKind::Request, id, size });
            // Alone: the network may refuse it, and then all of its train is lost.
            self.departure.depart(tx);
        }
        // What was found is less than what was thought, or it would have been an answer that ended the search.
        if searched && !tx.link.association.path.is_searching() {
            announce_mtu(tx.link, tx.outlet);
        }
    }

    /// A probe directly behind IP, if one is due.
    pub(super) fn probe_direct(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        let heard = &tx.link.spec.counters.in_datagrams;
        if let Some(DirectProbe { id, again }) = tx.link.association.direct.poll(tx.now, heard) {
            let probe = Probe { kind: ProbeKind::Request, id, size: ANY_SIZE };
            self.departure.depart(tx);
            if again {
                let _ = self.probe(tx, Via::Udp, Probe { id: 0, ..probe });
                self.departure.depart_first(tx);
            }
            let _ = self.probe(tx, Via::Esp, probe);
            self.departure.depart_first(tx);
        }
        tx.link.show_carrier(tx.outlet);
    }

    /// Asks for a sign of life with the smallest probe; until larger ones are answered too, only what every
    /// path takes is sent.
    pub(in crate::outbound) fn ask_life(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        if tx.own.quiet {
            return;
        }
        tx.link.association.path.doubt(tx.now);
        self.ask(tx);
        self.probe_path(tx);
        self.departure.depart(tx);
    }

    /// Asks for a sign of life with the smallest probe.
    pub(in crate::outbound) fn ask(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        let _ = self.probe(tx, Via::Udp, Probe { kind: ProbeKind::Request, id: 0, size: ANY_SIZE });
        self.departure.depart_first(tx);
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
        self.departure.depart(tx);
        let _ = self.probe(tx, Via::Udp, Probe { kind: ProbeKind::Answer, id, size });
        self.departure.depart_first(tx);
    }

    /// Tells a peer that takes such that this node is being stopped, after all that waits for it.
    pub(in crate::outbound) fn say_goodbye(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        let strait = |sa: &OutboundSa| matches!(sa.payloads, Payloads::Strait { .. });
        if !tx.own.quiet && tx.link.association.sa.as_ref().is_some_and(strait) {
            let _ = self.probe(tx, Via::Udp, Probe { kind: ProbeKind::Goodbye, id: 0, size: ANY_SIZE });
            self.departure.depart_first(tx);
        }
    }

    /// Sends a packet without content (RFC 4303 section 2.6), the shortest that shows that this end is alive.
    pub(in crate::outbound) fn send_empty(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        if tx.own.quiet {
            return;
        }
        if tx.link.association.can_send() {
            self.departure.begin_train(tx.link.spec.id);
            let _ = self.seal_own(tx, Via::Udp, (Protocol::NO_NEXT, 0), |_| {});
            self.departure.depart(tx);
        }
    }

    /// Sends one byte that keeps a NAT's mapping alive (RFC 3948 section 2.3).
    pub(in crate::outbound) fn send_keepalive(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        if tx.own.quiet {
            return;
        }
        if let Some(to) = tx.link.association.place() {
            let heading = Heading { via: Via::Udp, to, tos: CONTROL_TOS };
            let latest = || Some(&tx.link.spec.counters.endpoint);
            self.departure.send_control(heading, &[0xff], latest, tx.now, tx.outlet);
        }
    }

    fn probe(&mut self, tx: &mut TxContext<'_, impl Outlet>, via: Via, probe: Probe) -> Result<(), Reason> {
        let association = &tx.link.association;
        let sa = association.sa.as_ref().ok_or(Reason::NoSa)?;
        let room = usize::from(probe.size).saturating_sub(association.outer_len());
        self.departure.begin_train(tx.link.spec.id);
        let padded = match probe.kind {
            ProbeKind::Request => sa.payload_room(sa.front_len(Head::Fresh(CONTROL_TOS)), room),
            ProbeKind::Answer | ProbeKind::Goodbye => 0,
        };
        self.seal_own(tx, via, (Protocol::AGGFRAG, padded.max(probe::LEN)), |payload| {
            payload.fill(0);
            let _ = probe.emit(payload);
        })
    }

    /// Seals a payload of the node's own, carried by `via` where ESP has no other carrier. What shows where this node is and that it
    /// is alive, and what tells of the carrier, goes in UDP, which holds a NAT's mapping too.
    fn seal_own(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        via: Via,
        (next, len): (Protocol, usize),
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), Reason> {
        let association = &tx.link.association;
        let heading = association.heading(CONTROL_TOS).ok_or(Reason::NoEndpoint)?;
        let via = if heading.via == Via::Ip { Via::Ip } else { via };
        let unsealed = Unsealed { head: Head::Fresh(CONTROL_TOS), next, len, tos: CONTROL_TOS };
        self.seal_by(tx, Heading { via, ..heading }, unsealed, write)
    }
}
