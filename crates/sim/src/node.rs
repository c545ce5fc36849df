//! One node: sender, receiver and key manager, joined as the threads of a real node are.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use strait_clock::{Deadline, Random, Stopwatch, Time};
use strait_compress::{Calibration, Gauge, LiveChooser};
use strait_ipsec::inbound::{self, Batch, ExpandJob, ExpandTools, Forwarding, Inlet};
use strait_ipsec::outbound::{self, Order, Outlet, Train, TransmitRefused, Via};
use strait_ipsec::{
    Counters, Inbound, LossPattern, Notice, Outbound, PeerCounters, PeerId, Place, Policies, Reason, RuleSet,
};
use strait_keying::sessionless::{EpochLength, NodeKeys, ReceiverSettings, ReturnPath, WallTime};
use strait_keying::{
    Action, Control, ControlEvent, ControlSettings, KeyExport, PeerConfig, PeerState, PeerStatus,
    SessionlessSettings, SessionlessTerms, SetupError, WallClock,
};
use strait_scheduler::Rate;
use strait_scheduler::metering::Admission;
use strait_stream::{StreamKey, StreamPriority, StreamSettings};
use strait_wire::{Ecn, Tos, ip, vnet};

use crate::host::joined;
use crate::{Delivered, NodeId, NodeSettings, SimDatagram, SimHost, SimStreams};

/// Where the time of day begins, in microseconds since 1995: some day in 2026.
const NOON: u64 = 990_000_000_000_000;

/// How long a worker takes for a job: what zstd takes for 64 KiB on one core, roughly.
const JOB: Duration = Duration::from_micros(100);

/// One node: sender, receiver and key manager.
#[derive(Debug)]
pub struct SimNode {
    settings: NodeSettings,
    peers: Vec<PeerConfig>,
    address: SocketAddr,
    outbound: Outbound,
    inbound: Inbound,
    control: Control,
    policies: Arc<Policies>,
    rules: Arc<RuleSet>,
    counters: Arc<Counters>,
    world: NodeOutlets,
    events: Vec<(Time, ControlEvent)>,
    lookups: Vec<(PeerId, String)>,
    expand_tools: ExpandTools,
    streams: SimStreams,
    /// Microseconds of virtual time, for what goes by the time of day.
    clock: Arc<AtomicU64>,
}

/// What the cores' outlets lead to.
#[derive(Debug)]
struct NodeOutlets {
    now: Time,
    address: SocketAddr,
    interface_mtu: u16,
    sent: Vec<SimDatagram>,
    host: SimHost,
    /// What the host routes on.
    routed: VecDeque<(vnet::Header, Vec<u8>)>,
    router: Option<Arc<Policies>>,
    notices: VecDeque<Notice>,
    control: VecDeque<(SocketAddr, Ecn, Vec<u8>)>,
    /// Datagrams with headers, for the key manager.
    headed: VecDeque<(SocketAddr, Tos, Vec<u8>)>,
    orders: VecDeque<outbound::Order>,
    /// How many of these may wait; more are lost.
    order_room: usize,
    /// What the workers of the receiver have to do, and when each is done.
    expansions: VecDeque<(Time, ExpandJob)>,
    workers: usize,
    /// How many notices may wait; more are lost.
    notice_room: usize,
}

