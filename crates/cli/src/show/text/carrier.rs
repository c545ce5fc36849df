//! What carries ESP, as people read it.

use strait_node::report::CarrierReport;

/// What carries ESP to the peer, and why not what was asked for; nothing where UDP was.
pub(super) fn state(carrier: &CarrierReport) -> String {
    match (carrier.configured.as_str(), carrier.sending.as_str(), &carrier.reason) {
        ("udp", "udp", _) => String::new(),
        (_, "ip", _) => "directly behind IP (protocol 50)".to_owned(),
        (_, _, None) => "UDP".to_owned(),
        (_, _, Some(reason)) => format!("UDP ({reason})"),
    }
}
