//! Keys for one day each, for forward secrecy: X25519 key pairs that a node makes for days ahead, and whose public halves it publishes,
//! signed. What two nodes share on a day needs a secret of that day from one of them, beside the key of its identity. When both have
//! wiped that, what was recorded cannot be opened any more, even by a thief of their long-term keys.
//!
//! ```text
//! Kij(d) = HKDF(Kij | X25519(day key of i, day key of j), both public keys in order; d, both day keys in that order)
//! ```
//!
//! Parts: here days, secrets and rules; `bundle` what is published; `own` the secrets of this node and the file that keeps them;
//! `ring` those together with what peers published.

mod bundle;
mod own;
mod ring;

use zeroize::Zeroizing;

use super::clock::{EpochLength, ORIGIN};
use crate::{x25519, x25519_public};

pub use bundle::{BadDailyKeys, DAILY_KEYS_MAX, DailyKeys};
pub use own::{DAILY_FILE_LEN, DailySlotWrite, OwnDailyKeys};
pub use ring::{DailyPolicy, DailyRing};

/// Seconds of a day.
pub(crate) const DAY: u64 = 86_400;
/// Daily keys serve epochs of this length at most, in seconds: secrets are kept for two of them after their day.
pub(crate) const DAILY_EPOCH_MAX: u32 = 3600;
/// How long the secrets of a day are kept after it, in seconds: its last epoch may begin at its end, and a receiver takes what is an
/// epoch late.
pub(crate) const KEPT_AFTER: u64 = 2 * DAILY_EPOCH_MAX as u64;
/// Days for which there are keys at the same time, at most: a week ahead, this one, the one before, and as many for later versions.
pub const DAYS_MAX: usize = 16;
/// Bytes of the secret and of the public half of a daily key.
pub const DAILY_KEY_LEN: usize = 32;

/// A day in UTC, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub u32);

impl Day {
    /// The day of a time in seconds since 1970-01-01 0:00 UTC.
    #[must_use]
    pub fn at(unix: u64) -> Day {
        Day(u32::try_from(unix / DAY).unwrap_or(u32::MAX))
    }

    /// The day on which epoch `n` begins; none where epochs are longer than an hour, for which no daily keys are used.
    #[must_use]
    pub fn of_epoch(n: u32, length: EpochLength) -> Option<Day> {
        let begins = ORIGIN + u64::from(n) * u64::from(length.seconds());
        (length.seconds() <= DAILY_EPOCH_MAX).then(|| Day::at(begins))
    }
}

impl core::fmt::Display for Day {
    /// The date, `2026-01-31`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // Days are counted from 0000-03-01, so that a leap day is the last of its year, and 400 years have as many days as any 400.
        const TO_1970: u64 = 719_468;
        const IN_400_YEARS: u64 = 146_097;
        let days = u64::from(self.0) + TO_1970;
        let (era, of_era) = (days / IN_400_YEARS, days % IN_400_YEARS);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // From March on, months of 31 and 30 days alternate so that five have 153.
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let (year, month) = if month < 10 { (0, month + 3) } else { (1, month - 9) };
        write!(f, "{:04}-{month:02}-{day:02}", era * 400 + year_of_era + year)
    }
}

/// The secret of one day; wiped when dropped, never printed.
pub struct DailySecret(Box<Zeroizing<[u8; DAILY_KEY_LEN]>>);

impl DailySecret {
    /// From 32 unpredictable bytes that serve nothing else.
    #[must_use]
    pub fn from_bytes(random: [u8; DAILY_KEY_LEN]) -> DailySecret {
        DailySecret(Box::new(Zeroizing::new(random)))
    }

    /// Its public half.
    #[must_use]
    pub fn public(&self) -> [u8; DAILY_KEY_LEN] {
        x25519_public(&self.0)
    }

    /// What it shares with the holder of `point`; nothing where that is no key.
    pub(crate) fn agree(&self, point: &[u8; DAILY_KEY_LEN]) -> Option<Zeroizing<[u8; 32]>> {
        x25519(&self.0, point)
    }

    fn expose(&self) -> &[u8; DAILY_KEY_LEN] {
        &self.0
    }
}

impl core::fmt::Debug for DailySecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("[key]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessionless::WallTime;

    #[test]
    fn epochs_belong_to_the_day_on_which_they_begin() {
        // 2026-01-01 is day 20,454 (date -d 2026-01-01 +%s / 86,400).
        let midnight = 20_454 * DAY;
        let wall = |unix: u64| WallTime::from_unix(core::time::Duration::from_secs(unix));
        for (seconds, lengths) in [(0, [60, 3600]), (1, [60, 3600]), (DAY - 1, [60, 3600])] {
            for length in lengths.map(|length| EpochLength::from_seconds(length).unwrap()) {
                let n = length.at(wall(midnight + seconds));
                assert_eq!(Day::of_epoch(n, length), Some(Day(20_454)), "{seconds}");
            }
        }
        let hour = EpochLength::default();
        assert_eq!(Day::of_epoch(hour.at(wall(midnight - 1)), hour), Some(Day(20_453)));
        let longer = EpochLength::from_seconds(3601).unwrap();
        assert_eq!(Day::of_epoch(longer.at(wall(midnight)), longer), None);
        assert_eq!(Day::of_epoch(u32::MAX, hour).map(|day| day.0 > 100_000), Some(true));
    }

    #[test]
    fn days_have_dates() {
        // By `date -u -d @SECONDS +%F`.
        for (day, date) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_454, "2026-01-01"),
            (20_819, "2027-01-01"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(Day(day).to_string(), date);
        }
    }

    /// Whatever the length of epochs, the secret of a day is there as long as a receiver takes an epoch of it.
    #[test]
    fn secrets_are_kept_as_long_as_an_epoch_of_their_day_is_taken() {
        for length in [60, 61, 1700, 3599, 3600].map(|length| EpochLength::from_seconds(length).unwrap()) {
            let day = Day(20_454);
            let end = (u64::from(day.0) + 1) * DAY;
            let last = (end - 1 - ORIGIN) / u64::from(length.seconds());
            let n = u32::try_from(last).unwrap();
            assert_eq!(Day::of_epoch(n, length), Some(day));
            let gone = WallTime::from_unix(core::time::Duration::from_secs(end + KEPT_AFTER));
            assert!(length.takes(n, gone).is_err(), "{length:?}");
        }
    }
}
