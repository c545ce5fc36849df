//! Changes that are ordered, each made between two packets.

use strait_clock::Time;
use strait_scheduler::Pacer;
use strait_wire::Spi;
use strait_wire::missing::MissingRanges;

use super::context::{CONTROL_TOS, Outlet, TxContext};
use super::history::LinkHistory;
use super::inner_mtu::announce_mtu;
use super::link::Link;
use super::path_mtu;
use super::queue::share_of;
use super::train::{Heading, Via};
use super::transmitter::Transmitter;
use super::{Outbound, TxStages};
use crate::orders::SenderOrder as Order;
use crate::outer::outer_len;
use crate::reports::ReceivedReport;
use crate::{HeaderChange, Notice, OutboundSa, Payloads, PeerId, PeerSpec, Place, Reason};

impl Outbound {
    /// Makes one change.
    pub fn handle(&mut self, order: Order, now: Time, outlet: &mut impl Outlet) {
        self.follow_generation();
        self.flush(None, now, outlet);
        match order {
            Order::AddPeer(spec) => self.add(*spec),
            Order::RemovePeer(peer) => self.remove(peer),
            Order::Policies(policies) => self.obey_policies(policies, now, outlet),
            Order::NoPeer(to, until) => self.no_peer(to, until, now),
            Order::Rules(rules) => self.stages.compressor.obey(rules),
            Order::Link(up, overhead) => self.stages.transmitter.departure.set_own_link(up, overhead, now),
            Order::Queueing(queueing) => self.stages.gatherer.queueing = queueing,
            Order::Explain => self.explain(now, outlet),
            Order::Transmit(via, to, bytes) => self.send_control(via, to, &bytes, now, outlet),
            Order::Answer(via, to, bytes) => self.answer(via, to, bytes, now, outlet),
            Order::Refuse(mut error) => self.send_error(&mut error, now, outlet),
            Order::Stream(train) => self.stream(&train, now, outlet),
            Order::Install(sa) => self.install(*sa, now, outlet),
            Order::Renewed(generation) => self.renewed = generation,
            Order::Withdraw(peer, spi) => self.change(peer, |_, link| link.association.withdraw(spi)),
            Order::Endpoint(peer) => self.change(peer, |_, link| link.refresh(now)),
            Order::Rate(peer, pace) => self.pace(peer, outlet, |_, link| link.pacing.set(pace, now)),
            Order::NewPath(peer, rate, losses) => self.pace(peer, outlet, |_, link| {
                link.pacing.new_path((rate, losses), &link.spec.counters.path, now);
            }),
            Order::Admit(Some(peer), admission) => self.change(peer, |_, link| link.admission = admission),
            Order::Admit(None, admission) => self.stages.transmitter.departure.admit(admission),
            Order::Quiet(quiet) => self.stages.transmitter.departure.be_quiet(quiet),
            Order::Ends(peer, ends) => self.change(peer, |_, link| link.ends = *ends),
            Order::Keepalive(peer) => self.send_to(peer, now, outlet, Transmitter::send_keepalive),
            Order::Alive(peer) => self.send_to(peer, now, outlet, Transmitter::send_empty),
            Order::Report(peer, condition) => {
                self.send_to(peer, now, outlet, |sender, tx| sender.report_condition(tx, condition));
            }
            Order::Received(peer, reception) => {
                self.send_to(peer, now, outlet, |sender, tx| sender.report_reception(tx, reception));
            }
            Order::Delivered(peer, report) => {
                self.pace(peer, outlet, |stages, link| stages.take_report(link, &report, now));
            }
            Order::History(peer, order) => {
                self.send_to(peer, now, outlet, |sender, tx| sender.obey_history(tx, order));
            }
            Order::AskAgain(peer, missing) => {
                self.send_to(peer, now, outlet, |sender, tx| sender.ask_again(tx, &missing));
            }
            Order::Repeat(peer, missing) => self.repeat(peer, &missing, now),
            Order::Header(peer, spi, change) => self.change_header((peer, spi), change, now),
            Order::Acknowledge(peer, said, elsewhere) => {
                self.send_to(peer, now, outlet, |sender, tx| sender.acknowledge(tx, said, elsewhere));
            }
            Order::Probe(peer) => self.send_to(peer, now, outlet, Transmitter::ask_life),
            Order::Goodbye(peer) => self.send_to(peer, now, outlet, Transmitter::say_goodbye),
            Order::AnswerProbe(peer, id, size) => {
                self.send_to(peer, now, outlet, |sender, tx| sender.answer_probe(tx, id, size));
            }
            Order::ProbeAnswered(peer, id, size) => {
                self.change(peer, |_, link| link.answered(id, size, now, outlet));
            }
        }
    }

    fn explain(&mut self, now: Time, outlet: &mut impl Outlet) {
        outlet.notice(Notice::Explained(Box::new(self.stages.compressor.explain(now))));
    }

    /// Changes the header of the association to `peer` with this SPI, if it is still in use.
    fn change_header(&mut self, (peer, spi): (PeerId, Spi), change: HeaderChange, now: Time) {
        self.change(peer, |_, link| {
            let sa = link.association.sa.as_mut().filter(|sa| sa.spi == spi);
            sa.into_iter().for_each(|sa| sa.change_header(change, now));
        });
    }

    /// Changes the link to `peer`, if there is one.
    fn change(&mut self, peer: PeerId, change: impl FnOnce(&mut TxStages, &mut Link)) {
        if let Some(link) = self.links.get_mut(&peer) {
            change(&mut self.stages, link);
        }
    }

