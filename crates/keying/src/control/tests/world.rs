//! Nodes whose data plane is replaced by its counters, on a network in virtual time.

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use strait_clock::{Random, Time};
use strait_ipsec::{Notice, PeerId, outbound};
use strait_wire::Spi;
use strait_wire::tos::Ecn;

pub(super) use super::node::{ControlNode, address, base, key, peer, settings};
use crate::{
    Action, Control, ControlEvent, ControlSettings, PeerConfig, PeerState, SaDirection, Start, Where,
};

/// The inner bytes of a packet that the worlds' data planes send.
const PACKET: u64 = 1400;

/// What the network does to datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weather {
    /// Least and most time on the way, in milliseconds.
    pub(super) delay: (u64, u64),
    /// Out of a thousand, how many are lost.
    pub(super) lost: u64,
    /// Out of a thousand, how many arrive twice.
    pub(super) twice: u64,
}

pub(super) const FAIR: Weather = Weather { delay: (10, 10), lost: 0, twice: 0 };

struct Flight {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Box<[u8]>,
}

pub(super) struct ControlWorld {
    pub(super) now: Time,
    pub(super) nodes: Vec<ControlNode>,
    pub(super) weather: Weather,
    pub(super) random: Random,
    flights: BTreeMap<(Time, u64), Flight>,
    count: u64,
    at_once: u32,
    /// Datagrams sent by all nodes.
    pub(super) sent: u64,
    /// Packets that arrived for no association.
    pub(super) unknown: u64,
    pub(super) base: Instant,
    /// The turn of the next QUIC datagram, of either end, where every second one is lost.
    pub(super) turn: Option<u64>,
    /// True while the network takes no ESP.
    pub(super) no_esp: bool,
    /// The times of QUIC datagrams and their senders.
    pub(super) quic: Vec<(Time, usize)>,
    /// Datagrams to addresses that no node has.
    pub(super) stray: Vec<Box<[u8]>>,
}

impl ControlWorld {
    /// `nodes` nodes that do not know each other.
    pub(super) fn new(nodes: u8, seed: u64, weather: Weather) -> ControlWorld {
        ControlWorld::with(nodes, seed, weather, |_, _| {})
    }

    pub(super) fn with(
        nodes: u8,
        seed: u64,
        weather: Weather,
        change: impl Fn(u8, &mut ControlSettings),
    ) -> ControlWorld {
        let now = Time::from_millis(1000);
        let base = base();
        let mut world = ControlWorld {
            now,
            nodes: Vec::new(),
            weather,
            random: Random::new(seed),
            flights: BTreeMap::new(),
            count: 0,
            at_once: 0,
            sent: 0,
            unknown: 0,
            base,
            turn: None,
            no_esp: false,
            quic: Vec::new(),
            stray: Vec::new(),
        };
        for node in 0..nodes {
            let mut settings = settings(node, seed, base);
            change(node, &mut settings);
            world.nodes.push(ControlNode::new(settings, address(node), now));
        }
        world
    }

    /// Two nodes; the first knows where the second is and begins when `start` says, the second waits.
    pub(super) fn pair(seed: u64, weather: Weather, start: Start) -> ControlWorld {
        let mut world = ControlWorld::new(2, seed, weather);
        world.introduce(start);
        world
    }

    /// Makes the first two nodes peers, the second not knowing where the first is.
    pub(super) fn introduce(&mut self, start: Start) {
        self.add(1, peer(0, Where::Unknown, Start::OnTraffic));
        self.add(0, peer(1, Where::Address(address(1)), start));
    }

    pub(super) fn add(&mut self, node: usize, config: PeerConfig) {
        let now = self.now;
        self.nodes[node].control.add_peer(config, now);
        self.act(node);
    }

    /// Calls a method of a node's key manager.
    pub(super) fn ask<R>(&mut self, node: usize, call: impl FnOnce(&mut Control, Time) -> R) -> R {
        let now = self.now;
        let result = call(&mut self.nodes[node].control, now);
        self.act(node);
        result
    }

    pub(super) fn notice(&mut self, node: usize, notice: Notice) {
        self.ask(node, |control, now| control.notice(notice, now));
    }

    /// A peer says at `node` that it is being stopped, on the association in use.
    pub(super) fn goodbye(&mut self, node: usize, peer: u32) {
        let status = self.nodes[node].control.status(PeerId(peer)).unwrap();
        self.notice(node, Notice::Stopped(PeerId(peer), status.association.unwrap().inbound.spi));
    }

    /// Sends one packet from `node` to `to`, or says that it waits.
    pub(super) fn packet(&mut self, node: usize, to: u32) -> bool {
        let from = &self.nodes[node];
        if !from.outbound.contains_key(&PeerId(to)) {
            self.notice(node, Notice::NeedsSa(PeerId(to)));
            return false;
        }
        from.counters[&PeerId(to)].out_packets.add(1);
        self.seal(node, to);
        true
    }

