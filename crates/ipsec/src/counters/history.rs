//! Counters of history for packets that leave alone.

use super::Tally;

/// Lone units of one peer.
#[derive(Debug, Default)]
pub struct HistoryCounters {
    /// Packets sent coded against earlier ones, or to be kept for later ones.
    pub out_units: Tally,
    /// Bytes of ESP that these would have been without history.
    pub out_before: Tally,
    /// Bytes of ESP that they were.
    pub out_after: Tally,
    /// Packets received that were coded so.
    pub in_units: Tally,
    /// Datagrams sent with nothing but receipts.
    pub receipts_out: Tally,
    /// Bytes on the wire that these took.
    pub receipts_wire: Tally,
}
