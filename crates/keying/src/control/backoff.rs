//! Exponential backoff: a limit on what strangers can provoke.

use core::time::Duration;

use strait_clock::Time;

/// The span after the first time, and after a quiet.
const FIRST: Duration = Duration::from_secs(5);
/// The longest span.
const LONGEST: Duration = Duration::from_secs(300);

/// Lets something happen at once, then 5 s later, 10 s after that, and so on up to every 5 min. When it is
/// wanted only a whole span later than it was allowed, the spans start at 5 s again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    next: Time,
    /// From the last time to `next`; zero before the first time.
    span: Duration,
}

impl Backoff {
    pub(super) const fn new(now: Time) -> Backoff {
        Backoff { next: now, span: Duration::ZERO }
    }

    /// Whether it may happen at `now`.
    pub(super) fn permits(&self, now: Time) -> bool {
        self.next <= now
    }

    /// It happens at `now`.
    pub(super) fn note(&mut self, now: Time) {
        let quiet = now.since(self.next) >= self.span;
        self.span = if quiet { FIRST } else { (self.span * 2).min(LONGEST) };
        self.next = now + self.span;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_doubles_under_pressure_and_resets_after_quiet() {
        let mut backoff = Backoff::new(Time::ZERO);
        let mut happened = Vec::new();
        for second in 0..1200_u64 {
            let now = Time::from_millis(second * 1000);
            if backoff.permits(now) {
                backoff.note(now);
                happened.push(second);
            }
        }
        assert_eq!(happened, [0, 5, 15, 35, 75, 155, 315, 615, 915]);
        let late = Time::from_millis(5_000_000);
        backoff.note(late);
        assert!(!backoff.permits(late + Duration::from_millis(4_999)));
        assert!(backoff.permits(late + FIRST));
    }
}