    /// Changes what is known of the path to `peer`. Whether losses are repaired follows from that, and takes room.
    fn pace(
        &mut self,
        peer: PeerId,
        outlet: &mut impl Outlet,
        change: impl FnOnce(&mut TxStages, &mut Link),
    ) {
        self.change(peer, |stages, link| {
            change(stages, link);
            link.spec.counters.stream.show_rate(link.pacing.pacer.as_ref().map(Pacer::rate));
            if link.update_repair() {
                announce_mtu(link, outlet);
            }
        });
    }

    /// Sends a control datagram to a peer.
    fn send_control(&mut self, via: Via, to: Place, bytes: &[u8], now: Time, outlet: &mut impl Outlet) {
        let heading = self.control_heading(via, to, bytes.len());
        let latest = || {
            let is_there =
                |link: &&Link| link.association.endpoint.is_some_and(|at| at.ip() == to.remote.ip());
            Some(&self.links.values().find(is_there)?.spec.counters.endpoint)
        };
        self.stages.transmitter.departure.send_control(heading, bytes, latest, now, outlet);
    }

    /// Sends a control datagram to a stranger.
    fn answer(&mut self, via: Via, to: Place, bytes: Box<[u8]>, now: Time, outlet: &mut impl Outlet) {
        let heading = self.control_heading(via, to, bytes.len());
        self.stages.transmitter.departure.answer(heading, bytes, now, outlet);
    }

    /// Returns the heading of a control datagram of `len` bytes: a peer's path may be known not to take it whole.
    fn control_heading(&self, via: Via, to: Place, len: usize) -> Heading {
        let heading = |via| Heading { via, to, tos: CONTROL_TOS };
        let remote = to.remote;
        // One that every path takes is on its way at once.
        if via != Via::Udp || len + outer_len(remote) <= usize::from(path_mtu::floor_of(Some(remote))) {
            return heading(via);
        }
        let mut associations = self.links.values().map(|link| &link.association);
        let there = associations.find(|association| association.endpoint == Some(remote));
        heading(there.map_or(via, |association| association.via_of_quic(remote, len)))
    }

    /// Sends something of the node's own to `peer`, if there is a link to it.
    fn send_to<O: Outlet>(
        &mut self,
        peer: PeerId,
        now: Time,
        outlet: &mut O,
        send: impl FnOnce(&mut Transmitter, &mut TxContext<'_, O>),
    ) {
        let Some(link) = self.links.get_mut(&peer) else { return };
        link.refresh(now);
        let mut tx = self.stages.context(link, now, outlet);
        send(&mut self.stages.transmitter, &mut tx);
        self.scheduler.list(tx.link);
        self.scheduler.list_report(tx.link);
    }

    /// The peer asks for payloads that did not arrive there.
    fn repeat(&mut self, peer: PeerId, missing: &MissingRanges, now: Time) {
        let Some(link) = self.links.get_mut(&peer) else { return };
        let waiting = link.first_waiting();
        let Link { association, repair, .. } = &mut *link;
        let repair = repair.as_mut().filter(|_| association.keeps);
        let Some((sa, repair)) = association.sa.as_ref().zip(repair) else { return };
        if let Err(reason) = repair.want(missing, sa, waiting, now) {
            self.counters.refuse(reason);
        }
        self.scheduler.list(link);
    }

    fn add(&mut self, spec: PeerSpec) {
        self.links.insert(spec.id, Link::new(spec, self.link_mtu));
        self.scheduler.reserve(self.links.len());
        self.stages.gatherer.share = share_of(self.links.len());
    }

    fn remove(&mut self, peer: PeerId) {
        if let Some(mut link) = self.links.remove(&peer) {
            let waiting = link.backlog.queued_packets() + link.backlog.ready_packets();
            self.counters.drops.count(Reason::NoPeer, waiting);
            self.stages.compressor.abandon(&mut link);
            self.stages.transmitter.stores.release(link.repair.as_deref());
        }
        self.stages.gatherer.share = share_of(self.links.len());
        self.scheduler.remove(peer);
    }

    fn install(&mut self, sa: OutboundSa, now: Time, outlet: &mut impl Outlet) {
        if self.renewed != self.generation {
            return;
        }
        let (link_mtu, peer, mut unanswered) = (self.link_mtu, sa.peer, None);
        self.change(peer, |_, link| {
            link.pacing.renew(matches!(sa.payloads, Payloads::Strait { .. }));
            link.reporting.renew();
            LinkHistory::renew(&mut link.history, &sa, &link.spec.caches);
            link.association.install(sa, link.spec.mtu, link_mtu);
            link.outage.renew();
            link.show_carrier(outlet);
            link.update_repair();
            announce_mtu(link, outlet);
            unanswered = link.association.unanswered.take();
        });
        self.links.get_mut(&peer).into_iter().for_each(|link| self.scheduler.list_report(link));
        if let Some((id, size)) = unanswered {
            self.send_to(peer, now, outlet, |sender, tx| sender.answer_probe(tx, id, size));
        }
    }
}

impl TxStages {
    /// Takes a delivery report of the peer.
    fn take_report(&self, link: &mut Link, report: &ReceivedReport, now: Time) {
        let Link { spec, association, pacing, .. } = link;
        let departure = &self.transmitter.departure;
        let around = association.outer_len() + departure.own_link().overhead;
        let current = association.sa.as_ref().is_some_and(|sa| sa.spi == report.delivery.spi);
        if current && !pacing.take_report(report, around, &spec.counters, now) {
            departure.refuse(Reason::AbsurdReport);
        }
        link.update_symbols();
    }
}
