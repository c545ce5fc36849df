//! Caps and daily windows, as people read them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use strait_node::report::MeteredReport;

use crate::table::{Side, TextTable};
use crate::units;

pub(super) const TITLE: &str = "metered";

/// A line for the link, and one for each peer with a cap; times are those of `zone`.
pub(super) fn table(metered: &[MeteredReport], zone: &TimeZone) -> TextTable {
    let head = ["", "used", "cap", "share", "forecast", "period ends", "may leave", "until"];
    let mut table = (1..=4).fold(TextTable::new(head), |table, column| table.side(column, Side::Right));
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), units::bytes);
    for one in metered {
        let every = one.every.as_deref().unwrap_or_default();
        table.row([
            one.peer.clone().unwrap_or_else(|| "link".to_owned()),
            bytes(one.used_bytes),
            one.cap_bytes.map_or_else(|| "-".to_owned(), |cap| format!("{}/{every}", units::bytes(cap))),
            one.percent().map_or_else(|| "-".to_owned(), |share| format!("{share:.0} %")),
            bytes(one.forecast_bytes),
            time(one.period_end, zone),
            admission(&one.admission).to_owned(),
            time(one.changes_at, zone),
        ]);
    }
    table
}

fn admission(name: &str) -> &str {
    match name {
        "all" => "everything",
        "without-bulk" => "all but bulk",
        "interactive-only" => "interactive only",
        other => other,
    }
}

fn time(seconds: Option<i64>, zone: &TimeZone) -> String {
    let at = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    at.map_or_else(|| "-".to_owned(), |at| at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_and_a_window_have_a_line_each() {
        let link = MeteredReport {
            peer: None,
            cap_bytes: Some(20_000_000_000),
            every: Some("month".to_owned()),
            used_bytes: Some(15_000_000_000),
            forecast_bytes: Some(22_000_000_000),
            period_start: Some(1_698_796_800),
            period_end: Some(1_701_388_800),
            step: Some("warn".to_owned()),
            admission: "without-bulk".to_owned(),
            bulk_between: Some("01:00-06:00".to_owned()),
            changes_at: Some(1_700_010_000),
        };
        let peer = MeteredReport {
            peer: Some("site-b".to_owned()),
            cap_bytes: None,
            every: None,
            used_bytes: None,
            forecast_bytes: None,
            period_end: None,
            changes_at: None,
            admission: "all".to_owned(),
            ..link.clone()
        };
        let text = table(&[link, peer], &TimeZone::UTC).render(0);
        let words =
            |line: usize| text.lines().nth(line).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            words(1),
            "link 15.0 GB 20.0 GB/month 75 % 22.0 GB 2023-12-01 00:00 all but bulk 2023-11-15 01:00",
            "{text}"
        );
        assert_eq!(words(2), "site-b - - - - - everything -", "{text}");
    }
}
