//! Times on the clock on the wall: daily windows, days, and the periods of a cap.

use core::fmt;
use core::ops::Range;
use core::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;

/// From one time of day to another, which may be that of the next day: `22:00-06:00`.
///
/// Both ends are times on the clock on the wall. When clocks go forward over an end, the end is as much later as the clock jumped;
/// when they go back, the first of two equal times counts. So a window opens once a day, every day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyWindow {
    /// Minutes after midnight at which it opens.
    from: u16,
    /// Minutes after midnight at which it closes; another than `from`.
    to: u16,
}

/// A text that is no window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a window has two different times of day, such as 01:00-06:00 or 22:30-05:00")]
pub struct ParseWindowError;

/// What a window is at some time, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowState {
    /// Open until then.
    Open(i64),
    /// Closed until then.
    Closed(i64),
}

impl DailyWindow {
    /// What it is at `now`, in seconds since 1970.
    #[must_use]
    pub fn at(&self, now: i64, zone: &TimeZone) -> WindowState {
        let Some(today) = Timestamp::from_second(now).ok().map(|now| zone.to_datetime(now).date()) else {
            return WindowState::Closed(i64::MAX);
        };
        // A window of yesterday may reach into today; tomorrow's begins when today's is over.
        let days = [today.yesterday().ok(), Some(today), today.tomorrow().ok()];
        let next = today.tomorrow().and_then(Date::tomorrow).ok();
        let mut open = None;
        for day in days.into_iter().chain([next]).flatten() {
            let Some((opens, closes)) = self.on(day, zone) else { continue };
            match open {
                // Where the hour between them was skipped, one goes on in the next.
                Some(until) if opens <= until => open = Some(closes),
                Some(_) => break,
                None if now < opens => return WindowState::Closed(opens),
                None if now < closes => open = Some(closes),
                None => {}
            }
        }
        open.map_or(WindowState::Closed(i64::MAX), WindowState::Open)
    }

    /// When the window of a day opens and closes.
    fn on(&self, day: Date, zone: &TimeZone) -> Option<(i64, i64)> {
        let opens = instant(day, self.from, zone)?;
        let last = if self.to > self.from { day } else { day.tomorrow().ok()? };
        let closes = instant(last, self.to, zone)?;
        if closes > opens {
            return Some((opens, closes));
        }
        // Both ends were in an hour that was skipped, or set back: as long as it says, then.
        let minutes = i64::from((self.to + DAY - self.from) % DAY);
        Some((opens, opens + minutes * 60))
    }
}

/// Minutes of a day.
const DAY: u16 = 24 * 60;

fn instant(day: Date, minutes: u16, zone: &TimeZone) -> Option<i64> {
    let time = Time::new(i8::try_from(minutes / 60).ok()?, i8::try_from(minutes % 60).ok()?, 0, 0).ok()?;
    let at = zone.to_ambiguous_timestamp(day.to_datetime(time)).compatible().ok()?;
    Some(at.as_second())
}

/// The day on the calendar at `now`, as a number that no other day has, and when it ends.
#[must_use]
pub fn day(now: i64, zone: &TimeZone) -> (i32, i64) {
    let Ok(at) = Timestamp::from_second(now) else { return (0, i64::MAX) };
    let date = zone.to_datetime(at).date();
    let number = i32::from(date.year()) * 400 + i32::from(date.day_of_year());
    let end = date.tomorrow().ok().and_then(|next| instant(next, 0, zone)).filter(|end| *end > now);
    // Where midnight itself is skipped or comes twice, an hour later is soon enough to look again.
    (number, end.unwrap_or(now.saturating_add(3600)))
}

/// How often a cap begins anew, at midnight on the clock on the wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Each day.
    Day,
    /// Each week, on Monday (ISO 8601).
    Week,
    /// Each month.
    Month {
        /// On this day of it, 1 to 28.
        first_day: u8,
    },
}

impl Period {
    /// The days on which a reset may be said to be: every month has them.
    pub const FIRST_DAYS: core::ops::RangeInclusive<u8> = 1..=28;

    /// The period that `now` is in, in seconds since 1970. Of a time that no calendar has, one without an end.
    #[must_use]
    pub fn around(self, now: i64, zone: &TimeZone) -> Range<i64> {
        let found = Timestamp::from_second(now).ok().and_then(|at| {
            let (first, next) = self.days(zone.to_datetime(at).date())?;
            Some(instant(first, 0, zone)?..instant(next, 0, zone)?)
        });
        // Where midnight is skipped or comes twice, the day begins a little before or after it.
        found.map_or(i64::MIN..i64::MAX, |found| found.start.min(now)..found.end.max(now.saturating_add(1)))
    }

    /// The first day of the period with `today`, and that of the next.
    fn days(self, today: Date) -> Option<(Date, Date)> {
        let days = |count: i64| jiff::Span::new().try_days(count).ok();
        match self {
            Period::Day => Some((today, today.tomorrow().ok()?)),
            Period::Week => {
                let back = i64::from(today.weekday().to_monday_zero_offset());
                let monday = today.checked_sub(days(back)?).ok()?;
                Some((monday, monday.checked_add(days(7)?).ok()?))
            }
            Period::Month { first_day } => {
                let day = i8::try_from(first_day).ok()?;
                let here = Date::new(today.year(), today.month(), day).ok()?;
                let month = jiff::Span::new().try_months(1).ok()?;
                if here > today {
                    Some((here.checked_sub(month).ok()?, here))
                } else {
                    Some((here, here.checked_add(month).ok()?))
                }
            }
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Period::Day => "day",
            Period::Week => "week",
            Period::Month { .. } => "month",
        })
    }
}

impl FromStr for DailyWindow {
    type Err = ParseWindowError;

    fn from_str(text: &str) -> Result<DailyWindow, ParseWindowError> {
        let (from, to) = text.split_once('-').ok_or(ParseWindowError)?;
        let window = DailyWindow { from: minutes(from)?, to: minutes(to)? };
        if window.from == window.to { Err(ParseWindowError) } else { Ok(window) }
    }
}

fn minutes(text: &str) -> Result<u16, ParseWindowError> {
    let [h1, h2, b':', m1, m2] = text.as_bytes() else { return Err(ParseWindowError) };
    let pair = |high: u8, low: u8, bound: u16| {
        let digits = high.is_ascii_digit() && low.is_ascii_digit();
        let value = u16::from(high.wrapping_sub(b'0')) * 10 + u16::from(low.wrapping_sub(b'0'));
        if digits && value < bound { Ok(value) } else { Err(ParseWindowError) }
    };
    Ok(pair(*h1, *h2, 24)? * 60 + pair(*m1, *m2, 60)?)
}

impl fmt::Display for DailyWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = [self.from / 60, self.from % 60, self.to / 60, self.to % 60];
        write!(f, "{a:02}:{b:02}-{c:02}:{d:02}")
    }
}

#[cfg(test)]
mod tests;
