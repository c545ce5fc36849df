//! What is shown of the path to a peer.

use serde::{Deserialize, Serialize};
use strait_ipsec::PeerCounters;
use strait_scheduler::LimitedBy;

/// What a peer's reports tell of the path to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// What the link was found to take, in bit/s of wire bytes, where that is to be found out.
    pub estimated_bits_per_second: Option<u64>,
    /// At what rate is sent just now.
    pub sent_at_bits_per_second: Option<u64>,
    /// What keeps this node from sending more: `traffic`, of which there is no more, the `start` of finding out, the `link`,
    /// or the `given rate`.
    pub limited_by: Option<String>,
    /// Seconds there and back, smoothed.
    pub round_trip_seconds: Option<f64>,
    /// The least of the last seconds.
    pub least_round_trip_seconds: Option<f64>,
    /// The share of datagrams that does not arrive.
    pub loss: f64,
    /// Reports of what arrived here.
    pub reports_sent: u64,
    /// Reports of what arrived there.
    pub reports_received: u64,
    /// Those among them that could not be.
    pub reports_refused: u64,
}

impl PathReport {
    /// What was counted; nothing while neither end has reported.
    #[must_use]
    pub fn of(counters: &PeerCounters) -> Option<PathReport> {
        let (sent, received) = (counters.reports_out.get(), counters.reports_in.get());
        if sent + received == 0 {
            return None;
        }
        let counted = PathReport { reports_sent: sent, reports_received: received, ..PathReport::default() };
        let Some(told) = counters.path.get() else { return Some(counted) };
        let estimate = told.estimate;
        Some(PathReport {
            estimated_bits_per_second: estimate.map(|it| it.rate.bits()),
            sent_at_bits_per_second: estimate.map(|it| it.pacing.bits()),
            limited_by: estimate.map(|it| LimitedBy::name(it.limited_by).to_owned()),
            round_trip_seconds: told.round_trip.map(|span| span.as_secs_f64()),
            least_round_trip_seconds: told.least_round_trip.map(|span| span.as_secs_f64()),
            loss: told.loss,
            reports_refused: told.refused,
            ..counted
        })
    }
}
