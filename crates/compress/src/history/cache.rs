//! The byte cache of a trust domain: payloads of blocks that the receiver has acknowledged, and blocks said by copying from them.
//!
//! [`CacheSender`] and [`CacheReceiver`] are the two ends of one direction. The sender gives the payload of each block that is to be
//! kept a position in a log that only grows; the receiver stores it at that position, modulo the capacity that both ends agreed on.
//! A block is then said as copies from positions and the bytes between them, and compressed by a codec after that.
//!
//! The sender refers only to what a receipt said is held. A position never means anything else while it can be referred to, so a
//! lost block leaves a gap, a lost receipt costs bytes only, and nothing is ever reset. A reference that cannot be followed is
//! refused ([`HistoryError::Gone`](super::HistoryError::Gone)): the receiver looks up addresses, it does not guess.
//!
//! Segments of the log can be [stored](CacheReceiver::store), [sealed](SegmentVault), and restored. After one end was restarted, the
//! receiver says [a hash for each segment](CacheReceiver::digests), and the sender refers to what is
//! [the same](CacheSender::confirm).
//!
//! What was sent in one flow makes blocks of another shorter, as in a block of both: all flows of the domain are an oracle for each
//! other, and what was said long ago can be asked for.

use strait_wire::history::SEGMENT_LEN;

mod anchors;
mod copies;
mod finder;
mod index;
mod ranges;
mod receiver;
mod ring;
mod sealed;
mod sender;
mod stored;

pub use receiver::{CacheReceiver, KeepError};
pub use sealed::{CacheOwner, CacheRole, SEALED_MAX, SEED, SegmentVault};
pub use sender::{CacheCoded, CacheSender};
pub use stored::{RestoreError, STORED_MAX};

/// Longest payload that is kept, in bytes: what a block expands to at most.
pub const CACHED_MAX: usize = 1 << 16;

/// Shortest copy, in bytes, and so the shortest payload that is kept: as many as the hash of an anchor depends on. A copy takes 5 to 9
/// bytes; a codec takes a third to a fourth of what it replaces. After Zstandard, text with edited lines took a fifth less
/// than with 32 bytes, and a twentieth less than with 48.
pub const COPY_MIN: usize = 64;

/// Bytes of a segment: memory is taken, and would be stored, in these.
pub const SEGMENT: usize = SEGMENT_LEN as usize;

/// How much a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheCapacity {
    bytes: u64,
}

impl CacheCapacity {
    /// The least: four times the least [margin](CacheCapacity::margin).
    pub const MIN: u64 = 4 << 20;
    /// The most: where the index of a sender says positions by 36 bits, these are still told from what was overwritten.
    pub const MAX: u64 = 32 << 30;

    /// So many bytes, rounded down to whole segments; `None` beyond the limits.
    #[must_use]
    pub const fn new(bytes: u64) -> Option<CacheCapacity> {
        match bytes {
            CacheCapacity::MIN..=CacheCapacity::MAX => {
                Some(CacheCapacity { bytes: bytes - bytes % SEGMENT as u64 })
            }
            _ => None,
        }
    }

    /// Bytes of it.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.bytes
    }

    /// By how many bytes of the log blocks may overtake each other, and how many may wait for their receipts: an eighth, and at
    /// least 1 MiB, which is 40 blocks. What is nearer than this to being overwritten is not referred to.
    #[must_use]
    pub const fn margin(self) -> u64 {
        let eighth = self.bytes / 8;
        if eighth < SEGMENT as u64 { SEGMENT as u64 } else { eighth }
    }

    /// The first position that is still held where the log ends at `end`.
    const fn oldest(self, end: u64) -> u64 {
        end.saturating_sub(self.bytes)
    }

    /// The first position that a block may refer to where the log ends at `end`.
    const fn referable(self, end: u64) -> u64 {
        end.saturating_sub(self.bytes - self.margin())
    }

    /// What is before this position cannot be referred to any more after another quarter of the capacity.
    const fn ageing(self, end: u64) -> u64 {
        end.saturating_sub(self.bytes - self.margin() - self.bytes / 4)
    }
}

/// What two nodes call the trust domain with this name: 8 bytes of its hash, which say as little of the name as others can guess.
#[must_use]
pub fn domain_tag(name: &str) -> u64 {
    let hash = blake3::derive_key("strait cache domain 1", name.as_bytes());
    let [a, b, c, d, e, f, g, h, ..] = hash;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// Where in the log a payload begins, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CachePosition(pub u64);

#[cfg(test)]
mod tests;
