//! The journey of a packet leaving this host (RFC 4301 section 5.1).
//!
//! ```text
//! 1. read           a packet or a super-packet from the TUN device                 node: outward.rs
//! 2. select         the peer of its address, the rule that covers its flow         outbound.rs (policy.rs, rules.rs, unknown.rs)
//! 3. queue          while the link has no room, or there is no key yet             gatherer.rs, queue.rs
//! 4. gather         packets of one group that wait become one unit                 gatherer.rs, unit_size.rs, plain.rs
//! 5. compress       the unit becomes one block, if that makes it smaller           compressor.rs, job.rs
//! 6. number, seal   each payload, with the next sequence number, in ESP            transmitter.rs, transmitter/, esp.rs
//! 7. pace           as many datagrams as the link takes now; the rest waits        departure.rs, scheduler.rs
//! ```
//!
//! Towards a peer without a rate steps 3, 4 and 7 fall away (straight.rs), unless packets are held for aggregation or a worker is to
//! compress them. Each step has an owner: [`Outbound`] selects and goes round the links, its stages own what steps 3 to 7 need.

mod acks;
mod association;
mod backlog;
mod bulk_flows;
mod cache;
mod compressor;
mod context;
mod departure;
mod direct;
mod fragment_outer;
mod gatherer;
mod group;
mod handle;
mod history;
mod inner_mtu;
mod inner_reassembly;
mod job;
mod link;
mod marks;
mod outage;
mod own_link;
mod pacing;
mod path_mtu;
mod pauses;
mod plain;
mod queue;
mod ratio_estimate;
mod refusals;
mod repair;
mod repeats;
mod reporting;
mod return_budget;
mod scheduler;
mod straight;
mod streams;
mod train;
mod transmitter;
mod unit_size;
mod unknown;
mod waiting;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use strait_clock::{Deadline, Stopwatch, Time};
use strait_compress::calibrate::Calibration;
use strait_compress::{Chooser, RuleId, Unit};
use strait_scheduler::Tin;
use strait_wire::{tcp, vnet};

use crate::history::FORGET_EVERY;
use crate::offload::SuperPacket;
pub use crate::orders::SenderOrder as Order;
pub use crate::queueing::Queueing;
use crate::reassembly::Reassembly;
pub use crate::reports::{ReceivedReport, Reception, ReportWish};
use crate::{Counters, Forwarding, Notice, Padding, PeerId, Policies, Reason};

use compressor::Compressor;
use context::{Lost, TxContext};
pub use context::{OutboundSettings, Outlet, TransmitRefused};
use departure::Departure;
use gatherer::{Gathered, Gatherer};
use group::Group;
use inner_mtu::refuse_too_big;
use inner_reassembly::{must_reassemble, reassemble};
pub use job::{CompressJob, CompressTools, CompressUnit};
use link::Link;
use queue::LinkQueue;
use refusals::Refusals;
pub(crate) use refusals::{answer_there, answers_there, unreachable};
use scheduler::LinkScheduler;
use straight::Straight;
pub use train::{Train, Via};
use transmitter::Transmitter;
use unknown::{Kept, UnknownDestinations};
use waiting::Waiting;

/// What is no IP packet.
const MALFORMED: Lost = Lost { reason: Reason::MalformedPacket, packets: 1 };

/// The sender of the data plane.
pub struct Outbound {
    links: BTreeMap<PeerId, Link>,
    policies: Arc<Policies>,
    forwarding: Forwarding,
    /// Source, destination and peer of the last packet that the policies let pass.
    selected: Option<(IpAddr, IpAddr, PeerId)>,
    /// Largest IP packet that the outer interface takes.
    link_mtu: u16,
    /// Fragments for transport-mode associations; without memory of its own until there are any.
    inner: Reassembly,
    /// Packets to addresses whose peer is looked up.
    unknown: UnknownDestinations,
    /// The budgets of answers to packets that go no further.
    refusals: Refusals,
    scheduler: LinkScheduler,
    stages: TxStages,
    counters: Arc<Counters>,
    /// The copy of this machine that associations are for, and the one that new ones are ordered for.
    generation: u64,
    renewed: u64,
    /// The time when unused history was last forgotten.
    forgot_at: Time,
}

