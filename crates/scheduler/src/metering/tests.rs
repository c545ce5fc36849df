use jiff::civil::DateTime;
use proptest::prelude::*;

use super::*;

fn berlin() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

/// Seconds since 1970 of a time in Berlin.
fn at(text: &str) -> i64 {
    let time: DateTime = text.parse().unwrap();
    berlin().to_ambiguous_timestamp(time).compatible().unwrap().as_second()
}

fn terms(cap: &str, steps: [Option<u8>; 4], window: Option<&str>) -> MeteringTerms {
    let cap = Some(cap.parse().unwrap());
    MeteringTerms { cap, steps, bulk_between: window.map(|window| window.parse().unwrap()) }
}

/// Bytes by the hour, as a store keeps them.
#[derive(Default)]
struct Hours(std::collections::BTreeMap<i64, u64>);

impl Hours {
    fn add(&mut self, at: i64, bytes: u64) {
        *self.0.entry(at.div_euclid(HOUR)).or_default() += bytes;
    }

    fn used_in(&self, span: Range<i64>) -> u64 {
        if span.is_empty() {
            return 0;
        }
        let hours = span.start.div_euclid(HOUR)..=(span.end - 1).div_euclid(HOUR);
        self.0.range(hours).map(|(_, bytes)| bytes).sum()
    }
}

#[test]
fn a_cap_is_a_size_and_a_period() {
    let cap = |text: &str| text.parse::<Cap>();
    assert_eq!(cap("20GB/month"), Ok(Cap { bytes: 20_000_000_000, every: Period::Month { first_day: 1 } }));
    assert_eq!(cap("1.5 GiB / week"), Ok(Cap { bytes: 1_610_612_736, every: Period::Week }));
    assert_eq!(cap("500MB/day"), Ok(Cap { bytes: 500_000_000, every: Period::Day }));
    for wrong in [
        "",
        "20GB",
        "20/month",
        "GB/month",
        "20gb/month",
        "20Gbit/month",
        "20GB/year",
        "20GB/",
        "/month",
        "0GB/day",
        "-1GB/day",
        "1e99TB/day",
        "99999999TB/month",
        "1..5GB/day",
        "NaNGB/day",
        "20GB/month/day",
    ] {
        assert_eq!(cap(wrong), Err(ParseCapError), "{wrong}");
    }
}

#[test]
fn steps_are_told_once_in_a_period_and_again_in_the_next() {
    let steps = [Some(50), Some(60), Some(80), Some(100)];
    let mut meter = Meter::new(terms("1000kB/month", steps, Some("01:00-06:00")));
    let (mut hours, zone) = (Hours::default(), berlin());
    let mut said = Vec::new();
    for day in 1..=62 {
        let noon = at("2026-07-01T12:00") + (day - 1) * DAY;
        hours.add(noon, 40_000);
        let reading = meter.look(noon, &zone, |span| hours.used_in(span));
        said.extend(reading.crossed.map(|step| (day, step, reading.admission)));
        assert_eq!(meter.look(noon + 1, &zone, |span| hours.used_in(span)).crossed, None);
    }
    let month = |first: i64| {
        [
            (first + 12, CapStep::Warn, Admission::All),
            (first + 14, CapStep::BulkInWindow, Admission::WithoutBulk),
            (first + 19, CapStep::StopBulk, Admission::WithoutBulk),
            (first + 24, CapStep::InteractiveOnly, Admission::InteractiveOnly),
        ]
    };
    assert_eq!(said, [month(1), month(32)].concat());
}

#[test]
fn a_meter_that_begins_beyond_a_step_does_not_tell_it() {
    let mut meter = Meter::new(terms("1000kB/month", [Some(50), None, None, Some(90)], None));
    let (mut hours, now) = (Hours::default(), at("2026-07-10T12:00"));
    hours.add(now, 600_000);
    assert_eq!(meter.look(now, &berlin(), |span| hours.used_in(span)).crossed, None);
    hours.add(now, 300_000);
    let reading = meter.look(now, &berlin(), |span| hours.used_in(span));
    assert_eq!(
        (reading.crossed, reading.admission),
        (Some(CapStep::InteractiveOnly), Admission::InteractiveOnly)
    );
}

