//! The numbers of a key from a file, across starts: reserved on disk before they are used.
//!
//! ```text
//! on disk   last number reserved            +SLACK          +SLACK
//! in use    first ........ used ........ limit
//! ```
//!
//! A start takes over behind the last number that was reserved, used or not, so that a crash costs numbers and never
//! repeats one. The file has two records, each in a block of its own; they are written in turn, so that a write that
//! is torn leaves the other.

mod record;

use strait_ipsec::{Reserve, SequenceNumbers};

use super::Identity;
use record::{RECORD_LEN, Record, RecordSlot};

/// How far ahead numbers are reserved. Half of it lasts two seconds at a million packets a second, the most that a
/// data plane does, so one look a second is enough; and a 32-bit sequence number still survives a thousand crashes.
pub const SLACK: u64 = 1 << 22;
/// A record's distance to the other: the largest block that disks write in one piece.
const BLOCK: usize = 4096;
/// Bytes of a counter file.
pub const FILE_LEN: usize = 2 * BLOCK;

/// Why a counter file cannot be gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CounterError {
    /// It is something else, or damaged beyond recognition.
    #[error("it is not a counter file; name another, and if it ever was one, make new keys for both ends")]
    NotACounter,
    /// A later version of this program wrote it.
    #[error("a newer version of this program wrote it; use that version")]
    OtherVersion,
    /// Both records are damaged.
    #[error(
        "it is damaged, and the last sequence number is lost; make new keys for both ends, then remove it"
    )]
    Damaged,
    /// It counts for another key.
    #[error(
        "it belongs to other keys (SPI {found} out); name another file for new keys, and never use old keys again"
    )]
    OtherKeys {
        /// The outbound SPI that it counts for.
        found: strait_wire::Spi,
    },
    /// No number is left.
    #[error("all sequence numbers of these keys are used; make new keys for both ends, then remove it")]
    UsedUp,
}

/// A record that has to be safe on disk before anything follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "numbers are not reserved before this is on disk"]
pub struct Write {
    /// Where in the file it goes.
    pub at: u64,
    /// What is written there.
    pub bytes: [u8; RECORD_LEN],
    record: Record,
    slot: RecordSlot,
}

/// The numbers that an association may use now, and which of them are known to the disk.
#[derive(Debug)]
pub struct SequenceCounter {
    identity: Identity,
    /// The last number there is.
    last: u64,
    /// What the disk knows, and where; nothing before the first write.
    written: Option<(Record, RecordSlot)>,
    reserve: Reserve,
}

impl SequenceCounter {
    /// For keys that were never used: the first number is 1.
    #[must_use]
    pub fn new(identity: Identity, length: SequenceNumbers) -> SequenceCounter {
        SequenceCounter { identity, last: last(length), written: None, reserve: Reserve::new(1, 0) }
    }

    /// Goes on where `file` says that an earlier run may have been.
    ///
    /// # Errors
    /// [`CounterError`].
    pub fn resume(
        file: &[u8],
        identity: Identity,
        length: SequenceNumbers,
    ) -> Result<SequenceCounter, CounterError> {
        if file.len() != FILE_LEN {
            return Err(CounterError::NotACounter);
        }
        let (record, slot, reserved) = record::newest(file)?;
        if record.identity != identity {
            return Err(CounterError::OtherKeys { found: record.identity.spi });
        }
        let last = last(length);
        if reserved >= last {
            return Err(CounterError::UsedUp);
        }
        let reserve = Reserve::new(reserved + 1, reserved);
        Ok(SequenceCounter { identity, last, written: Some((record, slot)), reserve })
    }

    /// The numbers for the association; none may be used before the first [`SequenceCounter::due`] is written.
    #[must_use]
    pub fn reserve(&self) -> Reserve {
        self.reserve.clone()
    }

    /// The last number used, when the association has sealed `packets` since it was made.
    #[must_use]
    pub fn used(&self, packets: u64) -> u64 {
        self.reserve.first().saturating_add(packets) - 1
    }

    /// What to write when `packets` were sealed, if less than half of the slack is left.
    pub fn due(&self, packets: u64) -> Option<Write> {
        let (used, limit) = (self.used(packets), self.reserve.limit());
        let known = self.written.map_or(limit, |(record, _)| record.reserved);
        // Never further ahead of the other record than a start adds that finds the newer one damaged. After such a start,
        // the first write brings the record up to there, and only the next one reserves numbers.
        let next = self.last.min(used.saturating_add(SLACK)).min(known.saturating_add(SLACK));
        let low = limit.saturating_sub(used) < SLACK / 2;
        (low && next > known).then(|| self.write(next))
    }

    /// What to write at an orderly end, when `last` was the last number used and no other will be.
    pub fn close(&self, last: u64) -> Write {
        self.write(last.min(self.reserve.limit()))
    }

    /// Allows the numbers that are safe on disk now.
    pub fn written(&mut self, write: Write) {
        self.reserve.raise(write.record.reserved);
        self.written = Some((write.record, write.slot));
    }

    fn write(&self, reserved: u64) -> Write {
        let (age, slot) =
            self.written.map_or((0, RecordSlot::FIRST), |(record, slot)| (record.age, slot.other()));
        let record = Record { identity: self.identity, reserved, age: age + 1 };
        Write { at: slot.offset(), bytes: record.bytes(), record, slot }
    }
}

/// The last number that a packet can have: for an AEAD suite as much as the key is good for.
const fn last(length: SequenceNumbers) -> u64 {
    match length {
        SequenceNumbers::Bits32 => u32::MAX as u64,
        SequenceNumbers::Bits64 => strait_crypto::NonceCounter::LAST,
    }
}

#[cfg(test)]
mod tests;
