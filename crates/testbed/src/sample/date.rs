//! Calendar time from seconds, for time stamps that look like time stamps.

/// 2026-03-02 06:00:00 UTC, a Monday: where all generated files begin.
pub(super) const START: u64 = 1_772_431_200;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A moment in the proleptic Gregorian calendar, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Year, such as 2026.
    pub(super) year: u64,
    /// Month, 1 to 12.
    pub(super) month: u64,
    /// Day, 1 to 31.
    pub(super) day: u64,
    /// Hour, 0 to 23.
    pub(super) hour: u64,
    /// Minute, 0 to 59.
    pub(super) minute: u64,
    /// Second, 0 to 59.
    pub(super) second: u64,
}

impl Moment {
    /// The moment `seconds` after 1970-01-01 00:00 UTC (H. Hinnant's days-to-civil algorithm).
    pub(super) const fn from_unix(seconds: u64) -> Moment {
        let days = seconds / 86_400 + 719_468;
        let era = days / 146_097;
        let day_of_era = days % 146_097;
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        Moment {
            year: year_of_era + era * 400 + if month <= 2 { 1 } else { 0 },
            month,
            day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
            hour: seconds / 3_600 % 24,
            minute: seconds / 60 % 60,
            second: seconds % 60,
        }
    }

    /// `Mar  2 06:00:00`, as in traditional syslog (RFC 3164 section 4.1.2).
    pub(super) fn syslog(self) -> String {
        let month =
            usize::try_from(self.month - 1).ok().and_then(|index| MONTHS.get(index)).unwrap_or(&"Jan");
        format!("{month} {:2} {:02}:{:02}:{:02}", self.day, self.hour, self.minute, self.second)
    }

    /// `2026-03-02 06:00:00`, as in SQL.
    pub(super) fn sql(self) -> String {
        format!("{} {:02}:{:02}:{:02}", self.date(), self.hour, self.minute, self.second)
    }

    /// `2026-03-02`.
    pub(super) fn date(self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        // From `date -u -d @N`.
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400, "2000-02-29 00:00:00"),
            (START, "2026-03-02 06:00:00"),
            (1_798_761_599, "2026-12-31 23:59:59"),
        ] {
            assert_eq!(Moment::from_unix(seconds).sql(), expected);
        }
        assert_eq!(Moment::from_unix(START).syslog(), "Mar  2 06:00:00");
    }
}
