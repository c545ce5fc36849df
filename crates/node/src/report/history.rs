//! History of packets that leave alone, as it is shown.

use serde::{Deserialize, Serialize};
use strait_ipsec::PeerCounters;

/// Packets that were coded against earlier ones, and what that saved and took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryReport {
    /// Packets sent alone and coded against earlier ones, or to be kept for later ones.
    pub coded_packets: u64,
    /// Bytes of ESP that these would have been without history.
    pub bytes_before: u64,
    /// Bytes of ESP that they were.
    pub bytes_after: u64,
    /// Packets received that were coded so.
    pub received_packets: u64,
    /// Datagrams sent with nothing but receipts for kept packets.
    pub receipts_sent: u64,
    /// Wire bytes that these took.
    pub receipts_sent_wire_bytes: u64,
}

impl HistoryReport {
    /// What was counted.
    #[must_use]
    pub fn of(counters: &PeerCounters) -> HistoryReport {
        let counted = &counters.history;
        HistoryReport {
            coded_packets: counted.out_units.get(),
            bytes_before: counted.out_before.get(),
            bytes_after: counted.out_after.get(),
            received_packets: counted.in_units.get(),
            receipts_sent: counted.receipts_out.get(),
            receipts_sent_wire_bytes: counted.receipts_wire.get(),
        }
    }
}
