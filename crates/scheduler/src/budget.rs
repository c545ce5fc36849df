//! A budget of so many units a second, for what others can make this node do.

mod sources;

use core::time::Duration;

use strait_clock::Time;

pub use sources::SourceBudget;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// So many units a second, and so many at once after a pause. Units are what the owner counts: answers, log lines,
/// nanoseconds of work.
///
/// Unlike a [`Pacer`](crate::Pacer) it never goes into debt: what does not fit is refused and takes nothing, so a flood
/// of requests leaves no trace after its end.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    per_second: u64,
    /// Time in which an empty budget fills.
    depth: Duration,
    /// The budget is full at this time; later than now by what is missing.
    full_at: Time,
}

impl Budget {
    /// A full budget of `per_second` units a second (at least 1), with room for `burst` units at once.
    #[must_use]
    pub fn new(per_second: u64, burst: u64) -> Budget {
        let per_second = per_second.max(1);
        Budget { per_second, depth: span(burst, per_second), full_at: Time::ZERO }
    }

    /// Another rate and burst from now on; what was taken stays taken.
    pub fn set(&mut self, per_second: u64, burst: u64, now: Time) {
        let missing = self.full_at.since(now).as_nanos() * u128::from(self.per_second) / u128::from(SECOND);
        *self = Budget::new(per_second, burst);
        self.full_at = now + span(u64::try_from(missing).unwrap_or(u64::MAX), self.per_second);
    }

    /// Takes `units` at `now` if that many are left; otherwise none, and false.
    #[must_use]
    pub fn take(&mut self, units: u64, now: Time) -> bool {
        let after = self.full_at.max(now) + span(units, self.per_second);
        let fits = after <= now + self.depth;
        if fits {
            self.full_at = after;
        }
        fits
    }

    /// Whether [`Budget::take`] would be true.
    #[must_use]
    pub fn has_room(&self, units: u64, now: Time) -> bool {
        self.room_at(units).is_some_and(|at| at <= now)
    }

    /// When `units` can be taken next (in the past when they can already); never, where they are more than the burst.
    #[must_use]
    pub fn room_at(&self, units: u64) -> Option<Time> {
        let needed = span(units, self.per_second);
        let ahead = self.depth.checked_sub(needed)?;
        let ahead = u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX);
        Some(Time::from_nanos(self.full_at.as_nanos().saturating_sub(ahead)))
    }
}

/// The time in which a budget of `per_second` brings `units`.
fn span(units: u64, per_second: u64) -> Duration {
    Duration::from_nanos(units.saturating_mul(SECOND).div_ceil(per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_burst_leaves_at_once_and_the_rest_at_the_rate() {
        let mut budget = Budget::new(100, 10);
        let start = Time::from_millis(3000);
        assert_eq!((0..50).filter(|_| budget.take(1, start)).count(), 10);
        let taken = (0..1000).filter(|ms| budget.take(1, start + Duration::from_millis(*ms))).count();
        assert!((99..=100).contains(&taken), "{taken}");
    }

    #[test]
    fn what_is_refused_leaves_no_debt() {
        let mut budget = Budget::new(10, 1);
        let start = Time::from_millis(1000);
        assert!(budget.take(1, start));
        assert!((0..100_000).all(|_| !budget.take(1, start + Duration::from_millis(50))));
        assert_eq!(budget.room_at(1), Some(start + Duration::from_millis(100)));
        assert!(budget.take(1, start + Duration::from_millis(100)));
    }

    #[test]
    fn another_rate_gives_nothing_back() {
        let mut budget = Budget::new(10, 10);
        let start = Time::from_millis(1000);
        assert!(budget.take(10, start));
        budget.set(1000, 10, start);
        assert!(!budget.take(1, start) && budget.take(1, start + Duration::from_millis(1)));
        budget.set(10, 10, start + Duration::from_millis(1));
        assert_eq!(budget.room_at(1), Some(start + Duration::from_millis(101)));
    }

    #[test]
    fn more_than_the_burst_never_fits() {
        let mut budget = Budget::new(10, 5);
        assert!(!budget.take(6, Time::from_millis(60_000)));
        assert_eq!(budget.room_at(6), None);
        assert!(budget.take(5, Time::from_millis(60_000)));
    }
}
