//! A cap on bytes: how much of it is used, what the end of the period will have, and what still may leave.
//!
//! Time is an argument, in seconds since 1970, and so is what crossed the link: the store that a node keeps of it outlives the node,
//! so nothing is remembered here but what was told.

use core::fmt;
use core::ops::Range;
use core::str::FromStr;

use jiff::tz::TimeZone;

use crate::Tin;
use crate::calendar::{DailyWindow, Period, WindowState};

/// Seconds of an hour and of a day.
const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// Days that tell what is to come: a week has its working days and its Sunday.
const LOOKED_BACK: i64 = 7;

/// What may leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Admission {
    /// Everything.
    #[default]
    All,
    /// All but bulk traffic.
    WithoutBulk,
    /// Interactive traffic only.
    InteractiveOnly,
}

impl Admission {
    /// Whether traffic of this class may leave.
    #[must_use]
    pub const fn admits(self, tin: Tin) -> bool {
        match self {
            Admission::All => true,
            Admission::WithoutBulk => !matches!(tin, Tin::Bulk),
            Admission::InteractiveOnly => matches!(tin, Tin::Interactive),
        }
    }

    /// Its name in reports and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Admission::All => "all",
            Admission::WithoutBulk => "without-bulk",
            Admission::InteractiveOnly => "interactive-only",
        }
    }
}

/// What happens when some part of a cap is used, the mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CapStep {
    /// It is said.
    Warn,
    /// Bulk traffic leaves within the daily window only.
    BulkInWindow,
    /// Bulk traffic does not leave.
    StopBulk,
    /// Only interactive traffic leaves.
    InteractiveOnly,
}

impl CapStep {
    /// All, the mildest first.
    pub const ALL: [CapStep; 4] =
        [CapStep::Warn, CapStep::BulkInWindow, CapStep::StopBulk, CapStep::InteractiveOnly];

    /// Its name in reports, metrics and for commands.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CapStep::Warn => "warn",
            CapStep::BulkInWindow => "bulk-in-window",
            CapStep::StopBulk => "stop-bulk",
            CapStep::InteractiveOnly => "interactive-only",
        }
    }
}

impl fmt::Display for CapStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CapStep::Warn => "nothing is stopped",
            CapStep::BulkInWindow => "bulk traffic leaves within `bulk_between` only",
            CapStep::StopBulk => "bulk traffic is stopped",
            CapStep::InteractiveOnly => "all but interactive traffic is stopped",
        })
    }
}

/// Bytes that may cross in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Wire bytes of both directions; at least 1.
    pub bytes: u64,
    /// How often it begins anew.
    pub every: Period,
}

/// Bytes of a unit of sizes, from kB to TB and from KiB to TiB.
#[must_use]
pub const fn bytes_of_unit(unit: &str) -> Option<u64> {
    match unit.as_bytes() {
        b"kB" => Some(1_000),
        b"MB" => Some(1_000_000),
        b"GB" => Some(1_000_000_000),
        b"TB" => Some(1_000_000_000_000),
        b"KiB" => Some(1 << 10),
        b"MiB" => Some(1 << 20),
        b"GiB" => Some(1 << 30),
        b"TiB" => Some(1 << 40),
        _ => None,
    }
}

/// A text that is no cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a cap is a size and a period, such as 20GB/month, 5GB/week or 500MB/day (kB, MB, GB, TB are powers of 1,000)"
)]
pub struct ParseCapError;

impl FromStr for Cap {
    type Err = ParseCapError;

    fn from_str(text: &str) -> Result<Cap, ParseCapError> {
        let (size, period) = text.split_once('/').ok_or(ParseCapError)?;
        let size = size.trim();
        let digits = size.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(ParseCapError)?;
        let (number, unit) = size.split_at(digits);
        let scale = bytes_of_unit(unit.trim_start()).ok_or(ParseCapError)?;
        let bytes = number.parse::<f64>().map_err(|_| ParseCapError)? * scale as f64;
        // Beyond 2^53 a float has no single bytes, and no link has so many.
        if !(1.0..9e15).contains(&bytes) {
            return Err(ParseCapError);
        }
        let every = match period.trim() {
            "day" => Period::Day,
            "week" => Period::Week,
            "month" => Period::Month { first_day: 1 },
            _ => return Err(ParseCapError),
        };
        Ok(Cap { bytes: bytes as u64, every })
    }
}

/// When bulk traffic may leave, and from which parts of a cap on what is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeteringTerms {
    /// The cap, if there is one.
    pub cap: Option<Cap>,
    /// From how much of the cap on each step is taken, in per cent, in the order of [`CapStep::ALL`]; nothing for never.
    pub steps: [Option<u8>; 4],
    /// When bulk traffic may leave: always from [`CapStep::BulkInWindow`] on, and below it where no part of the cap is said for that.
    pub bulk_between: Option<DailyWindow>,
}

impl MeteringTerms {
    /// The last step that is reached when `used` bytes are.
    fn reached(&self, used: u64) -> Option<CapStep> {
        let cap = self.cap?;
        let is_reached = |percent: u8| u128::from(used) * 100 >= u128::from(cap.bytes) * u128::from(percent);
        let steps = CapStep::ALL.into_iter().zip(self.steps);
        steps.filter(|(_, percent)| percent.is_some_and(is_reached)).map(|(step, _)| step).max()
    }

