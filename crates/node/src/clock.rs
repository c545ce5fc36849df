//! The system's clock as [`Time`].

use std::time::{Duration, Instant};

use strait_clock::Time;

/// Counts from when the node started, monotonically: setting the wall clock changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Zero is now.
    #[must_use]
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// The time since the start.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::ZERO + self.0.elapsed()
    }

    /// How long until `at`; zero when it has passed.
    #[must_use]
    pub fn until(&self, at: Time) -> Duration {
        at.since(self.now())
    }

    /// The instant of [`Time::ZERO`], for libraries that count in instants.
    #[must_use]
    pub const fn base(&self) -> Instant {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_forwards_from_zero() {
        let clock = Clock::start();
        let (one, other) = (clock.now(), clock.now());
        assert!(one <= other);
        assert_eq!(clock.until(one), Duration::ZERO);
        assert!(clock.until(other + Duration::from_secs(3600)) > Duration::from_secs(3000));
    }
}
