//! What each section of the page has.

use std::collections::BTreeMap;
use std::time::Duration;

use super::html::{Column, escaped, paragraph, table};
use crate::config::Price;
use crate::path_memory::unix_time;
use crate::report::{DaemonReport, DecisionReport, DropReport, MeteredReport, PeerReport, ServiceReport};
use crate::saved::{SavedAmounts, SavedFigures};
use crate::units::{self, counted};

/// Rows of a table at most: as many as a person reads. What there is besides is counted.
pub(super) const ROWS: usize = 50;

/// Wire bytes sent to each peer and received from it, by its name.
pub(super) type WireBytes = BTreeMap<String, [u64; 2]>;

/// What the reports of two moments say of the rate in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Earlier<'a> {
    pub(super) wire: &'a WireBytes,
    /// How long ago it was.
    pub(super) span: Duration,
}

/// What is counted on the wire now.
pub(super) fn wire_bytes(report: &DaemonReport) -> WireBytes {
    let of = |peer: &PeerReport| (peer.name.clone(), [peer.sent.wire_bytes, peer.received.wire_bytes]);
    report.peers.iter().map(of).collect()
}

/// The node itself.
pub(super) fn node(report: &DaemonReport) -> String {
    let node = &report.node;
    let mut out = paragraph(&format!(
        "up {}, {}, at {}, version {}",
        units::seconds(node.uptime_seconds),
        counted(report.peers.len() as u64, "peer"),
        node.listen,
        node.version
    ));
    for warning in node.warnings.iter().take(ROWS) {
        out += &format!("<p class=\"warning\">{}</p>\n", escaped(warning));
    }
    out
}

/// What was saved this month, in bytes and money, and how the caps stand.
pub(super) fn saved(report: &DaemonReport, figures: Option<&SavedFigures>) -> String {
    month(report, figures) + &metered(report)
}

/// Caps and forecasts.
fn metered(report: &DaemonReport) -> String {
    if report.metered.is_empty() {
        return String::new();
    }
    let columns = [
        Column::Words("cap of"),
        Column::Numbers("used"),
        Column::Numbers("cap"),
        Column::Numbers(""),
        Column::Numbers("forecast"),
        Column::Numbers("period ends in"),
        Column::Words("may leave"),
    ];
    let bytes = |bytes: Option<u64>| bytes.map_or_else(none, units::bytes);
    let row = |one: &MeteredReport| {
        let every = one.every.as_deref().unwrap_or_default();
        let left = one.period_end.map(|end| u64::try_from(end).unwrap_or(0).saturating_sub(unix_time()));
        vec![
            one.peer.clone().unwrap_or_else(|| "the link".to_owned()),
            bytes(one.used_bytes),
            one.cap_bytes.map_or_else(none, |cap| format!("{}/{every}", units::bytes(cap))),
            one.percent().map_or_else(none, |share| format!("{share:.0} %")),
            bytes(one.forecast_bytes),
            left.map_or_else(none, |left| units::span(Duration::from_secs(left))),
            match one.admission.as_str() {
                "all" => "everything",
                "without-bulk" => "all but bulk traffic",
                _ => "interactive traffic only",
            }
            .to_owned(),
        ]
    };
    table(&columns, report.metered.iter().take(ROWS).map(row)) + &more(report.metered.len(), "cap")
}

fn month(report: &DaemonReport, figures: Option<&SavedFigures>) -> String {
    let Some(figures) = figures else {
        return paragraph("No figures are kept: the log says why the file for them cannot be used.");
    };
    let since = since(report, figures);
    let price = report.node.price_per_gigabyte.and_then(Price::per_gigabyte);
    let month = figures.this_month.plus(since);
    let worth =
        price.map(|price| format!(", worth {:.2} at {:.2}/GB", price.of(month.saved()), price.of_gigabyte()));
    let big = format!("{} saved in {}{}", signed(month.saved()), figures.month, worth.unwrap_or_default());
    let mut columns = vec![
        Column::Words(""),
        Column::Numbers("before"),
        Column::Numbers("on the wire"),
        Column::Numbers("saved"),
        Column::Numbers(""),
    ];
    columns.extend(price.map(|_| Column::Numbers("money")));
    let row = |name: &str, amounts: SavedAmounts| {
        let mut cells = vec![
            name.to_owned(),
            units::bytes(amounts.before()),
            units::bytes(amounts.wire()),
            signed(amounts.saved()),
            percent(amounts.saved(), amounts.before()),
        ];
        cells.extend(price.map(|price| format!("{:.2}", price.of(amounts.saved()))));
        cells
    };
    let rows = [row("this month", month), row("today", figures.today.plus(since))];
    format!("<p class=\"big\">{}</p>\n{}", escaped(&big), table(&columns, rows))
        + &paragraph(
            "Bytes of both directions of all peers; on the wire with all headers, and with what keeps the tunnel up.",
        )
}