    /// What may leave at `now` after this step, and when that changes by the clock.
    fn admission(&self, step: Option<CapStep>, now: i64, zone: &TimeZone) -> (Admission, Option<i64>) {
        match step {
            Some(CapStep::InteractiveOnly) => return (Admission::InteractiveOnly, None),
            Some(CapStep::StopBulk) => return (Admission::WithoutBulk, None),
            _ => {}
        }
        let [_, from, ..] = self.steps;
        let applies = from.is_none() || step >= Some(CapStep::BulkInWindow);
        match self.bulk_between.filter(|_| applies).map(|window| window.at(now, zone)) {
            None => (Admission::All, None),
            Some(WindowState::Open(until)) => (Admission::All, Some(until)),
            Some(WindowState::Closed(until)) => (Admission::WithoutBulk, Some(until)),
        }
    }
}

/// How a cap stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapStanding {
    /// When the period began and when it ends, in seconds since 1970.
    pub period: Range<i64>,
    /// Bytes that crossed in it.
    pub used: u64,
    /// Bytes that will have crossed at its end, if it goes on as in the last days; nothing before an hour is known.
    pub forecast: Option<u64>,
    /// The last step that is reached.
    pub step: Option<CapStep>,
}

/// What is so now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterReading {
    /// The cap, if there is one.
    pub cap: Option<CapStanding>,
    /// What may leave.
    pub admission: Admission,
    /// When that changes by the clock, in seconds since 1970, if it does.
    pub changes_at: Option<i64>,
    /// A step that was reached since the last look, to be told once.
    pub crossed: Option<CapStep>,
}

/// Watches one cap, of the link or of a peer.
#[derive(Clone, Debug)]
pub struct Meter {
    terms: MeteringTerms,
    /// The period that was looked at last, and the step that was told in it.
    told: Option<(Range<i64>, Option<CapStep>)>,
    /// An hour, and bytes a second in the last days before it: what came in hours that are over changes no more.
    recent: Option<(i64, Option<f64>)>,
}

impl Meter {
    /// A meter that has told nothing.
    #[must_use]
    pub const fn new(terms: MeteringTerms) -> Meter {
        Meter { terms, told: None, recent: None }
    }

    /// Other terms from now on; what was told under the old ones stays told.
    pub const fn change(&mut self, terms: MeteringTerms) {
        self.terms = terms;
    }

    /// Looks at what crossed: `used_in` gives the bytes of a span of time. What was reached before the first look was told at the
    /// look before a restart. A clock that is set back finds the period that it shows, and what crossed in that.
    pub fn look(&mut self, now: i64, zone: &TimeZone, used_in: impl Fn(Range<i64>) -> u64) -> MeterReading {
        let Some(cap) = self.terms.cap else {
            let (admission, changes_at) = self.terms.admission(None, now, zone);
            return MeterReading { admission, changes_at, ..MeterReading::default() };
        };
        let period = cap.every.around(now, zone);
        let used = used_in(period.start..now.saturating_add(1));
        let step = self.terms.reached(used);
        let before = self.told.replace((period.clone(), step));
        let told = before.map_or(step, |(before, told)| if before == period { told } else { None });
        let crossed = step.filter(|step| told.is_none_or(|told| *step > told));
        if let Some((_, last)) = &mut self.told
            && told > *last
        {
            // Of a cap that was raised or counted anew, steps are not told twice.
            *last = told;
        }
        let left = period.end.saturating_sub(now).max(0) as f64;
        let forecast = self.recent(now, used_in).map(|rate| used.saturating_add((rate * left) as u64));
        let (admission, changes_at) = self.terms.admission(step, now, zone);
        let changes_at = Some(changes_at.map_or(period.end, |at| at.min(period.end)));
        MeterReading {
            cap: Some(CapStanding { period, used, forecast, step }),
            admission,
            changes_at,
            crossed,
        }
    }

    /// [`recent_rate`], looked up once an hour.
    fn recent(&mut self, now: i64, used_in: impl Fn(Range<i64>) -> u64) -> Option<f64> {
        let hour = now / HOUR * HOUR;
        match self.recent {
            Some((known, rate)) if known == hour => rate,
            _ => {
                let rate = recent_rate(hour, used_in);
                self.recent = Some((hour, rate));
                rate
            }
        }
    }
}

/// Bytes a second in the last days before this hour; nothing before an hour is known. Of them whole days count, where there is one, since
/// nights are not like days.
fn recent_rate(last_hour: i64, used_in: impl Fn(Range<i64>) -> u64) -> Option<f64> {
    let hours = (1..=LOOKED_BACK * 24).rev().map(|back| last_hour.saturating_sub(back * HOUR));
    let first = hours.into_iter().find(|at| used_in(*at..at.saturating_add(HOUR)) > 0)?;
    let known = last_hour.saturating_sub(first);
    let from = if known >= DAY { last_hour.saturating_sub(known / DAY * DAY) } else { first };
    let span = last_hour.saturating_sub(from);
    (span >= HOUR).then(|| used_in(from..last_hour) as f64 / span as f64)
}

#[cfg(test)]
mod tests;