    /// Sends an ESP packet of any kind, if there is a key for it.
    fn seal(&mut self, node: usize, to: u32) {
        let from = &self.nodes[node];
        let Some(sa) = from.outbound.get(&PeerId(to)) else { return };
        sa.usage().note(1, PACKET, self.now);
        let (spi, endpoint) = (sa.spi(), from.endpoint(PeerId(to)));
        let endpoint = endpoint.expect("an association without an endpoint");
        self.launch(node, endpoint, spi.0.to_be_bytes().into());
    }

    /// Runs for `span`.
    pub(super) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.step(end) {}
        self.now = end;
    }

    /// Runs for `seconds`, with a packet each way every `every` milliseconds.
    pub(super) fn chat(&mut self, seconds: u64, every: u64) {
        let end = self.now + Duration::from_secs(seconds);
        while self.now < end {
            self.packet(0, 1);
            self.packet(1, 0);
            self.run(Duration::from_millis(every));
        }
    }

    /// Runs until `done`, at most for `seconds`; says whether it was done.
    pub(super) fn run_until(&mut self, seconds: u64, done: impl Fn(&ControlWorld) -> bool) -> bool {
        let end = self.now + Duration::from_secs(seconds);
        while !done(self) {
            if !self.step(end) {
                self.now = end;
                return done(self);
            }
        }
        true
    }

    /// A datagram from anywhere, as an attacker sends it.
    pub(super) fn forge(&mut self, node: usize, from: SocketAddr, bytes: &[u8]) {
        self.ask(node, |control, now| control.datagram(from, Ecn::NotEct, bytes, now));
    }

    /// Moves a node to another address, as roaming does.
    pub(super) fn roam(&mut self, node: usize, to: SocketAddr) {
        self.nodes[node].address = to;
    }

    pub(super) fn is_up(&self, node: usize, with: u32) -> bool {
        let status = self.nodes[node].control.status(PeerId(with));
        status.is_some_and(|status| status.state == PeerState::Up)
    }

    pub(super) fn both_up(&self) -> bool {
        self.is_up(0, 1) && self.is_up(1, 0)
    }

    /// Asserts that the first two nodes send with associations that the other receives on, with the same
    /// keys, and that these are of one handshake.
    pub(super) fn assert_joined(&self) {
        for (here, there) in [(0, 1), (1, 0)] {
            let (a, b) = (&self.nodes[here], &self.nodes[there]);
            let index = |at: usize| PeerId(u32::try_from(at).unwrap());
            let sa = a.outbound.get(&index(there)).expect("no outbound association");
            assert!(b.inbound.contains_key(&sa.spi()), "{here} sends with {} unknown to {there}", sa.spi());
            let mine = a.control.status(index(there)).unwrap().association.unwrap();
            let theirs = b.control.status(index(here)).unwrap().association.unwrap();
            assert_eq!(mine.outbound.spi, sa.spi());
            assert_eq!((mine.outbound.spi, mine.inbound.spi), (theirs.inbound.spi, theirs.outbound.spi));
            assert_eq!((mine.suite, mine.iv), (theirs.suite, theirs.iv));
            assert_ne!(mine.role, theirs.role);
            let out = a.key(SaDirection::Out, mine.outbound.spi);
            assert_eq!(out.material, b.key(SaDirection::In, mine.outbound.spi).material);
            assert_ne!(out.material, a.key(SaDirection::In, mine.inbound.spi).material);
        }
    }

    /// How many events of `node` match.
    pub(super) fn count(&self, node: usize, matches: impl Fn(&ControlEvent) -> bool) -> usize {
        self.nodes[node].events.iter().filter(|(_, event)| matches(event)).count()
    }

    pub(super) fn established(&self, node: usize) -> usize {
        self.count(node, |event| matches!(event, ControlEvent::Established { .. }))
    }

    pub(super) fn started(&self, node: usize) -> Vec<Time> {
        let events = &self.nodes[node].events;
        let started = |event: &ControlEvent| matches!(event, ControlEvent::HandshakeStarted { .. });
        events.iter().filter(|(_, event)| started(event)).map(|(at, _)| *at).collect()
    }

    /// One thing after another; false when nothing more happens before `end`.
    fn step(&mut self, end: Time) -> bool {
        let flight = self.flights.first_key_value().map(|((at, _), _)| *at);
        let timers = self.nodes.iter().enumerate();
        let timer = timers.filter_map(|(node, it)| Some((it.control.poll_timeout()?.at, node))).min();
        let next = flight.unwrap_or(Time::MAX).min(timer.map_or(Time::MAX, |(at, _)| at));
        if next >= end {
            return false;
        }
        self.at_once = if next > self.now { 0 } else { self.at_once + 1 };
        if self.at_once > 5000 {
            let why: Vec<_> = self.nodes.iter().map(|node| node.control.poll_timeout()).collect();
            panic!("time does not advance at {:?}: {why:?}", self.now);
        }
        self.now = self.now.max(next);
        match timer {
            Some((at, node)) if flight.is_none_or(|flight| at < flight) => {
                self.ask(node, Control::timeout);
            }
            _ => self.land(),
        }
        true
    }

    fn land(&mut self) {
        let Some((_, flight)) = self.flights.pop_first() else { return };
        let Some(node) = self.nodes.iter().position(|node| node.address == flight.to) else {
            return self.stray.push(flight.bytes);
        };
        if self.nodes[node].cut {
            return;
        }
        match *flight.bytes {
            [0xff] => {}
            [0x04..=0x0f, a, b, c] => {
                let spi = Spi(u32::from_be_bytes([flight.bytes[0], a, b, c]));
                self.esp(node, flight.from, spi);
            }
            _ => self.forge(node, flight.from, &flight.bytes),
        }
    }

    /// What the receiver does with an ESP packet.
    fn esp(&mut self, node: usize, from: SocketAddr, spi: Spi) {
        let now = self.now;
        let it = &mut self.nodes[node];
        let Some(sa) = it.inbound.get(&spi) else {
            self.unknown += 1;
            return self.notice(node, Notice::UnknownSpi(from.into(), spi));
        };
        sa.usage().note(1, PACKET, now);
        let peer = it.owners[&spi];
        let first = it.confirmed.insert(spi, true).is_none();
        let moved = it.counters[&peer].endpoint.set(from) != Some(from) && !it.notices_full;
        if first {
            self.notice(node, Notice::Confirmed(peer, spi));
        }
        if moved {
            self.notice(node, Notice::Moved(peer));
        }
    }

    fn launch(&mut self, node: usize, to: SocketAddr, bytes: Box<[u8]>) {
        self.sent += 1;
        self.nodes[node].datagrams += 1;
        if self.nodes[node].cut {
            return;
        }
        if bytes[0] >= 0x40 && bytes[0] != 0xff {
            self.quic.push((self.now, node));
            if let Some(turn) = &mut self.turn {
                *turn += 1;
                if *turn % 2 == 0 {
                    return;
                }
            }
        }
        if self.no_esp && bytes.len() == 4 {
            return;
        }
        let from = self.nodes[node].address;
        let (least, most) = self.weather.delay;
        let copies = if self.random.below(1000) < self.weather.twice { 2 } else { 1 };
        for _ in 0..copies {
            if self.random.below(1000) < self.weather.lost {
                continue;
            }
            let delay = Duration::from_micros(least * 1000 + self.random.below((most - least) * 1000 + 1));
            self.count += 1;
            let flight = Flight { from, to, bytes: bytes.clone() };
            self.flights.insert((self.now + delay, self.count), flight);
        }
    }

    /// Does what a node's key manager wants done.
    pub(super) fn act(&mut self, node: usize) {
        while let Some(action) = self.nodes[node].control.poll_action() {
            let now = self.now;
            let it = &mut self.nodes[node];
            match action {
                Action::Out(order) => self.outbound(node, order),
                Action::In(order) => it.inbound(order),
                Action::Log(event) => it.events.push((now, event)),
                Action::DangerKey(key) => it.keys.push(*key),
                Action::PersistMark(..) => panic!("no peer is without sessions"),
                Action::Unlisted(peer, _) => it.unlisted.push(peer),
                Action::LookUp(name) => it.certificates.push(name),
                Action::Resolve(peer, name) => {
                    it.lookups.push((now, name.clone()));
                    if let Some(answer) = it.names.get(&name).cloned() {
                        it.control.resolved(peer, &name, answer, now);
                    }
                }
            }
        }
    }

    fn outbound(&mut self, node: usize, order: outbound::Order) {
        use outbound::Order;
        let now = self.now;
        let it = &mut self.nodes[node];
        match order {
            Order::AddPeer(spec) => drop(it.counters.insert(spec.id, spec.counters)),
            Order::RemovePeer(peer) => {
                it.outbound.remove(&peer);
                it.counters.remove(&peer);
                it.paces.remove(&peer);
            }
            Order::Endpoint(_) => {}
            Order::Rate(peer, pace) => drop(it.paces.insert(peer, pace)),
            Order::Install(sa) => {
                let peer = sa.peer();
                it.outbound.insert(peer, sa);
            }
            Order::Withdraw(peer, spi) => {
                if it.outbound.get(&peer).is_some_and(|sa| sa.spi() == spi) {
                    it.outbound.remove(&peer);
                }
            }
            Order::Transmit(_, to, bytes) | Order::Answer(_, to, bytes) => {
                self.launch(node, to.remote, bytes)
            }
            Order::Keepalive(peer) => {
                it.keepalives.push(now);
                let to = it.endpoint(peer).expect("a keepalive to nowhere");
                self.launch(node, to, [0xff].into());
            }
            Order::Alive(peer) => {
                it.signs.push(now);
                self.seal(node, peer.0);
            }
            Order::Probe(peer) => {
                it.probes.push(now);
                self.seal(node, peer.0);
            }
            Order::Ends(peer, ends) => drop(it.ends.insert(peer, *ends)),
            Order::Report(peer, condition) => {
                it.reports.push(now);
                let to = usize::try_from(peer.0).unwrap();
                let from = PeerId(u32::try_from(node).unwrap());
                self.notice(to, Notice::Reported(from, condition));
            }
            other => panic!("not an order of a key manager: {other:?}"),
        }
    }
}
