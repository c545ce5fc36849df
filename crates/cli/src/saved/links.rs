//! `saved --link`: what the links to peers were like, by hour of the last day.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::Serialize;
use strait_node::saved::{SavedHour, SavedKind, SavedRange, SavedSeries};

use crate::table::TextTable;
use crate::units;

/// What the links of a tunnel were like.
#[derive(Debug, Serialize)]
pub(super) struct LinksReport {
    /// The tunnel.
    interface: String,
    peers: Vec<PeerLink>,
}

/// What the link to one peer was like.
#[derive(Debug, Serialize)]
struct PeerLink {
    name: String,
    hours: Vec<SavedHour>,
}

impl LinksReport {
    pub(super) fn new(interface: String, series: &[SavedSeries], now: u64) -> LinksReport {
        let peers = series.iter().filter(|series| series.name().kind == SavedKind::Peer);
        let peers =
            peers.map(|series| PeerLink { name: series.name().name.clone(), hours: series.hours(now) });
        LinksReport { interface, peers: peers.filter(|peer| !peer.hours.is_empty()).collect() }
    }

    pub(super) fn text(&self, zone: &TimeZone) -> String {
        if self.peers.is_empty() {
            return format!("{}: nothing was sent or received in the last day\n", self.interface);
        }
        let mut out =
            format!("{}: means of an hour's minutes, and the worst minute in brackets\n", self.interface);
        for PeerLink { name, hours } in &self.peers {
            let head =
                ["hour", "rate found", "queue delay", "round trip", "loss", "sent", "received", "dropped"];
            let mut table = TextTable::new(head);
            for hour in hours {
                table.row(cells(hour, zone));
            }
            let _ = write!(out, "\n{name}\n{}", table.render(2));
        }
        out
    }

    pub(super) fn csv(&self) -> String {
        let mut out =
            "peer,at,rate_bits_per_second,queue_delay_seconds,queue_delay_seconds_most,round_trip_seconds,\
            round_trip_seconds_most,loss,loss_most,sent_packets,received_packets,dropped_packets\n"
                .to_owned();
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        for PeerLink { name, hours } in &self.peers {
            let name = super::quoted(name);
            for hour in hours {
                let SavedHour { at, sent_packets, received_packets, dropped_packets, .. } = hour;
                let _ = write!(out, "{name},{at},{}", number(hour.rate.map(|range| range.mean)));
                for range in [hour.queue_delay, hour.round_trip, hour.loss] {
                    let [mean, most] = [range.map(|range| range.mean), range.map(|range| range.most)];
                    let _ = write!(out, ",{},{}", number(mean), number(most));
                }
                let _ = writeln!(out, ",{sent_packets},{received_packets},{dropped_packets}");
            }
        }
        out
    }
}

fn cells(hour: &SavedHour, zone: &TimeZone) -> [String; 8] {
    let none = || "-".to_owned();
    let millis = |range: Option<SavedRange>| {
        range.map_or_else(none, |range| {
            let [mean, most] =
                [range.mean, range.most].map(|seconds| units::span(Duration::from_secs_f64(seconds)));
            format!("{mean} ({most})")
        })
    };
    let percent = |range: SavedRange| format!("{:.1} % ({:.1} %)", range.mean * 100.0, range.most * 100.0);
    [
        super::local(hour.at, zone, "%m-%d %H:%M").unwrap_or_default(),
        hour.rate.map_or_else(none, |range| units::bits_per_second(range.mean)),
        millis(hour.queue_delay),
        millis(hour.round_trip),
        hour.loss.map_or_else(none, percent),
        hour.sent_packets.to_string(),
        hour.received_packets.to_string(),
        hour.dropped_packets.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use strait_node::saved::{SavedAmounts, SavedMinute};

    use super::*;

    #[test]
    fn hours_are_told_with_their_worst_minute_and_what_is_not_known_is_a_dash() {
        let mut series = SavedSeries::new(SavedKind::Peer, "site-b");
        let noon = 20_000 * 86_400 + 12 * 3_600;
        for (at, queue_delay) in [(0, 10_000), (60, 30_000)] {
            let amounts = SavedAmounts { sent_bytes: 900, ..SavedAmounts::default() };
            let rate = 1_536_000;
            series.add(
                noon + at,
                &SavedMinute {
                    amounts,
                    packets: [9, 4],
                    rate,
                    queue_delay,
                    loss: 655,
                    ..SavedMinute::default()
                },
            );
        }
        let report = LinksReport::new("strait0".to_owned(), &[series], noon + 100);
        let text = report.text(&TimeZone::UTC);
        for words in
            ["site-b", "10-04 12:00", "1.54 Mbit/s", "20 ms (30 ms)", " - ", "1.0 % (1.0 %)", "18", "8"]
        {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
        let csv = report.csv();
        assert!(
            csv.lines().nth(1).is_some_and(|line| line.starts_with("\"site-b\",1728043200,1536000,0.0")),
            "{csv}"
        );
        assert_eq!(csv.lines().map(|line| line.matches(',').count()).collect::<Vec<_>>(), [11, 11]);
        let none = LinksReport::new("strait0".to_owned(), &[], noon);
        assert!(none.text(&TimeZone::UTC).contains("nothing was sent"));
    }
}
