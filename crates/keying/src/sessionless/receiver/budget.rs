//! So many a second, and a burst.

use core::time::Duration;

use strait_clock::Time;

/// The time whose share may be used at once.
const BURST: Duration = Duration::from_millis(100);

/// A budget that time fills (the generic cell rate algorithm, ITU-T I.371).
#[derive(Debug)]
pub(super) struct Budget {
    each: Duration,
    /// When it will be full again.
    full: Time,
}

impl Budget {
    pub(super) fn new(per_second: u32) -> Budget {
        Budget { each: Duration::from_secs(1) / per_second.max(1), full: Time::ZERO }
    }

    /// Takes one; false when there is none left at `now`.
    pub(super) fn take(&mut self, now: Time) -> bool {
        let from = self.full.max(now);
        if from.since(now) > BURST {
            return false;
        }
        self.full = from + self.each;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_the_rate() {
        let mut budget = Budget::new(1000);
        let taken = |budget: &mut Budget, millis| {
            (0..1000).filter(|_| budget.take(Time::from_millis(millis))).count()
        };
        assert_eq!(taken(&mut budget, 50_000), 101);
        assert_eq!(taken(&mut budget, 50_020), 20);
        assert_eq!(taken(&mut budget, 90_000), 101);
    }
}
