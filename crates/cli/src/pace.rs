//! The clock of what is shown of a transfer: when something happened, when it was shown, and the rate of the last seconds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::units::per_second;

/// The time between two writings of a line on a terminal: as often as a person reads numbers.
const SHOWN: Duration = Duration::from_millis(250);
/// The time between two JSON events that tell how far it is.
const TOLD: Duration = Duration::from_secs(1);
/// Samples of a span of time.
const SAMPLES: u32 = 20;

/// The clock. Times are since its beginning.
#[derive(Debug)]
pub(crate) struct Pace {
    begun: Instant,
    shown: Duration,
    happened: Duration,
    rate: RecentRate,
}

impl Pace {
    /// A clock that begins now; the rate is that of the last half of `patience`, the silence that the transfer bears.
    pub(crate) fn new(patience: Duration) -> Pace {
        let (shown, happened) = (Duration::ZERO, Duration::ZERO);
        Pace { begun: Instant::now(), shown, happened, rate: RecentRate::new(patience / 2) }
    }

    /// Returns the time now.
    pub(crate) fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Notes that something happens.
    pub(crate) fn happens(&mut self) {
        self.happened = self.now();
    }

    /// Returns for how long nothing has happened.
    pub(crate) fn quiet(&self) -> Duration {
        self.now().saturating_sub(self.happened)
    }

    /// Returns true, and begins the next pause, if it is time to show how far it is.
    pub(crate) fn is_due(&mut self, now: Duration, json: bool) -> bool {
        let due = now.saturating_sub(self.shown) >= if json { TOLD } else { SHOWN };
        if due {
            self.shown = now;
        }
        due
    }

    /// Takes how many bytes there are by now.
    pub(crate) fn measure(&mut self, now: Duration, bytes: u64) {
        self.rate.add(now, bytes);
    }

    /// Returns the bytes a second of the last seconds before the last measurement.
    pub(crate) fn rate(&self) -> f64 {
        self.rate.per_second()
    }

    /// Returns that rate in words.
    pub(crate) fn rate_text(&self) -> String {
        per_second(self.rate() as u64, Duration::from_secs(1))
    }
}

/// The rate of a sum over the last span of time, or over its last two steps where these took longer: on a slow link, a sum moves in
/// steps.
#[derive(Debug)]
struct RecentRate {
    span: Duration,
    /// Times and sums when the sum had changed, the earliest first.
    samples: VecDeque<(Duration, u64)>,
    now: Duration,
}

impl RecentRate {
    fn new(span: Duration) -> RecentRate {
        RecentRate { span, samples: VecDeque::from([(Duration::ZERO, 0)]), now: Duration::ZERO }
    }

    fn add(&mut self, now: Duration, sum: u64) {
        let looked = core::mem::replace(&mut self.now, now);
        let Some((_, last)) = self.samples.back().copied().filter(|(_, last)| *last != sum) else { return };
        // An outage is no part of the rate after it. One step is not enough to tell it from a slow link.
        if self.samples.len() > 2 && self.is_still(now) {
            self.samples = VecDeque::from([(looked, last)]);
        }
        // The last one stands for all within a short time, so that there are not too many.
        let before = self.samples.len().checked_sub(2).and_then(|at| self.samples.get(at));
        if before.is_some_and(|(at, _)| now.saturating_sub(*at) < self.span / SAMPLES) {
            self.samples.pop_back();
        }
        self.samples.push_back((now, sum));
        let from = now.saturating_sub(self.span);
        while self.samples.len() > 3 && self.samples.get(1).is_some_and(|(at, _)| *at <= from) {
            self.samples.pop_front();
        }
    }

    /// Returns the mean time of a step.
    fn step(&self) -> Duration {
        let (Some((from, _)), Some((to, _))) = (self.samples.front(), self.samples.back()) else {
            return Duration::ZERO;
        };
        let steps = u32::try_from(self.samples.len()).unwrap_or(u32::MAX).saturating_sub(1).max(1);
        to.saturating_sub(*from) / steps
    }

