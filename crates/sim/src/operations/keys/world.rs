//! Three nodes and the links between them, in virtual time.

mod change;
mod recovery;

use core::time::Duration;
use std::net::SocketAddr;
use std::time::Instant;

use strait_clock::{Random, Time};
use strait_ipsec::Notice;
use strait_wire::Spi;
use strait_wire::tos::Ecn;

use super::node::{KeyMessage, KeyNode};
use super::operation::LinkWeather;
use super::{Held, KeyOperation, KeySettings, NODES, hold, pairs};
use crate::{EventQueue, NodeId};

/// Where time begins: not at zero, which some timestamps keep for "never".
const BEGINNING: Time = Time::from_millis(1000);
/// How long a resolver takes.
const LOOK_UP: Duration = Duration::from_millis(20);
/// Things that may happen at one instant; more mean that a key manager asks for the same time for ever.
const AT_ONCE: u32 = 2_000;
/// Datagrams of all nodes within a second, at most; more are a storm. 256 runs had fewer than 150 in any.
const IN_A_SECOND: u64 = 300;

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeySummary {
    /// Pairs of associations that came into use, counted at each end.
    pub established: u64,
    /// Datagrams that were sent.
    pub sent: u64,
    /// Datagrams that were lost.
    pub lost: u64,
    /// Packets that arrived for no association.
    pub unknown: u64,
}

/// What happens at some time.
#[derive(Clone, Debug)]
enum KeyHappening {
    /// A datagram of the control channel arrives.
    Control { from: SocketAddr, to: SocketAddr, bytes: Box<[u8]> },
    /// An ESP packet arrives, which may ask for an answer.
    Esp { from: SocketAddr, to: SocketAddr, spi: Spi, asks: bool },
    /// A resolver answers a node.
    Resolved { node: usize, peer: usize, name: String },
}

/// Three nodes and the links between them.
pub(super) struct KeyWorld {
    now: Time,
    base: Instant,
    settings: KeySettings,
    nodes: Vec<KeyNode>,
    weather: [[LinkWeather; NODES]; NODES],
    /// By link, datagrams that are lost next.
    lose: [[u8; NODES]; NODES],
    names_resolve: bool,
    moves: u16,
    happenings: EventQueue<KeyHappening>,
    at_once: u32,
    /// The last second that began, and what had been sent by then.
    second: (Time, u64),
    random: Random,
    summary: KeySummary,
}

