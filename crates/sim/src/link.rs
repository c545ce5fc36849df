//! One direction of a path: a queue before a bottleneck, then a delay, and what can go wrong there.

mod trace;

use core::time::Duration;

use strait_clock::{Random, Time};
use strait_scheduler::Rate;
use strait_wire::{Ecn, Tos, ip};

use trace::TraceBottleneck;
pub use trace::{InvalidTrace, RateTrace};

/// What gets lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Nothing.
    None,
    /// Each datagram with this probability.
    Uniform(f64),
    /// Two states, as Gilbert (1960) and Elliott (1963): nothing is lost in the good one.
    Bursts {
        /// Probability that the bad state begins with a datagram.
        begin: f64,
        /// Probability that it ends with a datagram.
        end: f64,
        /// Probability that a datagram is lost in it.
        lost: f64,
    },
}

impl LossModel {
    /// Bursts in which everything is lost, `length` datagrams long on average (one at least), so that `share` of all is lost.
    #[must_use]
    pub fn bursts(share: f64, length: f64) -> LossModel {
        let end = 1.0 / length.max(1.0);
        // The bad state holds for begin / (begin + end) of the datagrams.
        LossModel::Bursts { begin: share * end / (1.0 - share), end, lost: 1.0 }
    }
}

/// Datagrams that are overtaken by those behind them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// Probability that a datagram is held back.
    pub share: f64,
    /// For how long.
    pub by: Duration,
}

/// Whether a link carries anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkSwitch {
    /// It does.
    #[default]
    Up,
    /// Whatever enters is lost.
    Down,
}

/// What a link is like; the default is a wire that does nothing.
#[derive(Clone, Copy, Debug)]
pub struct LinkSettings {
    /// Bits a second on the wire; none means no bottleneck.
    pub rate: Option<Rate>,
    /// The one-way propagation delay.
    pub delay: Duration,
    /// Up to so much more, another for each datagram.
    pub jitter: Duration,
    /// What is held back.
    pub reordering: Option<Reordering>,
    /// What is lost.
    pub loss: LossModel,
    /// Probability that a datagram arrives twice.
    pub repeated: f64,
    /// Bytes that wait before the bottleneck at most.
    pub queue: u64,
    /// Waiting bytes above which ECN-capable datagrams are marked.
    pub mark_above: Option<u64>,
    /// Largest outer IP packet; larger ones vanish.
    pub mtu: u16,
    /// Bytes of the link layer around each datagram.
    pub overhead: u16,
}

impl LinkSettings {
    /// A bottleneck as a modem is: `rate`, counted with Ethernet's header, then `delay` one way, and before it a queue that
    /// holds `wait` of that rate, and 8 full packets at least, or a slow link would carry no TCP at all.
    #[must_use]
    pub fn modem(rate: Rate, delay: Duration, wait: Duration) -> LinkSettings {
        let settings =
            LinkSettings { rate: Some(rate), delay, overhead: ETHERNET, ..LinkSettings::default() };
        let least = LEAST_QUEUED * u64::from(settings.mtu + settings.overhead);
        LinkSettings { queue: rate.bytes_in(wait).max(least), ..settings }
    }
}

impl Default for LinkSettings {
    fn default() -> LinkSettings {
        LinkSettings {
            rate: None,
            delay: Duration::from_millis(5),
            jitter: Duration::ZERO,
            reordering: None,
            loss: LossModel::None,
            repeated: 0.0,
            queue: u64::MAX,
            mark_above: None,
            mtu: 1500,
            overhead: 0,
        }
    }
}

/// Bytes of Ethernet's header, without preamble and checksum (IEEE 802.3).
const ETHERNET: u16 = 14;
/// Full packets that every modem's queue has room for.
const LEAST_QUEUED: u64 = 8;

/// Counts of datagrams on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Datagrams that entered.
    pub entered: u64,
    /// Datagrams that will arrive, repetitions apart.
    pub carried: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Lost by chance.
    pub lost: u64,
    /// Lost because the link was down.
    pub cut: u64,
    /// Lost before a full queue.
    pub overflowed: u64,
    /// Lost for their size.
    pub oversized: u64,
    /// Arriving twice.
    pub repeated: u64,
    /// Marked as having met congestion.
    pub marked: u64,
}

/// When a datagram arrives, once or twice or never, and with which mark.
pub type Arrivals = [Option<(Time, Tos)>; 2];

/// One direction of a path.
#[derive(Debug)]
pub struct SimLink {
    /// What it is like; may be changed at any time.
    pub settings: LinkSettings,
    /// Whether it carries anything.
    pub switch: LinkSwitch,
    counters: LinkCounters,
    random: Random,
    free_at: Time,
    in_burst: bool,
    trace: Option<TraceBottleneck>,
}

