//! The journey of a packet leaving this host (RFC 4301 section 5.1).
//!
//! ```text
//! 1. select     whose address is it, and what do the rules say of it     policy.rs rules.rs classify.rs
//! 2. queue      while the link has no room, or there is no key yet       queue.rs
//! 3. bundle     packets of one group that wait, as whole packets         gather.rs fill.rs plain.rs bundle.rs
//! 4. squeeze    compress them as one block, if that makes them smaller   squeeze.rs engines.rs job.rs
//! 5. number, seal   the next sequence number, ESP                        emit.rs, esp.rs
//! 6. pace       as many datagrams as the link takes, the rest waits      depart.rs
//! ```
//!
//! Towards a peer without a rate steps 2, 3 and 6 fall away: straight through, unless packets are to wait for company or a worker
//! is to compress them.

mod bundle;
mod classify;
mod cut;
mod depart;
mod emit;
mod engines;
mod fill;
mod gather;
mod job;
mod link;
mod path_mtu;
mod plain;
mod queue;
mod raw;
mod reports;
mod squeeze;
mod standard;
mod train;
mod unite;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use strait_clock::{Deadline, Stopwatch, Time};
use strait_compress::Chooser;
use strait_scheduler::{Pacer, Rate};
use strait_wire::ip::Version;
use strait_wire::{Ecn, Tos, icmp, vnet};

use crate::offload::SuperPacket;
pub use crate::orders::SenderOrder as Order;
pub use crate::queueing::Queueing;
use crate::reassembly::Reassembly;
pub use crate::reports::{Heard, Reception};
use crate::{Counters, Explanation, Forwarding, Notice, Payloads, PeerId, Policies, Reason, RuleSet};

use engines::Engines;
pub use job::{Job, Squeezer};
use link::Link;
use path_mtu::PathMtu;
use plain::Plain;
use raw::Straight;
use train::TrainBuffer;
pub use train::{Train, Via};

/// How often the keeper of keys is asked again for an association that packets wait for.
const ASK_EVERY: core::time::Duration = core::time::Duration::from_secs(1);
/// The least inner packet that always passes (RFC 8200 section 5).
const INNER_MIN: usize = 1280;

/// What the sending half needs to know once.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The rate of this node's own link, shared by all peers.
    pub up: Option<Rate>,
    /// Bytes that the link layer adds to each datagram, counted by the pacer.
    pub overhead: u16,
    /// Largest IP packet that the outer interface takes.
    pub link_mtu: u16,
    /// Whether packets of one peer may go on to another.
    pub forwarding: Forwarding,
}

/// Why the network did not take a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A datagram is larger than the interface takes.
    TooBig,
    /// Anything else: no route, no buffer.
    Failed,
}

/// Where the sending half's output goes.
pub trait Outlet {
    /// Datagrams for the network, sent before this returns.
    ///
    /// # Errors
    /// [`Refused`] when they were not taken; they are lost then, as on any network.
    fn transmit(&mut self, train: Train<'_>) -> Result<(), Refused>;
    /// A job for this worker, from 1 on, which comes back by [`Outbound::finished`]; gives it back where there is no such
    /// worker or it has no room.
    fn hand_over(&mut self, _worker: usize, job: Job) -> Option<Job> {
        Some(job)
    }
    /// These packets, whole ones one after another or a super-packet as it came, are sealed.
    fn sealed(&mut self, _packets: &[u8]) {}
    /// An IP packet for the host itself, as ICMP errors are.
    fn to_host(&mut self, packet: &[u8]);
    /// Something for the keeper of keys.
    fn notice(&mut self, notice: Notice);
}

/// The sending half of the data plane.
pub struct Outbound {
    links: BTreeMap<PeerId, Link>,
    policies: Arc<Policies>,
    /// Fragments for transport-mode associations; without memory of its own until there are any.
    reassembly: Reassembly,
    works: Works,
}

/// The way to one peer at one moment.
struct Way<'a, O> {
    link: &'a mut Link,
    now: Time,
    outlet: &'a mut O,
}

/// Inner packets that go no further, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lost {
    reason: Reason,
    packets: u64,
}

impl Lost {
    /// The same, with `packets` more that would have followed.
    const fn and(self, packets: usize) -> Lost {
        Lost { packets: self.packets + packets as u64, ..self }
    }
}

