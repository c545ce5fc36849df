//! The queue before the link to a peer, in words.

use std::time::Duration;

use strait_node::report::QueueReport;

use crate::units::{self, counted};

/// What waits and how long, in what company it leaves, and what was lost; nothing when nothing ever waited.
pub(crate) fn words(queue: &QueueReport) -> String {
    if queue.units == 0 && queue.bytes == 0 {
        return String::new();
    }
    let span = |seconds: f64| match units::span(Duration::from_secs_f64(seconds)) {
        _ if seconds < 1e-3 => "under 1 ms".to_owned(),
        span => span,
    };
    let delay = queue.delay_seconds.zip(queue.worst_delay_seconds);
    let delay =
        delay.map(|(mean, worst)| format!("waited {} on average and {} at worst", span(mean), span(worst)));
    let bytes = (queue.bytes > 0).then(|| format!("{} waiting", units::bytes(queue.bytes)));
    let company = queue.packets_per_unit.map(|packets| match queue.window {
        1 => "each packet leaves by itself".to_owned(),
        window => format!("{packets:.1} packets leave together, found among {window}"),
    });
    let lost = |count: u64, what: &str| (count > 0).then(|| format!("{} {what}", counted(count, "packet")));
    let all = [
        bytes,
        delay,
        company,
        lost(queue.marked, "marked for waiting too long"),
        lost(queue.late, "dropped for waiting too long"),
        lost(queue.overflow, "dropped since the queue was full"),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