#[test]
fn a_window_holds_always_or_from_its_part_of_the_cap_on() {
    let (night, day) = (at("2026-07-10T03:00"), at("2026-07-10T12:00"));
    let look = |terms, now, used: u64| {
        let reading =
            Meter::new(terms).look(now, &berlin(), |span| if span.contains(&now) { used } else { 0 });
        (reading.admission, reading.changes_at)
    };
    let always =
        MeteringTerms { bulk_between: Some("01:00-06:00".parse().unwrap()), ..MeteringTerms::default() };
    assert_eq!(look(always, night, 0), (Admission::All, Some(at("2026-07-10T06:00"))));
    assert_eq!(look(always, day, 0), (Admission::WithoutBulk, Some(at("2026-07-11T01:00"))));
    let later = terms("100kB/month", [None, Some(60), None, None], Some("01:00-06:00"));
    assert_eq!(look(later, day, 59_999), (Admission::All, Some(at("2026-08-01T00:00"))));
    assert_eq!(look(later, day, 60_000), (Admission::WithoutBulk, Some(at("2026-07-11T01:00"))));
    assert_eq!(look(later, night, 60_000), (Admission::All, Some(at("2026-07-10T06:00"))));
}

#[test]
fn periods_begin_at_midnight_on_the_clock_on_the_wall() {
    let around = |every: Period, now: &str| {
        let range = every.around(at(now), &berlin());
        (range.start, range.end)
    };
    let month = |first_day| Period::Month { first_day };
    for (every, now, from, to) in [
        (month(1), "2026-07-10T12:00", "2026-07-01T00:00", "2026-08-01T00:00"),
        (month(15), "2026-01-14T23:59:59", "2025-12-15T00:00", "2026-01-15T00:00"),
        (month(28), "2026-02-28T00:00", "2026-02-28T00:00", "2026-03-28T00:00"),
        // The hour that is skipped, and the one that comes twice.
        (month(1), "2026-03-29T12:00", "2026-03-01T00:00", "2026-04-01T00:00"),
        (Period::Day, "2026-10-25T12:00", "2026-10-25T00:00", "2026-10-26T00:00"),
        (Period::Week, "2026-07-12T23:00", "2026-07-06T00:00", "2026-07-13T00:00"),
    ] {
        assert_eq!(around(every, now), (at(from), at(to)), "{every:?} at {now}");
    }
}

#[test]
fn a_forecast_waits_for_an_hour_and_goes_by_whole_days() {
    let (mut hours, zone) = (Hours::default(), berlin());
    let mut meter = Meter::new(terms("1TB/month", [None; 4], None));
    let begin = at("2026-07-20T10:00");
    let mut forecast = |now: i64, hours: &Hours| {
        meter.look(now, &zone, |span| hours.used_in(span)).cap.and_then(|standing| standing.forecast)
    };
    hours.add(begin, 1_000_000);
    assert_eq!(forecast(begin + 60, &hours), None, "a minute tells nothing of a month");
    // Five days of twelve busy hours each.
    for hour in 0..5 * 24 {
        let now = begin + hour * HOUR;
        hours.add(now, if hour % 24 < 12 { 1_000_000 } else { 0 });
    }
    let now = begin + 5 * DAY;
    let left = (at("2026-08-01T00:00") - now) as f64 / DAY as f64;
    let expected = 61_000_000.0 + left * 12_000_000.0;
    let said = forecast(now, &hours).unwrap() as f64;
    assert!((said / expected - 1.0).abs() < 0.02, "{said} for {expected}");
}

proptest! {
    #[test]
    fn any_clock_finds_its_own_period(now in -4_000_000_000_i64..9_000_000_000, first_day in 1_u8..=28, back in 0_i64..100_000_000) {
        let every = Period::Month { first_day };
        let period = every.around(now, &berlin());
        prop_assert!(period.contains(&now));
        prop_assert!((28 * DAY - HOUR..=31 * DAY + HOUR).contains(&(period.end - period.start)), "{period:?}");
        prop_assert_eq!(every.around(period.end, &berlin()).start, period.end);
        // A clock that is set back finds what crossed then.
        let mut meter = Meter::new(terms("1000kB/month", [Some(50), None, None, None], None));
        let used = |span: Range<i64>| if span.contains(&now) { 600_000 } else { 0 };
        let first = meter.look(now, &berlin(), used);
        prop_assert_eq!(first.cap.map(|cap| cap.used), Some(600_000));
        let earlier = meter.look(now - back, &berlin(), used).cap.unwrap();
        prop_assert!(earlier.used == 0 || earlier.period.contains(&(now - back)));
        prop_assert_eq!(meter.look(now, &berlin(), used).cap.map(|cap| cap.used), Some(600_000));
    }
}
