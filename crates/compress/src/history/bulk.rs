//! History of bulk: blocks of one flow, each compressed behind earlier ones of it that the receiver has acknowledged.
//!
//! [`BulkSender`] and [`BulkReceiver`] are the two ends of one direction. What is kept of a block are the payloads of its packets, one
//! after another, so that a stream of bytes goes on from block to block. The sender numbers the kept blocks of each *stream* and names
//! those that it compressed a block behind ([`strait_wire::history::BlockHistory`]). A number means the same bytes at both ends for as
//! long as they have it: a lost block was never kept, a lost receipt only means that a block is not referred to, and there is nothing
//! that a loss could reset.

mod receiver;
mod sender;

use strait_wire::history::BlockNumber;

pub use receiver::BulkReceiver;
pub use sender::{BlockPlan, BulkSender, StreamKey};

/// Bytes that a block is compressed behind at most: of 512 KiB text gains 2 to 6 % more, and takes three to five times the time.
pub const PREFIX_MAX: usize = 128 << 10;
/// Bytes of payloads that a sender counts on from the oldest block it refers to up to the newest it had kept: what one is compressed
/// behind, twice as much that waits for receipts, and as much again that blocks under way still refer to.
const SENDER_MAX: usize = 4 * PREFIX_MAX;
/// Bytes that a receiver keeps of a stream: half as much again, for blocks that were overtaken.
const RECEIVER_MAX: usize = 6 * PREFIX_MAX;
/// Blocks that a receiver keeps of a stream: as many of 6,144 bytes as [`RECEIVER_MAX`] are. Of smaller ones it keeps fewer bytes.
const RECEIVER_BLOCKS: usize = 128;
/// Blocks that a sender counts on; fewer for the same reason as [`SENDER_MAX`].
const SENDER_BLOCKS: usize = 96;
/// Stands in front of what a block is compressed behind, so that Zstandard never takes it for a dictionary of its own format, which
/// begins with 0x37 (RFC 8878 section 5).
const GUARD: u8 = 0;

/// Where a block finds what it is compressed behind, and leaves what others may be.
#[derive(Debug, Default)]
pub struct HistoryBuffers {
    /// The payloads of the blocks that it is compressed behind, the oldest first, and a byte in front of them; empty where there are
    /// none.
    pub prefix: Vec<u8>,
    /// The payloads of its own packets, once it was made or expanded.
    pub kept: Vec<u8>,
}

/// A buffer that takes at most twice the memory that what is in it does: one that was used for a larger block may take more.
fn fitting(mut payloads: Vec<u8>) -> Vec<u8> {
    if payloads.capacity() > 2 * payloads.len() {
        payloads.shrink_to_fit();
    }
    payloads
}

/// Which of the blocks that count on from the newest backwards a block is compressed behind, the oldest first.
fn named((newest, earlier): (BlockNumber, u32)) -> impl Iterator<Item = BlockNumber> {
    let before = (0..u32::BITS).rev().filter(move |bit| earlier & 1 << bit != 0);
    // The distance is 32 at most.
    let before = before.map(move |bit| newest.number().wrapping_sub(bit as u16 + 1));
    before.filter_map(BlockNumber::new).chain([newest])
}

#[cfg(test)]
mod tests;