/// The stages of the sender, shared by all links.
struct TxStages {
    gatherer: Gatherer,
    compressor: Compressor,
    transmitter: Transmitter,
}

impl Outbound {
    /// A sender without peers; `stopwatch` measures for the chooser how long compressing takes.
    #[must_use]
    pub fn new(
        settings: OutboundSettings,
        chooser: Box<dyn Chooser>,
        stopwatch: Stopwatch,
        counters: Arc<Counters>,
        now: Time,
    ) -> Outbound {
        let OutboundSettings { up, overhead, link_mtu, forwarding } = settings;
        let stages = TxStages {
            gatherer: Gatherer::new(Arc::clone(&counters)),
            compressor: Compressor::new(chooser, stopwatch, Arc::clone(&counters)),
            transmitter: Transmitter::new(
                Departure::new(up, overhead, Arc::clone(&counters), now),
                counters.memory.part(),
            ),
        };
        Outbound {
            links: BTreeMap::new(),
            policies: Arc::default(),
            forwarding,
            selected: None,
            link_mtu,
            inner: Reassembly::new(),
            unknown: UnknownDestinations::default(),
            refusals: Refusals::new(),
            scheduler: LinkScheduler::default(),
            stages,
            counters,
            generation: 0,
            renewed: 0,
            forgot_at: now,
        }
    }

    /// The same with these queue settings. `seed` decides which flows share a queue; with a known seed, an attacker can choose them.
    #[must_use]
    pub const fn with_queueing(mut self, queueing: Queueing, seed: u64) -> Outbound {
        (self.stages.gatherer.queueing, self.stages.gatherer.seed) = (queueing, seed);
        self
    }

    /// Adds so many workers beside the calling thread, to whom [`Outlet::hand_over`] gives jobs.
    #[must_use]
    pub fn with_workers(mut self, workers: usize, calibration: &Calibration) -> Outbound {
        self.stages.compressor.add_workers(workers, calibration);
        self
    }

    /// Forgets all associations once this machine is another copy ([`Counters::generations`]): the one before may seal with the same keys
    /// and numbers. To be called before packets are taken.
    pub fn follow_generation(&mut self) {
        let generation = self.counters.generations.get();
        if core::mem::replace(&mut self.generation, generation) != generation {
            for link in self.links.values_mut() {
                link.association.sa = None;
                // The segments in it are of another machine's connections.
                link.outage = outage::Outage::default();
            }
        }
    }

    /// A packet from the host, whole or a super-packet, as `offload` says. What is sealed may stay
    /// here until [`Outbound::release`].
    /// The segments that a SYN announces are lowered in `bytes`.
    pub fn packet(&mut self, bytes: &mut [u8], offload: &vnet::Header, now: Time, outlet: &mut impl Outlet) {
        if let Err(lost) = self.forward(bytes, offload, now, outlet) {
            self.counters.drops.count(lost.reason, lost.packets);
            if let Some(why) = unreachable(lost.reason) {
                self.refuse(bytes, why, now, outlet);
            }
        }
    }

    /// Steps 2 and 3 for one packet, or all of them where it need not wait.
    fn forward(
        &mut self,
        bytes: &mut [u8],
        offload: &vnet::Header,
        now: Time,
        outlet: &mut impl Outlet,
    ) -> Result<(), Lost> {
        let packet = SuperPacket::new(bytes, offload).map_err(|_| MALFORMED)?;
        let lost = |reason| Lost { reason, packets: packet.count() as u64 };
        let peer = match self.select(&packet) {
            Ok(peer) => peer,
            Err(Reason::NoPeer) if self.policies.seeks(packet.ip().dst()) => {
                return self.await_peer(&packet, (bytes, offload), now, outlet).map_err(lost);
            }
            Err(reason) => return Err(lost(reason)),
        };
        self.flush(Some(peer), now, outlet);
        self.stages.transmitter.departure.begin_train(peer);
        let link = self.links.get_mut(&peer).ok_or(Reason::NoPeer).map_err(lost)?;
        link.refresh(now);
        let packet = match self.policies.clamp() {
            Some(mtu) if tcp::is_syn(packet.ip()) => {
                let (checksum, mtu) =
                    (packet.checksum(), mtu.min(link.association.inner_mtu(packet.ip().version())));
                tcp::lower_mss(bytes, mtu, checksum);
                SuperPacket::new(bytes, offload).map_err(|_| MALFORMED)?
            }
            _ => packet,
        };
        let fragment = must_reassemble(link, &packet);
        let tx = &mut self.stages.context(link, now, &mut *outlet);
        if fragment {
            let whole = reassemble(&mut self.inner, bytes, now, &self.counters)?;
            let Some(whole) = whole else { return Ok(()) };
            let packet = SuperPacket::new(whole, &vnet::Header::PLAIN).map_err(|_| MALFORMED)?;
            self.stages.accept(tx, &packet, &vnet::Header::PLAIN)?;
        } else {
            self.stages.accept(tx, &packet, offload)?;
        }
        self.scheduler.list(tx.link);
        if tx.link.outage_due().is_some() {
            self.scheduler.list_report(tx.link);
        }
        if !tx.link.backlog.is_empty() && !tx.link.pacing.is_paced() {
            self.share_out(now, outlet);
        }
        Ok(())
    }