impl SimLink {
    /// A link whose chance follows from `seed`.
    #[must_use]
    pub const fn new(settings: LinkSettings, seed: u64) -> SimLink {
        let random = Random::new(seed);
        let counters = LinkCounters {
            entered: 0,
            carried: 0,
            bytes: 0,
            lost: 0,
            cut: 0,
            overflowed: 0,
            oversized: 0,
            repeated: 0,
            marked: 0,
        };
        let free_at = Time::ZERO;
        SimLink { settings, switch: LinkSwitch::Up, counters, random, free_at, in_burst: false, trace: None }
    }

    /// The same link with a recorded rate in the place of the constant one of its settings; the record begins at time zero
    /// and begins again when it ends.
    #[must_use]
    pub fn following(self, record: RateTrace) -> SimLink {
        SimLink { trace: Some(TraceBottleneck::new(record)), ..self }
    }

    /// Counts of datagrams so far.
    #[must_use]
    pub const fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// How long it takes until what waits before the bottleneck has left.
    #[must_use]
    pub const fn waits(&self, now: Time) -> Duration {
        self.free_at.since(now)
    }

    /// Takes a datagram whose outer IP packet has `len` bytes, and says when it arrives.
    pub fn carry(&mut self, len: u64, tos: Tos, now: Time) -> Arrivals {
        self.counters.entered += 1;
        if self.switch == LinkSwitch::Down {
            self.counters.cut += 1;
            return [None; 2];
        }
        if len > u64::from(self.settings.mtu) {
            self.counters.oversized += 1;
            return [None; 2];
        }
        let wire = len + u64::from(self.settings.overhead);
        let Some((leaves, tos)) = self.pass_bottleneck(wire, tos, now) else {
            self.counters.overflowed += 1;
            return [None; 2];
        };
        if self.is_lost() {
            self.counters.lost += 1;
            return [None; 2];
        }
        self.counters.carried += 1;
        self.counters.bytes += wire;
        let first = Some((leaves + self.on_the_way(), tos));
        let twice = self.chance(self.settings.repeated);
        self.counters.repeated += u64::from(twice);
        [first, twice.then(|| (leaves + self.on_the_way(), tos))]
    }

    /// The same for one that a router before the bottleneck may fragment (RFC 791 section 3.2). It arrives with its last fragment, if
    /// none is lost.
    pub fn carry_in_fragments(&mut self, len: u64, tos: Tos, now: Time) -> Arrivals {
        let header = ip::V4_HEADER_LEN as u64;
        let most = u64::from(self.settings.mtu).saturating_sub(header) / 8 * 8;
        if len <= u64::from(self.settings.mtu) || most == 0 {
            return self.carry(len, tos, now);
        }
        let (mut rest, mut arrived) = (len - header, Some((now, tos)));
        while rest > 0 {
            let [fragment, _] = self.carry(rest.min(most) + header, tos, now);
            arrived =
                arrived.zip(fragment).map(|(before, this)| if this.0 > before.0 { this } else { before });
            rest -= rest.min(most);
        }
        [arrived, None]
    }

    /// When it has passed the bottleneck, and its mark there; nothing when the queue is full.
    fn pass_bottleneck(&mut self, wire: u64, tos: Tos, now: Time) -> Option<(Time, Tos)> {
        let waiting = match (&mut self.trace, self.settings.rate) {
            (Some(trace), _) => trace.waiting(now),
            (None, Some(rate)) => rate.bytes_in(self.free_at.since(now)),
            (None, None) => return Some((now, tos)),
        };
        if waiting.saturating_add(wire) > self.settings.queue {
            return None;
        }
        self.free_at = match (&mut self.trace, self.settings.rate) {
            (Some(trace), _) => trace.leave(wire, now),
            (None, rate) => self.free_at.max(now) + rate.map_or(Duration::ZERO, |rate| rate.time_for(wire)),
        };
        let congested = self.settings.mark_above.is_some_and(|above| waiting > above);
        if congested && matches!(tos.ecn(), Ecn::Ect0 | Ecn::Ect1) {
            self.counters.marked += 1;
            return Some((self.free_at, tos.with_ecn(Ecn::Ce)));
        }
        Some((self.free_at, tos))
    }

    fn is_lost(&mut self) -> bool {
        match self.settings.loss {
            LossModel::None => false,
            LossModel::Uniform(lost) => self.chance(lost),
            LossModel::Bursts { begin, end, lost } => {
                self.in_burst = if self.in_burst { !self.chance(end) } else { self.chance(begin) };
                self.in_burst && self.chance(lost)
            }
        }
    }

    fn on_the_way(&mut self) -> Duration {
        let jitter = u64::try_from(self.settings.jitter.as_nanos()).unwrap_or(u64::MAX - 1);
        let more = Duration::from_nanos(if jitter == 0 { 0 } else { self.random.below(jitter + 1) });
        let held = self.settings.reordering.filter(|held| self.random.unit() < held.share);
        self.settings.delay + more + held.map_or(Duration::ZERO, |held| held.by)
    }

    fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.random.unit() < probability
    }
}

#[cfg(test)]
mod tests;
