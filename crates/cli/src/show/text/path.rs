//! What is known of the path to a peer, as people read it.

use strait_node::report::PathReport;

use super::rate;

/// What the link was found to take, and what keeps the node from sending more.
pub(super) fn estimate(path: &PathReport) -> String {
    let Some(bits) = path.estimated_bits_per_second else { return String::new() };
    let sent_at =
        path.sent_at_bits_per_second.map_or(String::new(), |bits| format!(", sent at {}", rate(bits)));
    let limited = match path.limited_by.as_deref() {
        Some("traffic") => ", which is more than there is to send",
        Some("start") => " at least",
        Some("given rate") => ", no more since that rate was given",
        _ => "",
    };
    format!("{}{limited}{sent_at}", rate(bits))
}

/// How long packets take there and how many get lost, by the peer's reports.
pub(super) fn state(path: &PathReport) -> String {
    let millis = |seconds: f64| format!("{:.1} ms", seconds * 1e3);
    let mut said = Vec::new();
    if let Some(round) = path.round_trip_seconds {
        let least = path
            .least_round_trip_seconds
            .map_or(String::new(), |least| format!(" (least {})", millis(least)));
        said.push(format!("{} there and back{least}", millis(round)));
    }
    if path.reports_received > 0 {
        said.push(format!("{:.1} % lost", path.loss * 100.0));
    }
    let refused = match path.reports_refused {
        0 => String::new(),
        refused => format!(" ({refused} refused)"),
    };
    said.push(format!("{} reports in{refused}, {} out", path.reports_received, path.reports_sent));
    said.join(", ")
}
