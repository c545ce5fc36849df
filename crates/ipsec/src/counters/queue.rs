//! Counters of the queue before a link.

use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};

use strait_clock::Time;

use super::Tally;

/// How long the largest delay is kept.
const LATE: Duration = Duration::from_secs(1);
/// How much a packet's delay moves the mean: as much as a round trip moves TCP's (RFC 6298 section 2).
const GAIN: u64 = 8;

/// Counters of the queue before the link to a peer.
#[derive(Debug, Default)]
pub struct QueueCounters {
    /// Packets dropped because the queue was full.
    pub overflow: Tally,
    /// Packets dropped by CoDel.
    pub late: Tally,
    /// Packets marked with ECN congestion experienced (CE) by CoDel.
    pub marked: Tally,
    /// Pure TCP acknowledgements that a newer one replaced.
    pub thinned: Tally,
    /// TCP segments that left again when an outage ended.
    pub resent: Tally,
    /// Aggregates taken from the queue.
    pub units: Tally,
    /// Packets in these aggregates.
    pub in_units: Tally,
    /// Aggregation window in packets; 0 before any packet was queued.
    pub window: AtomicU64,
    mean: AtomicU64,
    worst: AtomicU64,
    worst_before: AtomicU64,
    /// The beginning of the time whose worst delay is being taken, in nanoseconds; 0 before the first packet.
    began: AtomicU64,
}

/// Recent queueing delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDelay {
    /// The moving average.
    pub mean: Duration,
    /// The maximum of the last one to two seconds.
    pub worst: Duration,
}

impl QueueCounters {
    /// Counts a packet that leaves the queue at `now` after waiting `waited`; called by one thread.
    pub(crate) fn note_delay(&self, waited: Duration, now: Time) {
        let waited = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        let age = self.age(now);
        if age.is_none_or(|age| age >= LATE) {
            let recent = age.is_some_and(|age| age < 2 * LATE);
            if !recent {
                set(&self.mean, waited);
            }
            set(&self.worst_before, if recent { get(&self.worst) } else { 0 });
            set(&self.worst, 0);
            set(&self.began, now.as_nanos().max(1));
        }
        set(&self.worst, get(&self.worst).max(waited));
        let mean = get(&self.mean);
        set(&self.mean, mean - mean / GAIN + waited / GAIN);
    }

    /// How long packets waited lately; nothing when none did.
    #[must_use]
    pub fn delay(&self, now: Time) -> Option<QueueDelay> {
        self.age(now).filter(|age| *age < 2 * LATE)?;
        let worst = get(&self.worst).max(get(&self.worst_before));
        Some(QueueDelay { mean: Duration::from_nanos(get(&self.mean)), worst: Duration::from_nanos(worst) })
    }

    /// The age of the time whose worst delay is being taken; nothing before the first packet.
    fn age(&self, now: Time) -> Option<Duration> {
        let began = get(&self.began);
        (began != 0).then(|| now.since(Time::from_nanos(began)))
    }
}

fn get(value: &AtomicU64) -> u64 {
    value.load(Ordering::Relaxed)
}

fn set(value: &AtomicU64, to: u64) {
    value.store(to, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_delay_is_that_of_the_last_second_or_two() {
        let counters = QueueCounters::default();
        let at = |millis| Time::from_millis(100_000 + millis);
        let delay = |millis: u64| counters.delay(at(millis)).map(|delay| delay.worst.as_millis());
        assert_eq!(delay(0), None);
        for (now, waited) in [(0, 5), (500, 80), (900, 3), (1_100, 2)] {
            counters.note_delay(Duration::from_millis(waited), at(now));
        }
        assert_eq!(delay(1_100), Some(80));
        counters.note_delay(Duration::from_millis(7), at(2_200));
        assert_eq!(delay(2_200), Some(7));
        assert_eq!(delay(4_300), None);
        counters.note_delay(Duration::from_millis(1), at(9_000));
        assert_eq!(counters.delay(at(9_000)).map(|delay| delay.mean.as_micros()), Some(1_000));
    }

    #[test]
    fn delays_are_known_from_the_first_packet_of_a_process_on() {
        for at in [0, 3, 900].map(Time::from_millis) {
            let counters = QueueCounters::default();
            counters.note_delay(Duration::from_millis(8), at);
            let delay = counters.delay(at).map(|delay| (delay.mean.as_millis(), delay.worst.as_millis()));
            assert_eq!(delay, Some((8, 8)), "{at:?}");
        }
    }

    #[test]
    fn mean_delay_follows_queueing_delays() {
        let counters = QueueCounters::default();
        for millis in 0..500 {
            let waited = if millis < 250 { 10 } else { 20 };
            counters.note_delay(Duration::from_millis(waited), Time::from_millis(100_000 + millis));
        }
        let mean = counters.delay(Time::from_millis(100_500)).map(|delay| delay.mean.as_millis());
        assert!(matches!(mean, Some(19..=20)), "{mean:?}");
    }
}
