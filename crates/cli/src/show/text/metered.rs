//! Caps and daily windows, as people read them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use strait_node::report::MeteredReport;

use crate::table::{Side, TextTable};
use crate::units;

pub(super) const TITLE: &str = "metered";

/// A line for the link, and one for each peer with a cap.
pub(super) fn table(metered: &[MeteredReport]) -> TextTable {
    let head = ["", "used", "cap", "share", "forecast", "period ends", "may leave", "until"];
    let mut table = (1..=4).fold(TextTable::new(head), |table, column| table.side(column, Side::Right));
    let zone = TimeZone::system();
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), units::bytes);
    for one in metered {
        let every = one.every.as_deref().unwrap_or_default();
        table.row([
            one.peer.clone().unwrap_or_else(|| "link".to_owned()),
            bytes(one.used_bytes),
            one.cap_bytes.map_or_else(|| "-".to_owned(), |cap| format!("{}/{every}", units::bytes(cap))),
            share(one).map_or_else(|| "-".to_owned(), |share| format!("{share:.0} %")),
            bytes(one.forecast_bytes),
            time(one.period_end, &zone),
            admission(&one.admission).to_owned(),
            time(one.changes_at, &zone),
        ]);
    }
    table
}

/// How much of a cap is used, in per cent.
pub(crate) fn share(metered: &MeteredReport) -> Option<f64> {
    let (used, cap) = metered.used_bytes.zip(metered.cap_bytes)?;
    (cap > 0).then(|| used as f64 * 100.0 / cap as f64)
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
