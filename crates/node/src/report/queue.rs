//! The queue before the link to a peer, as it is shown.

use serde::{Deserialize, Serialize};

/// The queue before the link to one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueReport {
    /// Bytes in the queue now.
    pub bytes: u64,
    /// Mean queueing delay in seconds; none when no packet was queued within the last two seconds.
    pub mean_delay_seconds: Option<f64>,
    /// Largest queueing delay in seconds within the last second or two.
    pub max_delay_seconds: Option<f64>,
    /// Aggregation window in packets; 0 before any packet was queued.
    pub window_packets: u64,
    /// Aggregates taken from the queue: one or more packets that were sent together.
    pub aggregates: u64,
    /// Mean number of packets in an aggregate.
    pub packets_per_aggregate: Option<f64>,
    /// Packets marked with ECN congestion experienced (CE) by CoDel.
    pub ecn_marked_packets: u64,
    /// Packets dropped by CoDel.
    pub aqm_dropped_packets: u64,
    /// Packets dropped because the queue was full.
    pub overflow_dropped_packets: u64,
    /// TCP acknowledgements that were not sent since a newer one told all that they did.
    pub thinned_acks: u64,
    /// TCP segments that were sent again at the end of an outage.
    pub resent_segments: u64,
}
