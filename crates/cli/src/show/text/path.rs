//! The path to a peer, as people read it.

use std::time::Duration;

use strait_node::report::{PathReport, PeerReport};

use super::rate;
use crate::units;

/// The link rate to a peer: configured, or estimated with the pacing rate and what limits it.
pub(super) fn link_rate(peer: &PeerReport) -> String {
    let Some(path) = peer.path.as_ref() else { return configured(peer) };
    let Some(bits) = path.estimated_rate_bits_per_second else {
        let free = path.limited_by.is_some();
        return if free { "not paced, as no limit was met".to_owned() } else { configured(peer) };
    };
    let pacing =
        path.pacing_rate_bits_per_second.map_or(String::new(), |bits| format!(", pacing at {}", rate(bits)));
    let limited =
        path.limited_by.as_deref().map_or(String::new(), |limit| format!(", limited by {}", words(limit)));
    format!("{} (estimated){pacing}{limited}", rate(bits))
}

fn configured(peer: &PeerReport) -> String {
    peer.link_rate_bits_per_second.map_or(String::new(), rate)
}

/// What limits the sending rate, in words.
fn words(limit: &str) -> &str {
    match limit {
        "application" => "the traffic offered",
        "startup" => "the estimate, which is still growing",
        "link" => "the link",
        "configuration" => "the configured rate",
        other => other,
    }
}

/// What an earlier run found.
pub(super) fn remembered(path: &PathReport) -> String {
    let Some(found) = &path.remembered else { return String::new() };
    let link = found.rate_bits_per_second.map_or("no limit met".to_owned(), rate);
    let rtt = found.min_rtt_seconds.map_or(String::new(), |rtt| format!(", RTT {:.1} ms", rtt * 1e3));
    let age = units::span(Duration::from_secs(found.age_seconds));
    format!("{link}{rtt}, loss {:.1} %, found {age} ago", found.loss_ratio * 100.0)
}

/// Round-trip time, loss and delivery reports.
pub(super) fn state(path: &PathReport) -> String {
    let millis = |seconds: f64| format!("{:.1} ms", seconds * 1e3);
    let mut parts = Vec::new();
    if let Some(rtt) = path.rtt_seconds {
        let min = path.min_rtt_seconds.map_or(String::new(), |min| format!(" (min {})", millis(min)));
        parts.push(format!("RTT {}{min}", millis(rtt)));
    }
    if path.delivery_reports_received > 0 {
        parts.push(format!("loss {:.1} %", path.loss_ratio * 100.0));
    }
    if path.ecn_cleared {
        parts.push("clears ECN marks".to_owned());
    }
    let rejected = match path.delivery_reports_rejected {
        0 => String::new(),
        rejected => format!(" ({rejected} rejected)"),
    };
    parts.push(format!(
        "delivery reports: {} received{rejected}, {} sent ({})",
        path.delivery_reports_received,
        path.delivery_reports_sent,
        units::bytes(path.delivery_reports_sent_wire_bytes)
    ));
    parts.join(", ")
}
