//! What is said of the queue before the link to a peer.

use serde::{Deserialize, Serialize};

/// The queue before the link to one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueReport {
    /// Bytes in it.
    pub bytes: u64,
    /// Seconds that packets waited in it, on average; none when none did within the last two seconds.
    pub delay_seconds: Option<f64>,
    /// Seconds that a packet waited in it at worst within the last second or two.
    pub worst_delay_seconds: Option<f64>,
    /// Packets among which one finds company; 0 before anything waited.
    pub window: u64,
    /// Units that left it: packets alone, or in company.
    pub units: u64,
    /// Packets in them on average.
    pub packets_per_unit: Option<f64>,
    /// Packets marked because their flow waited too long.
    pub marked: u64,
    /// Packets dropped for the same reason.
    pub late: u64,
    /// Packets dropped because the queue was full.
    pub overflow: u64,
}
