//! A small stopwatch: how long a piece of work takes, a value a repeat.

use std::time::{Duration, Instant};

use super::RunValues;

/// How often everything is repeated, and how long a repeat lasts at least.
#[derive(Clone, Copy, Debug)]
pub struct RepeatTimer {
    /// Repeats that count; one more goes before them.
    pub repeats: usize,
    /// Least length of a repeat: long enough that reading the clock does not show.
    pub least: Duration,
}

impl RepeatTimer {
    /// Nanoseconds a unit: `work` is called again and again and says how many units it did each time. However short
    /// it is, the clock is read so seldom that it does not show.
    ///
    /// # Errors
    /// What `work` fails with.
    pub fn nanos_per_unit<E>(self, mut work: impl FnMut() -> Result<u64, E>) -> Result<RunValues, E> {
        let mut calls = 1_u32;
        self.timed(|| {
            let (mut units, start) = (0, ThreadMoment::now());
            for _ in 0..calls {
                units += work()?;
            }
            let took = start.elapsed();
            if took < self.least / BATCHES {
                calls = calls.saturating_mul(2);
            }
            Ok((took, units))
        })
    }

    /// As [`RepeatTimer::nanos_per_unit`], of which only what `work` itself timed counts: it says how long it took and
    /// how many units it did. It should take a millisecond.
    ///
    /// # Errors
    /// What `work` fails with.
    pub fn timed<E>(self, mut work: impl FnMut() -> Result<(Duration, u64), E>) -> Result<RunValues, E> {
        let mut sample = RunValues::default();
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

/// Readings of the clock a repeat, at most twice as many.
const BATCHES: u32 = 8;

/// What no piece of work is shorter than, so that a clock that stands still cannot hold a measurement up forever.
const RESOLUTION: Duration = Duration::from_nanos(1);

/// A moment in this thread's life: what else the machine does then is not counted, if the kernel says how long
/// the thread was on a processor.
#[derive(Clone, Copy, Debug)]
pub enum ThreadMoment {
    /// Time on a processor.
    Processor(Duration),
    /// Time as it passes, where the kernel keeps no account.
    Wall(Instant),
}

impl ThreadMoment {
    /// This moment. Takes some microseconds, so what is timed should take a millisecond.
    #[must_use]
    pub fn now() -> ThreadMoment {
        processor_time().map_or_else(|| ThreadMoment::Wall(Instant::now()), ThreadMoment::Processor)
    }

    /// What has passed since.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        match self {
            ThreadMoment::Wall(start) => start.elapsed(),
            ThreadMoment::Processor(start) => processor_time().unwrap_or(start).saturating_sub(start),
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
        let stopwatch = RepeatTimer { repeats: 4, least: Duration::from_millis(5) };
        let mut calls = 0;
        let sample = stopwatch.timed(|| {
            calls += 1;
            Ok::<_, ()>((Duration::from_millis(1), 10))
        });
        assert_eq!(sample.unwrap().values(), [100_000.0; 4]);
        assert_eq!(calls, 25);
    }

    #[test]
    fn reading_the_clock_does_not_show_in_short_work() {
        let stopwatch = RepeatTimer { repeats: 5, least: Duration::from_millis(2) };
        let median = |sample: Result<RunValues, ()>| sample.unwrap().spread().unwrap().median;
        let reading = median(stopwatch.nanos_per_unit(|| {
            std::hint::black_box(ThreadMoment::now());
            Ok(1)
        }));
        let nothing = median(stopwatch.nanos_per_unit(|| Ok(std::hint::black_box(1))));
        assert!(nothing * 4.0 < reading, "{nothing} {reading}");
    }

    #[test]
    fn what_fails_ends_the_measurement() {
        let stopwatch = RepeatTimer { repeats: 1, least: Duration::from_millis(1) };
        assert_eq!(stopwatch.nanos_per_unit(|| Err::<u64, _>("broken")), Err("broken"));
    }

    #[test]
    fn sleep_is_not_work() {
        if let ThreadMoment::Processor(_) = ThreadMoment::now() {
            let start = ThreadMoment::now();
            std::thread::sleep(Duration::from_millis(50));
            assert!(start.elapsed() < Duration::from_millis(50));
        }
    }
}
