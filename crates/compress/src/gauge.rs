//! How much slower than calibrated one thread expands, and when that is worth telling the other end.

use core::time::Duration;

use strait_clock::{Stopwatch, Time};
use strait_model::{Bytes, LoadFactor, Seconds};

use crate::Codec;
use crate::calibrate::Calibration;

/// A change by less than this is not reported: a choice hardly depends on it.
const NEWS: f64 = 1.5;
/// News comes no more often: the other end's choice is to follow within a second, and twelve bytes a second are nothing.
const APART: Duration = Duration::from_secs(1);

/// Watches what expanding takes.
#[derive(Debug)]
pub struct Gauge {
    stopwatch: Stopwatch,
    /// By codec, of each of its methods: a block does not say which made it.
    figures: Calibration,
    load: LoadFactor,
    said: f64,
    said_at: Time,
}

impl Gauge {
    /// A gauge that compares with `calibration`.
    #[must_use]
    pub fn new(calibration: &Calibration, stopwatch: Stopwatch) -> Gauge {
        Gauge {
            stopwatch,
            figures: calibration.clone(),
            load: LoadFactor::NONE,
            said: 1.0,
            said_at: Time::ZERO,
        }
    }

    /// A gauge without a clock, which has no news.
    #[must_use]
    pub fn none() -> Gauge {
        Gauge::new(&Calibration::assumed(), Stopwatch::NONE)
    }

    /// Does `work`, which expands a block of `codec` and says to how many bytes.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn time<E>(
        &mut self,
        codec: Codec,
        now: Time,
        work: impl FnOnce() -> Result<usize, E>,
    ) -> Result<usize, E> {
        let (done, took) = self.stopwatch.time(work);
        if let Ok(len) = done {
            self.learn(codec, len, took, now);
        }
        done
    }

    /// Notes that expanding a block of `codec` to `len` bytes took so many nanoseconds.
    pub fn learn(&mut self, codec: Codec, len: usize, took: Option<u64>, now: Time) {
        if let (Some(took), Some(due)) = (took, self.due(codec, Bytes(len as u64)))
            && len > 0
        {
            // Never below 1: which method made the block is not known, and the slowest was assumed.
            self.load.learn((took as f64 * 1e-9 / due.0).max(1.0), due, now);
        }
    }

    /// What expanding to `len` takes by the calibration, with the codec's method that is slowest at it.
    fn due(&self, codec: Codec, len: Bytes) -> Option<Seconds> {
        let figures = self.figures.figures().iter().filter(|figures| figures.method.codec == codec);
        let times = figures.map(|figures| figures.expand.of(len)).filter(|time| time.0 > 0.0);
        times.max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// How many times longer than calibrated everything takes, if that is news.
    pub fn news(&mut self, now: Time) -> Option<f64> {
        if now.since(self.said_at) < APART {
            return None;
        }
        let factor = self.load.factor(now);
        if factor.max(self.said) / factor.min(self.said) < NEWS {
            return None;
        }
        (self.said, self.said_at) = (factor, now);
        Some(factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExpandError;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn rising_load_is_reported_once() {
        let calibration = Calibration::assumed();
        let due = gauge_due(&calibration);
        let clock = Arc::new(AtomicU64::new(0));
        let hand = Arc::clone(&clock);
        let mut gauge = Gauge::new(&calibration, Stopwatch::new(move || hand.load(Ordering::Relaxed)));
        let run = |gauge: &mut Gauge, slowness: f64, now: u64| {
            let mut news = Vec::new();
            for milli in 0..2_000 {
                let now = Time::from_millis(now + milli);
                let work = || {
                    clock.fetch_add((due * slowness) as u64, Ordering::Relaxed);
                    Ok::<_, ExpandError>(60_000)
                };
                gauge.time(Codec::Zstd, now, work).unwrap();
                news.extend(gauge.news(now));
            }
            news
        };
        assert_eq!(run(&mut gauge, 1.0, 2_000), Vec::<f64>::new());
        let news = run(&mut gauge, 6.0, 4_000);
        assert!(news.len() <= 2 && *news.last().unwrap() > 2.0, "{news:?}");
        assert!(run(&mut gauge, 1.0, 6_000).last().is_some_and(|factor| *factor < 2.0));
    }

    /// Nanoseconds for 60,000 bytes that Zstandard made at level 1.
    fn gauge_due(calibration: &Calibration) -> f64 {
        let level_1 = crate::Method::at_level(Codec::Zstd, 1).unwrap();
        calibration.of(level_1).unwrap().expand.of(Bytes(60_000)).0 * 1e9
    }

    #[test]
    fn without_a_clock_there_is_no_news() {
        let mut gauge = Gauge::none();
        gauge.time(Codec::Zstd, Time::ZERO, || Ok::<_, ExpandError>(10)).unwrap();
        assert_eq!(gauge.news(Time::from_millis(5_000)), None);
        let refused = gauge.time(Codec::Zstd, Time::ZERO, || Err(ExpandError::TooLong { cap: 1 }));
        assert!(refused.is_err());
    }
}