    /// The peer that a packet is for. Its source is this node, a named network or, at a hub, another peer's site, whatever
    /// way it took to come here. The last answer is kept: a stream asks the same thousands of times.
    fn select(&mut self, packet: &SuperPacket<'_>) -> Result<PeerId, Reason> {
        let (src, dst) = (packet.ip().src(), packet.ip().dst());
        if let Some((_, _, peer)) = self.selected.filter(|last| (last.0, last.1) == (src, dst)) {
            return Ok(peer);
        }
        let peer = self.policies.owner(dst).ok_or(Reason::NoPeer)?;
        if !self.policies.may_meet(peer, src, self.forwarding) {
            return Err(Reason::NotForwarding);
        }
        self.selected = Some((src, dst, peer));
        Ok(peer)
    }

    /// Keeps a packet whose peer is not known yet, and has it looked up.
    fn await_peer(
        &mut self,
        packet: &SuperPacket<'_>,
        (bytes, offload): (&[u8], &vnet::Header),
        now: Time,
        outlet: &mut impl Outlet,
    ) -> Result<(), Reason> {
        let to = packet.ip().dst();
        match self.unknown.keep(to, offload, bytes, packet.count() as u64, now) {
            Kept::First => outlet.notice(Notice::NeedsPeer(to)),
            Kept::Waits => {}
            Kept::Refused => return Err(Reason::NoPeer),
            Kept::Full => return Err(Reason::NoPeerYet),
        }
        Ok(())
    }

    /// Other peers have addresses: packets that waited for one of them go there.
    fn obey_policies(&mut self, policies: Arc<Policies>, now: Time, outlet: &mut impl Outlet) {
        (self.policies, self.selected) = (policies, None);
        let policies = &self.policies;
        for mut unsent in self.unknown.take(|to| policies.owner(to).is_some()) {
            self.packet(&mut unsent.bytes, &unsent.offload, now, outlet);
        }
    }

    /// The look-up of the peer with an address is over: what still waits for it is lost.
    fn no_peer(&mut self, to: IpAddr, until: Time, now: Time) {
        let lost = self.unknown.refuse(to, until, now);
        self.counters.drops.count(Reason::NoPeer, lost);
    }

    /// Gathers what the link has room for, so that the engines begin; where they have enough, this thread does its part.
    fn share_out(&mut self, now: Time, outlet: &mut impl Outlet) {
        self.flush(None, now, outlet);
        self.go_round(now, outlet);
        if !self.stages.compressor.pool.has_idle() && self.compress_own(now) {
            self.go_round(now, outlet);
        }
    }

    /// Sends what may be sent at `now`; to be called after a run of packets and at
    /// [`Outbound::poll_timeout`].
    pub fn release(&mut self, now: Time, outlet: &mut impl Outlet) {
        self.forget_unused(now);
        self.flush(None, now, outlet);
        let late = self.unknown.expire(now);
        self.counters.drops.count(Reason::NoPeer, late);
        self.stages.transmitter.departure.send_answers(now, outlet);
        self.send_reports(now, outlet);
        self.go_round(now, outlet);
        while self.compress_own(now) {
            self.go_round(now, outlet);
        }
    }

