//! A telephone line between two hosts, with modems that compress, as [`strait_sim::DialUp`] models it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use strait_clock::Time;
use strait_sim::{DialUp, DialUpSettings, DialUpTally};

use super::FrameDirection;
use super::carrier::FrameCarrier;
use super::forwarder::FrameQueue;

/// Bytes of an Ethernet header; its last two are the type.
const ETHERNET: usize = 14;
/// The type of frames that carry IPv4 (IANA, IEEE 802 numbers): of what hosts send, only these go by telephone.
const IPV4: [u8; 2] = [0x08, 0x00];
/// Packets that are kept of a line at most.
const SEEN_MAX: usize = 1 << 16;

/// A packet as `tcpdump` on the first host would see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenPacket {
    /// When it left the first host, or came to it.
    pub at: Instant,
    /// Which way.
    pub direction: FrameDirection,
    /// The whole IP packet.
    pub packet: Vec<u8>,
}

/// A line of two directions, which begins when it is made; clones are the same line.
#[derive(Clone, Debug)]
pub struct DialledLine {
    shared: Arc<Mutex<DialledState>>,
    start: Instant,
}

#[derive(Debug)]
struct DialledState {
    line: DialUp,
    /// The Ethernet headers of each host's frames.
    headers: [Option<[u8; ETHERNET]>; 2],
    seen: Vec<SeenPacket>,
}

impl DialledLine {
    /// A line on which nothing was sent.
    #[must_use]
    pub fn new(settings: DialUpSettings) -> DialledLine {
        let state = DialledState { line: DialUp::new(settings), headers: [None; 2], seen: Vec::new() };
        DialledLine { shared: Arc::new(Mutex::new(state)), start: Instant::now() }
    }

    /// What the modems counted of one direction.
    #[must_use]
    pub fn tally(&self, direction: FrameDirection) -> DialUpTally {
        self.lock().line.way(place(direction)).tally()
    }

    /// Packets of IPv4 that the first host has sent and received since the last call.
    #[must_use]
    pub fn take_seen(&self) -> Vec<SeenPacket> {
        std::mem::take(&mut self.lock().seen)
    }

    fn lock(&self) -> MutexGuard<'_, DialledState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn time(&self, at: Instant) -> Time {
        Time::ZERO + at.saturating_duration_since(self.start)
    }
}

impl DialledState {
    fn see(&mut self, at: Instant, direction: FrameDirection, packet: &[u8]) {
        if self.seen.len() < SEEN_MAX {
            self.seen.push(SeenPacket { at, direction, packet: packet.to_vec() });
        }
    }
}

const fn place(direction: FrameDirection) -> usize {
    match direction {
        FrameDirection::There => 0,
        FrameDirection::Back => 1,
    }
}

impl FrameCarrier for DialledLine {
    /// What is not IPv4, as ARP, stays on the hosts' own wires.
    fn carry(&mut self, (direction, at): (FrameDirection, Instant), frame: &[u8], queue: &mut FrameQueue) {
        let Some((header, packet)) = frame.split_first_chunk::<ETHERNET>() else { return };
        if header[12..] != IPV4 {
            return queue.push(at, direction, frame);
        }
        let now = self.time(at);
        let mut state = self.lock();
        state.headers[place(direction)] = Some(*header);
        state.line.send(place(direction), packet, now);
        if direction == FrameDirection::There {
            state.see(at, direction, packet);
        }
    }

    fn advance(&mut self, now: Instant, queue: &mut FrameQueue) -> Option<Instant> {
        let (time, start) = (self.time(now), self.start);
        let mut state = self.lock();
        for (from, at, packet) in state.line.poll(time) {
            let direction = if from == 0 { FrameDirection::There } else { FrameDirection::Back };
            let header = state.headers[from].unwrap_or_default();
            let due = start + at.since(Time::ZERO);
            if direction == FrameDirection::Back {
                state.see(due, direction, &packet);
            }
            queue.push(due, direction, &[&header[..], &packet].concat());
        }
        state.line.next_at().map(|at| start + at.since(Time::ZERO))
    }
}
