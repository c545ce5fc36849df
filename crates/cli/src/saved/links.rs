//! `saved --link`: what the links to peers were like, by second, minute or hour.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Serialize, Serializer};
use strait_node::saved::{SavedAmounts, SavedKind, SavedPeriod, SavedRange, SavedSeries, SavedStep};

use crate::table::TextTable;
use crate::units;

/// What the links of a tunnel were like.
#[derive(Debug, Serialize)]
pub(super) struct LinksReport {
    /// The tunnel.
    interface: String,
    /// How long a period is.
    #[serde(rename = "step_seconds", serialize_with = "seconds")]
    step: SavedStep,
    peers: Vec<PeerLink>,
}

/// What the link to one peer was like.
#[derive(Debug, Serialize)]
struct PeerLink {
    name: String,
    periods: Vec<SavedPeriod>,
}

impl LinksReport {
    pub(super) fn new(interface: String, series: &[SavedSeries], step: SavedStep, now: u64) -> LinksReport {
        let peers = series.iter().filter(|series| series.name().kind == SavedKind::Peer);
        let peers = peers
            .map(|series| PeerLink { name: series.name().name.clone(), periods: series.periods(step, now) });
        let peers = peers.filter(|peer| !peer.periods.is_empty()).collect();
        LinksReport { interface, step, peers }
    }

    pub(super) fn text(&self, zone: &TimeZone) -> String {
        if self.peers.is_empty() {
            let last = if self.step == SavedStep::Second { "15 minutes" } else { "day" };
            return format!("{}: nothing was sent or received in the last {last}\n", self.interface);
        }
        let mut out = match self.step {
            SavedStep::Second => {
                format!("{}: by second; the last minute comes when it is over\n", self.interface)
            }
            SavedStep::Minute => format!("{}: by minute\n", self.interface),
            SavedStep::Hour => {
                format!("{}: means of an hour's minutes, and the worst minute in brackets\n", self.interface)
            }
        };
        for PeerLink { name, periods } in &self.peers {
            let head = [
                "from",
                "sent",
                "received",
                "rate found",
                "queue delay",
                "round trip",
                "loss",
                "packets sent",
                "received",
                "dropped",
            ];
            let mut table = TextTable::new(head);
            for period in periods {
                table.row(cells(period, zone, self.step == SavedStep::Hour));
            }
            let _ = write!(out, "\n{name}\n{}", table.render(2));
        }
        out
    }

    pub(super) fn csv(&self) -> String {
        let mut out =
            "peer,at,sent_bytes,sent_wire_bytes,received_bytes,received_wire_bytes,rate_bits_per_second,\
            queue_delay_seconds,queue_delay_seconds_most,round_trip_seconds,round_trip_seconds_most,loss,loss_most,\
            sent_packets,received_packets,dropped_packets\n"
                .to_owned();
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        for PeerLink { name, periods } in &self.peers {
            let name = super::quoted(name);
            for period in periods {
                let SavedPeriod { at, amounts, sent_packets, received_packets, dropped_packets, .. } = period;
                let SavedAmounts { sent_bytes, sent_wire_bytes, received_bytes, received_wire_bytes } =
                    amounts;
                let _ = write!(
                    out,
                    "{name},{at},{sent_bytes},{sent_wire_bytes},{received_bytes},{received_wire_bytes},{}",
                    number(period.rate.map(|range| range.mean))
                );
                for range in [period.queue_delay, period.round_trip, period.loss] {
                    let [mean, most] = [range.map(|range| range.mean), range.map(|range| range.most)];
                    let _ = write!(out, ",{},{}", number(mean), number(most));
                }
                let _ = writeln!(out, ",{sent_packets},{received_packets},{dropped_packets}");
            }
        }
        out
    }
}

fn seconds<S: Serializer>(step: &SavedStep, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(step.seconds())
}

/// The cells of a period: of an hour also the worst of its minutes.
fn cells(period: &SavedPeriod, zone: &TimeZone, worst: bool) -> [String; 10] {
    let none = || "-".to_owned();
    let range =
        |range: Option<SavedRange>, said: fn(f64) -> String| {
            range.map_or_else(none, |SavedRange { mean, most, .. }| {
                if worst { format!("{} ({})", said(mean), said(most)) } else { said(mean) }
            })
        };
    let span = |seconds| units::span(Duration::from_secs_f64(seconds));
    let form = if worst { "%m-%d %H:%M" } else { "%H:%M:%S" };
    [
        super::local(period.at, zone, form).unwrap_or_default(),
        units::bytes(period.amounts.sent_wire_bytes),
        units::bytes(period.amounts.received_wire_bytes),
        period.rate.map_or_else(none, |range| units::bits_per_second(range.mean)),
        range(period.queue_delay, span),
        range(period.round_trip, span),
        range(period.loss, |share| format!("{:.1} %", share * 100.0)),
        period.sent_packets.to_string(),
        period.received_packets.to_string(),
        period.dropped_packets.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use strait_node::saved::SavedSample;

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
                &SavedSample {
                    amounts,
                    packets: [9, 4],
                    rate,
                    queue_delay,
                    loss: 655,
                    ..SavedSample::default()
                },
            );
        }
        let report =
            |step| LinksReport::new("strait0".to_owned(), core::slice::from_ref(&series), step, noon + 100);
        let by_second = report(SavedStep::Second).text(&TimeZone::UTC);
        for words in ["12:00:00", "12:01:00", "10 ms ", "30 ms ", "by second"] {
            assert!(by_second.contains(words), "{words} is not in\n{by_second}");
        }
        assert_eq!(report(SavedStep::Minute).csv().lines().count(), 3);
        let report = report(SavedStep::Hour);
        let text = report.text(&TimeZone::UTC);
        for words in
            ["site-b", "10-04 12:00", "1.54 Mbit/s", "20 ms (30 ms)", " - ", "1.0 % (1.0 %)", "18", "8"]
        {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
        let csv = report.csv();
        assert!(
            csv.lines()
                .nth(1)
                .is_some_and(|line| line.starts_with("\"site-b\",1728043200,1800,0,0,0,1536000,0.0")),
            "{csv}"
        );
        assert_eq!(csv.lines().map(|line| line.matches(',').count()).collect::<Vec<_>>(), [15, 15]);
        let none = LinksReport::new("strait0".to_owned(), &[], SavedStep::Hour, noon);
        assert!(none.text(&TimeZone::UTC).contains("nothing was sent"));
    }
}
