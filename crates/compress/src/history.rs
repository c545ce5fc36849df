//! History for packets that leave alone: each is coded against earlier packets of its flow that the receiver has acknowledged.
//!
//! [`LoneSender`] and [`LoneReceiver`] are the two ends of one direction; [`ReceiptQueue`] is what the receiver's end sends back.
//!
//! The sender numbers contexts and their places ([`strait_wire::history`]). It refers only to a place whose packet was acknowledged, so
//! a lost unit, a lost receipt and reordering cost nothing but bytes. No reference is ever wrong: the receiver replaces the packet
//! of a place only by one of a newer unit, and the sender, once it has given a place to another packet, does not refer to the one
//! before any more. So a unit whose reference was replaced is older than the unit that replaced it, and the receiver refuses it
//! ([`HistoryError::Gone`]). A place that units referred to lately is not given away, so that takes more reordering than paths have.

mod bulk;
pub mod cache;
mod context;
mod late;
mod memory;
mod payload;
mod receipts;
mod receiver;
mod sender;
mod sent;

pub use bulk::{BlockPlan, BulkReceiver, BulkSender, HistoryBuffers, PREFIX_MAX, StreamKey};
pub use memory::{KeptMemory, MemoryShare, PeerMemory};
pub use receipts::ReceiptQueue;
pub use receiver::{LoneDecoded, LoneReceiver};
pub use sender::{LoneCoded, LoneSender, LoneTerms};
pub use sent::SentNumbers;

/// Longest payload that is kept: that of the largest packet of an Ethernet link with IPv4 and TCP.
pub const PAYLOAD_MAX: usize = 1_460;

/// Bytes that a context takes at most: payloads, headers and numbers of its places.
const CONTEXT_BYTES: usize = 24 << 10;

/// What shares a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HistoryScope {
    /// One flow: other flows learn nothing of it.
    #[default]
    Flow,
    /// All flows of one service between two hosts: an oracle between them, as a trust domain is.
    Service,
}

/// When a unit left: the association that it left on, in the order of their use, and its sequence number there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitNumber {
    /// Counted by each end for itself.
    pub association: u32,
    /// The ESP sequence number.
    pub number: u64,
}

/// Why a lone unit could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// It is not what [`LoneSender::encode`] writes.
    #[error("the unit is not coded as it can be")]
    Malformed,
    /// It refers to a packet that is not held.
    #[error("the unit refers to a packet that is not held any more")]
    Gone,
    /// It has a context beyond those agreed.
    #[error("the unit has a context beyond the {most} agreed")]
    OverBudget {
        /// Contexts agreed.
        most: usize,
    },
    /// Its packet is longer than the room for it.
    #[error("the packet of the unit is longer than {cap} bytes")]
    TooLong {
        /// Bytes of room.
        cap: usize,
    },
}

impl From<crate::headers::HeadersError> for HistoryError {
    fn from(_: crate::headers::HeadersError) -> HistoryError {
        HistoryError::Malformed
    }
}

/// Replaces a kept payload, and takes no more memory than the longest of a place.
fn keep_payload(place: &mut Vec<u8>, payload: &[u8]) {
    place.clear();
    place.reserve_exact(payload.len());
    place.extend_from_slice(payload);
}

#[cfg(test)]
mod tests;
