//! The time of captures, one after another, without the hours between them.

use core::time::Duration;

use strait_clock::Time;

/// Longer gaps are cut to this: captures join sessions that have nothing to do with each other, and on an idle link
/// nothing is to be learned from a longer one.
const GAP: Duration = Duration::from_secs(1);

/// Virtual time by the times of frames.
#[derive(Debug)]
pub(super) struct ReplayClock {
    last: Option<Time>,
    now: Time,
}

impl ReplayClock {
    pub(super) const fn new() -> ReplayClock {
        ReplayClock { last: None, now: Time::ZERO }
    }

    /// Another capture, whose time has nothing to do with the one before.
    pub(super) const fn begin(&mut self) {
        self.last = None;
    }

    /// Whether a frame of `at` would be earlier than the one before it.
    pub(super) fn is_before(&self, at: Time) -> bool {
        self.last.is_some_and(|last| at < last)
    }

    /// The virtual time of a frame of `at`; that of the one before, when it is earlier than that.
    pub(super) fn tick(&mut self, at: Time) -> Time {
        let gap = self.last.replace(at).map_or(Duration::ZERO, |last| at.since(last));
        self.now += gap.min(GAP);
        self.now
    }

    /// How much time has passed.
    pub(super) const fn span(&self) -> Duration {
        self.now.since(Time::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_cut_and_time_never_goes_back() {
        let mut clock = ReplayClock::new();
        let mut tick = |millis| clock.tick(Time::from_millis(millis)).as_nanos() / 1_000_000;
        assert_eq!([tick(5_000), tick(5_100), tick(90_000), tick(90_001)], [0, 100, 1_100, 1_101]);
        assert_eq!([tick(80_000), tick(80_002)], [1_101, 1_103]);
        assert!(clock.is_before(Time::from_millis(80_001)));
        clock.begin();
        assert!(!clock.is_before(Time::ZERO));
        assert_eq!(clock.tick(Time::ZERO).as_nanos(), 1_103_000_000);
        assert_eq!(clock.span(), Duration::from_millis(1_103));
    }
}
