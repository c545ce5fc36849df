//! The receiving thread of a hub in virtual time: what comes waits in its socket while it works, and each call to the host takes
//! time. So a test can tell how late one peer makes the packets of another, on a machine of a known speed.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use strait_clock::Time;
use strait_compress::{CodecSet, Gauge};
use strait_crypto::Suite;
use strait_ipsec::inbound::{self, Batch, Forwarding, Inlet, UdpOffload};
use strait_ipsec::{
    Counters, Inbound, InboundSa, IvMode, Notice, Payloads, PeerCounters, Place, Policies, Reason, SaSpec,
    outbound,
};
use strait_wire::{Protocol, Spi, Tos, vnet};

use crate::sealer::{Sealer, material};
use crate::{NodeId, prefixes};

/// What a call to the host takes, and what each byte of it takes. On one core of an Intel Xeon (virtual, Linux 6.18) a write to
/// the TUN device takes 740 ns of the processor, and with all around that, a hub was at its limit with 650,000 packets a second.
const CALL: Duration = Duration::from_nanos(1_500);
const KIBIBYTE: Duration = Duration::from_nanos(1_000);
/// What opening a datagram takes, with its part of the call that reads it.
const OPEN: Duration = Duration::from_nanos(1_000);
/// Datagrams between two looks at anything else.
const DRAIN: usize = 32;
/// Datagrams that the socket's buffer holds: 4 MiB, where the kernel counts each with what it is kept in.
const SOCKET: usize = 4 * 1024 * 1024 / 1_280;

/// A receiver with several peers, and the thread that drives it.
#[derive(Debug)]
pub struct HubThread {
    inbound: Inbound,
    counters: Arc<Counters>,
    sealers: Vec<Sealer>,
    arrivals: VecDeque<HubArrival>,
}

#[derive(Debug)]
struct HubArrival {
    at: Time,
    peer: usize,
    bytes: Vec<u8>,
}

/// What came of all datagrams.
#[derive(Debug, Default)]
pub struct HubOutcome {
    /// By peer, for each packet that the host was given: how long after its datagram had come.
    pub delays: Vec<Vec<Duration>>,
    /// By peer: datagrams for which the socket had no room.
    pub lost: Vec<u64>,
    /// By peer: orders that its datagrams made for the sender.
    pub orders: Vec<u64>,
    /// By peer: notices for the control plane but for moves and confirmed associations, which the first datagrams make.
    pub notices: Vec<u64>,
    /// How long the thread worked.
    pub worked: Duration,
}

impl HubThread {
    /// A hub with so many peers, numbered from 0.
    #[must_use]
    pub fn new(peers: u8) -> HubThread {
        let counters = Arc::new(Counters::default());
        let settings = inbound::InboundSettings {
            forwarding: Forwarding::Between,
            udp_offload: UdpOffload::Unsupported,
        };
        let mut inbound = Inbound::new(settings, Gauge::none(), Arc::clone(&counters));
        let mut policies = Policies::exit();
        let mut sealers = Vec::new();
        for node in (0..peers).map(NodeId) {
            for prefix in prefixes(node).iter().filter_map(|prefix| prefix.parse().ok()) {
                policies.allow(prefix, node.peer());
            }
            inbound.handle(inbound::Order::AddPeer(
                node.peer(),
                Arc::new(PeerCounters::default()),
                Arc::default(),
            ));
            let spi = Spi(0x0400_0000 + u32::from(node.0));
            let payloads = Payloads::Strait { codecs: CodecSet::ALL, block_cap: 65_536 };
            if let Some(key) = material(Suite::Aes128Gcm) {
                let spec = SaSpec::session(node.peer(), spi, key, IvMode::Implicit, payloads);
                inbound.handle(inbound::Order::Install(Box::new(InboundSa::new(&spec))));
            }
            sealers.push(Sealer::new(Suite::Aes128Gcm, IvMode::Implicit, spi));
        }
        inbound.handle(inbound::Order::Policies(Arc::new(policies)));
        HubThread { inbound, counters, sealers, arrivals: VecDeque::new() }
    }

    /// What it counts.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A payload under the keys of `peer` comes at `at`; to be called in the order of time.
    pub fn comes(&mut self, at: Time, peer: usize, next: Protocol, payload: &[u8]) {
        if let Some(sealer) = self.sealers.get_mut(peer) {
            self.arrivals.push_back(HubArrival { at, peer, bytes: sealer.seal(next, payload) });
        }
    }

    /// Lets the thread take all that comes.
    pub fn run(&mut self) -> HubOutcome {
        let peers = self.sealers.len();
        let mut outcome = HubOutcome {
            delays: vec![Vec::new(); peers],
            lost: vec![0; peers],
            orders: vec![0; peers],
            notices: vec![0; peers],
            worked: Duration::ZERO,
        };
        let (mut now, mut socket) = (Time::ZERO, VecDeque::new());
        loop {
            for _ in 0..DRAIN {
                self.fill(&mut socket, now, &mut outcome);
                let Some(arrival) = socket.pop_front() else { break };
                now = self.take(arrival, now, &mut outcome);
            }
            if socket.is_empty() {
                self.inbound.caught_up();
                let Some(next) = self.arrivals.front() else { return outcome };
                now = now.max(next.at);
            }
        }
    }

    /// What has come by now is in the socket, or lost.
    fn fill(&mut self, socket: &mut VecDeque<HubArrival>, now: Time, outcome: &mut HubOutcome) {
        while let Some(arrival) = self.arrivals.pop_front_if(|arrival| arrival.at <= now) {
            if socket.len() < SOCKET {
                socket.push_back(arrival);
            } else if let Some(lost) = outcome.lost.get_mut(arrival.peer) {
                *lost += 1;
            }
        }
    }

    /// Takes one datagram; gives the time when that is done.
    fn take(&mut self, arrival: HubArrival, now: Time, outcome: &mut HubOutcome) -> Time {
        let HubArrival { at, peer, mut bytes } = arrival;
        let mut world = HubWorld { now: now + OPEN, at, peer, outcome };
        let from = NodeId(u8::try_from(peer).unwrap_or(u8::MAX)).outer_v4();
        let segment = bytes.len();
        self.inbound.datagrams(
            Batch { from: from.into(), tos: Tos(0), segment, bytes: &mut bytes },
            now,
            &mut world,
        );
        let done = world.now;
        outcome.worked += done.since(now);
        done
    }
}

/// The world around the thread while it takes one datagram.
#[derive(Debug)]
struct HubWorld<'a> {
    now: Time,
    at: Time,
    peer: usize,
    outcome: &'a mut HubOutcome,
}

impl Inlet for HubWorld<'_> {
    fn deliver(&mut self, _: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason> {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.now = self.now + CALL + KIBIBYTE * bytes / 1_024;
        if let Some(delays) = self.outcome.delays.get_mut(self.peer) {
            delays.push(self.now.since(self.at));
        }
        Ok(())
    }

    fn control(&mut self, _: Place, _: Tos, _: &[u8]) {}

    fn order(&mut self, order: outbound::Order) {
        if let Some(orders) = self.outcome.orders.get_mut(self.peer)
            && !matches!(order, outbound::Order::Endpoint(..))
        {
            *orders += 1;
        }
    }

    fn notice(&mut self, notice: Notice) {
        if let Some(notices) = self.outcome.notices.get_mut(self.peer)
            && !matches!(notice, Notice::Moved(..) | Notice::Confirmed(..))
        {
            *notices += 1;
        }
    }
}