    /// Returns for how long the sum has not changed.
    fn quiet(&self, now: Duration) -> Duration {
        self.samples.back().map_or(Duration::ZERO, |(to, _)| now.saturating_sub(*to))
    }

    /// Returns true if the sum has not changed for so long that there is no rate.
    fn is_still(&self, now: Duration) -> bool {
        self.quiet(now) >= self.span.max(2 * self.step())
    }

    fn per_second(&self) -> f64 {
        let (Some((from, first)), Some((to, last))) = (self.samples.front(), self.samples.back()) else {
            return 0.0;
        };
        if self.is_still(self.now) {
            return 0.0;
        }
        let (step, quiet) = (self.step(), self.quiet(self.now));
        // Behind a step that is late, the time counts.
        let seconds = (to.saturating_sub(*from) + quiet.saturating_sub(step)).as_secs_f64();
        if seconds > 0.0 { last.saturating_sub(*first) as f64 / seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_seconds_and_of_nothing_none() {
        let mut pace = Pace::new(Duration::from_secs(10));
        assert_eq!(pace.rate(), 0.0);
        let mut measure = |quarter: u32, bytes| {
            pace.measure(Duration::from_millis(250) * quarter, bytes);
            pace.rate()
        };
        // 4 kB/s for 10 s.
        let rates: Vec<f64> = (1..=40).map(|quarter| measure(quarter, 1_000 * u64::from(quarter))).collect();
        assert!(rates.iter().all(|rate| (rate - 4_000.0).abs() < 1.0), "{rates:?}");
        // Nothing more: as long as the last seconds have some of it, that is the rate.
        let rates: Vec<f64> = (41..=61).map(|quarter| measure(quarter, 40_000)).collect();
        assert!(rates.is_sorted_by(|a, b| a >= b), "{rates:?}");
        assert_eq!(rates.last(), Some(&0.0));
        // It goes on.
        assert!(measure(65, 44_000) > 0.0);
    }

    #[test]
    fn an_outage_is_no_part_of_the_rate_after_it() {
        let mut rate = RecentRate::new(Duration::from_secs(5));
        let mut add = |quarter: u64, sum| {
            rate.add(Duration::from_millis(250) * u32::try_from(quarter).unwrap(), sum);
            rate.per_second()
        };
        for quarter in 1..=40 {
            add(quarter, 1_000 * quarter);
        }
        for quarter in 41..=160 {
            add(quarter, 40_000);
        }
        let rates: Vec<f64> = (1..=40).map(|after| add(160 + after, 40_000 + 1_000 * after)).collect();
        assert!(rates.iter().all(|rate| (rate - 4_000.0).abs() < 1.0), "{rates:?}");
    }

    #[test]
    fn a_sum_that_moves_in_steps_has_the_rate_of_the_steps() {
        // 256 KiB at a time over 64 kbit/s: one in 32.8 s.
        let mut rate = RecentRate::new(Duration::from_secs(8));
        let mut seen = Vec::new();
        for second in 1..=200_u64 {
            rate.add(Duration::from_secs(second), second * 8_000 / 262_144 * 262_144);
            seen.push(rate.per_second());
        }
        let steady = seen.get(70..).unwrap();
        assert!(steady.iter().all(|rate| (7_400.0..8_200.0).contains(rate)), "{steady:?}");
    }

    #[test]
    fn samples_are_few_however_often_it_is_measured() {
        let mut rate = RecentRate::new(Duration::from_secs(5));
        for milliseconds in 0..60_000 {
            rate.add(Duration::from_millis(milliseconds), 7 * milliseconds);
        }
        assert!(rate.samples.len() <= SAMPLES as usize + 3, "{}", rate.samples.len());
        assert!((rate.per_second() - 7_000.0).abs() < 1.0, "{}", rate.per_second());
    }

    #[test]
    fn bytes_that_do_not_count_any_more_are_no_rate() {
        let mut rate = RecentRate::new(Duration::from_secs(5));
        rate.add(Duration::from_secs(1), 1_000);
        rate.add(Duration::from_secs(2), 0);
        assert_eq!(rate.per_second(), 0.0);
    }
}
