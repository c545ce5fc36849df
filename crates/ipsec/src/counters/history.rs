//! Counters of history: of packets that leave alone, and of blocks.

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
    /// Blocks sent compressed behind earlier ones.
    pub out_blocks: Tally,
    /// Some of these were compressed both ways to see what history gives: bytes without it.
    pub compared_alone: Tally,
    /// Bytes of the same blocks behind earlier ones, as they were sent.
    pub compared_behind: Tally,
    /// Blocks received that were compressed behind earlier ones.
    pub in_blocks: Tally,
    /// Datagrams sent with nothing but receipts.
    pub receipts_out: Tally,
    /// Bytes on the wire that these took.
    pub receipts_wire: Tally,
}
