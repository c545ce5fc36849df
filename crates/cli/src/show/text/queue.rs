//! The queue before the link to a peer, as people read it.

use strait_node::report::QueueReport;

use crate::units::{self, counted};

/// Length, delay, marks and drops of the queue; nothing when no packet was ever queued or sent again.
pub(crate) fn length(queue: &QueueReport) -> String {
    let resent = (queue.resent_segments > 0)
        .then(|| format!("{} sent again after an outage", counted(queue.resent_segments, "TCP segment")));
    if queue.aggregates == 0 && queue.bytes == 0 {
        return resent.unwrap_or_default();
    }
    let lost = |count: u64, what: &str| (count > 0).then(|| format!("{} {what}", counted(count, "packet")));
    let acks = queue.thinned_acks;
    let thinned =
        (acks > 0).then(|| format!("{} replaced by newer ones", counted(acks, "TCP acknowledgement")));
    let all = [
        Some(occupancy(queue, true)),
        lost(queue.ecn_marked_packets, "ECN-marked"),
        lost(queue.aqm_dropped_packets, "dropped by CoDel"),
        lost(queue.overflow_dropped_packets, "dropped on overflow"),
        thinned,
        resent,
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Length and delay of the queue, if wanted with the largest delay.
pub(crate) fn occupancy(queue: &QueueReport, with_max: bool) -> String {
    let span = |seconds: f64| match units::seconds(seconds) {
        _ if seconds < 1e-3 => "under 1 ms".to_owned(),
        span => span,
    };
    let max = queue.max_delay_seconds.filter(|_| with_max);
    let max = max.map_or(String::new(), |max| format!(" (max {})", span(max)));
    let delay = queue.mean_delay_seconds.map_or(String::new(), |mean| format!(", delay {}{max}", span(mean)));
    units::bytes(queue.bytes) + &delay
}

/// Aggregates and their window; nothing when no packet was ever queued.
pub(crate) fn aggregation(queue: &QueueReport) -> String {
    let Some(packets) = queue.packets_per_aggregate else { return String::new() };
    match queue.window_packets {
        1 => "off (window 1)".to_owned(),
        window => format!("{packets:.1} packets per aggregate, window {window} packets"),
    }
}
