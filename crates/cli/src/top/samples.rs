//! Answers of daemons, for tests.

use std::time::Duration;

use strait_node::report::{DaemonReport, DecisionReport, EstimateReport, StagesReport};

use super::figures::Poll;
pub(super) use crate::show::text::tests::report;

/// An answer at this time, in milliseconds.
pub(super) fn at(millis: u64, report: DaemonReport) -> Poll {
    Poll { report, at: Duration::from_millis(millis) }
}

/// A flow to `site-b`, compressed.
pub(super) fn decision(class: &str, bytes_per_second: u64) -> DecisionReport {
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
        class: class.to_owned(),
        peer: Some("site-b".to_owned()),
        domain: Some("logs".to_owned()),
        bytes_per_second,
        choice: "zstd-9".to_owned(),
        reason: "pays".to_owned(),
        age_seconds: 12.0,
        estimate: Some(EstimateReport {
            objective: "throughput".to_owned(),
            block_bytes: 65_000,
            method: "zstd-9".to_owned(),
            ratio: 2.5,
            compress_bytes_per_second: Some(43e6),
            decompress_bytes_per_second: Some(8.1e8),
            link_rate_bits_per_second: Some(1.5e6),
            break_even_bits_per_second: Some(3.4e8),
            pays: "below-break-even".to_owned(),
            uncompressed: StagesReport { compress_us: 0.0, decompress_us: 0.0, link_us: 340_000.0, ..stages },
            compressed: stages,
            bottleneck: "link".to_owned(),
            serial_speedup: 2.4,
            pipelined_speedup: 2.5,
            runner_up: Some("zstd-3".to_owned()),
            runner_up_slower_percent: Some(4.2),
        }),
    }
}
