//! The paths, and what happens on them.

use std::fmt::Write;
use std::time::Duration;

use strait_clock::{Random, Time};
use strait_scheduler::Rate;
use strait_sim::{LinkSettings, LossModel, RateTrace, Reordering};

/// Bytes that an opportunity of a recorded rate carries.
const OPPORTUNITY: f64 = 1504.0;
/// How much a modem holds at least; it holds a round trip where that is more.
const QUEUE: f64 = 0.25;
/// What is left of a path in a quick run.
const QUICK: f64 = 10.0;
/// When the first packet is sent, in the simulation's seconds: all nodes have agreed on keys by then.
pub(super) const BEGIN: f64 = 10.0;

/// What else is on the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Beside {
    /// Full packets at so many Mbit/s, whatever becomes of them.
    Steady(f64),
    /// A TCP connection that has always more to send.
    Tcp,
}

/// A path from one node to another, with seconds from the first packet of the source on.
#[derive(Clone, Debug)]
pub(super) struct PathScript {
    /// For files and tables.
    pub(super) name: &'static str,
    pub(super) title: String,
    /// Seconds without a queue.
    pub(super) round_trip: f64,
    /// Mbit/s from a second on.
    pub(super) rates: Vec<(f64, f64)>,
    /// A recorded rate that is followed in the place of these, which are then its means.
    pub(super) record: Option<RateTrace>,
    pub(super) loss: LossModel,
    pub(super) jitter: Duration,
    pub(super) reordering: Option<Reordering>,
    /// Seconds of the fastest rate that the modem holds.
    pub(super) queue: f64,
    /// What is on the link beside the tunnel, from one second to another.
    pub(super) beside: Vec<(f64, f64, Beside)>,
    /// Whether each change of the rate is one to be found: not where it never stays.
    pub(super) steps: bool,
    /// Seconds in all.
    pub(super) length: f64,
}

impl PathScript {
    fn new(name: &'static str, title: &str, round_trip: f64, rates: &[(f64, f64)]) -> PathScript {
        PathScript {
            name,
            title: title.to_owned(),
            round_trip,
            rates: rates.to_vec(),
            record: None,
            loss: LossModel::None,
            jitter: Duration::ZERO,
            reordering: None,
            queue: round_trip.max(QUEUE),
            beside: Vec::new(),
            steps: true,
            length: 40.0,
        }
    }

    /// Ends early.
    pub(super) fn shorten(&mut self) {
        self.length = self.length.min(QUICK);
    }

    /// Mbit/s of the link after so many seconds.
    pub(super) fn rate(&self, second: f64) -> f64 {
        let passed = self.rates.iter().rev().find(|(from, _)| *from <= second);
        passed.or(self.rates.first()).map_or(0.0, |(_, rate)| *rate)
    }

    /// Mbit/s that are there for the tunnel: what other traffic leaves, and half where that is one TCP connection.
    pub(super) fn free(&self, second: f64) -> f64 {
        let now = self.beside.iter().filter(|(from, to, _)| (*from..*to).contains(&second));
        now.fold(self.rate(second), |free, (_, _, beside)| match beside {
            Beside::Steady(rate) => (free - rate).max(0.0),
            Beside::Tcp => free / 2.0,
        })
    }

    /// When what is there for the tunnel may change, and the beginning.
    pub(super) fn turns(&self) -> Vec<f64> {
        let beside = self.beside.iter().flat_map(|(from, to, _)| [*from, *to]);
        let mut turns: Vec<f64> = self.rates.iter().map(|(from, _)| *from).chain(beside).collect();
        turns.retain(|turn| *turn < self.length);
        turns.sort_by(f64::total_cmp);
        turns.dedup();
        turns
    }

    /// The fastest rate, in Mbit/s.
    pub(super) fn fastest(&self) -> f64 {
        self.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }

    /// The way there, and the way back, which has the same delay and losses and always the fastest rate.
    pub(super) fn links(&self) -> [LinkSettings; 2] {
        let rate = rate(self.fastest());
        let settings = LinkSettings {
            rate: Some(rate),
            delay: Duration::from_secs_f64(self.round_trip / 2.0),
            queue: rate.bytes_in(Duration::from_secs_f64(self.queue)).max(3000),
            loss: self.loss,
            jitter: self.jitter,
            reordering: self.reordering,
            ..LinkSettings::default()
        };
        let back = LinkSettings { queue: settings.queue.max(30_000), ..settings };
        [settings, back]
    }

