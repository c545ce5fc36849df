//! History of packets that leave alone, and of blocks, as it is shown.

use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use strait_ipsec::PeerCounters;

/// Packets and blocks that were coded against earlier ones, and what that saved and took.
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
    /// Blocks sent compressed behind earlier ones.
    pub sent_blocks: u64,
    /// Some of these were compressed both ways to see what history gives: bytes without it.
    pub compared_bytes_alone: u64,
    /// Bytes of the same blocks as they were sent.
    pub compared_bytes_behind: u64,
    /// Blocks received that were compressed behind earlier ones.
    pub received_blocks: u64,
    /// Blocks sent whose payloads are partly copies from the byte cache of their domain.
    pub sent_copies: u64,
    /// Bytes of payloads that were copied so.
    pub copied_bytes: u64,
    /// Blocks received with such copies.
    pub received_copies: u64,
    /// Bytes that the peer is known to hold in byte caches.
    pub held_bytes_there: u64,
    /// Bytes held here in byte caches for the peer.
    pub held_bytes_here: u64,
    /// Datagrams sent with nothing but receipts for what was kept.
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
            sent_blocks: counted.out_blocks.get(),
            compared_bytes_alone: counted.compared_alone.get(),
            compared_bytes_behind: counted.compared_behind.get(),
            received_blocks: counted.in_blocks.get(),
            sent_copies: counted.out_copies.get(),
            copied_bytes: counted.out_copied.get(),
            received_copies: counted.in_copies.get(),
            held_bytes_there: counted.out_held.load(Ordering::Relaxed),
            held_bytes_here: counted.in_held.load(Ordering::Relaxed),
            receipts_sent: counted.receipts_out.get(),
            receipts_sent_wire_bytes: counted.receipts_wire.get(),
        }
    }
}