/// What was counted since the figures were added up.
fn since(report: &DaemonReport, figures: &SavedFigures) -> SavedAmounts {
    let of = |peer: &PeerReport| {
        let before = figures.peers.get(&peer.name)?;
        let now = SavedAmounts {
            sent_bytes: peer.sent.bytes,
            sent_wire_bytes: peer.sent.wire_bytes,
            received_bytes: peer.received.bytes,
            received_wire_bytes: peer.received.wire_bytes,
        };
        Some(now.since(*before))
    };
    let control = SavedAmounts { sent_wire_bytes: report.control.wire_bytes, ..SavedAmounts::default() };
    let peers = report.peers.iter().filter_map(of);
    peers.fold(control.since(figures.control), SavedAmounts::plus)
}

/// The link to each peer.
pub(super) fn link(report: &DaemonReport, earlier: Option<Earlier<'_>>) -> String {
    let columns = [
        Column::Words("peer"),
        Column::Words("state"),
        Column::Numbers("link rate"),
        Column::Words(""),
        Column::Numbers("sending"),
        Column::Numbers("receiving"),
        Column::Numbers("RTT"),
        Column::Numbers("loss"),
    ];
    let row = |peer: &PeerReport| {
        let (rate, how) = rate(peer);
        let [sending, receiving] = in_use(peer, earlier);
        let path = peer.path.as_ref();
        let loss = path.filter(|path| path.delivery_reports_received > 0).map(|path| path.loss_ratio);
        vec![
            peer.name.clone(),
            peer.condition(),
            rate,
            how.to_owned(),
            sending,
            receiving,
            path.and_then(|path| path.rtt_seconds).map_or_else(none, |rtt| format!("{:.1} ms", rtt * 1e3)),
            loss.map_or_else(none, |loss| format!("{:.1} %", loss * 100.0)),
        ]
    };
    peers(report, &columns, row)
}

/// The link rate, and where it comes from.
fn rate(peer: &PeerReport) -> (String, &'static str) {
    let found = peer.path.as_ref().and_then(|path| path.estimated_rate_bits_per_second);
    match (found, peer.link_rate_bits_per_second) {
        (Some(bits), _) => (units::bits_per_second(bits as f64), "found"),
        (None, Some(bits)) => (units::bits_per_second(bits as f64), "configured"),
        (None, None) => ("unknown".to_owned(), ""),
    }
}

/// What is sent and received now, in wire bytes.
fn in_use(peer: &PeerReport, earlier: Option<Earlier<'_>>) -> [String; 2] {
    let now = [peer.sent.wire_bytes, peer.received.wire_bytes];
    let before = earlier.and_then(|earlier| Some((earlier.wire.get(&peer.name)?, earlier.span)));
    let Some((before, span)) = before.filter(|(_, span)| !span.is_zero()) else { return [none(), none()] };
    let rate = |way: usize| {
        // A peer that was removed and came back has new counters.
        let bytes = now.get(way)?.checked_sub(*before.get(way)?)?;
        Some(units::bits_per_second(bytes as f64 * 8.0 / span.as_secs_f64()))
    };
    [0, 1].map(|way| rate(way).unwrap_or_else(none))
}

/// The queue before the link to each peer.
pub(super) fn queue(report: &DaemonReport) -> String {
    let columns = [
        Column::Words("peer"),
        Column::Numbers("delay"),
        Column::Numbers("largest delay"),
        Column::Numbers("length"),
        Column::Numbers("dropped by CoDel"),
        Column::Numbers("dropped when full"),
        Column::Numbers("marked (ECN)"),
    ];
    let delay = |seconds: Option<f64>| seconds.map_or_else(none, |it| format!("{:.1} ms", it * 1e3));
    let row = |peer: &PeerReport| {
        let queue = &peer.queue;
        vec![
            peer.name.clone(),
            delay(queue.mean_delay_seconds),
            delay(queue.max_delay_seconds),
            units::bytes(queue.bytes),
            queue.aqm_dropped_packets.to_string(),
            queue.overflow_dropped_packets.to_string(),
            queue.ecn_marked_packets.to_string(),
        ]
    };
    peers(report, &columns, row)
}

