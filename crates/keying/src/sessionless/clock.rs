//! The time of day, and the epochs of keys that follow from it.

use core::time::Duration;

use strait_clock::Time;

/// Seconds from 1970-01-01 to 1995-01-01, both at 0:00 UTC, from where SKIP counts (draft-ietf-ipsec-skip-06 section 1.4).
pub(crate) const ORIGIN: u64 = 788_918_400;

/// The time of day: microseconds since 1995-01-01 0:00 UTC. Numbers of packets begin with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub u64);

impl WallTime {
    /// From the time since 1970-01-01 0:00 UTC; times before 1995 become the beginning of 1995.
    #[must_use]
    pub fn from_unix(since: Duration) -> WallTime {
        let since = since.saturating_sub(Duration::from_secs(ORIGIN));
        WallTime(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    /// Microseconds since 1970-01-01 0:00 UTC.
    #[must_use]
    pub const fn unix_micros(self) -> u64 {
        self.0.saturating_add(ORIGIN * 1_000_000)
    }

    /// Seconds since 1970-01-01 0:00 UTC.
    #[must_use]
    pub const fn unix_seconds(self) -> u64 {
        self.0 / 1_000_000 + ORIGIN
    }
}

/// The two times that sessionless keys go by: one that never goes back, and the time of day, which may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// For pauses and ages.
    pub time: Time,
    /// For epochs and numbers.
    pub wall: WallTime,
}

/// How long an epoch is: how long one Kijn serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpochLength(u32);

impl EpochLength {
    /// The shortest, in seconds: a packet key lives as long at most.
    pub const SHORTEST: u32 = 60;
    /// The longest, in seconds: 30 days, as that of a session's keys.
    pub const LONGEST: u32 = 30 * 86_400;

    /// An epoch of so many seconds, if that is from [`EpochLength::SHORTEST`] to [`EpochLength::LONGEST`].
    #[must_use]
    pub const fn from_seconds(seconds: u32) -> Option<EpochLength> {
        match seconds {
            EpochLength::SHORTEST..=EpochLength::LONGEST => Some(EpochLength(seconds)),
            _ => None,
        }
    }

    /// Its seconds.
    #[must_use]
    pub const fn seconds(self) -> u32 {
        self.0
    }

    /// Which epoch it is, counted from 1995-01-01.
    #[must_use]
    pub fn at(self, wall: WallTime) -> u32 {
        u32::try_from(wall.0 / 1_000_000 / u64::from(self.0)).unwrap_or(u32::MAX)
    }

    /// Whether keys of epoch `n` are taken at `wall`: those of the same, of the one before and of the one after it.
    ///
    /// # Errors
    /// How many epochs the clocks are apart.
    pub fn takes(self, n: u32, wall: WallTime) -> Result<(), EpochOff> {
        let ahead = i64::from(n) - i64::from(self.at(wall));
        if ahead.abs() <= 1 { Ok(()) } else { Err(EpochOff { ahead }) }
    }
}

impl Default for EpochLength {
    /// One hour, as SKIP.
    fn default() -> EpochLength {
        EpochLength(3600)
    }
}

/// A header of an epoch that is too far off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer's clock is {} epochs {} this node's, or its epochs have another length", ahead.unsigned_abs(),
    if *ahead > 0 { "ahead of" } else { "behind" })]
pub struct EpochOff {
    /// By how many epochs the sender is ahead.
    pub ahead: i64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unix(seconds: u64) -> WallTime {
        WallTime::from_unix(Duration::from_secs(seconds))
    }

    #[test]
    fn hours_are_counted_as_skip_does() {
        let hour = EpochLength::default();
        // 1995-01-01 0:00, one second before 1:00, and 1:00.
        assert_eq!([788_918_400, 788_921_999, 788_922_000].map(|at| hour.at(unix(at))), [0, 0, 1]);
        // 2026-01-01 0:00 UTC is 11,323 days later.
        assert_eq!(hour.at(unix(1_767_225_600)), 11_323 * 24);
        assert_eq!(unix(1_767_225_600).unix_seconds(), 1_767_225_600);
        assert_eq!(unix(5), WallTime(0));
        assert_eq!(hour.at(WallTime(u64::MAX)), u32::MAX);
    }

    #[test]
    fn one_epoch_either_way_is_taken_and_the_error_says_how_far_off_the_rest_is() {
        let (hour, now) = (EpochLength::default(), unix(1_767_225_600));
        let n = hour.at(now);
        for ahead in -3..=3_i64 {
            let other = u32::try_from(i64::from(n) + ahead).unwrap();
            let expected = if ahead.abs() <= 1 { Ok(()) } else { Err(EpochOff { ahead }) };
            assert_eq!(hour.takes(other, now), expected);
        }
        let error = hour.takes(n - 5, now).unwrap_err().to_string();
        assert!(error.starts_with("the peer's clock is 5 epochs behind"), "{error}");
        assert!(hour.takes(u32::MAX, now).is_err() && hour.takes(0, now).is_err());
    }

    #[test]
    fn lengths_have_limits() {
        for (seconds, taken) in [(0, false), (59, false), (60, true), (2_592_000, true), (2_592_001, false)] {
            assert_eq!(EpochLength::from_seconds(seconds).map(EpochLength::seconds).is_some(), taken);
        }
    }

    proptest! {
        #[test]
        fn epochs_never_go_back_while_the_clock_does_not(length in 60..=2_592_000_u32, at: u64, more: u64) {
            let length = EpochLength::from_seconds(length).unwrap();
            prop_assert!(length.at(WallTime(at)) <= length.at(WallTime(at.saturating_add(more))));
            let end = u64::from(length.seconds()) * 1_000_000;
            prop_assert_eq!(length.at(WallTime(at % end)), 0);
        }
    }
}
