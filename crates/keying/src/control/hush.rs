//! A limit on what strangers can provoke: once, and then after ever longer spans.

use core::time::Duration;

use strait_clock::Time;

/// The first span.
const FIRST: Duration = Duration::from_secs(5);
/// The longest span.
const LONGEST: Duration = Duration::from_secs(300);

/// Lets something happen at once, then after 5 s, 10 s, up to 5 min; quiet brings the short span back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hush {
    next: Time,
    span: Duration,
}

impl Hush {
    pub(super) const fn new(now: Time) -> Hush {
        Hush { next: now, span: FIRST }
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
    fn the_span_doubles_under_pressure_and_falls_back_in_quiet() {
        let mut hush = Hush::new(Time::ZERO);
        let mut happened = Vec::new();
        for second in 0..1200_u64 {
            let now = Time::from_millis(second * 1000);
            if hush.permits(now) {
                hush.note(now);
                happened.push(second);
            }
        }
        assert_eq!(happened, [0, 10, 30, 70, 150, 310, 610, 910]);
        let late = Time::from_millis(5_000_000);
        hush.note(late);
        assert!(!hush.permits(late + Duration::from_millis(4_999)));
        assert!(hush.permits(late + FIRST));
    }
}
