//! Decisions as people read them.

use std::time::{SystemTime, UNIX_EPOCH};

use strait_node::report::{DecisionReport, EstimateReport, PeerReport, RuleReport, StagesReport};
use strait_scheduler::Rate;
use strait_terminal::decision::runner_up;

use crate::show::text::{history, leak, queue, repair};
use crate::table::TextTable;
use crate::units;

/// All decisions, the busiest class first.
pub(super) fn render(interface: &str, decisions: &[DecisionReport]) -> String {
    if decisions.is_empty() {
        return format!(
            "{interface}: no decisions: no traffic matched a [[compress]] rule in the last seconds\n"
        );
    }
    let all: Vec<String> = decisions.iter().map(one).collect();
    format!("{interface}\n\n{}", all.join("\n"))
}

/// The queue and the aggregation window of each peer with queued packets.
pub(super) fn queues(peers: &[PeerReport]) -> String {
    let lines = |peer: &PeerReport| {
        let lines = [("queue", queue::length(&peer.queue)), ("aggregation", queue::aggregation(&peer.queue))];
        let lines: String = named(lines.into_iter().filter(|(_, value)| !value.is_empty()));
        if lines.is_empty() { lines } else { format!("\nqueue to {}\n{lines}", peer.name) }
    };
    peers.iter().map(lines).collect()
}

/// Whether losses on the path to each peer are repaired, how, why so, and what that costs.
pub(super) fn repairs(peers: &[PeerReport]) -> String {
    let lines = |peer: &PeerReport| {
        let repair = peer.repair.as_ref()?;
        let lines = [
            ("repair", repair::reason(peer, repair)),
            ("losses", repair::losses(repair)),
            ("cost", repair::cost(peer, repair)),
        ];
        let lines = named(lines.into_iter().filter(|(_, value)| !value.is_empty()));
        Some(format!("\nlosses on the path to {}\n{lines}", peer.name))
    };
    peers.iter().filter_map(lines).collect()
}

/// What packets to each peer that left alone saved by earlier ones.
pub(super) fn histories(peers: &[PeerReport]) -> String {
    let lines = |peer: &PeerReport| {
        let saved = peer.history.as_ref().map(history::saved).filter(|saved| !saved.is_empty())?;
        Some(format!("\nhistory of packets to {}\n{}", peer.name, named([("saved", saved)])))
    };
    peers.iter().filter_map(lines).collect()
}

/// What lengths of the blocks of each rule tell.
pub(super) fn leaks(rules: &[RuleReport]) -> String {
    let table = leak::table(rules);
    if table.is_empty() { String::new() } else { format!("\n{}\n{}", leak::TITLE, table.render(2)) }
}

