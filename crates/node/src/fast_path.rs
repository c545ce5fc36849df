//! A fast way into the kernel that it may refuse, for a moment or for good: several packets in one call. After a refusal they go one by
//! one for a while; then the fast way is tried again.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use strait_clock::Time;
use strait_ipsec::Counter;

use crate::clock::Clock;
use crate::packet_errors::RefusalLog;

/// The first pause after a refusal: one that passes costs a tenth of a second at the slower rate.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest, for a system that never takes it: a call in ten seconds that is in vain costs nothing.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Ways that are told apart, so that what one destination refuses seldom concerns another.
const WAYS: usize = 16;

/// The way that packets take together as long as the kernel lets them, by destination or kind.
#[derive(Debug)]
pub(crate) struct FastPath {
    /// The name of the taker, for people.
    name: &'static str,
    ways: [Way; WAYS],
    refused: Counter,
    log: RefusalLog,
    clock: Clock,
}

/// One way.
#[derive(Debug, Default)]
struct Way {
    /// Nanoseconds of the clock until which packets go one by one; 0 while they go together.
    closed_until: AtomicU64,
    /// Nanoseconds of the last pause.
    pause: AtomicU64,
}

impl FastPath {
    pub(crate) fn new(name: &'static str) -> FastPath {
        FastPath {
            name,
            ways: std::array::from_fn(|_| Way::default()),
            refused: Counter::default(),
            log: RefusalLog::default(),
            clock: Clock::start(),
        }
    }

    /// The time that it counts by.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    fn way(&self, way: u8) -> Option<&Way> {
        self.ways.get(usize::from(way) % WAYS)
    }

    /// Returns true if packets may go together at `now`, which is called only after a refusal.
    pub(crate) fn is_open(&self, way: u8, now: impl FnOnce() -> Time) -> bool {
        let until = self.way(way).map_or(0, |way| way.closed_until.load(Ordering::Relaxed));
        until == 0 || now().as_nanos() >= until
    }

    /// The kernel took packets together.
    pub(crate) fn worked(&self, way: u8) {
        if let Some(way) = self.way(way)
            && way.closed_until.load(Ordering::Relaxed) != 0
        {
            way.closed_until.store(0, Ordering::Relaxed);
            way.pause.store(0, Ordering::Relaxed);
            tracing::debug!("{} takes several packets in one call again", self.name);
        }
    }

    /// The kernel refused together at `now` what it took one by one: so it goes for a while.
    pub(crate) fn refuse(&self, way: u8, error: &io::Error, now: Time) {
        let Some(way) = self.way(way) else { return };
        let pause = Duration::from_nanos(way.pause.load(Ordering::Relaxed)).saturating_mul(2);
        let pause = pause.clamp(FIRST_PAUSE, LONGEST_PAUSE);
        way.pause.store(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        way.closed_until.store((now + pause).as_nanos(), Ordering::Relaxed);
        self.refused.add(1);
        if self.log.is_news(now) {
            tracing::warn!("{} ({error}); it is tried again and again", self.words());
        } else {
            tracing::debug!(?pause, "{} ({error})", self.words());
        }
    }

    fn words(&self) -> String {
        format!("{} takes packets one by one only, which is slower", self.name)
    }

    /// The number of refusals.
    #[must_use]
    pub(crate) fn refused(&self) -> u64 {
        self.refused.get()
    }

    /// Returns what people should know of it at `now`. What nothing goes by any more is not tried again, and is old news soon.
    #[must_use]
    pub(crate) fn warning(&self, now: Time) -> Option<String> {
        let is_slow = |way: &Way| {
            let until = way.closed_until.load(Ordering::Relaxed);
            until != 0 && now < Time::from_nanos(until) + LONGEST_PAUSE
        };
        self.ways.iter().any(is_slow).then(|| self.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_way_is_tried_again_after_pauses_that_double_up_to_a_limit() {
        let (path, error) = (FastPath::new("a test"), io::Error::from_raw_os_error(libc::EINVAL));
        assert!(path.is_open(3, || unreachable!("no clock is read before a refusal")));
        let mut now = Time::from_millis(5);
        for milliseconds in [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000] {
            path.refuse(3, &error, now);
            let pause = Duration::from_millis(milliseconds);
            assert!(!path.is_open(3, || now + pause.saturating_sub(Duration::from_nanos(1))));
            assert!(path.warning(now + pause).is_some(), "while it is tried it is not over");
            now += pause;
            assert!(path.is_open(3, || now));
        }
        assert_eq!((path.refused(), path.warning(now + LONGEST_PAUSE)), (9, None));
        path.worked(3);
        assert!(path.is_open(3, || unreachable!("no clock is read once it works")));
        assert_eq!(path.warning(now), None);
        path.refuse(3, &error, now);
        assert!(path.is_open(3, || now + FIRST_PAUSE), "that was another time");
    }

    #[test]
    fn a_way_that_is_refused_concerns_no_other() {
        let (path, now) = (FastPath::new("a test"), Time::from_millis(5));
        path.refuse(1, &io::Error::from_raw_os_error(libc::EIO), now);
        assert!(!path.is_open(1, || now) && path.is_open(2, || now));
        path.worked(2);
        assert!(!path.is_open(1, || now));
        // Any number is a way.
        assert!(!path.is_open(0xf1, || now) && path.is_open(0xff, || now));
    }
}
