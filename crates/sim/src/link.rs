//! One direction of a path: a queue before a bottleneck, then a delay, and what can go wrong there.

use core::time::Duration;

use strait_clock::{Random, Time};
use strait_scheduler::Rate;
use strait_wire::{Ecn, Tos};

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
        SimLink { settings, switch: LinkSwitch::Up, counters, random, free_at: Time::ZERO, in_burst: false }
    }

    /// Counts of datagrams so far.
    #[must_use]
    pub const fn counters(&self) -> LinkCounters {
        self.counters
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

    /// When it has passed the bottleneck, and its mark there; nothing when the queue is full.
    fn pass_bottleneck(&mut self, wire: u64, tos: Tos, now: Time) -> Option<(Time, Tos)> {
        let Some(rate) = self.settings.rate else { return Some((now, tos)) };
        let waiting = rate.bytes_in(self.free_at.since(now));
        if waiting.saturating_add(wire) > self.settings.queue {
            return None;
        }
        self.free_at = self.free_at.max(now) + rate.time_for(wire);
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
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1000);

    fn link(settings: LinkSettings) -> SimLink {
        SimLink::new(settings, 7)
    }

    fn first(arrivals: Arrivals) -> Option<Duration> {
        arrivals[0].map(|(at, _)| at.since(NOW))
    }

    #[test]
    fn a_bottleneck_takes_its_time_and_its_queue_ends() {
        let mut link = link(LinkSettings {
            rate: Rate::from_bits(1_000_000),
            delay: Duration::from_millis(3),
            queue: 2000,
            overhead: 18,
            ..LinkSettings::default()
        });
        // 1000 bytes at 1 Mbit/s take 8 ms.
        assert_eq!(first(link.carry(982, Tos(0), NOW)), Some(Duration::from_millis(11)));
        assert_eq!(first(link.carry(982, Tos(0), NOW)), Some(Duration::from_millis(19)));
        assert_eq!(link.carry(982, Tos(0), NOW), [None; 2]);
        assert_eq!(
            first(link.carry(982, Tos(0), NOW + Duration::from_millis(8))),
            Some(Duration::from_millis(27))
        );
        let counters = link.counters();
        assert_eq!((counters.entered, counters.carried, counters.overflowed), (4, 3, 1));
        assert_eq!(counters.bytes, 3000);
    }

    #[test]
    fn ecn_marks_need_ecn_capable_packets() {
        let mut link = link(LinkSettings {
            rate: Rate::from_bits(1_000_000),
            mark_above: Some(500),
            ..LinkSettings::default()
        });
        let marks: Vec<Ecn> = [Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::Ect1]
            .into_iter()
            .map(|ecn| link.carry(1000, Tos(0xb8).with_ecn(ecn), NOW)[0].unwrap().1.ecn())
            .collect();
        assert_eq!(marks, [Ecn::Ect0, Ecn::Ce, Ecn::NotEct, Ecn::Ce]);
        assert_eq!(link.counters().marked, 2);
    }

    #[test]
    fn loss_comes_as_often_as_it_was_asked_for_and_in_bursts() {
        for (loss, expected) in [
            (LossModel::None, 0.0),
            (LossModel::Uniform(0.1), 0.1),
            (LossModel::Uniform(1.0), 1.0),
            // In the bad state 0.01 / (0.01 + 0.1) of the time, and half is lost there.
            (LossModel::Bursts { begin: 0.01, end: 0.1, lost: 0.5 }, 0.0455),
        ] {
            let mut link = link(LinkSettings { loss, ..LinkSettings::default() });
            let lost = (0..50_000).filter(|_| link.carry(100, Tos(0), NOW)[0].is_none()).count();
            let share = f64::from(u32::try_from(lost).unwrap()) / 50_000.0;
            assert!((share - expected).abs() < 0.01, "{loss:?}: {share}");
            assert_eq!(link.counters().lost, u64::try_from(lost).unwrap());
        }
    }

    #[test]
    fn what_is_too_large_and_what_meets_a_cut_is_gone() {
        let mut link = link(LinkSettings { mtu: 1400, ..LinkSettings::default() });
        assert!(link.carry(1400, Tos(0), NOW)[0].is_some());
        assert!(link.carry(1401, Tos(0), NOW)[0].is_none());
        link.switch = LinkSwitch::Down;
        assert!(link.carry(100, Tos(0), NOW)[0].is_none());
        let counters = link.counters();
        assert_eq!((counters.carried, counters.oversized, counters.cut), (1, 1, 1));
    }

    #[test]
    fn jitter_repetition_and_holding_back_stay_in_bounds() {
        let by = Duration::from_millis(50);
        let mut link = link(LinkSettings {
            jitter: Duration::from_millis(2),
            repeated: 0.25,
            reordering: Some(Reordering { share: 0.1, by }),
            ..LinkSettings::default()
        });
        let (mut twice, mut held) = (0, 0);
        for _ in 0..10_000 {
            let arrivals = link.carry(100, Tos(0), NOW);
            let took = first(arrivals).unwrap();
            let late = took >= by;
            let rest = if late { took - by } else { took };
            assert!((5..=7).contains(&rest.as_millis()), "{took:?}");
            held += u32::from(late);
            twice += u32::from(arrivals[1].is_some());
        }
        assert!((2300..2700).contains(&twice), "{twice}");
        assert!((900..1100).contains(&held), "{held}");
    }
}
