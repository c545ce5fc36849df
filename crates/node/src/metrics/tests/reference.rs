//! `docs/reference/metrics.md` and `docs/reference/json.md` beside what a daemon serves and prints.

use std::time::Duration;

use strait_keying::sessionless::CacheCounts;

use super::*;
use crate::report::{
    CacheReport, EngineKind, EngineMethodReport, EngineReport, RefusalReport, SessionlessPeerReport,
    SessionlessReport, TroubleReport,
};
use strait_testdata::reference::{ReferenceRow, json_keys, rows};

/// The lines of a page that are about metrics of a node, or about drop reasons.
fn documented(drop_reasons: bool) -> Vec<ReferenceRow> {
    let mut rows = rows("metrics.md");
    // Its own tests have those.
    rows.retain(|row| row.heading != "The server of a directory");
    rows.retain(|row| (row.heading == "Drop reasons") == drop_reasons);
    rows
}

/// Name, type and labels of every metric; a report with all kinds of peers has all of them.
fn served() -> BTreeSet<(String, String, BTreeSet<String>)> {
    let text = text(&everything());
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let labels = |name: &str| {
        let samples = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
        let labels = samples.flat_map(|sample| sample.split("\"}").next().unwrap_or_default().split("\","));
        labels.filter_map(|label| Some(label.split_once("=\"")?.0.to_owned())).collect()
    };
    types.map(|(name, kind)| (name.to_owned(), kind.to_owned(), labels(name))).collect()
}

#[test]
fn every_metric_has_a_line_in_the_reference_and_every_line_a_metric() {
    let lines = documented(false).into_iter().map(|row| {
        let labels = row.cells[2].split(", ").filter(|label| *label != "-").map(str::to_owned).collect();
        (row.name().unwrap_or_default().to_owned(), row.cells[1].clone(), labels)
    });
    assert_eq!(served(), lines.collect());
}

#[test]
fn every_metric_has_help_and_a_sample() {
    let text = text(&everything());
    for (name, ..) in served() {
        let help = format!("# HELP {name} ");
        let words = text.lines().find_map(|line| line.strip_prefix(&help)).unwrap_or_default();
        assert!(words.len() > 8 && words.ends_with('.'), "{name}: {words}");
        let is_sample =
            |line: &str| line.strip_prefix(name.as_str()).is_some_and(|it| it.starts_with(['{', ' ']));
        assert!(text.lines().any(is_sample), "{name} has no sample");
    }
}

#[test]
fn every_drop_reason_has_a_line_in_the_reference_and_every_line_a_reason() {
    let reasons: Vec<&str> = strait_ipsec::Reason::ALL.iter().map(|reason| reason.name()).collect();
    let lines = documented(true);
    assert_eq!(reasons, lines.iter().filter_map(ReferenceRow::name).collect::<Vec<_>>());
}

#[test]
fn every_json_key_has_a_line_in_the_reference_and_every_line_a_key() {
    let mut found = BTreeSet::new();
    json_keys(&serde_json::to_value(everything()).unwrap(), "", None, &mut found);
    let mut lines = rows("json.md");
    lines.retain(|row| row.heading.starts_with("strait show"));
    let documented: BTreeSet<_> = lines.iter().filter_map(|row| row.name().map(str::to_owned)).collect();
    assert_eq!(found, documented);
}

/// A report in which nothing is left out.
pub(super) fn everything() -> DaemonReport {
    let session = peer();
    let manual = PeerReport {
        name: "gateway".to_owned(),
        keys: "manual".to_owned(),
        manual: Some(manual()),
        ..peer()
    };
    let mut report = report();
    let path = PathReport {
        pacing_rate_bits_per_second: Some(1_400_000),
        min_rtt_seconds: Some(0.04),
        ..session.path.clone().unwrap_or_default()
    };
    let trouble = Some(TroubleReport::default());
    let session = PeerReport { path: Some(path), trouble, last_handshake_age_seconds: Some(1.0), ..session };
    report.directory = Some(crate::report::DirectoryReport {
        not_taken: vec![crate::report::NotTakenReport { reason: "revoked".to_owned(), count: 1 }],
        look_ups: Some(crate::report::LookUpReport {
            ends: vec![crate::report::LookUpEndReport { end: "found".to_owned(), count: 1 }],
            ..crate::report::LookUpReport::default()
        }),
        daily_keys: Some(crate::report::DailyKeysReport {
            policy: "prefer".to_owned(),
            own_until: Some("2026-01-08".to_owned()),
            published: 1,
            peers: 1,
        }),
        caches: vec![cache("peers")],
        ..crate::report::DirectoryReport::default()
    });
    let sessionless = PeerReport {
        name: "outpost".to_owned(),
        keys: "sessionless".to_owned(),
        sessionless: Some(sessionless()),
        ..peer()
    };
    report.peers = vec![session, manual, sessionless];
    let refusals = vec![RefusalReport { reason: "forged".to_owned(), datagrams: 1 }];
    report.sessionless = Some(SessionlessReport { packet_keys: 1, caches: vec![cache("secrets")], refusals });
    report.decisions = Some(vec![decision()]);
    report.engines = vec![engine()];
    report.threads[0].compression =
        Some(CompressionLoadReport { busy_ratio: 0.5, queue_delay_seconds: 0.001, queued_blocks: 2 });
    report
}