impl SimNode {
    pub(crate) fn new(
        settings: NodeSettings,
        seed: u64,
        base: Instant,
        now: Time,
    ) -> Result<SimNode, SetupError> {
        let counters = Arc::new(Counters::within(settings.memory));
        let mut random = Random::new(seed);
        let mut bytes = [0; 32];
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&random.next_u64().to_be_bytes());
        }
        let streams = SimStreams::new(StreamSettings { base, lifetime: settings.lifetime.soft });
        let mut control = Control::new(
            ControlSettings {
                identity: settings.keys.private_key(),
                capabilities: settings.capabilities.clone(),
                up: settings.up,
                lifetime: settings.lifetime,
                token: settings.token.clone(),
                export: KeyExport::Never,
                counters: Arc::clone(&counters),
                seed: bytes.into(),
                base,
            },
            now,
        )?;
        control.serve_streams(streams.transport());
        let out = outbound::OutboundSettings {
            up: settings.up.given(),
            overhead: settings.overhead,
            link_mtu: settings.link_mtu,
            forwarding: settings.forwarding,
        };
        let chooser = Box::new(LiveChooser::new(Calibration::assumed(), random.next_u64()));
        let outbound = Outbound::new(out, chooser, Stopwatch::NONE, Arc::clone(&counters), now);
        let into =
            inbound::InboundSettings { forwarding: settings.forwarding, udp_offload: settings.udp_offload };
        let inbound = Inbound::new(into, Gauge::none(), Arc::clone(&counters)).with_workers(
            settings.receive_workers,
            &Calibration::assumed(),
            Stopwatch::NONE,
        );
        let world = NodeOutlets::new(&settings, now);
        let rules = Arc::new(RuleSet::new(settings.rules.clone()));
        let mut policies = Policies::exit();
        settings.behind.iter().for_each(|host| policies.name_network((*host).into()));
        let mut node = SimNode {
            address: settings.address,
            settings,
            peers: Vec::new(),
            outbound,
            inbound,
            control,
            policies: Arc::new(policies),
            rules,
            counters,
            world,
            events: Vec::new(),
            lookups: Vec::new(),
            expand_tools: ExpandTools::new(Stopwatch::NONE),
            streams,
            clock: Arc::default(),
        };
        node.begin(now);
        Ok(node)
    }

    /// Tells the sender and the key manager what the settings say.
    fn begin(&mut self, now: Time) {
        let SimNode { settings, outbound, world, .. } = self;
        let (rules, quiet) = (Arc::clone(&self.rules), settings.quiet);
        for order in [Order::Rules(rules), Order::Queueing(settings.queueing), Order::Quiet(quiet)] {
            outbound.handle(order, now, world);
        }
        self.control.be_quiet(quiet);
    }

    /// Its number.
    #[must_use]
    pub const fn id(&self) -> NodeId {
        self.settings.id
    }

    /// The source address of what it sends, as others see it.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The keeper of its keys.
    #[must_use]
    pub const fn control(&self) -> &Control {
        &self.control
    }

    /// What can be shown of a peer.
    #[must_use]
    pub fn status(&self, peer: NodeId) -> Option<PeerStatus> {
        self.control.status(peer.peer())
    }

    /// Whether packets can flow to `peer`.
    #[must_use]
    pub fn is_up(&self, peer: NodeId) -> bool {
        self.status(peer).is_some_and(|status| status.state == PeerState::Up)
    }

    /// What it counts.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Its compression rules, with what each has done.
    #[must_use]
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// Bytes of memory that history and byte caches of `peer` take; 0 for one it does not know.
    #[must_use]
    pub fn kept_bytes(&self, peer: NodeId) -> usize {
        let config = self.peers.iter().find(|config| config.spec.id == peer.peer());
        config.map_or(0, |config| config.spec.caches.kept_bytes())
    }

    /// What it counts for `peer`; zeros for one it does not know.
    #[must_use]
    pub fn peer_counters(&self, peer: NodeId) -> Arc<PeerCounters> {
        let config = self.peers.iter().find(|config| config.spec.id == peer.peer());
        config.map(|config| Arc::clone(&config.spec.counters)).unwrap_or_default()
    }

    /// Packets dropped for `reason`.
    #[must_use]
    pub fn drops(&self, reason: Reason) -> u64 {
        self.counters.drops.get(reason)
    }

    /// Packets dropped, by those reasons that happened.
    #[must_use]
    pub fn all_drops(&self) -> Vec<(Reason, u64)> {
        self.counters.drops.iter().filter(|(_, count)| *count > 0).collect()
    }

    /// What it logged.
    #[must_use]
    pub fn events(&self) -> &[(Time, ControlEvent)] {
        &self.events
    }

    /// How often it came to new associations.
    #[must_use]
    pub fn handshakes(&self) -> usize {
        self.events.iter().filter(|(_, event)| matches!(event, ControlEvent::Established { .. })).count()
    }

    /// The host behind it.
    #[must_use]
    pub const fn host(&self) -> &SimHost {
        &self.world.host
    }

    /// What its host received since the last [`SimNode::take_delivered`].
    #[must_use]
    pub fn delivered(&self) -> &[Delivered] {
        self.world.host.delivered()
    }

    /// Takes what its host received.
    pub fn take_delivered(&mut self) -> Vec<Delivered> {
        self.world.host.take_delivered()
    }

    /// How many orders from its receiver to its sender may wait: with none, the queue between the two threads
    /// of a real node is full, and all are lost.
    pub const fn set_order_room(&mut self, room: usize) {
        self.world.order_room = room;
    }

    /// How many notices to its key manager may wait: with none, a flood has filled the queue, and all are lost.
    pub const fn set_notice_room(&mut self, room: usize) {
        self.world.notice_room = room;
    }

    /// The streams of its services.
    #[must_use]
    pub const fn streams(&self) -> &SimStreams {
        &self.streams
    }

    /// Opens a stream that is answered, and sends the first bytes.
    pub(crate) fn ask_stream(
        &mut self,
        (peer, priority): (PeerId, StreamPriority),
        (bytes, answers): (u64, u8),
        now: Time,
    ) -> Option<StreamKey> {
        let key = self.streams.ask(peer, answers, priority, now)?;
        self.say_stream(key, bytes, now);
        Some(key)
    }

    /// Sends more on such a stream.
    pub(crate) fn say_stream(&mut self, key: StreamKey, bytes: u64, now: Time) {
        self.world.now = now;
        self.streams.say(key, bytes, now);
        self.settle(now);
    }

    /// Sends so many bytes to a peer's service, on a stream of their own.
    pub(crate) fn send_stream(&mut self, peer: PeerId, bytes: u64, priority: StreamPriority, now: Time) {
        self.world.now = now;
        self.streams.send(peer, bytes, priority, now);
        self.settle(now);
    }

    pub(crate) fn settings(&self) -> &NodeSettings {
        &self.settings
    }

    pub(crate) fn peers(&self) -> &[PeerConfig] {
        &self.peers
    }

    pub(crate) fn readdress(&mut self, address: SocketAddr) {
        self.address = address;
        self.world.address = address;
    }

    pub(crate) fn take_sent(&mut self) -> Vec<SimDatagram> {
        core::mem::take(&mut self.world.sent)
    }

    pub(crate) fn take_lookups(&mut self) -> Vec<(PeerId, String)> {
        core::mem::take(&mut self.lookups)
    }

    pub(crate) fn add_peer(&mut self, config: PeerConfig, now: Time) {
        self.world.now = now;
        let mut policies = Policies::clone(&self.policies);
        for prefix in &config.spec.allowed {
            policies.allow(*prefix, config.spec.id);
        }
        self.peers.push(config.clone());
        self.streams.add_peer(config.spec.id, Arc::clone(&config.spec.counters));
        self.control.add_peer(config, now);
        self.settle(now);
        self.set_policies(policies, now);
    }

    /// Adds a peer with which keys need no session.
    pub(crate) fn add_sessionless(&mut self, config: PeerConfig, now: Time) {
        self.world.now = now;
        if self.control.sessionless_counts().is_none() {
            let clock = Arc::clone(&self.clock);
            self.control.begin_sessionless(SessionlessSettings {
                keys: NodeKeys::new(self.settings.keys.private_key(), None),
                clock: WallClock::new(move || WallTime(NOON + clock.load(Ordering::Relaxed))),
                mark: 0,
                receiver: ReceiverSettings::default(),
                stopwatch: Stopwatch::NONE,
                seed: [self.settings.id.0; 32].into(),
            });
        }
        let terms = SessionlessTerms {
            path: ReturnPath::Answers,
            epoch: EpochLength::default(),
            pinned: false,
            card: None,
            mark: 0,
        };
        let mut policies = Policies::clone(&self.policies);
        config.spec.allowed.iter().for_each(|prefix| policies.allow(*prefix, config.spec.id));
        self.control.add_sessionless(config, terms, now);
        self.settle(now);
        self.set_policies(policies, now);
    }

    /// Tells all peers that it ends, as a node does that ends in order.
    pub(crate) fn say_goodbye(&mut self, now: Time) {
        self.world.now = now;
        self.control.say_goodbye(now);
        self.act(now);
        for (place, bytes) in self.streams.close_all(now) {
            self.outbound.handle(Order::Transmit(Via::Udp, place, bytes), now, &mut self.world);
        }
    }

    /// What may leave to all peers, or to one.
    pub(crate) fn admit(&mut self, peer: Option<PeerId>, admission: Admission, now: Time) {
        self.world.now = now;
        self.outbound.handle(Order::Admit(peer, admission), now, &mut self.world);
    }

    /// Has all keys made anew: the machine is another copy, or its time of day was set ahead.
    pub(crate) fn renew(&mut self, copied: bool, seed: u64, now: Time) {
        self.world.now = now;
        self.counters.generations.add(copied.into());
        let generation = self.counters.generations.get();
        self.outbound.handle(Order::Renewed(generation), now, &mut self.world);
        self.streams.renew();
        let mut bytes = [0; 32];
        bytes.iter_mut().zip(seed.to_be_bytes()).for_each(|(to, from)| *to = from);
        self.control.renew(&bytes, now);
        self.settle(now);
    }

    pub(crate) fn remove_peer(&mut self, peer: PeerId, now: Time) {
        self.world.now = now;
        let mut policies = Policies::clone(&self.policies);
        policies.remove(peer);
        self.set_policies(policies, now);
        self.peers.retain(|config| config.spec.id != peer);
        self.control.remove_peer(peer, now);
        self.streams.remove_peer(peer, now);
        self.settle(now);
    }

    fn set_policies(&mut self, policies: Policies, now: Time) {
        self.policies = Arc::new(policies);
        if self.settings.forwarding == Forwarding::Between {
            self.world.router = Some(Arc::clone(&self.policies));
        }
        self.inbound.handle(inbound::Order::Policies(Arc::clone(&self.policies)));
        self.outbound.handle(Order::Policies(Arc::clone(&self.policies)), now, &mut self.world);
        self.settle(now);
    }

    pub(crate) fn remember_place(&mut self, peer: NodeId, at: SocketAddr, now: Time) {
        self.world.now = now;
        self.control.remember_place(peer.peer(), at, now);
        self.settle(now);
    }

    pub(crate) fn remember_path(
        &mut self,
        peer: NodeId,
        (rate, losses): (Option<Rate>, LossPattern),
        now: Time,
    ) {
        self.world.now = now;
        let order = Order::NewPath(peer.peer(), rate, losses);
        self.outbound.handle(order, now, &mut self.world);
        self.settle(now);
    }

    /// Packets from the host, as many as one turn of the loop takes.
    pub(crate) fn packets(&mut self, packets: &[(&[u8], vnet::Header)], now: Time) {
        self.world.now = now;
        for (packet, header) in packets {
            self.outbound.packet(&mut packet.to_vec(), header, now, &mut self.world);
        }
        self.settle(now);
    }

    /// Datagrams from the network.
    pub(crate) fn datagrams(&mut self, batch: Batch<'_>, now: Time) {
        self.world.now = now;
        let Batch { from, tos, segment, bytes } = batch;
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken =
                self.inbound.datagrams(Batch { from, tos, segment, bytes: rest }, now, &mut self.world);
            rest = rest.get_mut(taken..).unwrap_or_default();
            if !rest.is_empty() && !self.inbound.make_room(now, &mut self.world) {
                // The thread stops reading until a worker is done: here that takes no time.
                self.expand(Time::MAX, 1, now);
            }
        }
        self.inbound.release(now, &mut self.world);
        self.inbound.caught_up();
        self.settle(now);
    }

    /// Workers end the jobs that are done by `until`, at most `count`.
    fn expand(&mut self, until: Time, count: usize, now: Time) {
        for _ in 0..count {
            let Some((_, mut job)) = self.world.expansions.pop_front_if(|(at, _)| *at <= until) else {
                return;
            };
            job.run(&mut self.expand_tools);
            self.inbound.finished(job, now, &mut self.world);
        }
    }

    pub(crate) fn resolved(
        &mut self,
        peer: PeerId,
        name: &str,
        answer: Result<Vec<SocketAddr>, String>,
        now: Time,
    ) {
        self.world.now = now;
        self.control.resolved(peer, name, answer, now);
        self.settle(now);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let cores = Deadline::earliest(self.outbound.poll_timeout(), self.control.poll_timeout());
        let cores = Deadline::earliest(cores, self.inbound.poll_timeout());
        let job = self.world.expansions.front().map(|(at, _)| Deadline { at: *at, why: "a worker is done" });
        Deadline::earliest(Deadline::earliest(cores, job), self.streams.poll_timeout())
    }

    /// Does what is due.
    pub(crate) fn timeout(&mut self, now: Time) {
        self.world.now = now;
        self.expand(now, usize::MAX, now);
        self.inbound.timeout(now, &mut self.world);
        if self.control.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
            self.control.timeout(now);
        }
        self.streams.timeout(now);
        self.settle(now);
    }

    /// Passes on what the cores have to say to each other until they have nothing more to say.
    fn settle(&mut self, now: Time) {
        loop {
            self.act(now);
            let mut quiet = true;
            while let Some(order) = self.world.orders.pop_front() {
                quiet = false;
                self.outbound.handle(order, now, &mut self.world);
            }
            while let Some(notice) = self.world.notices.pop_front() {
                quiet = false;
                match notice {
                    Notice::Lane(packet) => self.streams.lane(&packet, now),
                    notice => self.control.notice(notice, now),
                }
            }
            while let Some((from, ecn, datagram)) = self.world.control.pop_front() {
                quiet = false;
                self.control.datagram(from, ecn, &datagram, now);
            }
            while let Some((from, tos, datagram)) = self.world.headed.pop_front() {
                quiet = false;
                if !self.control.sessionless_datagram(from, tos, &datagram, now) {
                    self.counters.refuse(Reason::UnknownDatagram);
                }
            }
            while let Some((header, mut packet)) = self.world.routed.pop_front() {
                quiet = false;
                self.outbound.packet(&mut packet, &header, now, &mut self.world);
            }
            self.outbound.release(now, &mut self.world);
            self.inbound.release(now, &mut self.world);
            let carried = self.carry_streams(now);
            // Streams have the key manager begin connections.
            if !self.act(now) && !carried && quiet && self.world.notices.is_empty() {
                break;
            }
        }
    }

    /// Gives the sender what streams have to send, as far as its queues have room; says whether that was something.
    fn carry_streams(&mut self, now: Time) -> bool {
        self.streams.drive(&mut self.control, now);
        let mut any = false;
        while let Some(train) = self.streams.next_train(now) {
            any = true;
            self.outbound.handle(Order::Stream(train), now, &mut self.world);
        }
        any
    }

    /// Carries out the actions of the key manager; says whether there were any.
    fn act(&mut self, now: Time) -> bool {
        self.clock.store(now.as_nanos() / 1000, Ordering::Relaxed);
        let mut any = false;
        while let Some(action) = self.control.poll_action() {
            any = true;
            match action {
                Action::Out(order) => self.outbound.handle(order, now, &mut self.world),
                Action::In(order) => self.inbound.handle(order),
                Action::Resolve(peer, name) => self.lookups.push((peer, name)),
                Action::Log(event) => self.events.push((now, event)),
                // The disk is quick.
                Action::PersistMark(owner, mark) => self.control.mark_persisted(owner, mark, now),
                // The settings are against both.
                Action::DangerKey(_) | Action::Unlisted(..) | Action::LookUp(_) => {}
            }
        }
        any
    }
}

