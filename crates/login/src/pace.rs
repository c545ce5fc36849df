//! How much may be on the way, so that little waits in the buffers below: what waits there cannot be overtaken.
//!
//! The window follows the delay, as FAST TCP's does (Wei, Jin, Low, Hegde 2006): once a round it moves to what would leave
//! [`STANDING`] of the link in the buffers. It doubles at first, until the delay grows (RFC 9438 section 4.10 has the same idea).

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::Time;

/// Bytes that may be on the way before anything is known (RFC 6928: ten segments).
const INITIAL: f64 = 14_600.0;
/// The least window: two datagrams.
const LEAST: f64 = 2_500.0;
/// The largest: a session keeps no more.
const MOST: f64 = 4_194_304.0;
/// What may stand in buffers below: enough that the link does not run dry while acknowledgements are under way.
const STANDING: Duration = Duration::from_millis(25);
/// The same in bytes, while no rate is known, and at least: a datagram.
const STANDING_LEAST: f64 = 1_250.0;
/// What a message takes of the link at most.
const MESSAGE: Duration = Duration::from_millis(40);
/// A delay that does not count: clocks of processes and the client's wait before it acknowledges.
const GRACE: Duration = Duration::from_millis(15);
/// For how long the least round trip counts, as QUIC's and BBR's do; then the window is halved for a round, so that what stands in
/// buffers does not become a part of it.
const BASE_AGE: Duration = Duration::from_secs(10);
/// How far apart acknowledgements of one train are at most: the client's wait is 20 ms.
const TRAIN_GAP: Duration = Duration::from_millis(50);
/// Over how long a train is measured: three such waits, so that it does not matter much which datagram came just before one.
const TRAIN: Duration = Duration::from_millis(60);
/// A round trip before one is known, where the rate is.
const USUAL_TRIP: Duration = Duration::from_millis(100);
/// What is acknowledged later than this, and nothing since, is not on the way: the path is silent.
const SILENCE: Duration = Duration::from_secs(2);
/// Acknowledgements of less than this may have waited for company: they tell no round trip.
pub(crate) const PROMPT: u64 = 512;

/// What was sent up to a position.
#[derive(Clone, Copy, Debug)]
struct Flight {
    end: u64,
    wire: u64,
    at: Time,
}

/// The window of one direction, in bytes of the stream.
#[derive(Debug)]
pub(crate) struct Pace {
    rate_known: Option<f64>,
    window: f64,
    starting: bool,
    draining: bool,
    flights: VecDeque<Flight>,
    wire_sent: u64,
    wire_acked: u64,
    base: Option<Duration>,
    /// The least round trip since [`Pace::base_since`], which becomes the base.
    base_next: Option<Duration>,
    base_since: Time,
    smoothed: Option<Duration>,
    round: Round,
    /// Bytes a second before compression and in the stream, while the window was full.
    raw_rate: Option<f64>,
    wire_rate: Option<f64>,
    heard: Time,
    /// When the train that is measured began, and what had arrived then.
    train: (Time, u64),
    /// Up to where everything has been taken.
    position: u64,
}

/// What is measured until all that was on the way at its beginning is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    began: Time,
    wire_end: u64,
    wire_began: u64,
    raw_began: u64,
    least: Option<Duration>,
    full: bool,
    /// The most bytes a second between two acknowledgements that were close to each other.
    train: Option<f64>,
}

impl Pace {
    /// `rate_bits`: the link's, if it is known.
    pub(crate) fn new(rate_bits: Option<u64>, now: Time) -> Pace {
        let rate_known = rate_bits.map(|bits| bits as f64 / 8.0);
        Pace {
            rate_known,
            window: rate_known.map_or(INITIAL, |rate| most(rate, USUAL_TRIP).min(INITIAL)),
            starting: true,
            draining: false,
            flights: VecDeque::new(),
            wire_sent: 0,
            wire_acked: 0,
            base: None,
            base_next: None,
            base_since: now,
            smoothed: None,
            round: Round::default(),
            raw_rate: None,
            wire_rate: None,
            heard: now,
            train: (now, 0),
            position: 0,
        }
    }

