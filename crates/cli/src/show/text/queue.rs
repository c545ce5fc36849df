//! The queue before the link to a peer, as people read it.

use std::time::Duration;

use strait_node::report::QueueReport;

use crate::units::{self, counted};

/// Length, delay, marks and drops of the queue; nothing when no packet was ever queued.
pub(crate) fn length(queue: &QueueReport) -> String {
    if queue.aggregates == 0 && queue.bytes == 0 {
        return String::new();
    }
    let span = |seconds: f64| match units::span(Duration::try_from_secs_f64(seconds).unwrap_or_default()) {
        _ if seconds < 1e-3 => "under 1 ms".to_owned(),
        span => span,
    };
    let delay = queue.mean_delay_seconds.zip(queue.max_delay_seconds);
    let delay = delay.map(|(mean, max)| format!("delay {} (max {})", span(mean), span(max)));
    let lost = |count: u64, what: &str| (count > 0).then(|| format!("{} {what}", counted(count, "packet")));
    let acks = queue.thinned_acks;
    let thinned =
        (acks > 0).then(|| format!("{} replaced by newer ones", counted(acks, "TCP acknowledgement")));
    let all = [
        Some(units::bytes(queue.bytes)),
        delay,
        lost(queue.ecn_marked_packets, "ECN-marked"),
        lost(queue.aqm_dropped_packets, "dropped by CoDel"),
        lost(queue.overflow_dropped_packets, "dropped on overflow"),
        thinned,
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Aggregates and their window; nothing when no packet was ever queued.
pub(crate) fn aggregation(queue: &QueueReport) -> String {
    let Some(packets) = queue.packets_per_aggregate else { return String::new() };
    match queue.window_packets {
        1 => "off (window 1)".to_owned(),
        window => format!("{packets:.1} packets per aggregate, window {window} packets"),
    }
}