/// Named values, one a line, aligned.
fn named(lines: impl IntoIterator<Item = (&'static str, String)>) -> String {
    lines.into_iter().map(|(name, value)| format!("  {name:11}  {value}\n")).collect()
}

fn one(decision: &DecisionReport) -> String {
    let mut out = format!("{}\n{}", decision.class, named(lines(decision)));
    if let Some(estimate) = &decision.estimate {
        out.push_str(&stages(estimate));
    }
    out
}

/// A decision with its figures, but the times of the stages: names and values.
pub(crate) fn lines(decision: &DecisionReport) -> Vec<(&'static str, String)> {
    let choice = format!(
        "{} since {}: {}",
        decision.choice,
        units::seconds(decision.age_seconds),
        decision.reason_words()
    );
    let estimate = decision.estimate.iter().flat_map(|estimate| figures(decision, estimate));
    [("to", target(decision)), ("choice", choice)].into_iter().chain(estimate).collect()
}

/// A decision in one line, after another choice or none.
pub(super) fn change(decision: &DecisionReport, before: Option<&str>, now: SystemTime) -> String {
    let figures = decision.estimate.as_ref().map(|it| {
        format!(
            " ({} ratio {:.2}, speedup {:.2}, bottleneck {}{})",
            it.method,
            it.ratio,
            it.speedup(),
            it.bottleneck,
            it.link_rate_bits_per_second
                .map(|bits| format!(", link rate {}", rate(bits)))
                .unwrap_or_default()
        )
    });
    let from = before.map(|before| format!("{before} -> ")).unwrap_or_default();
    let DecisionReport { class, choice, .. } = decision;
    format!(
        "{}  {class}  {from}{choice}: {}{}",
        clock(now),
        decision.reason_words(),
        figures.unwrap_or_default()
    )
}

fn target(decision: &DecisionReport) -> String {
    let peer = decision.peer.as_deref().unwrap_or("a removed peer");
    let domain = decision.domain.as_ref().map(|domain| format!(", domain {domain}")).unwrap_or_default();
    format!("{peer}{domain}, {}/s", units::bytes(decision.bytes_per_second))
}

fn figures(decision: &DecisionReport, estimate: &EstimateReport) -> [(&'static str, String); 5] {
    let objective = format!("{}, blocks of {}", estimate.objective, units::bytes(estimate.block_bytes));
    let speed = |bytes: Option<f64>| bytes.map_or("-".to_owned(), |it| units::bytes(it as u64) + "/s");
    let unknown = || "unknown (none given, no limit met)".to_owned();
    let link = estimate.link_rate_bits_per_second.map_or_else(unknown, rate);
    let pays = match estimate.break_even_bits_per_second {
        Some(bits) => format!("pays on links up to {}", rate(bits)),
        None if estimate.pays == "always" => "pays on any link".to_owned(),
        None => "pays on no link".to_owned(),
    };
    let rejected = if estimate.method == decision.choice { "" } else { " (rejected)" };
    [
        ("objective", objective),
        (
            "estimate",
            format!(
                "{}{rejected}: ratio {:.2}, compression {} here, decompression {} at the peer, link rate {link}",
                estimate.method,
                estimate.ratio,
                speed(estimate.compress_bytes_per_second),
                speed(estimate.decompress_bytes_per_second)
            ),
        ),
        (
            "speedup",
            format!(
                "{:.2} pipelined, {:.2} serial; {pays}",
                estimate.pipelined_speedup, estimate.serial_speedup
            ),
        ),
        ("bottleneck", estimate.bottleneck.clone()),
        ("runner-up", runner_up(estimate)),
    ]
}

/// The time of every stage, without and with compression.
fn stages(estimate: &EstimateReport) -> String {
    let mut table = TextTable::new([
        "ms per block",
        "compress",
        "encrypt",
        "sender",
        "link",
        "receiver",
        "decrypt",
        "decompress",
        "total",
    ]);
    for (name, stages) in [("none", &estimate.uncompressed), (&estimate.method, &estimate.compressed)] {
        let StagesReport {
            compress_us,
            encrypt_us,
            sender_us,
            link_us,
            receiver_us,
            decrypt_us,
            decompress_us,
        } = *stages;
        let all = [compress_us, encrypt_us, sender_us, link_us, receiver_us, decrypt_us, decompress_us];
        let cells = all.into_iter().chain([all.iter().sum()]).map(|micros| format!("{:.3}", micros / 1e3));
        table.row(std::iter::once(name.to_owned()).chain(cells));
    }
    table.render(2)
}

fn rate(bits: f64) -> String {
    Rate::from_bits(bits as u64).map_or_else(|| format!("{bits:.0} bit/s"), |rate| rate.to_string())
}

/// The time of day in UTC, to the millisecond.
fn clock(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs() % 86_400, since.subsec_millis());
    format!("{:02}:{:02}:{:02}.{millis:03}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;

    /// A flow to `site-b`, compressed, with every figure.
    pub(crate) fn decision() -> DecisionReport {
        let stages = StagesReport {
            compress_us: 1_500.0,
            encrypt_us: 10.0,
            sender_us: 20.0,
            link_us: 120_000.0,
            receiver_us: 20.0,
            decrypt_us: 10.0,
            decompress_us: 80.0,
        };
        DecisionReport {
            class: "tcp 10.0.0.1:5000 -> 10.0.0.2:80".to_owned(),
            peer: Some("site-b".to_owned()),
            domain: Some("logs".to_owned()),
            bytes_per_second: 560_000,
            choice: "zstd-9".to_owned(),
            reason: "pays".to_owned(),
            age_seconds: 12.0,
            estimate: Some(EstimateReport {
                objective: "throughput".to_owned(),
                block_bytes: 65_000,
                method: "zstd-9".to_owned(),
                ratio: 2.831,
                compress_bytes_per_second: Some(43e6),
                decompress_bytes_per_second: Some(8.1e8),
                link_rate_bits_per_second: Some(1.5e6),
                break_even_bits_per_second: Some(3.4e8),
                pays: "below-break-even".to_owned(),
                uncompressed: StagesReport {
                    compress_us: 0.0,
                    decompress_us: 0.0,
                    link_us: 340_000.0,
                    ..stages
                },
                compressed: stages,
                bottleneck: "link".to_owned(),
                serial_speedup: 2.7,
                pipelined_speedup: 2.83,
                runner_up: Some("zstd-3".to_owned()),
                runner_up_slower_percent: Some(4.25),
            }),
        }
    }

    #[test]
    fn every_figure_of_a_decision_is_shown() {
        let shown = render("strait0", &[decision()]);
        let expected = "\
            strait0\n\n\
            tcp 10.0.0.1:5000 -> 10.0.0.2:80\n  \
            to           site-b, domain logs, 560 kB/s\n  \
            choice       zstd-9 since 12 s: takes the least time\n  \
            objective    throughput, blocks of 65.0 kB\n  \
            estimate     zstd-9: ratio 2.83, compression 43.0 MB/s here, decompression 810 MB/s at the peer, link rate 1.5 Mbit/s\n  \
            speedup      2.83 pipelined, 2.70 serial; pays on links up to 340 Mbit/s\n  \
            bottleneck   link\n  \
            runner-up    zstd-3, 4.2 % slower\n";
        assert!(shown.starts_with(expected), "{shown}");
        let table: Vec<&str> = shown.lines().rev().take(3).collect();
        assert!(
            table[0]
                .split_whitespace()
                .eq(["zstd-9", "1.500", "0.010", "0.020", "120.000", "0.020", "0.010", "0.080", "121.640"])
        );
    }

    #[test]
    fn queue_is_shown_by_peer() {
        let report = crate::show::text::tests::report();
        let shown = queues(&report.peers);
        assert!(
            shown.starts_with("\nqueue to site-b\n  queue        2.05 kB, delay 8 ms (max 21 ms)"),
            "{shown}"
        );
        assert_eq!(queues(&[]), "");
    }

    #[test]
    fn repair_is_explained_by_round_trip_loss_and_bursts() {
        let mut peer = crate::show::text::tests::report().peers.remove(0);
        let shown = repairs(std::slice::from_ref(&peer));
        let expected = "\nlosses on the path to site-b\n  \
            repair       on: lost payloads are sent again, which comes in time with a round trip of 58.4 ms (up to 140 ms)\n  \
            losses       1.25 % while no queue stood on the path, 1.2 datagrams one after another on average\n  \
            cost         60.0 kB (4.8 %) sent: 33 payloads again, 118 requests; 170 kB (0.0 %) received\n";
        assert_eq!(shown, expected);
        for (state, words) in [
            ("not-agreed", "off: `repair` is \"off\" at one end, or the peer cannot repair\n"),
            ("not-paced", "off: no rate is known; a rate is given in [link],"),
            ("few-losses", "on, and nothing is sent: a round trip of 58.4 ms is too long"),
            (
                "error-correction",
                "on: repair symbols, but none for so sparse traffic as now, as a round trip of 58.4 ms is too long",
            ),
        ] {
            peer.repair.as_mut().unwrap().state = state.to_owned();
            let shown = repairs(std::slice::from_ref(&peer));
            assert!(shown.contains(&format!("  repair       {words}")), "{shown}");
        }
        peer.repair = None;
        assert_eq!(repairs(&[peer]), "");
    }

    #[test]
    fn what_lengths_tell_is_shown_by_rule() {
        let shown = leaks(&crate::show::text::tests::report().rules);
        let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[3].join(" "), "1 logs buckets flow 2 340 same flow 2.6 292.8 0.3 (at most 0.9)");
        assert_eq!(lines[4].join(" "), "other flow 0.0 0.0 not measured");
        assert_eq!(leaks(&[]), "");
    }

    #[test]
    fn change_is_one_line() {
        let at = UNIX_EPOCH + Duration::from_millis(86_400_000 + 3_723_004);
        let line = change(&decision(), Some("none"), at);
        assert_eq!(
            line,
            "01:02:03.004Z  tcp 10.0.0.1:5000 -> 10.0.0.2:80  none -> zstd-9: takes the least time \
             (zstd-9 ratio 2.83, speedup 2.83, bottleneck link, link rate 1.5 Mbit/s)"
        );
        let random = DecisionReport {
            choice: "none".to_owned(),
            reason: "entropy-probe".to_owned(),
            estimate: None,
            ..decision()
        };
        let line = change(&random, None, at);
        assert!(
            line.ends_with("  none: skipped by the entropy probe (encrypted or compressed data)"),
            "{line}"
        );
    }

    #[test]
    fn no_decisions_are_reported() {
        assert!(render("strait0", &[]).contains("[[compress]]"));
    }
}
