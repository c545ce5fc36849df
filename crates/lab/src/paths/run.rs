//! One path with one source.

use std::time::Duration;

use strait_clock::Time;
use strait_keying::{SetupError, Start};
use strait_scheduler::LinkRate;
use strait_sim::{
    Conversation, Filler, FlowShape, NodeId, NodeSettings, PairSettings, SimLink, SimNetwork, TcpSettings,
    TcpTransfer,
};

use super::beside::BesideTraffic;
use super::result::PathSource;
use super::script::{BEGIN, PathScript};

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);
/// How often the hosts and the other traffic have their turn.
const TURN: Duration = Duration::from_millis(1);
/// How often the estimate and the queue are looked at.
const LOOK: Duration = Duration::from_millis(10);
/// What the source that has always more offers, over the fastest rate of the path.
const OFFERED: f64 = 1.25;
/// Bytes behind the UDP header of a full packet through a tunnel with an MTU of 1,400.
const PAYLOAD: usize = 1372;
const PORT: u16 = 5000;

/// What was seen at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathLook {
    /// Seconds from the first packet of the source on.
    pub(super) second: f64,
    /// The estimated rate in Mbit/s, once there is one.
    pub(super) found: Option<f64>,
    /// Seconds that a datagram waits in the modem that comes now.
    pub(super) queue: f64,
}

/// What was seen of a path.
#[derive(Clone, Debug)]
pub(super) struct PathTrack {
    pub(super) source: PathSource,
    pub(super) looks: Vec<PathLook>,
    /// Wire bytes of the tunnel that passed the bottleneck.
    pub(super) passed: f64,
    /// Datagrams of the tunnel, and those that its queue had no room for.
    pub(super) datagrams: u64,
    pub(super) overflowed: u64,
    /// Bytes of payload that the hosts received.
    pub(super) received: u64,
}

/// Two nodes and a source behind the first.
pub(super) struct PathRun<'a> {
    script: &'a PathScript,
    source: PathSource,
    network: SimNetwork,
    begin: Time,
    talk: Conversation,
    /// Packets that the source would have sent by now.
    due: f64,
    transfer: TcpTransfer,
    received: u64,
    beside: BesideTraffic<'a>,
}

impl PathRun<'_> {
    /// Nodes that have agreed on keys, a moment before the first packet.
    pub(super) fn new(script: &PathScript, source: PathSource, seed: u64) -> Result<PathRun<'_>, SetupError> {
        let [forth, back] = script.links();
        let node = |id| NodeSettings { up: LinkRate::Auto, ..NodeSettings::new(id) };
        let pair = PairSettings { a: node(A), b: node(B), forth, back, start: Start::Eager, answer: None };
        let mut network = SimNetwork::pair(seed, pair)?;
        if let Some(record) = script.record() {
            *network.link(A, B) = SimLink::new(forth, seed).following(record);
        }
        let begin = Time::ZERO + Duration::from_secs_f64(BEGIN);
        network.run_for(begin - network.now());
        let shape = FlowShape::new(A.inner_v4(PORT), B.inner_v4(PORT));
        Ok(PathRun {
            script,
            source,
            begin,
            talk: Conversation::new(shape, Filler::Random),
            due: 0.0,
            transfer: TcpTransfer::new(A, B, PORT, TcpSettings::default()),
            received: 0,
            beside: BesideTraffic::new(script),
            network,
        })
    }

    /// Runs it to its end.
    pub(super) fn track(mut self) -> PathTrack {
        let end = self.begin + Duration::from_secs_f64(self.script.length);
        let (mut looks, mut look_at) = (Vec::new(), self.begin);
        let before = self.network.link(A, B).counters();
        while self.network.now() < end {
            self.turn();
            if self.network.now() >= look_at {
                looks.push(self.look());
                look_at += LOOK;
            }
        }
        let after = self.network.link(A, B).counters();
        let beside = self.beside.tally();
        let lost = (after.lost - before.lost - beside.lost) as f64;
        let carried = after.carried - before.carried - beside.carried;
        let bytes = after.bytes - before.bytes - beside.bytes;
        PathTrack {
            source: self.source,
            looks,
            // What was lost behind the bottleneck passed it as well, and was as large as the rest.
            passed: bytes as f64 * (1.0 + lost / (carried as f64).max(1.0)),
            datagrams: after.entered - before.entered - beside.entered,
            overflowed: after.overflowed - before.overflowed - beside.overflowed,
            received: self.received,
        }
    }

    fn second(&self) -> f64 {
        self.network.now().since(self.begin).as_secs_f64()
    }

    fn turn(&mut self) {
        let (second, now) = (self.second(), self.network.now());
        self.beside.turn(self.network.link(A, B), second, now);
        match self.source {
            PathSource::Greedy => self.send_more(),
            PathSource::Tcp => self.transfer.send(&mut self.network),
        }
        self.network.run_for(TURN);
        for node in [A, B] {
            let delivered = self.network.node_mut(node).take_delivered();
            match self.source {
                PathSource::Greedy => self.received += (delivered.len() * PAYLOAD) as u64,
                PathSource::Tcp => self.transfer.take(node, &delivered),
            }
        }
        if self.source == PathSource::Tcp {
            self.received = self.transfer.receiver().received();
        }
    }

    fn send_more(&mut self) {
        let packet = (PAYLOAD + 28) as f64 * 8.0;
        self.due += self.script.fastest() * 1e6 * OFFERED / packet * TURN.as_secs_f64();
        let packets: Vec<Vec<u8>> = (0..self.due as u64).map(|_| self.talk.next_packet(PAYLOAD)).collect();
        self.due -= packets.len() as f64;
        self.network.send_all(A, &packets);
    }

    fn look(&mut self) -> PathLook {
        let (second, now) = (self.second(), self.network.now());
        let path = self.network.node(A).peer_counters(B).path.get();
        let found = path
            .and_then(|path| path.estimate)
            .and_then(|estimate| estimate.rate)
            .map(|rate| rate.bits() as f64 / 1e6);
        PathLook { second, found, queue: self.network.link(A, B).waits(now).as_secs_f64() }
    }
}
