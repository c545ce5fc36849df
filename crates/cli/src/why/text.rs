//! Decisions as people read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use strait_node::report::{DecisionReport, PeerReport, StagesReport, WeighedReport};
use strait_scheduler::Rate;
use strait_terminal::decision::{reason, runner_up};

use crate::show::text::queue;
use crate::table::Table;
use crate::units;

/// All of them, the busiest class first.
pub(super) fn render(interface: &str, decisions: &[DecisionReport]) -> String {
    if decisions.is_empty() {
        return format!(
            "{interface}: nothing was sent in the last seconds that a [[compress]] rule covers, so nothing was decided\n"
        );
    }
    let all: Vec<String> = decisions.iter().map(one).collect();
    format!("{interface}\n\n{}", all.join("\n"))
}

/// How packets wait for the link to each peer, where any did.
pub(super) fn queues(peers: &[PeerReport]) -> String {
    let line = |peer: &PeerReport| {
        let words = queue::words(&peer.queue);
        if words.is_empty() { words } else { format!("\nqueue to {}\n  {words}\n", peer.name) }
    };
    peers.iter().map(line).collect()
}

fn one(decision: &DecisionReport) -> String {
    let mut out = format!(
        "{}\n  {} for {}: {}\n  {}\n",
        decision.class,
        decision.choice,
        span(decision.since_seconds),
        reason(decision),
        whose(decision)
    );
    if let Some(weighed) = &decision.weighed {
        out.push_str(&figures(decision, weighed));
        out.push_str(&stages(weighed));
    }
    out
}

/// A decision in one line, after another choice or none.
pub(super) fn change(decision: &DecisionReport, before: Option<&str>, now: SystemTime) -> String {
    let figures = decision.weighed.as_ref().map(|it| {
        format!(
            " ({} X {:.2}, {:.2} times as fast, {} limits{})",
            it.method,
            it.ratio,
            it.speedup(),
            it.limit,
            it.link_bits_per_second.map(|bits| format!(" at {}", rate(bits))).unwrap_or_default()
        )
    });
    let from = before.map(|before| format!("{before} -> ")).unwrap_or_default();
    let DecisionReport { class, choice, .. } = decision;
    format!("{}  {class}  {from}{choice}: {}{}", clock(now), reason(decision), figures.unwrap_or_default())
}

fn whose(decision: &DecisionReport) -> String {
    let peer = decision.peer.as_deref().unwrap_or("a peer that is gone");
    let domain = decision.domain.as_ref().map(|domain| format!(", domain {domain}")).unwrap_or_default();
    format!("to {peer}{domain}, {}/s", units::bytes(decision.bytes_per_second))
}

fn figures(decision: &DecisionReport, weighed: &WeighedReport) -> String {
    let unit = units::bytes(weighed.unit_bytes);
    let by = match weighed.by.as_str() {
        "throughput" => format!("throughput in units of {unit}: what passes each second counts"),
        _ => format!("a unit of {unit} alone: how soon it arrives counts"),
    };
    let speed = |bytes: Option<f64>| bytes.map_or("-".to_owned(), |it| units::bytes(it as u64) + "/s");
    let link = weighed.link_bits_per_second.map_or("of no known rate".to_owned(), rate);
    let pays = match weighed.pays_up_to_bits_per_second {
        Some(bits) => format!("pays on links up to {}", rate(bits)),
        None if weighed.pays == "always" => "pays on a link of any rate".to_owned(),
        None => "pays on no link".to_owned(),
    };
    let of = if weighed.method == decision.choice { "" } else { " would be" };
    let lines = [
        ("weighed", by),
        (
            "expected",
            format!(
                "{}{of} X {:.2}, {} compressing here, {} expanding there; link {link}",
                weighed.method,
                weighed.ratio,
                speed(weighed.compress_bytes_per_second),
                speed(weighed.expand_bytes_per_second)
            ),
        ),
        (
            "speedup",
            format!(
                "{:.2} with stages at the same time, {:.2} one after the other; {pays}",
                weighed.pipelined_speedup, weighed.serial_speedup
            ),
        ),
        ("limits", weighed.limit.clone()),
        ("runner-up", runner_up(weighed)),
    ];
    lines.iter().map(|(name, value)| format!("  {name:9}  {value}\n")).collect()
}