impl NodeOutlets {
    fn new(settings: &NodeSettings, now: Time) -> NodeOutlets {
        NodeOutlets {
            now,
            address: settings.address,
            interface_mtu: settings.interface_mtu,
            sent: Vec::new(),
            host: SimHost::default(),
            routed: VecDeque::new(),
            router: None,
            notices: VecDeque::new(),
            control: VecDeque::new(),
            headed: VecDeque::new(),
            orders: VecDeque::new(),
            order_room: usize::MAX,
            expansions: VecDeque::new(),
            workers: settings.receive_workers,
            notice_room: usize::MAX,
        }
    }

    /// Whether a router's kernel would send this packet back into the tunnel.
    fn routes(&self, bytes: &[u8]) -> bool {
        let Some(policies) = &self.router else { return false };
        ip::Packet::parse(bytes)
            .is_ok_and(|packet| policies.owner(packet.dst()).is_some() && !policies.is_local(packet.dst()))
    }
}

impl Outlet for NodeOutlets {
    fn transmit(&mut self, train: Train<'_>) -> Result<(), TransmitRefused> {
        let outer = if train.to.remote.is_ipv6() { 48 } else { 28 } + train.segment;
        let fragments = train.via == Via::UdpInFragments;
        if outer > usize::from(self.interface_mtu) && !fragments {
            return Err(TransmitRefused::TooBig);
        }
        for datagram in train.datagrams() {
            let bytes = datagram.to_vec();
            self.sent.push(SimDatagram {
                at: self.now,
                from: self.address,
                to: train.to.remote,
                tos: train.tos,
                fragments,
                bytes,
            });
        }
        Ok(())
    }

