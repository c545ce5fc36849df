//! Nodes, links, and time that jumps to whatever is due next.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use strait_clock::{Random, Time};

use strait_compress::history::PeerMemory;
use strait_ipsec::inbound::Batch;
use strait_ipsec::{LossPattern, PeerCaches, PeerId};
use strait_keying::{PeerConfig, SetupError, Start, Where};
use strait_scheduler::Rate;
use strait_scheduler::metering::Admission;
use strait_stream::{StreamKey, StreamPriority};
use strait_wire::{Tos, vnet};

use crate::{EventQueue, LinkSettings, NodeId, NodeSettings, PairSettings, SimLink, SimNode};

/// Where simulations begin: not at zero, which some timestamps keep for "never".
const BEGINNING: Time = Time::from_millis(1000);
/// How long a resolver takes.
const LOOK_UP: Duration = Duration::from_millis(20);
/// The time in which a node that ends says so.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// Events that may happen at one instant; more mean that a node asks for the same time without end.
const AT_ONCE: u32 = 100_000;
/// Most bytes that one call brings a node, as of a real socket.
const BATCH: usize = 65_000;

/// A datagram as it travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimDatagram {
    /// When it was sent.
    pub at: Time,
    /// From which address.
    pub from: SocketAddr,
    /// To which address.
    pub to: SocketAddr,
    /// DSCP and ECN of the outer header.
    pub tos: Tos,
    /// True if routers may fragment it.
    pub fragments: bool,
    /// UDP's payload.
    pub bytes: Vec<u8>,
}

impl SimDatagram {
    /// Bytes of the outer IP packet.
    #[must_use]
    pub fn outer_len(&self) -> u64 {
        (self.bytes.len() + if self.to.is_ipv6() { 48 } else { 28 }) as u64
    }

    /// Whether it is ESP, by its first byte.
    #[must_use]
    pub fn is_esp(&self) -> bool {
        self.bytes.first().is_some_and(|first| (0x04..=0x0f).contains(first)) && self.bytes.len() > 1
    }
}

#[derive(Debug)]
enum Happening {
    Arrival(SimDatagram),
    Answer(NodeId, PeerId, String, Result<Vec<SocketAddr>, String>),
}

/// Nodes and the links between them.
#[derive(Debug)]
pub struct SimNetwork {
    now: Time,
    base: Instant,
    random: Random,
    nodes: BTreeMap<NodeId, SimNode>,
    /// When each node wants to be called.
    timers: BTreeMap<NodeId, Time>,
    suspended: BTreeSet<NodeId>,
    links: BTreeMap<(NodeId, NodeId), SimLink>,
    queue: EventQueue<Happening>,
    /// What names resolve to; others do not exist.
    pub names: BTreeMap<String, Vec<SocketAddr>>,
    captured: Option<Vec<SimDatagram>>,
    strays: u64,
    at_once: u32,
}

