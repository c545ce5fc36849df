//! The receiver's end: payloads by their position, and blocks made again from them.

use strait_wire::history::{CacheDigests, CacheQuestion, POSITION_END, SegmentDigest};

use super::super::{HistoryError, MemoryShare};
use super::copies::Copies;
use super::ranges::Added;
use super::ring::Ring;
use super::stored::{held, positions};
use super::{CACHED_MAX, COPY_MIN, CacheCapacity, CachePosition, RestoreError};

/// What one peer asked to be kept for one trust domain.
#[derive(Debug)]
pub struct CacheReceiver {
    ring: Ring,
}

/// Why a payload is not kept. Its sender must get no receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeepError {
    /// It is shorter than [`COPY_MIN`], longer than [`CACHED_MAX`], or ends beyond the last position.
    #[error("a payload of {len} bytes cannot be kept there")]
    Impossible {
        /// Bytes of the payload.
        len: usize,
    },
    /// So many bytes of newer payloads came before it that its place may be needed.
    #[error("the payload is too old to be kept")]
    Old,
    /// A part of its place has another payload.
    #[error("a part of the payload's place has another")]
    Taken,
    /// The node's memory for what it keeps of peers is used up.
    #[error("there is no memory to keep the payload in")]
    NoMemory,
    /// Too many payloads were lost: what is held would be in too many pieces.
    #[error("what is kept would be in more than {most} pieces")]
    TooManyPieces {
        /// Pieces allowed.
        most: usize,
    },
}

impl CacheReceiver {
    /// Keeps so much. Memory is taken in segments as payloads come.
    #[must_use]
    pub fn new(capacity: CacheCapacity) -> CacheReceiver {
        CacheReceiver { ring: Ring::new(capacity) }
    }

    /// Takes its memory from this share.
    #[must_use]
    pub fn within(self, share: MemoryShare) -> CacheReceiver {
        CacheReceiver { ring: self.ring.within(share) }
    }

    /// Keeps a payload at the position that its sender gave it. The sender is to get a receipt, also if it was kept before.
    ///
    /// # Errors
    /// [`KeepError`]; the payload is not kept then.
    pub fn keep(&mut self, position: CachePosition, payload: &[u8]) -> Result<(), KeepError> {
        let impossible = KeepError::Impossible { len: payload.len() };
        let start = position.0;
        let end = start.checked_add(payload.len() as u64).ok_or(impossible)?;
        if !(COPY_MIN..=CACHED_MAX).contains(&payload.len()) || end > POSITION_END {
            return Err(impossible);
        }
        if start < self.ring.end().saturating_sub(self.ring.capacity().margin()) {
            return Err(KeepError::Old);
        }
        if !self.ring.make_room(start..end) {
            return Err(KeepError::NoMemory);
        }
        self.ring.extend(end);
        match self.ring.hold(start..end) {
            Added::New => self.ring.write(start, payload),
            // The sender may have begun anew and given the place twice.
            Added::Before if !self.ring.has(start, payload) => return Err(KeepError::Taken),
            Added::Before => {}
            Added::Partly => return Err(KeepError::Taken),
            Added::Full => return Err(KeepError::TooManyPieces { most: self.ring.most_ranges() }),
        }
        Ok(())
    }

    /// Puts the payload that `coded` says into the front of `out` and says how many bytes it is.
    ///
    /// The length of `out` is the cap: nothing is written past it, and no more is done than that many bytes take.
    ///
    /// # Errors
    /// [`HistoryError::Gone`] where it refers to what is not held, [`HistoryError::TooLong`] where `out` is too short,
    /// [`HistoryError::Malformed`] where it is not what [`CacheSender::encode`](super::CacheSender::encode) writes. The bytes of
    /// `out` mean nothing then.
    pub fn decode(&self, coded: &[u8], out: &mut [u8]) -> Result<usize, HistoryError> {
        let cap = out.len();
        let too_long = HistoryError::TooLong { cap };
        let (mut copies, mut between) = Copies::parse(coded, cap)?;
        let mut room = out;
        while let Some(copy) = copies.next()? {
            let here = between.split_off(..copy.between).ok_or(HistoryError::Malformed)?;
            room.split_off_mut(..here.len()).ok_or(too_long)?.copy_from_slice(here);
            let copied = room.split_off_mut(..copy.len).ok_or(too_long)?;
            if !self.ring.read(copy.position, copied) {
                return Err(HistoryError::Gone);
            }
        }
        room.split_off_mut(..between.len()).ok_or(too_long)?.copy_from_slice(between);
        Ok(cap - room.len())
    }

    /// Forgets everything: the sender begins anew, or is another one.
    pub fn clear(&mut self) {
        self.ring.clear();
    }

    /// Writes a segment of which more is held than when it was written last to the end of `out`, at most
    /// [`STORED_MAX`](super::STORED_MAX) bytes, the lowest first; its number. It may change again later.
    pub fn store_changed(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        self.ring.store_changed(out)
    }

    /// Writes a segment to the end of `out`, at most [`STORED_MAX`](super::STORED_MAX) bytes; false where nothing of it is held.
    pub fn store(&self, number: u64, out: &mut Vec<u8>) -> bool {
        self.ring.store(number, out)
    }

    /// Takes what [`CacheReceiver::store_changed`] wrote. Segments come in the order of their numbers, before anything is kept.
    ///
    /// # Errors
    /// [`RestoreError`]; everything stays as it was then.
    pub fn restore(&mut self, stored: &[u8]) -> Result<(), RestoreError> {
        self.ring.restore(stored).map(drop)
    }

    /// What is held of the segments that the sender asks for, in at most `room` bytes. It hashes them: at most 4 MiB.
    #[must_use]
    pub fn digests(&self, question: CacheQuestion, room: usize) -> CacheDigests {
        let mut answer = CacheDigests::new(question, self.ring.end().min(POSITION_END));
        let mut left = room.saturating_sub(answer.wire_len());
        for number in self.ring.held_below(question.below) {
            let mut digest = SegmentDigest::new(number);
            let start = positions(number).start;
            for range in self.ring.held_in(number) {
                // Both are no more than a segment has.
                if !digest.push((range.start - start) as u32, (range.end - range.start) as u32) {
                    break;
                }
            }
            digest.hash = self.ring.hash(held(&digest));
            let fits = left.checked_sub(digest.wire_len());
            let Some(behind) = fits.filter(|_| answer.push(digest)) else { break };
            left = behind;
        }
        answer
    }

    /// How much is kept.
    #[must_use]
    pub const fn capacity(&self) -> CacheCapacity {
        self.ring.capacity()
    }

    /// Bytes of payloads that are held.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.ring.held().bytes()
    }

    /// Bytes of memory that payloads take.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.ring.allocated()
    }
}