    fn to_host(&mut self, packet: &[u8]) {
        self.host.take(&vnet::Header::default(), packet, self.now);
    }

    fn notice(&mut self, notice: Notice) {
        if self.notices.len() < self.notice_room {
            self.notices.push_back(notice);
        }
    }
}

impl Inlet for NodeOutlets {
    fn deliver(&mut self, header: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason> {
        let mut bytes: Vec<u8> = joined(pieces);
        if !self.routes(&bytes) {
            self.host.take(header, &bytes, self.now);
        } else if ip::decrement_ttl(&mut bytes).is_some_and(|ttl| ttl > 0) {
            self.routed.push_back((*header, bytes));
        }
        Ok(())
    }

    fn control(&mut self, from: Place, tos: Tos, datagram: &[u8]) {
        self.control.push_back((from.remote, tos.ecn(), datagram.to_vec()));
    }

    fn sessionless(&mut self, from: Place, tos: Tos, datagram: &[u8]) -> bool {
        self.headed.push_back((from.remote, tos, datagram.to_vec()));
        true
    }

    fn order(&mut self, order: outbound::Order) {
        if self.orders.len() < self.order_room {
            self.orders.push_back(order);
        }
    }

    fn notice(&mut self, notice: Notice) {
        if self.notices.len() < self.notice_room {
            self.notices.push_back(notice);
        }
    }

    /// A worker has room for two jobs.
    fn hand_over(&mut self, worker: usize, job: ExpandJob) -> Option<ExpandJob> {
        if worker > self.workers || self.expansions.len() >= 2 * self.workers {
            return Some(job);
        }
        self.expansions.push_back((self.now + JOB, job));
        None
    }
}