impl SimNetwork {
    /// An empty network whose chance follows from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> SimNetwork {
        #[expect(
            clippy::disallowed_methods,
            reason = "QUIC counts from some instant; which one has no effect"
        )]
        let base = Instant::now();
        SimNetwork {
            now: BEGINNING,
            base,
            random: Random::new(seed),
            nodes: BTreeMap::new(),
            timers: BTreeMap::new(),
            suspended: BTreeSet::new(),
            links: BTreeMap::new(),
            queue: EventQueue::default(),
            names: BTreeMap::new(),
            captured: None,
            strays: 0,
            at_once: 0,
        }
    }

    /// Nodes 0 and 1 as `settings` say.
    ///
    /// # Errors
    /// [`SetupError`] when no node can run so.
    pub fn pair(seed: u64, settings: PairSettings) -> Result<SimNetwork, SetupError> {
        let PairSettings { a, b, forth, back, start, answer } = settings;
        let mut network = SimNetwork::new(seed);
        let (first, second) = (a.id, b.id);
        let b_at = b.as_peer(Where::Address(b.address), start);
        let a_at = match answer {
            Some(start) => a.as_peer(Where::Address(a.address), start),
            None => a.as_peer(Where::Unknown, Start::OnTraffic),
        };
        network.add_node(a)?;
        network.add_node(b)?;
        network.set_link(first, second, forth);
        network.set_link(second, first, back);
        network.add_peer(second, a_at);
        network.add_peer(first, b_at);
        Ok(network)
    }

    /// Adds a node without peers or links, in place of one with the same number.
    ///
    /// # Errors
    /// [`SetupError`] when no node can run so.
    pub fn add_node(&mut self, settings: NodeSettings) -> Result<(), SetupError> {
        let id = settings.id;
        let node = SimNode::new(settings, self.random.next_u64(), self.base, self.now)?;
        self.nodes.insert(id, node);
        self.set_timer(id);
        Ok(())
    }

    /// Sets the link from one node to another; without a link nothing gets there.
    pub fn set_link(&mut self, from: NodeId, to: NodeId, settings: LinkSettings) {
        let link = SimLink::new(settings, self.random.next_u64());
        self.links.insert((from, to), link);
    }

    /// Makes `config` a peer of `node`.
    pub fn add_peer(&mut self, node: NodeId, mut config: PeerConfig) {
        let now = self.now;
        let memory = Arc::clone(&self.node(node).counters().memory);
        config.spec.caches = Arc::new(PeerCaches::within(Arc::new(PeerMemory::of(memory))));
        self.with(node, |node| node.add_peer(config, now));
    }

    /// Makes `config` a peer of `node` with which keys need no session.
    pub fn add_sessionless(&mut self, node: NodeId, config: PeerConfig) {
        let now = self.now;
        self.with(node, |node| node.add_sessionless(config, now));
    }

    /// Takes a peer from `node`.
    pub fn remove_peer(&mut self, node: NodeId, peer: NodeId) {
        let now = self.now;
        self.with(node, |node| node.remove_peer(peer.peer(), now));
    }

    /// The node loses all it knew and starts again from its configuration.
    ///
    /// # Errors
    /// [`SetupError`], though it could run before.
    pub fn restart(&mut self, id: NodeId) -> Result<(), SetupError> {
        self.restart_with(id, |_| PeerCaches::default())
    }

    /// The same, where `caches` makes what the node has of each peer's byte caches afterwards from what it had before.
    ///
    /// # Errors
    /// As [`SimNetwork::restart`].
    pub fn restart_with(
        &mut self,
        id: NodeId,
        caches: impl Fn(&PeerCaches) -> PeerCaches,
    ) -> Result<(), SetupError> {
        let Some(node) = self.nodes.get(&id) else { return Ok(()) };
        let (settings, peers, address) = (node.settings().clone(), node.peers().to_vec(), node.address());
        self.add_node(settings)?;
        self.readdress(id, address);
        for mut peer in peers {
            peer.spec.caches = Arc::new(caches(&peer.spec.caches));
            let now = self.now;
            self.with(id, |node| node.add_peer(peer, now));
        }
        Ok(())
    }

    /// Ends a node in order, and takes it out of the network once that has been said.
    pub fn stop(&mut self, id: NodeId) {
        self.say_goodbye(id);
        self.kill(id);
    }

    /// Ends a node in order, and starts it again from its configuration once that has been said.
    ///
    /// # Errors
    /// As [`SimNetwork::restart`].
    pub fn stop_and_restart(&mut self, id: NodeId) -> Result<(), SetupError> {
        self.say_goodbye(id);
        self.restart(id)
    }

    fn say_goodbye(&mut self, id: NodeId) {
        let now = self.now;
        self.with(id, |node| node.say_goodbye(now));
        self.run_for(LAST_WORDS);
    }

    /// Takes a node out of the network without a word.
    pub fn kill(&mut self, id: NodeId) {
        self.nodes.remove(&id);
        self.timers.remove(&id);
    }

    /// The machine of the node is another copy, restored from a snapshot; if not `copied`, its time of day was set ahead. Its keys and
    /// sessions are made anew, and it goes on.
    pub fn renew(&mut self, id: NodeId, copied: bool) {
        let (seed, now) = (self.random.next_u64(), self.now);
        self.with(id, |node| node.renew(copied, seed, now));
    }

    /// Others see `node` at another address from now on, as behind a NAT that forgot; what is on its way to the
    /// old address is lost.
    pub fn readdress(&mut self, node: NodeId, address: SocketAddr) {
        self.with(node, |node| node.readdress(address));
    }

    /// Suspends a node, or lets it resume: until then its host sends nothing, its timers do not run, and datagrams to it are
    /// lost. Its clock counts on, as `CLOCK_BOOTTIME` does.
    pub fn set_suspended(&mut self, node: NodeId, suspended: bool) {
        if suspended {
            self.suspended.insert(node);
        } else {
            self.suspended.remove(&node);
        }
    }

    /// What time it is.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// A node.
    ///
    /// # Panics
    /// When there is none of this number.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &SimNode {
        self.nodes.get(&id).unwrap_or_else(|| panic!("the network has no node {}", id.0))
    }

    /// A node, to take what its host received.
    ///
    /// # Panics
    /// When there is none of this number.
    pub fn node_mut(&mut self, id: NodeId) -> &mut SimNode {
        self.nodes.get_mut(&id).unwrap_or_else(|| panic!("the network has no node {}", id.0))
    }

    /// The way from one node to another, to look at its counters, change or cut it.
    ///
    /// # Panics
    /// When there is none.
    pub fn link(&mut self, from: NodeId, to: NodeId) -> &mut SimLink {
        let missing = || panic!("the network has no link from {} to {}", from.0, to.0);
        self.links.get_mut(&(from, to)).unwrap_or_else(missing)
    }

    /// Datagrams to addresses that no node has, or that no link leads to.
    #[must_use]
    pub const fn strays(&self) -> u64 {
        self.strays
    }

    /// From now on every datagram that is sent is kept, also those that get lost.
    pub fn start_capture(&mut self) {
        self.captured = Some(Vec::new());
    }

    /// What was captured since the last call; capturing goes on.
    pub fn take_capture(&mut self) -> Vec<SimDatagram> {
        self.captured.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// `node` remembers the rate of the path to `peer` of an earlier time, if one was found, and how datagrams were lost on it.
    pub fn remember_path(&mut self, node: NodeId, peer: NodeId, rate: Option<Rate>, losses: LossPattern) {
        let now = self.now;
        self.with(node, |node| node.remember_path(peer, (rate, losses), now));
    }

    /// `node` knows from an earlier run where `peer` was.
    pub fn remember_place(&mut self, node: NodeId, peer: NodeId, at: SocketAddr) {
        let now = self.now;
        self.with(node, |node| node.remember_place(peer, at, now));
    }

    /// What may leave from `node`, to one peer or to all.
    pub fn admit(&mut self, node: NodeId, peer: Option<NodeId>, admission: Admission) {
        let now = self.now;
        self.with(node, |node| node.admit(peer.map(NodeId::peer), admission, now));
    }

    /// The host behind `node` sends a packet.
    pub fn send(&mut self, node: NodeId, packet: &[u8]) {
        self.send_all(node, &[packet]);
    }

    /// The host behind `node` sends packets so fast that the node finds them all at once.
    pub fn send_all<P: AsRef<[u8]>>(&mut self, node: NodeId, packets: &[P]) {
        let packets: Vec<_> =
            packets.iter().map(|packet| (packet.as_ref(), vnet::Header::default())).collect();
        let now = self.now;
        self.with(node, |node| node.packets(&packets, now));
    }

    /// `node` sends so many bytes to a service of `peer`, on a stream of their own.
    pub fn send_stream(&mut self, node: NodeId, peer: NodeId, bytes: u64, priority: StreamPriority) {
        let now = self.now;
        self.with(node, |node| node.send_stream(peer.peer(), bytes, priority, now));
    }

    /// `node` opens a stream to a service of `peer` that answers each byte with so many, and sends the first bytes.
    pub fn ask_stream(
        &mut self,
        (node, peer): (NodeId, NodeId),
        (bytes, answers): (u64, u8),
        priority: StreamPriority,
    ) -> Option<StreamKey> {
        let (now, mut key) = (self.now, None);
        self.with(node, |node| key = node.ask_stream((peer.peer(), priority), (bytes, answers), now));
        key
    }

    /// `node` sends so many bytes more on such a stream.
    pub fn say_stream(&mut self, node: NodeId, key: StreamKey, bytes: u64) {
        let now = self.now;
        self.with(node, |node| node.say_stream(key, bytes, now));
    }

    /// The host behind `node` sends a super-packet.
    pub fn send_offloaded(&mut self, node: NodeId, packet: &[u8], offload: vnet::Header) {
        let now = self.now;
        self.with(node, |node| node.packets(&[(packet, offload)], now));
    }

    /// A datagram arrives now, from any sender.
    pub fn inject(&mut self, datagram: SimDatagram) {
        let now = self.now;
        self.arrive(datagram, now);
    }

    /// Lets the next thing happen; nothing is due when the answer is false.
    pub fn step(&mut self) -> bool {
        self.step_before(Time::MAX)
    }

    /// Lets `span` pass.
    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.step_before(end) {}
        self.now = end;
    }

    /// Runs until `done`, at most for `span`; says whether it was done.
    pub fn run_until(&mut self, span: Duration, done: impl Fn(&SimNetwork) -> bool) -> bool {
        let end = self.now + span;
        while !done(self) {
            if !self.step_before(end) {
                self.now = end;
                return done(self);
            }
        }
        true
    }

    /// Runs until packets can flow both ways between two nodes, at most for `span`; says whether they can.
    pub fn run_until_up(&mut self, one: NodeId, other: NodeId, span: Duration) -> bool {
        self.run_until(span, |network| network.node(one).is_up(other) && network.node(other).is_up(one))
    }

    /// The next thing, if it is due before `end`.
    fn step_before(&mut self, end: Time) -> bool {
        let timers = self.timers.iter().filter(|(id, _)| !self.suspended.contains(id));
        let timer = timers.map(|(id, at)| (*at, *id)).min();
        let happening = self.queue.next_at();
        let next = happening.unwrap_or(Time::MAX).min(timer.map_or(Time::MAX, |(at, _)| at)).max(self.now);
        if next >= end {
            return false;
        }
        self.at_once = if next > self.now { 0 } else { self.at_once + 1 };
        assert!(self.at_once < AT_ONCE, "time stands still at {next:?}: {:?}", self.deadlines());
        self.now = next;
        match timer {
            Some((at, node)) if happening.is_none_or(|happening| at < happening) => {
                self.with(node, |node| node.timeout(next));
            }
            _ => self.happen(),
        }
        true
    }

    fn deadlines(&self) -> Vec<(NodeId, Option<strait_clock::Deadline>)> {
        self.nodes.iter().map(|(id, node)| (*id, node.poll_timeout())).collect()
    }

    fn happen(&mut self) {
        match self.queue.pop_if(|_, _| true) {
            Some((at, Happening::Arrival(datagram))) => self.arrive(datagram, at),
            Some((at, Happening::Answer(node, peer, name, answer))) => {
                self.with(node, |node| node.resolved(peer, &name, answer, at));
            }
            None => {}
        }
    }

    /// A datagram reaches the node that has its address, with those that came right behind it, as a socket joins them.
    fn arrive(&mut self, first: SimDatagram, at: Time) {
        let SimDatagram { from, to, tos, mut bytes, .. } = first;
        let segment = bytes.len();
        loop {
            let whole = bytes.len() % segment.max(1) == 0;
            let next = self.queue.pop_if(|when, happening| {
                matches!(happening, Happening::Arrival(next)
                    if when == at && (next.from, next.to, next.tos) == (from, to, tos) && whole
                        && (1..=segment).contains(&next.bytes.len()) && bytes.len() + next.bytes.len() <= BATCH)
            });
            let Some((_, Happening::Arrival(next))) = next else { break };
            bytes.extend_from_slice(&next.bytes);
        }
        let Some(id) = self.nodes.iter().find(|(_, node)| node.address() == to).map(|(id, _)| *id) else {
            self.strays += 1;
            return;
        };
        self.with(id, |node| {
            node.datagrams(Batch { from: from.into(), tos, segment, bytes: &mut bytes }, at)
        });
    }

    /// Lets a node do something, then carries away what it sent.
    fn with(&mut self, id: NodeId, act: impl FnOnce(&mut SimNode)) {
        let Some(node) = self.nodes.get_mut(&id).filter(|_| !self.suspended.contains(&id)) else { return };
        act(node);
        for (peer, name) in node.take_lookups() {
            let answer = self.names.get(&name).cloned().ok_or_else(|| format!("no such host: {name}"));
            self.queue.push(self.now + LOOK_UP, Happening::Answer(id, peer, name, answer));
        }
        for datagram in node.take_sent() {
            self.carry(id, datagram);
        }
        self.set_timer(id);
    }

    /// Notes when a node wants to be called next.
    fn set_timer(&mut self, id: NodeId) {
        match self.nodes.get(&id).and_then(SimNode::poll_timeout) {
            Some(deadline) => self.timers.insert(id, deadline.at),
            None => self.timers.remove(&id),
        };
    }

    fn carry(&mut self, from: NodeId, datagram: SimDatagram) {
        if let Some(captured) = &mut self.captured {
            captured.push(datagram.clone());
        }
        let to = self.nodes.iter().find(|(_, node)| node.address() == datagram.to).map(|(id, _)| *id);
        let Some(link) = to.and_then(|to| self.links.get_mut(&(from, to))) else {
            self.strays += 1;
            return;
        };
        let carry = if datagram.fragments { SimLink::carry_in_fragments } else { SimLink::carry };
        for (at, tos) in carry(link, datagram.outer_len(), datagram.tos, self.now).into_iter().flatten() {
            self.queue.push(at, Happening::Arrival(SimDatagram { tos, ..datagram.clone() }));
        }
    }
}
