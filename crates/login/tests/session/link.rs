//! One direction of a stream: a buffer that takes so much, a link with a rate and a delay, and pieces cut anywhere.

use std::collections::VecDeque;
use std::time::Duration;

use strait_clock::{Random, Time};

/// What a direction is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkShape {
    /// Bytes a second.
    pub(crate) rate: u64,
    /// From one end to the other.
    pub(crate) delay: Duration,
    /// Bytes that wait before the link at most.
    pub(crate) buffer: usize,
    /// Bytes that arrive at once at most.
    pub(crate) piece: usize,
}

impl LinkShape {
    /// So many bits a second, half of a round trip, and the buffers of a socket.
    pub(crate) fn megabits(megabits: f64, round_trip: Duration) -> LinkShape {
        LinkShape {
            rate: (megabits * 125_000.0) as u64,
            delay: round_trip / 2,
            buffer: 128 << 10,
            piece: 1_200,
        }
    }
}

/// One direction of a stream.
#[derive(Debug)]
pub(crate) struct Link {
    shape: LinkShape,
    random: Random,
    /// What the link has not begun to carry.
    waiting: VecDeque<u8>,
    /// Until when the link is busy.
    busy: Time,
    flying: VecDeque<(Time, Vec<u8>)>,
    /// Bytes that it took in all.
    pub(crate) carried: u64,
    /// Writes that it took in all.
    pub(crate) writes: u64,
}

impl Link {
    pub(crate) fn new(shape: LinkShape, seed: u64) -> Link {
        Link {
            shape,
            random: Random::new(seed),
            waiting: VecDeque::new(),
            busy: Time::ZERO,
            flying: VecDeque::new(),
            carried: 0,
            writes: 0,
        }
    }

    /// Bytes that it takes.
    pub(crate) fn room(&self) -> usize {
        self.shape.buffer.saturating_sub(self.waiting.len())
    }

    pub(crate) fn write(&mut self, bytes: &[u8], now: Time) {
        if bytes.is_empty() {
            return;
        }
        self.carried += bytes.len() as u64;
        self.writes += 1;
        self.waiting.extend(bytes);
        self.carry(now);
    }

    /// Puts on the link what it can take.
    fn carry(&mut self, now: Time) {
        while !self.waiting.is_empty() && self.busy <= now {
            let most = 1 + self.random.below(self.shape.piece as u64) as usize;
            let piece: Vec<u8> = self.waiting.drain(..most.min(self.waiting.len())).collect();
            let takes = Duration::from_secs_f64(piece.len() as f64 / self.shape.rate as f64);
            self.busy = self.busy.max(now) + takes;
            self.flying.push_back((self.busy + self.shape.delay, piece));
        }
    }

    /// What has arrived.
    pub(crate) fn arrived(&mut self, now: Time) -> Option<Vec<u8>> {
        self.carry(now);
        self.flying.pop_front_if(|(at, _)| *at <= now).map(|(_, piece)| piece)
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<Time> {
        let carries = (!self.waiting.is_empty()).then_some(self.busy);
        let arrives = self.flying.front().map(|(at, _)| *at);
        carries.into_iter().chain(arrives).min()
    }

    /// Loses everything that is on it.
    pub(crate) fn cut(&mut self) {
        self.waiting.clear();
        self.flying.clear();
        self.busy = Time::ZERO;
    }
}