/// What all links share: buffers, codecs, rules and counters.
struct Works {
    settings: Settings,
    queueing: Queueing,
    /// Which flows share a fate in a queue depends on it.
    seed: u64,
    /// Links with something to send, in turn.
    round: VecDeque<PeerId>,
    rules: Arc<RuleSet>,
    /// Counts the changes of rules: what was classified by different ones is never mixed.
    edition: u32,
    chooser: Box<dyn Chooser>,
    /// Where the next unit is gathered.
    plain: Plain,
    engines: Engines,
    /// Whether what is being made passes what is sealed already.
    overtakes: bool,
    /// Where a packet is cut into outer fragments, once there was one.
    cutting: Box<[u8]>,
    train: TrainBuffer,
    /// Whose datagrams are in the train.
    train_of: Option<PeerId>,
    /// The node's own link, shared by all.
    up: Option<Pacer>,
    counters: Arc<Counters>,
}

impl Outbound {
    /// A sending half without peers; `stopwatch` tells the chooser how long compressing takes.
    #[must_use]
    pub fn new(
        settings: Settings,
        chooser: Box<dyn Chooser>,
        stopwatch: Stopwatch,
        counters: Arc<Counters>,
        now: Time,
    ) -> Outbound {
        let works = Works {
            settings,
            queueing: Queueing::NORMAL,
            seed: 0,
            round: VecDeque::new(),
            rules: Arc::default(),
            edition: 0,
            chooser,
            plain: Plain::new(),
            engines: Engines::alone(stopwatch),
            overtakes: false,
            cutting: Box::default(),
            train: TrainBuffer::new(),
            train_of: None,
            up: settings.up.map(|rate| Pacer::new(rate, now)),
            counters,
        };
        Outbound { links: BTreeMap::new(), policies: Arc::default(), reassembly: Reassembly::new(), works }
    }

    /// The same where packets wait so, and which flows share a fate in a queue depends on `seed`: without one, anybody can know it.
    #[must_use]
    pub fn with_queueing(mut self, queueing: Queueing, seed: u64) -> Outbound {
        (self.works.queueing, self.works.seed) = (queueing, seed);
        self
    }

    /// A packet from the host, whole or a super-packet, as `offload` says. What is sealed may stay
    /// here until [`Outbound::release`].
    pub fn packet(&mut self, bytes: &[u8], offload: &vnet::Header, now: Time, outlet: &mut impl Outlet) {
        if let Err(lost) = self.forward(bytes, offload, now, outlet) {
            self.works.counters.drops.count(lost.reason, lost.packets);
        }
    }

    /// The steps above, for one packet.
    fn forward(
        &mut self,
        bytes: &[u8],
        offload: &vnet::Header,
        now: Time,
        outlet: &mut impl Outlet,
    ) -> Result<(), Lost> {
        let packet = SuperPacket::new(bytes, offload)
            .map_err(|_| Lost { reason: Reason::MalformedPacket, packets: 1 })?;
        let lost = |reason| Lost { reason, packets: packet.count() as u64 };
        let peer = self.select(&packet).map_err(lost)?;
        self.works.switch_to(peer, &mut self.links, now, outlet);
        let link = self.links.get_mut(&peer).ok_or(Reason::NoPeer).map_err(lost)?;
        if unite::wanted(link, &packet) {
            return self.unite(bytes, now, outlet);
        }
        too_big(link, &packet, outlet).map_err(lost)?;
        link.path.watch(&packet, link.payload_room(), now);
        let waiting = self.works.classify(link, &packet, offload, now);
        self.works.tell_changes(outlet);
        if !link.must_wait()
            && self.works.queueing.wait.is_zero()
            && self.works.straight(&mut Way { link, now, outlet }, &packet, &waiting)? == Straight::Gone
        {
            return Ok(());
        }
        if link.sa.is_none() {
            ask(link, now, outlet);
        }
        self.works.enqueue(&mut Way { link, now, outlet }, &packet, waiting);
        self.works.list(link);
        if link.pacer.is_none() {
            self.share_out(now, outlet);
        }
        Ok(())
    }

    /// Gathers what the link has room for, so that the engines begin; where they have enough, this thread does its part.
    fn share_out(&mut self, now: Time, outlet: &mut impl Outlet) {
        self.works.flush(&mut self.links, now, outlet);
        self.go_round(now, outlet);
        if !self.works.engines.has_idle() && self.do_own(now) {
            self.go_round(now, outlet);
        }
    }

