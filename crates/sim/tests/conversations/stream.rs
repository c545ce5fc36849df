//! A stream from one host to another as TCP carries it: a window, selective acknowledgements (RFC 2018), and a
//! timer that doubles while nothing is acknowledged (RFC 6298).

use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};

use strait_clock::Time;
use strait_sim::{Delivered, FlowShape, NodeId, SimNetwork};
use strait_wire::tcp::{MIN_HEADER_LEN, Segment, TcpFlags};
use strait_wire::{Flow, Protocol, ip};

use crate::stage::{millis, v4};

/// How often the hosts look what has arrived.
pub(crate) const TURN: Duration = millis(5);
/// Segments above one that have arrived for it to count as lost (RFC 6675, `DupThresh`).
const OVERTAKEN: usize = 3;
/// Segments that an acknowledgement names one by one, as options would.
const NAMED: u32 = 32;

/// What the sender knows of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    UnderWay,
    Lost,
    SentAgain,
    Arrived,
}

/// One stream with both its ends.
#[derive(Debug)]
pub(crate) struct Stream {
    ends: [NodeId; 2],
    shapes: [FlowShape; 2],
    /// Bytes a segment.
    pub(crate) step: usize,
    /// Most segments under way.
    window: usize,
    /// The timer before it doubles.
    patience: Duration,
    timer: Duration,
    due: Option<Time>,
    /// Segments that may be under way now.
    allowed: usize,
    first: u32,
    fates: VecDeque<Fate>,
    /// The receiver's: the first segment that is missing, and those that came without it.
    missing: u32,
    ahead: BTreeSet<u32>,
    moved_at: Option<Time>,
    longest: Duration,
}

impl Stream {
    /// Segments of `step` bytes, `window` of them under way, sent again first after `patience`.
    pub(crate) fn new(
        from: NodeId,
        to: NodeId,
        port: u16,
        step: usize,
        window: usize,
        patience: Duration,
    ) -> Stream {
        Stream {
            ends: [from, to],
            shapes: [v4(from, to, port), v4(to, from, port)],
            step,
            window,
            patience,
            timer: patience,
            due: None,
            allowed: window,
            first: 0,
            fates: VecDeque::new(),
            missing: 0,
            ahead: BTreeSet::new(),
            moved_at: None,
            longest: Duration::ZERO,
        }
    }

    /// Segments that have arrived in order.
    pub(crate) const fn arrived(&self) -> u32 {
        self.missing
    }

    /// The longest that nothing new arrived in order, up to `now`.
    pub(crate) fn standstill(&self, now: Time) -> Duration {
        self.longest.max(self.moved_at.map_or(Duration::ZERO, |moved| now - moved))
    }

    /// Forgets how long it has stood still.
    pub(crate) const fn forget(&mut self) {
        self.longest = Duration::ZERO;
    }

    /// Carries the streams on for `span`, with `beside` done in each turn.
    pub(crate) fn run(
        streams: &mut [Stream],
        network: &mut SimNetwork,
        span: Duration,
        mut beside: impl FnMut(&mut SimNetwork),
    ) {
        let end = network.now() + span;
        while network.now() < end {
            beside(network);
            for stream in &mut *streams {
                stream.send(network);
            }
            network.run_for(TURN);
            let nodes: BTreeSet<NodeId> = streams.iter().flat_map(|stream| stream.ends).collect();
            for node in nodes {
                let delivered = network.node_mut(node).take_delivered();
                for stream in &mut *streams {
                    stream.take(network, node, &delivered);
                }
            }
        }
    }

    fn send(&mut self, network: &mut SimNetwork) {
        let now = network.now();
        if self.due.is_some_and(|due| due <= now) {
            self.fates.iter_mut().filter(|fate| **fate != Fate::Arrived).for_each(|fate| *fate = Fate::Lost);
            self.allowed = 1;
            self.timer *= 2;
            self.due = None;
        }
        while self.under_way() < self.allowed {
            let at = self.fates.iter().position(|fate| *fate == Fate::Lost).unwrap_or(self.fates.len());
            match self.fates.get_mut(at) {
                Some(fate) => *fate = Fate::SentAgain,
                None => self.fates.push_back(Fate::UnderWay),
            }
            let number = self.first + u32::try_from(at).unwrap();
            network.send(self.ends[0], &self.shapes[0].tcp(number, TcpFlags::PSH, &vec![7; self.step]));
        }
        if self.due.is_none() {
            self.due = Some(now + self.timer);
        }
    }

