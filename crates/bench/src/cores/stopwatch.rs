//! A small stopwatch: how long a piece of work takes, a value a repeat.

use std::time::{Duration, Instant};

use crate::sample::Sample;

/// How often everything is repeated, and how long a repeat lasts at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch {
    /// Repeats that count; one more goes before them.
    pub(super) repeats: usize,
    /// Least length of a repeat: long enough that reading the clock does not show.
    pub(super) least: Duration,
}

impl Stopwatch {
    /// Nanoseconds a unit: `work` is called again and again and says how many units it did each time.
    pub(super) fn nanos_per_unit<E>(self, mut work: impl FnMut() -> Result<u64, E>) -> Result<Sample, E> {
        self.timed(|| {
            let start = Mark::now();
            let units = work()?;
            Ok((start.elapsed(), units))
        })
    }

    /// As [`Stopwatch::nanos_per_unit`], of which only what `work` itself timed counts: it says how long it took and
    /// how many units it did.
    pub(super) fn timed<E>(self, mut work: impl FnMut() -> Result<(Duration, u64), E>) -> Result<Sample, E> {
        let mut sample = Sample::default();
        for repeat in 0..=self.repeats {
            let (mut total, mut units) = (Duration::ZERO, 0);
            while total < self.least {
                let (took, done) = work()?;
                total += took.max(RESOLUTION);
                units += done;
            }
            if repeat > 0 {
                sample.push(total.as_secs_f64() * 1e9 / units.max(1) as f64);
            }
        }
        Ok(sample)
    }
}

/// What no piece of work is shorter than, so that a clock that stands still cannot hold a measurement up forever.
const RESOLUTION: Duration = Duration::from_nanos(1);

/// A moment in this thread's life: what else the machine does then is not counted, if the kernel says how long
/// the thread was on a processor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mark {
    /// Time on a processor.
    Processor(Duration),
    /// Time as it passes, where the kernel keeps no account.
    Wall(Instant),
}

impl Mark {
    /// This moment. Takes some microseconds, so what is timed should take a millisecond.
    pub(super) fn now() -> Mark {
        processor_time().map_or_else(|| Mark::Wall(Instant::now()), Mark::Processor)
    }

    /// What has passed since.
    pub(super) fn elapsed(self) -> Duration {
        match self {
            Mark::Wall(start) => start.elapsed(),
            Mark::Processor(start) => processor_time().unwrap_or(start).saturating_sub(start),
        }
    }
}

/// How long this thread has been on a processor (the kernel's `Documentation/scheduler/sched-stats.rst`).
fn processor_time() -> Option<Duration> {
    // The account is brought up to date when the thread offers to leave the processor.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos: u64 = text.split_whitespace().next()?.parse().ok()?;
    (nanos > 0).then(|| Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_repeats_are_counted() {
        let stopwatch = Stopwatch { repeats: 4, least: Duration::from_millis(5) };
        let mut calls = 0;
        let sample = stopwatch.timed(|| {
            calls += 1;
            Ok::<_, ()>((Duration::from_millis(1), 10))
        });
        assert_eq!(sample.unwrap().values(), [100_000.0; 4]);
        assert_eq!(calls, 25);
    }

    #[test]
    fn what_fails_ends_the_measurement() {
        let stopwatch = Stopwatch { repeats: 1, least: Duration::from_millis(1) };
        assert_eq!(stopwatch.nanos_per_unit(|| Err::<u64, _>("broken")), Err("broken"));
    }

    #[test]
    fn sleep_is_not_work() {
        if let Mark::Processor(_) = Mark::now() {
            let start = Mark::now();
            std::thread::sleep(Duration::from_millis(50));
            assert!(start.elapsed() < Duration::from_millis(50));
        }
    }
}