    /// The rates as a record whose time begins with the simulation's; none where the rate is constant.
    pub(super) fn record(&self) -> Option<RateTrace> {
        if self.record.is_some() || self.rates.len() == 1 {
            return self.record.clone();
        }
        let mut text = String::new();
        let mut room = 0.0;
        for milli in 0..((BEGIN + self.length + 10.0) * 1e3) as u32 {
            room += self.rate(f64::from(milli) / 1e3 - BEGIN) * 1e3 / 8.0;
            while room >= OPPORTUNITY {
                room -= OPPORTUNITY;
                let _ = writeln!(text, "{milli}");
            }
        }
        text.parse().ok()
    }
}

fn rate(mbit: f64) -> Rate {
    Rate::from_bits((mbit * 1e6) as u64).unwrap_or(Rate::MIN)
}

/// All paths; the cellular one follows `record` if there is one.
pub(super) fn all(record: Option<&RateTrace>, seed: u64) -> Vec<PathScript> {
    let path = PathScript::new;
    let doubles = [(0.0, 5.0), (15.0, 10.0), (30.0, 5.0)];
    let fourfold = [(0.0, 4.0), (15.0, 16.0), (30.0, 4.0)];
    let by = Duration::from_millis(8);
    vec![
        path("constant", "10 Mbit/s, 50 ms", 0.05, &[(0.0, 10.0)]),
        path("doubles", "5 Mbit/s doubles, then halves, 50 ms", 0.05, &doubles),
        path("fourfold", "4 Mbit/s becomes four times as fast, then a quarter, 50 ms", 0.05, &fourfold),
        PathScript { length: 60.0, ..path("satellite", "2 Mbit/s, 600 ms", 0.6, &[(0.0, 2.0)]) },
        PathScript {
            loss: LossModel::Uniform(0.01),
            ..path("loss", "10 Mbit/s, 100 ms, 1 % lost", 0.1, &[(0.0, 10.0)])
        },
        PathScript {
            loss: LossModel::bursts(0.03, 5.0),
            ..path("bursts", "10 Mbit/s, 100 ms, 3 % lost in bursts of 5", 0.1, &[(0.0, 10.0)])
        },
        path(
            "shared",
            "a shared medium: 3 to 9 Mbit/s, another every few seconds, 40 ms",
            0.04,
            &shared(seed),
        ),
        PathScript {
            beside: vec![
                (8.0, 18.0, Beside::Steady(5.0)),
                (18.0, 20.0, Beside::Steady(8.0)),
                (28.0, 45.0, Beside::Tcp),
            ],
            length: 55.0,
            ..path("beside", "10 Mbit/s, 50 ms, other traffic beside the tunnel", 0.05, &[(0.0, 10.0)])
        },
        cellular(record, seed),
        PathScript {
            jitter: Duration::from_millis(2),
            reordering: Some(Reordering { share: 0.02, by }),
            ..path("radio", "10 Mbit/s, 60 ms, up to 2 ms of jitter, 2 % 8 ms late", 0.06, &[(0.0, 10.0)])
        },
        PathScript {
            queue: 0.008,
            ..path("policer", "10 Mbit/s, 50 ms, a policer that holds 8 ms", 0.05, &[(0.0, 10.0)])
        },
    ]
}

/// Between a slow and three times as fast a rate, for two to six seconds each.
fn shared(seed: u64) -> Vec<(f64, f64)> {
    let mut random = Random::new(seed ^ 0x5ba2ed);
    let (mut rates, mut second) = (vec![(0.0, 6.0)], 0.0);
    while second < 36.0 {
        second += 2.0 + 4.0 * random.unit();
        rates.push((second, 3.0 * 3.0_f64.powf(random.unit())));
    }
    rates
}

/// Every 200 ms a factor of up to 1.5, from 0.5 to 16 Mbit/s.
fn wandering(seed: u64) -> Vec<(f64, f64)> {
    let mut random = Random::new(seed ^ 0xce11);
    let (mut rates, mut rate) = (Vec::new(), 5.0_f64);
    for step in 0..300_u32 {
        rates.push((f64::from(step) / 5.0, rate));
        rate = (rate * 1.5_f64.powf(2.0 * random.unit() - 1.0)).clamp(0.5, 16.0);
    }
    rates
}

/// The recorded rate, with its means of 200 ms, or a stand-in.
fn cellular(record: Option<&RateTrace>, seed: u64) -> PathScript {
    let (title, rates) = match record {
        Some(record) => {
            let at = |step: u32| Time::ZERO + Duration::from_secs_f64(BEGIN + f64::from(step) / 5.0);
            let mean = |step: u32| record.bits_between(at(step), at(step + 1)) as f64 * 5.0 / 1e6;
            let rates = (0..300).map(|step| (f64::from(step) / 5.0, mean(step)));
            ("a recorded cellular link, 60 ms", rates.collect())
        }
        None => ("a scripted stand-in for a cellular link, 60 ms", wandering(seed)),
    };
    let path = PathScript::new("cellular", title, 0.06, &rates);
    PathScript { record: record.cloned(), steps: false, length: 60.0, ..path }
}