    /// Another stream, perhaps over another path.
    pub(crate) fn restart(&mut self, now: Time) {
        let rate = self.rate_known.map(|bytes| (bytes * 8.0) as u64);
        *self = Pace { raw_rate: self.raw_rate, wire_rate: self.wire_rate, ..Pace::new(rate, now) };
    }

    /// What leads to `end` was sent as so many bytes.
    pub(crate) fn sent(&mut self, end: u64, wire: usize, now: Time) {
        if self.flights.back().is_none_or(|last| last.end < self.position + PROMPT) {
            // What was idle says nothing of the link; what the client has not told of is there.
            self.heard = now;
            self.wire_acked = self.wire_sent;
            self.begin_round(self.wire_sent + wire as u64, now);
        }
        self.wire_sent += wire as u64;
        self.flights.push_back(Flight { end, wire: self.wire_sent, at: now });
    }

    /// Everything up to `position` has been taken; `news` is how much that is more than before.
    pub(crate) fn acked(&mut self, position: u64, news: u64, now: Time) {
        let (gap, before) = (now.since(self.heard), self.wire_acked);
        (self.heard, self.position) = (now, position);
        let mut newest = None;
        while let Some(flight) = self.flights.front().filter(|flight| flight.end <= position) {
            self.wire_acked = self.wire_acked.max(flight.wire);
            newest = Some(flight.at);
            self.flights.pop_front();
        }
        if let Some(at) = newest.filter(|_| news >= PROMPT) {
            self.measure(now.since(at), now);
        }
        self.follow_train(gap, before, now);
        if self.wire_acked >= self.round.wire_end {
            self.end_round(now);
        }
    }

    fn begin_round(&mut self, wire_end: u64, now: Time) {
        let (wire_began, raw_began) = (self.wire_acked, self.position);
        self.round = Round { began: now, wire_end, wire_began, raw_began, ..Round::default() };
    }

    /// Measures how fast what was sent at once arrives. `gap`: since the acknowledgement before, when so much had arrived.
    fn follow_train(&mut self, gap: Duration, before: u64, now: Time) {
        if gap > TRAIN_GAP || self.train.1 > before {
            self.train = (now, self.wire_acked);
        }
        let (began, wire) = self.train;
        let span = now.since(began);
        if span >= TRAIN {
            let rate = (self.wire_acked - wire) as f64 / span.as_secs_f64();
            self.round.train = Some(self.round.train.map_or(rate, |most| most.max(rate)));
            self.train = (now, self.wire_acked);
        }
    }

    fn measure(&mut self, trip: Duration, now: Time) {
        let least = |one: Option<Duration>| Some(one.map_or(trip, |one| one.min(trip)));
        self.round.least = least(self.round.least);
        self.base_next = least(self.base_next);
        self.base = least(self.base);
        self.smoothed = Some(self.smoothed.map_or(trip, |smoothed| (smoothed * 7 + trip) / 8));
        if now.since(self.base_since) > BASE_AGE {
            (self.base, self.base_next, self.base_since) = (self.base_next, None, now);
            self.draining = true;
        }
    }

    /// Sets the window for the next round.
    fn end_round(&mut self, now: Time) {
        let round = self.round;
        let span = now.since(round.began).as_secs_f64();
        if round.full && span > 0.0 {
            let starting = self.starting;
            // While the window still doubles, a round shows the window and not the link.
            let blend = |before: Option<f64>, rate: f64| match before {
                None => Some(rate),
                Some(before) if starting => Some(before.max(rate)),
                Some(before) => Some(f64::midpoint(before, rate)),
            };
            self.raw_rate = blend(self.raw_rate, self.position.saturating_sub(round.raw_began) as f64 / span);
            self.wire_rate = blend(self.wire_rate, (self.wire_acked - round.wire_began) as f64 / span);
        }
        if let (Some(trip), Some(base), true) = (round.least, self.base, round.full) {
            self.follow(trip, base);
        }
        self.begin_round(self.wire_sent, now);
    }