    /// Forgets history that was not used for long, where memory is short.
    fn forget_unused(&mut self, now: Time) {
        if now.since(self.forgot_at) >= FORGET_EVERY && self.counters.memory.is_short() {
            self.forgot_at = now;
            let histories = self.links.values_mut().filter_map(|link| link.history.as_mut());
            histories.for_each(|history| history.bulk.forget_unused(FORGET_EVERY, now));
        }
    }

    /// A worker has done a job.
    pub fn finished(&mut self, job: CompressJob, now: Time) {
        let compressor = &mut self.stages.compressor;
        compressor.pool.book(&job, now);
        let link = self.links.get_mut(&job.work.task.to);
        compressor.finished(job, link);
    }

    /// Does the calling thread's next job; false when it has none.
    fn compress_own(&mut self, now: Time) -> bool {
        let compressor = &mut self.stages.compressor;
        let Some(job) = compressor.pool.run_own(now) else { return false };
        let link = self.links.get_mut(&job.work.task.to);
        compressor.finished(job, link);
        true
    }

    /// Each link in turn, until none has anything that may leave.
    fn go_round(&mut self, now: Time, outlet: &mut impl Outlet) {
        let mut idle = 0;
        while idle < self.scheduler.len() {
            let Some(peer) = self.scheduler.next() else { break };
            let Some(link) = self.links.get_mut(&peer) else { continue };
            self.stages.transmitter.departure.begin_train(peer);
            link.refresh(now);
            let progress = self.stages.turn(&mut self.stages.context(link, now, outlet));
            link.note_queued();
            self.scheduler.had_turn(link);
            // A link that has nothing left is not in the round any more, and counts no longer.
            idle = if progress { 0 } else { idle + usize::from(link.backlog.listed) };
        }
    }

    /// When [`Outbound::release`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let links = self.scheduler.links().filter_map(|peer| self.links.get(peer));
        let at = links.filter(|link| link.association.can_send()).filter_map(|link| {
            let has_idle = self.stages.compressor.pool.has_idle();
            LinkScheduler::step_at(link, &self.stages.transmitter.departure, has_idle)
        });
        let answers = self.stages.transmitter.departure.answers_at();
        let room = at.chain(answers).min().map(|at| Deadline { at, why: "the link has room" });
        let quiet = self.stages.transmitter.departure.own_link().quiet;
        let reports = self.scheduler.reports().filter_map(|peer| self.links.get(peer)?.return_due(quiet));
        let reports = reports.min().map(|at| Deadline { at, why: "a delivery report or receipts" });
        Deadline::earliest(Deadline::earliest(room, reports), self.unknown.deadline())
    }

    /// Sends the delivery reports and the receipts that are due.
    fn send_reports(&mut self, now: Time, outlet: &mut impl Outlet) {
        let listed = self.scheduler.reports().len();
        let quiet = self.stages.transmitter.departure.own_link().quiet;
        for _ in 0..listed {
            let Some(link) = self.scheduler.next_report().and_then(|peer| self.links.get_mut(&peer)) else {
                continue;
            };
            link.reporting.listed = false;
            let is_due = link.return_due(quiet).is_some_and(|due| due <= now);
            if is_due || link.outage_due().is_some() {
                link.refresh(now);
                let tx = &mut self.stages.context(link, now, &mut *outlet);
                if is_due {
                    self.stages.transmitter.report_due(tx);
                    self.stages.transmitter.receipts_due(tx);
                }
                // The end of an outage is looked for at any time.
                if tx.link.outage_due().is_some() {
                    self.stages.attend_outage(tx);
                }
                self.scheduler.list(tx.link);
            }
            self.scheduler.list_report(link);
        }
    }

    /// Sends what is in the train, whichever peer's it is but this one's.
    fn flush(&mut self, but: Option<PeerId>, now: Time, outlet: &mut impl Outlet) {
        let peer = self.stages.transmitter.departure.end_train(but);
        let Some(link) = peer.and_then(|peer| self.links.get_mut(&peer)) else { return };
        if !self.stages.transmitter.departure.train.is_empty() {
            let tx = &mut self.stages.context(link, now, outlet);
            self.stages.transmitter.departure.depart(tx);
            self.stages.transmitter.beside(tx);
            self.stages.transmitter.probe_path(tx);
            self.scheduler.list(tx.link);
        }
    }
}

