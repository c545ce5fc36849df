//! What is shown of a peer with manual keys.

use strait_clock::Time;
use strait_scheduler::Rate;

use crate::config::{Manual, ManualCarrier};
use crate::daemon::manual::ManualPeer;
use crate::report::{ManualReport, PeerReport};

/// `report` with what concerns manual keys.
pub(super) fn report(report: PeerReport, manual: &Manual, peer: &ManualPeer, now: Time) -> PeerReport {
    PeerReport {
        keys: "manual".to_owned(),
        endpoint: peer.endpoint().map(|endpoint| match manual.carrier {
            ManualCarrier::Udp => endpoint.to_string(),
            ManualCarrier::Ip(_) => endpoint.ip().to_string(),
        }),
        state: match (peer.is_stopped, peer.is_used_up) {
            (true, _) => "stopped",
            (false, true) => "used-up",
            (false, false) => "up",
        }
        .to_owned(),
        link_rate_bits_per_second: peer.rate.map(Rate::bits),
        manual: Some(pair(manual, peer, now)),
        ..report
    }
}

fn pair(manual: &Manual, peer: &ManualPeer, now: Time) -> ManualReport {
    let ago = |at: Time| now.since(at).as_secs_f64();
    ManualReport {
        last_sequence_number: peer.last_number(),
        inbound_packets: peer.inbound.packets(),
        inbound_bytes: peer.inbound.bytes(),
        outbound_packets: peer.outbound.packets(),
        outbound_bytes: peer.outbound.bytes(),
        last_received_age_seconds: peer.inbound.last().map(ago),
        last_sent_age_seconds: peer.outbound.last().map(ago),
        ..ManualReport::of(manual)
    }
}