    fn follow(&mut self, trip: Duration, base: Duration) {
        let waits = trip.saturating_sub(base);
        let standing = self.standing();
        if waits > GRACE.max(base / 8) {
            let target = self.window * (base.as_secs_f64() / trip.as_secs_f64()) + standing;
            // FAST TCP goes half of the way, since what it measures is a round trip old. At first it is all far too much.
            let next = if self.starting { target } else { f64::midpoint(self.window, target) };
            (self.window, self.starting) = (next.min(self.window), false);
        } else if self.starting {
            self.start(base);
        } else if waits <= STANDING + GRACE {
            // Of a long path an eighth would be much at once.
            self.window += standing.max((self.window / 8.0).min(standing * 2.0));
        }
        let most = self.rate_known.map_or(MOST, |rate| most(rate, base));
        self.window = self.window.clamp(LEAST, most.clamp(LEAST, MOST));
        if core::mem::take(&mut self.draining) {
            self.window = (self.window / 2.0).max(LEAST);
        }
    }

    /// Doubles the window, up to what the link holds: what was sent at once arrived at its rate (as packet trains show it: Jain,
    /// Routhier 1986).
    fn start(&mut self, base: Duration) {
        self.window *= 2.0;
        if let Some(rate) = self.round.train {
            let holds = rate * (base + STANDING).as_secs_f64();
            if self.window >= holds {
                (self.window, self.starting) = (holds, false);
                self.wire_rate = Some(self.wire_rate.map_or(rate, |before| before.max(rate)));
            }
        }
    }

    fn standing(&self) -> f64 {
        let rate = self.rate_known.or(self.wire_rate);
        rate.map_or(STANDING_LEAST * 4.0, |rate| rate * STANDING.as_secs_f64()).max(STANDING_LEAST)
    }

    /// Bytes that may be sent now: none until it is worth a message. It is asked only if something waits.
    pub(crate) fn budget(&mut self) -> usize {
        if !self.has_budget() {
            self.round.full = true;
            return 0;
        }
        (self.window - self.on_the_way() as f64) as usize
    }

    /// Bytes of a message at most: an eighth of the window, so that acknowledgements tell of less, what leaves in [`MESSAGE`], so that
    /// what a key brings does not wait behind more, and a datagram at least.
    pub(crate) fn message(&self) -> usize {
        let rate = self.rate_known.or(self.wire_rate);
        let leaves = rate.map_or(f64::MAX, |rate| rate * MESSAGE.as_secs_f64());
        (self.window / 8.0).min(leaves).max(LEAST / 2.0) as usize
    }

    /// Whether anything may be sent now.
    pub(crate) fn has_budget(&self) -> bool {
        self.window - self.on_the_way() as f64 >= (self.window / 4.0).min(4_096.0)
    }

    fn on_the_way(&self) -> u64 {
        self.wire_sent - self.wire_acked
    }

    /// Bytes before compression that the link takes in this time, if that is known.
    pub(crate) fn raw_in(&self, span: Duration) -> Option<f64> {
        self.raw_rate.map(|rate| rate * span.as_secs_f64())
    }

    /// Bits a second of the stream that were seen to arrive.
    pub(crate) fn wire_rate(&self) -> Option<f64> {
        self.rate_known.or(self.wire_rate).map(|rate| rate * 8.0)
    }

    /// Whether the window still doubles.
    pub(crate) fn is_starting(&self) -> bool {
        self.starting
    }

    /// The smoothed round trip.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// When the path counts as silent if nothing is heard: after a time with so much on the way that the client tells of it.
    pub(crate) fn silent_at(&self) -> Option<Time> {
        let told = self.flights.iter().find(|flight| flight.end >= self.position + PROMPT)?;
        let patience = SILENCE.max(self.smoothed.unwrap_or_default() * 4);
        Some(self.heard.max(told.at) + patience)
    }
}

/// The window of a link of so many bytes a second at most.
fn most(rate: f64, trip: Duration) -> f64 {
    rate * (trip + STANDING * 2).as_secs_f64() + LEAST
}
