//! Counters of history: of packets that leave alone, and of blocks.

use std::sync::atomic::AtomicU64;

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
    /// Blocks sent whose payloads are partly copies from the byte cache of their domain.
    pub out_copies: Tally,
    /// Bytes of payloads that were copied so.
    pub out_copied: Tally,
    /// Blocks received with such copies.
    pub in_copies: Tally,
    /// Bytes that the peer is known to hold in byte caches.
    pub out_held: AtomicU64,
    /// Bytes held here in byte caches for the peer.
    pub in_held: AtomicU64,
    /// Datagrams sent with nothing but receipts, or questions and answers about byte caches.
    pub receipts_out: Tally,
    /// Bytes on the wire that these took.
    pub receipts_wire: Tally,
}
