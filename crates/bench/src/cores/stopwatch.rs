//! A small stopwatch: how long a piece of work takes, a value a repeat.

use std::time::{Duration, Instant};

use crate::sample::Sample;

/// How often everything is repeated, and how long a repeat lasts at least.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    /// Repeats that count; one more goes before them.
    pub(crate) repeats: usize,
    /// Least length of a repeat: long enough that reading the clock does not show.
    pub(crate) least: Duration,
}

impl Stopwatch {
    /// Nanoseconds a unit: `work` is called again and again and says how many units it did each time.
    pub(crate) fn nanos_per_unit<E>(self, mut work: impl FnMut() -> Result<u64, E>) -> Result<Sample, E> {
        let mut sample = Sample::default();
        for repeat in 0..=self.repeats {
            let (start, mut units) = (Instant::now(), 0);
            while start.elapsed() < self.least {
                units += work()?;
            }
            let nanos = start.elapsed().as_secs_f64() * 1e9;
            if repeat > 0 {
                sample.push(nanos / units.max(1) as f64);
            }
        }
        Ok(sample)
    }

    /// As [`Stopwatch::nanos_per_unit`], of which only what `work` itself timed counts: it says how long it took and
    /// how many units it did.
    pub(crate) fn timed<E>(self, mut work: impl FnMut() -> Result<(Duration, u64), E>) -> Result<Sample, E> {
        let mut sample = Sample::default();
        for repeat in 0..=self.repeats {
            let (mut total, mut units) = (Duration::ZERO, 0);
            while total < self.least {
                let (took, done) = work()?;
                total += took;
                units += done;
            }
            if repeat > 0 {
                sample.push(total.as_secs_f64() * 1e9 / units.max(1) as f64);
            }
        }
        Ok(sample)
    }
}