    /// Whom a packet is for. From one peer's site to another's only at a hub, whatever way it took to
    /// come here.
    fn select(&self, packet: &SuperPacket<'_>) -> Result<PeerId, Reason> {
        let peer = self.policies.owner(packet.ip().dst()).ok_or(Reason::NoPeer)?;
        if self.works.settings.forwarding == Forwarding::None
            && self.policies.site_of(packet.ip().src()).is_some_and(|site| site != peer)
        {
            return Err(Reason::NotForwarding);
        }
        Ok(peer)
    }

    /// Sends what may be sent at `now`; to be called after a run of packets and at
    /// [`Outbound::poll_timeout`].
    pub fn release(&mut self, now: Time, outlet: &mut impl Outlet) {
        self.works.flush(&mut self.links, now, outlet);
        self.go_round(now, outlet);
        while self.do_own(now) {
            self.go_round(now, outlet);
        }
    }

    /// Each link in turn, until none has anything that may leave.
    fn go_round(&mut self, now: Time, outlet: &mut impl Outlet) {
        let mut idle = 0;
        while idle < self.works.round.len() {
            let Some(peer) = self.works.round.pop_front() else { break };
            let Some(link) = self.links.get_mut(&peer) else { continue };
            self.works.train_of = Some(peer);
            let progress = self.works.step(&mut Way { link: &mut *link, now, outlet: &mut *outlet });
            link.note_queued();
            if link.has_waiting() {
                self.works.round.push_back(peer);
            } else {
                link.listed = false;
            }
            idle = if progress { 0 } else { idle + 1 };
        }
    }

    /// When [`Outbound::release`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let links = self.works.round.iter().filter_map(|peer| self.links.get(peer));
        let at = links.filter(|link| link.can_send()).filter_map(|link| self.works.step_at(link)).min()?;
        Some(Deadline { at, why: "the link has room" })
    }

    /// Makes one change.
    pub fn handle(&mut self, order: Order, now: Time, outlet: &mut impl Outlet) {
        self.works.flush(&mut self.links, now, outlet);
        match order {
            Order::AddPeer(spec) => {
                self.links.insert(spec.id, Link::new(*spec, self.works.settings.link_mtu));
                self.works.round.reserve(self.links.len());
            }
            Order::RemovePeer(peer) => self.remove(peer),
            Order::Policies(policies) => self.policies = policies,
            Order::Rules(rules) => self.works.obey(rules),
            Order::Link(up, overhead) => self.works.set_link(up, overhead, now),
            Order::Queueing(queueing) => self.works.queueing = queueing,
            Order::Explain => outlet.notice(Notice::Explained(Box::new(self.works.explain(now)))),
            Order::Transmit(to, bytes) => self.works.transmit_control(to, &bytes, now, outlet),
            Order::Install(sa) => self.of(sa.peer, |works, link| {
                install(link, *sa, works.settings.link_mtu);
                announce_mtu(link, outlet);
            }),
            Order::Withdraw(peer, spi) => self.of(peer, |_, link| {
                link.sa.take_if(|sa| sa.spi == spi);
            }),
            Order::Endpoint(peer, to) => self.of(peer, |_, link| {
                if link.endpoint.replace(to) != Some(to) {
                    link.path.restart();
                    link.reports.moved();
                }
            }),
            Order::Rate(peer, pace) => self.of(peer, |_, link| link.set_pace(pace, now)),
            Order::Ends(peer, ends) => self.of(peer, |_, link| link.ends = *ends),
            Order::Keepalive(peer) => {
                self.of(peer, |works, link| works.keepalive(&mut Way { link, now, outlet }));
            }
            Order::Report(peer, condition) => {
                self.of(peer, |works, link| works.report(&mut Way { link, now, outlet }, condition));
            }
            Order::Received(peer, reception) => {
                self.of(peer, |works, link| works.tell_received(&mut Way { link, now, outlet }, &reception));
            }
            Order::Delivered(peer, heard) => self.of(peer, |works, link| works.delivered(link, &heard, now)),
            Order::Probe(peer) => {
                self.of(peer, |works, link| works.ask_life(&mut Way { link, now, outlet }));
            }
            Order::AnswerProbe(peer, id, size) => {
                self.of(peer, |works, link| works.answer_probe(&mut Way { link, now, outlet }, id, size));
            }
            Order::ProbeAnswered(peer, _id, size) => self.of(peer, |_, link| {
                if link.path.answered(size, now) {
                    announce_mtu(link, outlet);
                }
            }),
        }
    }
}