fn cache(name: &str) -> CacheReport {
    let counts =
        CacheCounts { entries: 1, pinned: 1, hits: 1, misses: 1, evicted: 1, took: Duration::from_millis(2) };
    CacheReport::new(name, counts, Some(counts.took))
}

fn engine() -> EngineReport {
    let method = "lz4".to_owned();
    EngineReport {
        thread: "strait-out-1".to_owned(),
        kind: EngineKind::Worker,
        jobs: 1,
        job_share: Some(1.0),
        transfer_seconds: 2e-5,
        methods: vec![EngineMethodReport { method, jobs: 1, set_up_seconds: 1e-6, byte_seconds: 1e-9 }],
    }
}

fn sessionless() -> SessionlessPeerReport {
    SessionlessPeerReport {
        one_way: false,
        suite: "aes-256-gcm".to_owned(),
        hybrid: true,
        daily_key: Some("2026-01-01".to_owned()),
        daily_keys_until: Some("2026-01-08".to_owned()),
        has_session: false,
        outbound_spi: Some("0x04000001".to_owned()),
        acknowledged: true,
        key_age_seconds: Some(1.0),
        keys_begun: 1,
        inbound_spis: vec!["0x04000002".to_owned()],
        last_received_age_seconds: Some(1.0),
        last_sent_age_seconds: Some(1.0),
        refused: Some("the clock".to_owned()),
    }
}

fn manual() -> ManualReport {
    ManualReport {
        mode: "tunnel".to_owned(),
        carrier: "ip".to_owned(),
        local: Some("192.0.2.1".to_owned()),
        esn: true,
        protocols: vec![ProtocolReport {
            protocol: "esp".to_owned(),
            algorithms: vec!["aes-128-gcm".to_owned()],
            inbound_spi: "0x00002001".to_owned(),
            outbound_spi: "0x00002002".to_owned(),
        }],
        aggfrag: false,
        outer_fragmentation: false,
        last_sequence_number: 7,
        inbound_packets: 1,
        inbound_bytes: 2,
        outbound_packets: 3,
        outbound_bytes: 4,
        last_received_age_seconds: Some(0.5),
        last_sent_age_seconds: Some(0.5),
    }
}

fn decision() -> DecisionReport {
    let stages = StagesReport {
        compress_us: 1.0,
        encrypt_us: 1.0,
        sender_us: 1.0,
        link_us: 1.0,
        receiver_us: 1.0,
        decrypt_us: 1.0,
        decompress_us: 1.0,
    };
    let estimate = EstimateReport {
        objective: "throughput".to_owned(),
        block_bytes: 65_536,
        method: "zstd-3".to_owned(),
        ratio: 3.0,
        compress_bytes_per_second: Some(1e8),
        decompress_bytes_per_second: Some(1e9),
        link_rate_bits_per_second: Some(1.5e6),
        break_even_bits_per_second: Some(4e8),
        pays: "below-break-even".to_owned(),
        uncompressed: stages,
        compressed: stages,
        bottleneck: "link".to_owned(),
        serial_speedup: 2.9,
        pipelined_speedup: 3.0,
        runner_up: Some("lz4".to_owned()),
        runner_up_slower_percent: Some(4.0),
    };
    DecisionReport {
        class: "tcp 10.1.0.1:5000 -> 10.2.0.1:80".to_owned(),
        peer: Some("site-b".to_owned()),
        domain: Some("logs".to_owned()),
        bytes_per_second: 1,
        choice: "zstd-3".to_owned(),
        reason: "pays".to_owned(),
        age_seconds: 1.0,
        estimate: Some(estimate),
    }
}
