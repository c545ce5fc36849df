use proptest::prelude::*;

use super::*;

fn berlin() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

/// Seconds since 1970 of a time in Berlin; `0` for the first of two.
fn at(text: &str) -> i64 {
    let time: jiff::civil::DateTime = text.parse().unwrap();
    berlin().to_ambiguous_timestamp(time).compatible().unwrap().as_second()
}

fn state(window: &str, now: i64) -> WindowState {
    window.parse::<DailyWindow>().unwrap().at(now, &berlin())
}

use WindowState::{Closed, Open};

#[test]
fn a_window_is_open_from_its_first_second_to_before_its_last() {
    let (opens, closes) = (at("2026-01-10T01:00"), at("2026-01-10T06:00"));
    assert_eq!(state("01:00-06:00", opens - 1), Closed(opens));
    assert_eq!(state("01:00-06:00", opens), Open(closes));
    assert_eq!(state("01:00-06:00", closes - 1), Open(closes));
    assert_eq!(state("01:00-06:00", closes), Closed(at("2026-01-11T01:00")));
}

#[test]
fn a_window_over_midnight_is_open_on_both_sides_of_it() {
    let closes = at("2026-01-11T06:00");
    for now in ["2026-01-10T22:30", "2026-01-10T23:59:59", "2026-01-11T00:00", "2026-01-11T05:59:59"] {
        assert_eq!(state("22:30-06:00", at(now)), Open(closes), "{now}");
    }
    assert_eq!(state("22:30-06:00", closes), Closed(at("2026-01-11T22:30")));
    assert_eq!(state("22:00-00:00", at("2026-01-10T23:59")), Open(at("2026-01-11T00:00")));
}

#[test]
fn a_window_is_shorter_when_clocks_go_forward_in_it_and_longer_when_they_go_back() {
    // 29 March 2026: 02:00 becomes 03:00. 25 October 2026: 03:00 becomes 02:00.
    for (day, hours) in [("2026-03-28", 5), ("2026-03-29", 4), ("2026-10-25", 6), ("2026-10-26", 5)] {
        let opens = at(&format!("{day}T01:00"));
        assert_eq!(state("01:00-06:00", opens), Open(opens + hours * 3600), "{day}");
    }
}

#[test]
fn a_window_in_the_hour_that_is_skipped_opens_as_much_later() {
    let opens = at("2026-03-29T03:15");
    assert_eq!(state("02:15-02:45", at("2026-03-29T01:59:59")), Closed(opens));
    assert_eq!(state("02:15-02:45", opens), Open(opens + 1800));
    // Its beginning moves behind its end: it is as long as it says.
    let opens = at("2026-03-29T03:30");
    assert_eq!(state("02:30-03:10", at("2026-03-29T03:15")), Closed(opens));
    assert_eq!(state("02:30-03:10", opens), Open(opens + 40 * 60));
}

#[test]
fn a_window_in_the_hour_that_comes_twice_opens_once() {
    let first = at("2026-10-25T02:15");
    assert_eq!(state("02:15-02:45", first), Open(first + 1800));
    assert_eq!(state("02:15-02:45", first + 3600), Closed(at("2026-10-26T02:15")));
    // A window that begins in it and ends behind it is open all the time.
    assert_eq!(state("02:15-04:00", first), Open(first + 2 * 3600 + 45 * 60));
}

#[test]
fn a_window_whose_closed_hour_is_skipped_stays_open_that_night() {
    let before = at("2026-03-28T23:00");
    // Closed from 02:00 to 03:00, which does not exist on the 29th: 02:00 on the 30th is the next end.
    assert_eq!(state("03:00-02:00", before), Open(at("2026-03-30T02:00")));
}

#[test]
fn a_text_is_a_window_or_refused() {
    for text in ["01:00-06:00", "23:59-00:00", "00:00-23:59"] {
        assert_eq!(text.parse::<DailyWindow>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "01:00",
        "1:00-6:00",
        "01:00-01:00",
        "24:00-01:00",
        "01:60-02:00",
        "01:00 - 02:00",
        "0x:00-01:00",
    ] {
        assert_eq!(text.parse::<DailyWindow>(), Err(ParseWindowError), "{text}");
    }
}

#[test]
fn a_day_ends_at_midnight_also_when_it_has_23_or_25_hours() {
    for (date, hours) in [("2026-03-29", 23), ("2026-10-25", 25), ("2026-12-31", 24)] {
        let begins = at(&format!("{date}T00:00"));
        let (number, ends) = day(begins, &berlin());
        assert_eq!(ends - begins, hours * 3600, "{date}");
        assert_eq!(day(ends - 1, &berlin()).0, number);
        assert_ne!(day(ends, &berlin()).0, number);
    }
}

proptest! {
    #[test]
    fn a_window_opens_within_a_day_and_a_half_and_nothing_changes_before_it_says(
        from in 0..1440_u16, to in 0..1440_u16, now in 1_700_000_000..1_900_000_000_i64, part in 0.0..1.0_f64,
    ) {
        prop_assume!(from != to);
        let window = DailyWindow { from, to };
        let (open, change) = match window.at(now, &berlin()) {
            Open(until) => (true, until),
            Closed(until) => (false, until),
        };
        prop_assert!(change > now && change - now <= 50 * 3600, "{}", change - now);
        let between = now + ((change - now - 1) as f64 * part) as i64;
        prop_assert_eq!(matches!(window.at(between, &berlin()), Open(_)), open);
        prop_assert_eq!(matches!(window.at(change, &berlin()), Open(_)), !open);
        // On a day without a change of clocks it is what the wall says.
        let wall = |at: i64| {
            let time = berlin().to_datetime(Timestamp::from_second(at).unwrap()).time();
            u16::try_from(time.hour()).unwrap() * 60 + u16::try_from(time.minute()).unwrap()
        };
        let offset = |at: i64| berlin().to_offset(Timestamp::from_second(at).unwrap());
        if offset(now - 90_000) == offset(now + 90_000) {
            let minute = wall(now);
            let inside = if from < to { (from..to).contains(&minute) } else { minute >= from || minute < to };
            prop_assert_eq!(inside, open);
        }
    }
}