impl TxStages {
    /// The way to one peer now.
    fn context<'a, O: Outlet>(&self, link: &'a mut Link, now: Time, outlet: &'a mut O) -> TxContext<'a, O> {
        TxContext { link, own: self.transmitter.departure.own_link(), now, outlet, promoted: false }
    }

    /// A packet for this link: it leaves, or it waits.
    fn accept(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        packet: &SuperPacket<'_>,
        offload: &vnet::Header,
    ) -> Result<(), Lost> {
        let lost = |reason| Lost { reason, packets: packet.count() as u64 };
        if !tx.admits(Tin::of_dscp(packet.ip().tos().dscp())) {
            return Err(lost(Reason::Metered));
        }
        refuse_too_big(tx.link, packet, tx.now, tx.outlet).map_err(lost)?;
        let room = tx.link.association.payload_room();
        tx.link.association.path.watch(packet, room, tx.now);
        tx.link.association.direct.watch(packet.ip());
        tx.watch(packet);
        let waiting = self.classify(tx.link, packet, offload, tx.now);
        self.compressor.tell_changes(tx.outlet);
        let before = tx.link.sealed.outer;
        if !tx.link.must_wait()
            && self.gatherer.queueing.hold.is_zero()
            && self.straight(tx, packet, &waiting)? == Straight::Gone
        {
            let (packets, bytes) = (packet.count() as u64, packet.total_len());
            let wire = tx.link.sealed.outer - before;
            self.transmitter.departure.note_service(&waiting, packets, bytes, wire);
            return Ok(());
        }
        if tx.link.association.asks(tx.now) {
            tx.outlet.notice(Notice::NeedsSa(tx.link.spec.id));
        }
        self.gatherer.enqueue(tx, packet, waiting);
        Ok(())
    }

    /// Which rule covers a packet, and whether to compress it: what is to be known before it waits or leaves.
    fn classify(
        &mut self,
        link: &Link,
        packet: &SuperPacket<'_>,
        offload: &vnet::Header,
        now: Time,
    ) -> Waiting {
        let Compressor { rules, edition, chooser, pauses, .. } = &mut self.compressor;
        let (flow, dscp) = (packet.ip().flow(), packet.ip().tos().dscp());
        let mut waiting = Waiting::new(packet, *offload, flow, Group::plain(dscp, *edition));
        let found = if rules.rules().is_empty() { None } else { rules.find(&flow) };
        let Some((index, rule)) = found else { return waiting };
        let place = u16::try_from(index).unwrap_or(u16::MAX);
        if let Some(counters) = rules.counters(index) {
            counters.packets.add(packet.count() as u64);
            counters.bytes.add(packet.total_len() as u64);
        }
        (waiting.rule, waiting.group.domain) = (Some(place), Some(rule.domain));
        waiting.group.history = rule.history;
        // What does not shrink has no policy of its own, so that of the rule counts.
        let cache = rule.cache.filter(|_| rule.policy.shows_lengths()).map(|cache| cache.domain);
        waiting.group.cache = cache.filter(|domain| link.has_cache(*domain));
        let allowed = rule.allowed.towards(link.association.only());
        let policy = rule.policy;
        if policy.may_pause() && pauses.pass(rule.domain, packet.count() as u64) {
            rules.counters(index).into_iter().for_each(|it| it.paused.add(packet.count() as u64));
            return waiting;
        }
        let rule = RuleId { place, edition: *edition };
        let unit = Unit { flow: &flow, to: link.spec.id.0, rule, allowed };
        // What the entropy probe says would show; with blocks of constant size, only whether a unit fits does.
        if chooser.may_shrink(&unit, packet.ip().payload(), now) || policy.padding == Padding::Constant {
            (waiting.group.allowed, waiting.group.policy) = (allowed, policy);
        }
        waiting
    }