/// A row for each peer, as far as there is room.
fn peers(report: &DaemonReport, columns: &[Column], row: impl Fn(&PeerReport) -> Vec<String>) -> String {
    if report.peers.is_empty() {
        return paragraph("There are no peers.");
    }
    table(columns, report.peers.iter().take(ROWS).map(row)) + &more(report.peers.len(), "peer")
}

/// The flows with most traffic, what compression makes of them, and why.
pub(super) fn flows(report: &DaemonReport) -> String {
    let Some(decisions) = &report.decisions else {
        return paragraph("The sender did not tell its flows in time: it is busy.");
    };
    if decisions.is_empty() {
        return paragraph("No flow matched a [[compress]] rule in the last seconds.");
    }
    let mut all: Vec<&DecisionReport> = decisions.iter().collect();
    // In steps of a factor of 2, so that rows keep their places while rates change little.
    all.sort_by_key(|it| (it.bytes_per_second.leading_zeros(), it.class.as_str(), it.domain.as_deref()));
    let columns = [
        Column::Words("flow"),
        Column::Words("peer"),
        Column::Numbers("before"),
        Column::Numbers("on the wire"),
        Column::Numbers("ratio"),
        Column::Words("codec"),
        Column::Words("why"),
    ];
    let a_second = |bytes: u64| format!("{}/s", units::bytes(bytes));
    let row = |it: &DecisionReport| {
        vec![
            it.class.clone(),
            it.peer.clone().unwrap_or_else(none),
            a_second(it.bytes_per_second),
            it.compressed_bytes_per_second().map_or_else(none, a_second),
            it.chosen_ratio().map_or_else(none, |ratio| format!("{ratio:.1}")),
            it.choice.clone(),
            it.reason_words().to_owned(),
        ]
    };
    table(&columns, all.iter().take(ROWS).map(|it| row(it)))
        + &more(all.len(), "flow")
        + &paragraph(
            "Bytes of packets before compression, and what compression is expected to leave of them for the wire, without headers.",
        )
}

/// What was sent of each service since the node started.
pub(super) fn services(report: &DaemonReport) -> String {
    if report.services.is_empty() {
        return paragraph("Nothing was sent since the node started.");
    }
    let columns = [
        Column::Words("service"),
        Column::Numbers("packets"),
        Column::Numbers("before"),
        Column::Numbers("on the wire"),
        Column::Numbers("ratio"),
    ];
    let row = |it: &ServiceReport| {
        vec![
            it.service.clone(),
            it.packets.to_string(),
            units::bytes(it.bytes),
            units::bytes(it.wire_bytes),
            it.ratio.map_or_else(none, |ratio| format!("{ratio:.1}")),
        ]
    };
    table(&columns, report.services.iter().take(ROWS).map(row)) + &more(report.services.len(), "service")
}

/// Packets that were dropped, by reason.
pub(super) fn drops(report: &DaemonReport) -> String {
    let mut all: Vec<_> = report.drops.iter().filter(|it| it.packets > 0).collect();
    all.sort_by_key(|it| std::cmp::Reverse(it.packets));
    if all.is_empty() {
        return paragraph("Nothing was dropped since the node started.");
    }
    let columns = [Column::Words("reason"), Column::Numbers("packets"), Column::Words("what helps")];
    let row = |it: &&DropReport| {
        vec![it.reason.clone(), it.packets.to_string(), it.advice().unwrap_or_default().to_owned()]
    };
    table(&columns, all.iter().take(ROWS).map(row)) + &more(all.len(), "reason")
}

/// How many rows there was no room for.
fn more(all: usize, what: &str) -> String {
    match all.saturating_sub(ROWS) {
        0 => String::new(),
        more => paragraph(&format!("and {more} more {what}{}", if more == 1 { "" } else { "s" })),
    }
}

/// What stands where there is nothing to say.
fn none() -> String {
    "-".to_owned()
}

/// Bytes with a sign where encapsulation took more than was saved.
fn signed(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    format!("{sign}{}", units::bytes(bytes.unsigned_abs()))
}

fn percent(saved: i64, before: u64) -> String {
    if before == 0 { none() } else { format!("{:.0} %", saved as f64 * 100.0 / before as f64) }
}