/// The time of every stage, with and without.
fn stages(weighed: &WeighedReport) -> String {
    let mut table =
        Table::new(["ms", "compress", "seal", "send", "link", "receive", "open", "expand", "in all"]);
    for (name, stages) in [("none", &weighed.without), (weighed.method.as_str(), &weighed.with)] {
        let StagesReport { compress, seal, send, link, receive, open, expand } = *stages;
        let all = [compress, seal, send, link, receive, open, expand];
        let cells = all.into_iter().chain([all.iter().sum()]).map(|micros| format!("{:.3}", micros / 1e3));
        table.row(std::iter::once(name.to_owned()).chain(cells));
    }
    table.render(2)
}

fn rate(bits: f64) -> String {
    Rate::from_bits(bits as u64).map_or_else(|| format!("{bits:.0} bit/s"), |rate| rate.to_string())
}

fn span(seconds: f64) -> String {
    units::span(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// The time of day in UTC, to the millisecond.
fn clock(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs() % 86_400, since.subsec_millis());
    format!("{:02}:{:02}:{:02}.{millis:03}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision() -> DecisionReport {
        let stages = StagesReport {
            compress: 1_500.0,
            seal: 10.0,
            send: 20.0,
            link: 120_000.0,
            receive: 20.0,
            open: 10.0,
            expand: 80.0,
        };
        DecisionReport {
            class: "tcp 10.0.0.1:5000 -> 10.0.0.2:80".to_owned(),
            peer: Some("site-b".to_owned()),
            domain: Some("logs".to_owned()),
            bytes_per_second: 560_000,
            choice: "zstd-9".to_owned(),
            reason: "pays".to_owned(),
            since_seconds: 12.0,
            weighed: Some(WeighedReport {
                by: "throughput".to_owned(),
                unit_bytes: 65_000,
                method: "zstd-9".to_owned(),
                ratio: 2.831,
                compress_bytes_per_second: Some(43e6),
                expand_bytes_per_second: Some(8.1e8),
                link_bits_per_second: Some(1.5e6),
                pays_up_to_bits_per_second: Some(3.4e8),
                pays: "up-to".to_owned(),
                without: StagesReport { compress: 0.0, expand: 0.0, link: 340_000.0, ..stages },
                with: stages,
                limit: "link".to_owned(),
                serial_speedup: 2.7,
                pipelined_speedup: 2.83,
                runner_up: Some("zstd-3".to_owned()),
                runner_up_percent_longer: Some(4.25),
            }),
        }
    }

    #[test]
    fn everything_that_decided_is_there() {
        let shown = render("strait0", &[decision()]);
        let expected = "\
            strait0\n\n\
            tcp 10.0.0.1:5000 -> 10.0.0.2:80\n  \
            zstd-9 for 12 s: it takes the least time\n  \
            to site-b, domain logs, 560 kB/s\n  \
            weighed    throughput in units of 65.0 kB: what passes each second counts\n  \
            expected   zstd-9 X 2.83, 43.0 MB/s compressing here, 810 MB/s expanding there; link 1.5 Mbit/s\n  \
            speedup    2.83 with stages at the same time, 2.70 one after the other; pays on links up to 340 Mbit/s\n  \
            limits     link\n  \
            runner-up  zstd-3, 4.2 % longer\n";
        assert!(shown.starts_with(expected), "{shown}");
        let table: Vec<&str> = shown.lines().rev().take(3).collect();
        assert!(
            table[0]
                .split_whitespace()
                .eq(["zstd-9", "1.500", "0.010", "0.020", "120.000", "0.020", "0.010", "0.080", "121.640"])
        );
    }

    #[test]
    fn who_waits_is_told_by_peer() {
        let report = crate::show::text::tests::report();
        let shown = queues(&report.peers);
        assert!(shown.starts_with("\nqueue to site-b\n  2.05 kB waiting; waited 8 ms on average"), "{shown}");
        assert_eq!(queues(&[]), "");
    }

    #[test]
    fn a_change_is_a_line() {
        let at = UNIX_EPOCH + Duration::from_millis(86_400_000 + 3_723_004);
        let line = change(&decision(), Some("none"), at);
        assert_eq!(
            line,
            "01:02:03.004Z  tcp 10.0.0.1:5000 -> 10.0.0.2:80  none -> zstd-9: it takes the least time \
             (zstd-9 X 2.83, 2.83 times as fast, link limits at 1.5 Mbit/s)"
        );
        let random = DecisionReport {
            choice: "none".to_owned(),
            reason: "looks-random".to_owned(),
            weighed: None,
            ..decision()
        };
        let line = change(&random, None, at);
        assert!(line.ends_with("  none: the data looks random: encrypted, or compressed already"), "{line}");
    }

    #[test]
    fn nothing_decided_is_said() {
        assert!(render("strait0", &[]).contains("[[compress]]"));
    }
}