    /// One turn of a link that has something to send: what is sealed leaves first, then one unit. True when something went on and
    /// more may.
    fn turn(&mut self, tx: &mut TxContext<'_, impl Outlet>) -> bool {
        if !tx.link.association.can_send() {
            // Others need the jobs; it is not known when this link can send again.
            return self.compressor.abandon(tx.link);
        }
        if !self.transmitter.departure.has_room(tx.link, tx.now) {
            return self.gather_ahead(tx);
        }
        if self.transmitter.repair(tx) {
            return true;
        }
        if tx.link.backlog.has_ready() {
            let drained = self.promote(tx) || self.transmitter.departure.drain_ready(tx);
            return drained || self.gather_ahead(tx);
        }
        if tx.link.backlog.under_way.is_done() {
            return self.send_compressed(tx);
        }
        if !tx.link.backlog.has_queued() {
            return false;
        }
        if !self.may_gather(tx.link, tx.now) {
            return self.promote(tx) || self.gather_ahead(tx);
        }
        // A probe does not wait behind what the unit makes, or its answer would seem late on a slow link.
        self.transmitter.beside(tx);
        self.transmitter.probe_path(tx);
        self.send_unit(tx)
    }

    /// Steps 4 to 7 for the next unit: gather, compress, number and seal, pace. False when none may leave yet; one that a worker
    /// compresses leaves in a later turn.
    fn send_unit(&mut self, tx: &mut TxContext<'_, impl Outlet>) -> bool {
        let TxStages { gatherer, compressor, transmitter } = self;
        let sent = match gatherer.gather(tx) {
            Gathered::Nothing => Ok(false),
            Gathered::Alone(packet) if packet.note.group.stream => {
                transmitter.send_stream(tx, packet).map(|()| true)
            }
            Gathered::Alone(packet) => transmitter.send_alone(tx, compressor, packet).map(|()| true),
            Gathered::Together { group, several } => {
                let job = compressor.submit_unit(tx, &mut gatherer.plain, (group, several));
                job.map_or(Ok(()), |job| transmitter.send(tx, compressor, job)).map(|()| true)
            }
        };
        transmitter.departure.depart(tx);
        transmitter.departure.note_lost(sent)
    }

    /// Steps 6 and 7 for the first unit under way, which an engine has compressed.
    fn send_compressed(&mut self, tx: &mut TxContext<'_, impl Outlet>) -> bool {
        let TxStages { compressor, transmitter, .. } = self;
        // Nothing sealed waits, so what is not under way has left.
        let under_way = tx.link.backlog.under_way.iter().count();
        tx.link.backlog.queue.iter_mut().for_each(|queue| queue.have_left_but(under_way));
        let job = compressor.take_done(tx.link, tx.now);
        let sent = job.map_or(Ok(()), |job| transmitter.send(tx, compressor, job)).map(|()| true);
        transmitter.departure.depart(tx);
        transmitter.departure.note_lost(sent)
    }

    /// Lets a latency-sensitive unit pass what is sealed already.
    fn promote(&mut self, tx: &mut TxContext<'_, impl Outlet>) -> bool {
        if !LinkScheduler::promotes(tx.link, self.compressor.pool.has_idle()) {
            return false;
        }
        let sealed = tx.link.backlog.ready().len();
        tx.promoted = true;
        let went = self.send_unit(tx);
        tx.promoted = false;
        if tx.link.backlog.ready().len() > sealed {
            tx.link.backlog.queue.iter_mut().for_each(LinkQueue::has_left_parts);
        }
        went
    }

    /// Begins the next unit before the link has room for it, where a worker takes long to compress it.
    fn gather_ahead(&mut self, tx: &mut TxContext<'_, impl Outlet>) -> bool {
        let has_idle = self.compressor.pool.has_idle();
        let at = LinkScheduler::ahead_at(tx.link, &self.transmitter.departure, has_idle);
        if at.is_none_or(|at| at > tx.now) {
            return false;
        }
        let went = self.send_unit(tx);
        if !went {
            // It has to wait for what is under way, or longer.
            tx.link.backlog.note_compressed(None);
        }
        went
    }

    /// Whether another unit may be gathered for this link: there is a job for it, and the link has room behind all that is
    /// under way.
    fn may_gather(&self, link: &Link, now: Time) -> bool {
        let departure = &self.transmitter.departure;
        self.compressor.pool.has_idle() && departure.has_room_behind(link, link.backlog.predicted(), now)
    }
}

impl core::fmt::Debug for Outbound {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Outbound").field("links", &self.links.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
