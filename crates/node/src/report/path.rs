//! The path to a peer, as it is shown.

use serde::{Deserialize, Serialize};
use strait_ipsec::PeerCounters;
use strait_scheduler::{LimitedBy, Rate};

/// The path to a peer, as measured with delivery reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Estimated link rate in bit/s of wire bytes; none where the link rate is configured, and while no limit was met.
    pub estimated_rate_bits_per_second: Option<u64>,
    /// Current pacing rate in bit/s of wire bytes; none where packets are not paced.
    pub pacing_rate_bits_per_second: Option<u64>,
    /// What limits the sending rate: `application` (no more traffic to send), `startup` (the node looks for a higher rate), `link`
    /// or `configuration` (the configured rate).
    pub limited_by: Option<String>,
    /// Smoothed round-trip time in seconds.
    pub rtt_seconds: Option<f64>,
    /// Minimum round-trip time of the last seconds, in seconds.
    pub min_rtt_seconds: Option<f64>,
    /// Share of datagrams lost on the path to the peer, 0 to 1.
    pub loss_ratio: f64,
    /// True if the path clears ECN marks; then datagrams are sent without them.
    pub ecn_cleared: bool,
    /// Delivery reports sent to the peer.
    pub delivery_reports_sent: u64,
    /// Bytes on the wire that they took: whole datagrams, or what they made others longer.
    pub delivery_reports_sent_wire_bytes: u64,
    /// Delivery reports received from the peer.
    pub delivery_reports_received: u64,
    /// Delivery reports received and rejected as inconsistent.
    pub delivery_reports_rejected: u64,
    /// What an earlier run, or an earlier time on this path, found of it; none where nothing is remembered.
    pub remembered: Option<RememberedReport>,
}

/// What was remembered of a path when it came in use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RememberedReport {
    /// The link rate found, in bit/s of wire bytes; none where no limit was met.
    pub rate_bits_per_second: Option<u64>,
    /// Minimum round-trip time in seconds.
    pub min_rtt_seconds: Option<f64>,
    /// Share of datagrams lost, 0 to 1.
    pub loss_ratio: f64,
    /// Seconds since it was found.
    pub age_seconds: u64,
}

impl PathReport {
    /// What was counted; nothing while neither end has sent a delivery report.
    #[must_use]
    pub fn of(counters: &PeerCounters) -> Option<PathReport> {
        let (sent, received) = (counters.reports_out.get(), counters.reports_in.get());
        if sent + received == 0 {
            return None;
        }
        let counted = PathReport {
            delivery_reports_sent: sent,
            delivery_reports_sent_wire_bytes: counters.reports_wire.get(),
            delivery_reports_received: received,
            ..PathReport::default()
        };
        let Some(measured) = counters.path.get() else { return Some(counted) };
        let estimate = measured.estimate;
        Some(PathReport {
            estimated_rate_bits_per_second: estimate.and_then(|it| it.rate).map(Rate::bits),
            pacing_rate_bits_per_second: estimate.and_then(|it| it.pacing).map(Rate::bits),
            limited_by: estimate.map(|it| LimitedBy::name(it.limited_by).to_owned()),
            rtt_seconds: measured.round_trip.map(|span| span.as_secs_f64()),
            min_rtt_seconds: measured.least_round_trip.map(|span| span.as_secs_f64()),
            loss_ratio: measured.loss,
            ecn_cleared: measured.clears_marks,
            delivery_reports_rejected: measured.refused,
            ..counted
        })
    }
}
