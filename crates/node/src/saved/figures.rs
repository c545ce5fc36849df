//! What a person wants to see of the series at once: this month, today, the last day by ten minutes, the last 31 days.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use super::{DAY, HOUR, MINUTE, SavedAmounts, SavedSeries};

/// Days that are kept, today included: none of a month is missing.
const DAYS: u64 = 31;
/// Minutes of a part, and parts that a day has.
const MINUTES: u64 = 10;
const PARTS: u64 = DAY / (MINUTES * MINUTE);

/// Sums of all peers and of what keeps the tunnel up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedFigures {
    /// When it is, in seconds since 1970.
    pub at: u64,
    /// The name of this month and its year, in the time zone: `November 2026`.
    pub month: String,
    /// This month.
    pub this_month: SavedAmounts,
    /// Today.
    pub today: SavedAmounts,
    /// The last day, by ten minutes, the earliest first: 144 of them, the last of which is not over.
    pub day: Vec<SavedAmounts>,
    /// The last 31 days, the earliest first; the last of them is not over.
    pub days: Vec<SavedDay>,
    /// What the counters of each peer said when this was added up, by its name.
    pub peers: BTreeMap<String, SavedAmounts>,
    /// What those of control said.
    pub control: SavedAmounts,
}

/// A day in the time zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedDay {
    /// Its number in the month: `27`.
    pub day: String,
    /// The month and its year: `Nov 2026`.
    pub month: String,
    /// What came on it.
    pub amounts: SavedAmounts,
}

impl SavedFigures {
    /// The sums of `series` at `at`, in seconds since 1970, where days are those of `zone`; nothing for a time out of any calendar.
    #[must_use]
    pub fn of(series: &[SavedSeries], at: u64, zone: &TimeZone) -> Option<SavedFigures> {
        let all: Vec<&SavedSeries> = series.iter().filter(|series| series.name().kind.is_of_link()).collect();
        let now = Timestamp::from_second(i64::try_from(at).ok()?).ok()?.to_zoned(zone.clone());
        let today = now.date();
        let by_date = by_date(&all, (at.saturating_sub(DAYS * DAY), at), zone);
        let of = |date: Date| by_date.get(&date).copied().unwrap_or_default();
        let days = (0..DAYS).rev().filter_map(|back| {
            let date = today.checked_sub(Span::new().days(i64::try_from(back).ok()?)).ok()?;
            let [day, month] = ["%-d", "%b %Y"].map(|form| date.strftime(form).to_string());
            Some(SavedDay { day, month, amounts: of(date) })
        });
        let this_month = by_date.iter().filter(|(date, _)| date.first_of_month() == today.first_of_month());
        let last = at / (MINUTES * MINUTE);
        Some(SavedFigures {
            at,
            month: now.strftime("%B %Y").to_string(),
            this_month: this_month.fold(SavedAmounts::default(), |sum, (_, amounts)| sum.plus(*amounts)),
            today: of(today),
            day: (0..PARTS).rev().map(|back| ten_minutes(&all, last.saturating_sub(back))).collect(),
            days: days.collect(),
            ..SavedFigures::default()
        })
    }
}

/// All series by date in the time zone, from the hour of `from` to that of `to`; days on which nothing came are left out.
#[must_use]
pub fn by_date(
    series: &[&SavedSeries],
    (from, to): (u64, u64),
    zone: &TimeZone,
) -> BTreeMap<Date, SavedAmounts> {
    let mut dates = BTreeMap::<Date, SavedAmounts>::new();
    for hour in from / HOUR..=to / HOUR {
        let amounts = series.iter().map(|series| series.hour(hour * HOUR));
        let amounts = amounts.fold(SavedAmounts::default(), SavedAmounts::plus);
        let begin = i64::try_from(hour * HOUR).ok().and_then(|begin| Timestamp::from_second(begin).ok());
        if let Some(begin) = begin
            && amounts != SavedAmounts::default()
        {
            let sum = dates.entry(begin.to_zoned(zone.clone()).date()).or_default();
            *sum = sum.plus(amounts);
        }
    }
    dates
}

/// All series in these ten minutes since 1970.
fn ten_minutes(all: &[&SavedSeries], number: u64) -> SavedAmounts {
    let minutes = (number * MINUTES..(number + 1) * MINUTES).map(|minute| minute * MINUTE);
    let amounts = minutes.flat_map(|at| all.iter().filter_map(move |series| series.minute(at)));
    amounts.fold(SavedAmounts::default(), |sum, minute| sum.plus(minute.amounts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved::{SavedKind, SavedSample};

    /// 2026-11-27 19:21:40 UTC.
    const NOW: u64 = 1_795_807_300;

    fn series(kind: SavedKind, came: &[(u64, u64)]) -> SavedSeries {
        let mut series = SavedSeries::new(kind, "x");
        for (at, sent_bytes) in came {
            let amounts =
                SavedAmounts { sent_bytes: *sent_bytes, sent_wire_bytes: 100, ..SavedAmounts::default() };
            series.add(*at, &SavedSample { amounts, ..SavedSample::default() });
        }
        series
    }

    #[test]
    fn months_days_and_minutes_are_sums_of_peers_and_control_without_rules() {
        let all = [
            series(SavedKind::Peer, &[(NOW - 27 * DAY, 200), (NOW - DAY, 500), (NOW, 1_000)]),
            series(SavedKind::Control, &[(NOW - 2 * 600, 0)]),
            series(SavedKind::Rule, &[(NOW, 9_000)]),
        ];
        let figures = SavedFigures::of(&all, NOW, &TimeZone::UTC).unwrap();
        assert_eq!(figures.month, "November 2026");
        assert_eq!(figures.this_month.sent_bytes, 1_500, "and not the 31st of October");
        assert_eq!((figures.this_month.sent_wire_bytes, figures.today.sent_wire_bytes), (300, 200));
        assert_eq!(figures.today.sent_bytes, 1_000);
        assert_eq!((figures.day.len(), figures.days.len()), (144, 31));
        assert_eq!((figures.day[143].sent_bytes, figures.day[141].sent_wire_bytes), (1_000, 100));
        let day = |at: usize| {
            let SavedDay { day, month, amounts } = &figures.days[at];
            (day.as_str(), month.as_str(), amounts.sent_bytes)
        };
        let expected = [("27", "Nov 2026", 1_000), ("26", "Nov 2026", 500), ("31", "Oct 2026", 200)];
        assert_eq!([day(30), day(29), day(3)], expected);
    }

    #[test]
    fn days_are_those_of_the_time_zone() {
        let all = [series(SavedKind::Peer, &[(NOW, 1_000)])];
        let zone = TimeZone::fixed(jiff::tz::offset(9));
        let figures = SavedFigures::of(&all, NOW, &zone).unwrap();
        assert_eq!(figures.days[30].day, "28");
        assert_eq!(figures.today.sent_bytes, 1_000);
        assert_eq!(SavedFigures::of(&all, u64::MAX, &zone), None);
    }
}