impl KeyWorld {
    pub(super) fn new(settings: KeySettings) -> Result<KeyWorld, String> {
        #[expect(
            clippy::disallowed_methods,
            reason = "QUIC counts from some instant; which one has no effect"
        )]
        let base = Instant::now();
        let mut world = KeyWorld {
            now: BEGINNING,
            base,
            settings,
            nodes: Vec::new(),
            weather: [[LinkWeather::FAIR; NODES]; NODES],
            lose: [[0; NODES]; NODES],
            names_resolve: true,
            moves: 0,
            happenings: EventQueue::default(),
            at_once: 0,
            second: (BEGINNING, 0),
            random: Random::new(settings.seed.into()),
            summary: KeySummary::default(),
        };
        for number in 0..NODES {
            let node = world.fresh_node(number)?;
            world.nodes.push(node);
        }
        for (node, peer) in pairs() {
            world.add_peer(node, peer)?;
        }
        Ok(world)
    }

    pub(super) fn summary(&self) -> KeySummary {
        let established = self.nodes.iter().map(|node| node.established).sum();
        KeySummary { established, ..self.summary }
    }

    fn fresh_node(&mut self, number: usize) -> Result<KeyNode, String> {
        let chance = (self.random.next_u64(), self.base);
        KeyNode::new(NodeId::of(number).0, &self.settings, chance, self.now)
    }

    /// Lets time pass.
    fn advance(&mut self, span: Duration) -> Held {
        let end = self.now + span;
        while self.step(end)? {}
        self.now = end;
        Ok(())
    }

    /// The next thing, if it is due before `end`.
    fn step(&mut self, end: Time) -> Result<bool, String> {
        let timers = self.nodes.iter().enumerate();
        let timer = timers.filter_map(|(at, node)| Some((node.control.poll_timeout()?.at, at))).min();
        let happening = self.happenings.next_at();
        let next = happening.unwrap_or(Time::MAX).min(timer.map_or(Time::MAX, |(at, _)| at)).max(self.now);
        if next >= end {
            return Ok(false);
        }
        self.at_once = if next > self.now { 0 } else { self.at_once + 1 };
        hold(self.at_once < AT_ONCE, || {
            let due: Vec<_> = self.nodes.iter().map(|node| node.control.poll_timeout()).collect();
            format!("time stands still at {next:?}: {due:?}")
        })?;
        self.now = next;
        if next.since(self.second.0) >= Duration::from_secs(1) {
            self.second = (next, self.summary.sent);
        }
        hold(self.summary.sent - self.second.1 <= IN_A_SECOND, || {
            format!("a storm: more than {IN_A_SECOND} datagrams since {:?}", self.second.0)
        })?;
        match timer {
            Some((at, node)) if happening.is_none_or(|happening| at < happening) => {
                self.nodes[node].control.timeout(next);
                self.act(node)?;
            }
            _ => self.happen()?,
        }
        Ok(true)
    }

    fn happen(&mut self) -> Held {
        let Some((_, happening)) = self.happenings.pop_if(|_, _| true) else { return Ok(()) };
        match happening {
            KeyHappening::Control { from, to, bytes } => {
                let Some(node) = self.at(to) else { return Ok(()) };
                self.nodes[node].control.datagram(from, Ecn::NotEct, &bytes, self.now);
                self.act(node)
            }
            KeyHappening::Esp { from, to, spi, asks } => {
                let Some(node) = self.at(to) else { return Ok(()) };
                let peer = self.nodes[node].esp(from, spi, self.now);
                self.summary.unknown += u64::from(peer.is_none());
                self.act(node)?;
                if let Some(peer) = peer {
                    self.nodes[node].follows(peer, spi)?;
                }
                let peer = peer.filter(|_| asks).and_then(NodeId::of_peer);
                peer.map_or(Ok(()), |peer| self.seal((node, peer), false).map(|_| ()))
            }
            KeyHappening::Resolved { node, peer, name } => {
                let answer = Ok(vec![self.nodes[peer].address]);
                let answer = if self.names_resolve { answer } else { Err("no such host".to_owned()) };
                self.nodes[node].control.resolved(NodeId::of(peer).peer(), &name, answer, self.now);
                self.act(node)
            }
        }
    }

    /// Who has this address.
    fn at(&self, address: SocketAddr) -> Option<usize> {
        self.nodes.iter().position(|node| node.address == address)
    }

    /// A packet for a peer: it leaves, or it waits and the key manager is told; whether it left.
    fn packet(&mut self, (node, peer): (usize, usize)) -> Result<bool, String> {
        let id = NodeId::of(peer).peer();
        if self.seal((node, peer), false)? {
            self.nodes[node].note_packet(id);
            return Ok(true);
        }
        if self.nodes[node].peers.contains(&id) {
            self.nodes[node].control.notice(Notice::NeedsSa(id), self.now);
            self.act(node)?;
        }
        Ok(false)
    }

    fn seal(&mut self, (node, peer): (usize, usize), asks: bool) -> Result<bool, String> {
        let sealed = self.nodes[node].seal(NodeId::of(peer).peer(), self.now);
        let Some((spi, to)) = sealed else { return Ok(false) };
        let from = self.nodes[node].address;
        self.launch(node, to, KeyHappening::Esp { from, to, spi, asks });
        Ok(true)
    }

    /// Does what a key manager wants done.
    fn act(&mut self, node: usize) -> Held {
        self.nodes[node].act()?;
        for (peer, name) in core::mem::take(&mut self.nodes[node].lookups) {
            let Some(peer) = NodeId::of_peer(peer) else { continue };
            self.happenings.push(self.now + LOOK_UP, KeyHappening::Resolved { node, peer, name });
        }
        for message in core::mem::take(&mut self.nodes[node].messages) {
            match message {
                KeyMessage::Control(to, bytes) => {
                    let from = self.nodes[node].address;
                    self.launch(node, to, KeyHappening::Control { from, to, bytes });
                }
                KeyMessage::Probe(peer) | KeyMessage::Alive(peer) => {
                    let asks = matches!(message, KeyMessage::Probe(_));
                    if let Some(peer) = NodeId::of_peer(peer) {
                        self.seal((node, peer), asks)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A datagram leaves `node`.
    fn launch(&mut self, node: usize, to: SocketAddr, happening: KeyHappening) {
        self.summary.sent += 1;
        let Some(peer) = self.at(to) else {
            self.summary.lost += 1;
            return;
        };
        let LinkWeather { lost, twice, delay } = self.weather[node][peer];
        let forced = self.lose[node][peer].checked_sub(1);
        self.lose[node][peer] = forced.unwrap_or(0);
        if forced.is_some() || lost == 255 || self.random.below(256) < lost.into() {
            self.summary.lost += 1;
            return;
        }
        let copies = if self.random.below(256) < twice.into() { 2 } else { 1 };
        for _ in 0..copies {
            let delay = Duration::from_micros(1_000 + self.random.below(1_000 * u64::from(delay) + 1));
            self.happenings.push(self.now + delay, happening.clone());
        }
    }
}