impl Outbound {
    /// Changes the link to `peer`, if there is one.
    fn of(&mut self, peer: PeerId, change: impl FnOnce(&mut Works, &mut Link)) {
        if let Some(link) = self.links.get_mut(&peer) {
            change(&mut self.works, link);
        }
    }

    fn remove(&mut self, peer: PeerId) {
        if let Some(mut link) = self.links.remove(&peer) {
            self.works
                .counters
                .drops
                .count(Reason::NoPeer, link.waiting_packets() - link.under_way.packets());
            self.works.abandon(&mut link);
        }
        self.works.round.retain(|listed| *listed != peer);
    }
}

impl Works {
    /// Another link of the node's own from now on; what was sent on the old one stays paid for.
    fn set_link(&mut self, up: Option<Rate>, overhead: u16, now: Time) {
        (self.settings.up, self.settings.overhead) = (up, overhead);
        match (&mut self.up, up) {
            (Some(pacer), Some(rate)) => pacer.set_rate(rate),
            (pacer, up) => *pacer = up.map(|rate| Pacer::new(rate, now)),
        }
    }

    /// What is decided, and who is at it.
    fn explain(&self, now: Time) -> Explanation {
        Explanation { decisions: self.chooser.decisions(now), engines: self.engines.occupations(now) }
    }

    /// Other rules from now on.
    fn obey(&mut self, rules: Arc<RuleSet>) {
        self.rules = rules;
        self.edition = self.edition.wrapping_add(1);
    }
}

impl core::fmt::Debug for Outbound {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Outbound").field("links", &self.links.len()).finish_non_exhaustive()
    }
}

fn install(link: &mut Link, sa: crate::OutboundSa, link_mtu: u16) {
    // Only a Strait peer answers probes; towards others the path is what the interface takes.
    if !matches!(sa.payloads, Payloads::Strait { .. }) && link.spec.mtu.is_none() {
        link.path = PathMtu::assumed(link_mtu);
    }
    link.reports.renew(matches!(sa.payloads, Payloads::Strait { .. }));
    link.sa = Some(sa);
    link.asked_at = None;
}

fn announce_mtu(link: &Link, outlet: &mut impl Outlet) {
    let room = link.packet_room().max(INNER_MIN);
    link.spec.counters.inner_mtu.store(room as u64, core::sync::atomic::Ordering::Relaxed);
    outlet.notice(Notice::InnerMtu(link.spec.id, u16::try_from(room).unwrap_or(u16::MAX)));
}

/// Refuses what no datagram on this path carries, and tells its sender (RFC 1191, RFC 8201).
fn too_big(link: &Link, packet: &SuperPacket<'_>, outlet: &mut impl Outlet) -> Result<(), Reason> {
    let len = packet.len(0);
    // Before the search for the path's size is over, and for what may be cut, several datagrams
    // carry one packet; nobody is told a size that is about to change.
    let cut = match link.sa.as_ref().map(|sa| sa.payloads) {
        Some(Payloads::Strait { .. }) => {
            link.path.is_searching() || len <= INNER_MIN || !packet.ip().dont_fragment()
        }
        Some(Payloads::Aggfrag) | None => true,
        Some(Payloads::Standard(_)) => false,
    };
    if cut || link.carries(packet.ip(), len) {
        return Ok(());
    }
    let mut answer = [0; INNER_MIN];
    // What is cut for a Strait peer, and what IPv6 never announces, is not asked to shrink further.
    let least = if link.takes_blocks() || packet.ip().version() == Version::V6 { INNER_MIN } else { 0 };
    let mtu = u16::try_from(link.packet_room().max(least)).unwrap_or(u16::MAX);
    if let Some(len) = icmp::too_big(packet.ip().bytes(), mtu, packet.ip().dst(), &mut answer) {
        outlet.to_host(answer.get(..len).unwrap_or_default());
    }
    Err(Reason::TooBig)
}

/// Asks the keeper of keys for an association, now and again.
fn ask(link: &mut Link, now: Time, outlet: &mut impl Outlet) {
    if link.asked_at.is_none_or(|asked| asked + ASK_EVERY <= now) {
        link.asked_at = Some(now);
        outlet.notice(Notice::NeedsSa(link.spec.id));
    }
}

/// Control datagrams and probes are nobody's inner traffic: no marks.
const CONTROL_TOS: Tos = Tos(Ecn::NotEct as u8);

#[cfg(test)]
mod tests;
