//! Answers of daemons, for tests.

use std::time::Duration;

use strait_node::report::{DaemonReport, DecisionReport, EstimateReport};

use super::figures::Poll;
pub(super) use crate::show::text::tests::report;

/// An answer at this time, in milliseconds.
pub(super) fn at(millis: u64, report: DaemonReport) -> Poll {
    Poll { report, at: Duration::from_millis(millis) }
}

/// A flow to `site-b`, compressed.
pub(super) fn decision(class: &str, bytes_per_second: u64) -> DecisionReport {
    let sample = crate::why::text::tests::decision();
    let estimate = sample.estimate.map(|estimate| EstimateReport {
        ratio: 2.5,
        serial_speedup: 2.4,
        pipelined_speedup: 2.5,
        runner_up_slower_percent: Some(4.2),
        ..estimate
    });
    DecisionReport { class: class.to_owned(), bytes_per_second, estimate, ..sample }
}