    fn under_way(&self) -> usize {
        self.fates.iter().filter(|fate| matches!(fate, Fate::UnderWay | Fate::SentAgain)).count()
    }

    fn take(&mut self, network: &mut SimNetwork, node: NodeId, delivered: &[Delivered]) {
        for one in delivered {
            let packet = ip::Packet::parse(&one.packet).unwrap();
            match packet.protocol() {
                Protocol::ICMP if node == self.ends[0] => self.too_big(packet.payload()),
                Protocol::TCP if packet.flow() == self.flow(0) => {
                    self.segment(Segment::parse(packet.payload()).unwrap().seq(), one.at);
                    let names: Vec<u8> =
                        (0..NAMED).map(|at| self.ahead.contains(&(self.missing + at)).into()).collect();
                    network.send(node, &self.shapes[1].tcp(self.missing, TcpFlags::ACK, &names));
                }
                Protocol::TCP if packet.flow() == self.flow(1) => {
                    let segment = Segment::parse(packet.payload()).unwrap();
                    self.acknowledged(segment.seq(), segment.payload());
                }
                _ => {}
            }
        }
    }

    fn flow(&self, side: usize) -> Flow {
        let FlowShape { src, dst, .. } = self.shapes[side];
        let (src_port, dst_port) = (src.port(), dst.port());
        Flow { src: src.ip(), dst: dst.ip(), protocol: Protocol::TCP, src_port, dst_port }
    }

    /// The sender is told what fits, and sends again, smaller, what is under way (`tcp_simple_retransmit` of Linux).
    fn too_big(&mut self, message: &[u8]) {
        let [_, _, _, _, _, _, high, low, quote @ ..] = message else { panic!("{message:?}") };
        let port = u16::from_be_bytes([quote[ip::V4_HEADER_LEN], quote[ip::V4_HEADER_LEN + 1]]);
        let step = usize::from(u16::from_be_bytes([*high, *low])) - ip::V4_HEADER_LEN - MIN_HEADER_LEN;
        if port == self.shapes[0].src.port() && step < self.step {
            self.step = step;
            self.fates.iter_mut().filter(|fate| **fate != Fate::Arrived).for_each(|fate| *fate = Fate::Lost);
        }
    }

    /// A segment reached the receiver.
    fn segment(&mut self, number: u32, at: Time) {
        if number < self.missing || !self.ahead.insert(number) || number > self.missing {
            return;
        }
        while self.ahead.remove(&self.missing) {
            self.missing += 1;
        }
        self.longest = self.standstill(at);
        self.moved_at = Some(at);
    }

    /// An acknowledgement reached the sender.
    fn acknowledged(&mut self, missing: u32, names: &[u8]) {
        let Some(new) = missing.checked_sub(self.first).filter(|new| *new > 0 || names.contains(&1)) else {
            return;
        };
        for _ in 0..new {
            self.fates.pop_front();
        }
        self.first = missing;
        if new > 0 {
            self.timer = self.patience;
            self.due = None;
            self.allowed = self.window.min(self.allowed + usize::try_from(new).unwrap());
        }
        for (fate, _) in self.fates.iter_mut().zip(names).filter(|(_, name)| **name == 1) {
            *fate = Fate::Arrived;
        }
        self.find_lost();
    }

    fn find_lost(&mut self) {
        for at in 0..self.fates.len() {
            let above = self.fates.iter().skip(at).filter(|fate| **fate == Fate::Arrived).count();
            if self.fates[at] == Fate::UnderWay && above >= OVERTAKEN {
                self.fates[at] = Fate::Lost;
            }
        }
    }
}
