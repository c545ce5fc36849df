//! Second-level chunks: where old and new differ, what of the old is in the new.

use std::collections::BTreeMap;
use std::io;

use super::chunks::{DeltaSource, FINE};
use super::ids::{ChunkKey, FINE_LEN, FineId};
use super::number::{read_small, take, unzigzag, write_number, zigzag};
use super::{BadDelta, Signature, WINDOW};

/// Bytes of the old file that fine chunks are made of for one window at most.
const BYTES: usize = 2 * WINDOW;
/// Fine chunks of a window at most.
const CHUNKS: usize = BYTES / FINE.min;
/// Runs of chunks in a question at most: one for each second chunk of a window.
const RUNS: usize = WINDOW / (16 << 10);

/// A question: the ids of the fine chunks in these runs of first-level chunks of the old file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FineAsk {
    /// The number of each run's first chunk, and how many chunks it has.
    pub(super) runs: Vec<(u32, u32)>,
}

impl FineAsk {
    /// Whether nothing is asked: the window needs no answer.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds a run, unless there are too many.
    pub(super) fn add(&mut self, first: u32, count: u32) {
        if count > 0 && self.runs.len() < RUNS {
            self.runs.push((first, count));
        }
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> Vec<u8> {
        let (mut message, mut next) = (Vec::new(), 0);
        for (first, count) in &self.runs {
            write_number(zigzag(i64::from(*first) - next), &mut message);
            write_number(u64::from(*count), &mut message);
            next = i64::from(*first) + i64::from(*count);
        }
        message
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`BadDelta`] if it is none.
    pub fn parse(message: &[u8]) -> Result<FineAsk, BadDelta> {
        let (mut rest, mut next, mut ask) = (message, 0_i64, FineAsk::default());
        while !rest.is_empty() {
            if ask.runs.len() == RUNS {
                return Err(BadDelta::TooMany { what: "runs" });
            }
            let difference = unzigzag(u64::from(read_small(&mut rest)?));
            let first = u32::try_from(next + difference).map_err(|_| BadDelta::TooLarge)?;
            let count = read_small(&mut rest)?;
            if count == 0 {
                return Err(BadDelta::Impossible { what: "empty run" });
            }
            ask.runs.push((first, count));
            next = i64::from(first) + i64::from(count);
        }
        Ok(ask)
    }
}

/// The fine chunks of one question: their ids, and at the end that has the old file where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FineIds {
    ids: Vec<FineId>,
    places: Vec<(u64, u32)>,
}

impl FineIds {
    /// No fine chunks.
    pub const NONE: FineIds = FineIds { ids: Vec::new(), places: Vec::new() };

    /// The chunks that `ask` asks for.
    pub(super) fn of(
        signature: &Signature,
        ask: &FineAsk,
        key: &ChunkKey,
        old: &mut impl DeltaSource,
    ) -> io::Result<FineIds> {
        let (mut fine, mut left) = (FineIds::default(), BYTES);
        let mut bytes = Vec::new();
        for (first, count) in &ask.runs {
            bytes.clear();
            // Where each chunk's bytes begin in `bytes`, and in the old file.
            let mut starts: Vec<(usize, u64)> = Vec::new();
            for chunk in *first..first.saturating_add(*count) {
                let Some((offset, len)) = signature.place(chunk).filter(|(_, len)| *len <= left) else {
                    break;
                };
                let there = bytes.len();
                starts.push((there, offset));
                bytes.resize(there + len, 0);
                old.read_exact_at(offset, &mut bytes[there..])?;
                left -= len;
            }
            fine.add(&bytes, &starts, key);
        }
        Ok(fine)
    }

    /// Adds the chunks of a run; one that spans a hole cannot be referred to by one place, and is left out.
    fn add(&mut self, bytes: &[u8], starts: &[(usize, u64)], key: &ChunkKey) {
        let mut at = 0;
        for chunk in FINE.all(bytes) {
            let coarse = |at: usize| starts.partition_point(|(start, _)| *start <= at).saturating_sub(1);
            let (first, last) = (coarse(at), coarse(at + chunk.len() - 1));
            let place = |coarse: usize, at: usize| starts[coarse].1 + (at - starts[coarse].0) as u64;
            let (begins, ends) = (place(first, at), place(last, at + chunk.len() - 1));
            if ends - begins == chunk.len() as u64 - 1 {
                self.ids.push(key.fine(chunk));
                self.places.push((begins, chunk.len() as u32));
            }
            at += chunk.len();
        }
    }

    /// The message: 5 bytes a chunk.
    #[must_use]
    pub fn message(&self) -> Vec<u8> {
        self.ids.iter().flat_map(|id| id.to_le_bytes().into_iter().take(FINE_LEN)).collect()
    }

    /// Reads a message; where the chunks are only the other end knows.
    ///
    /// # Errors
    /// [`BadDelta`] if it is none.
    pub fn parse(message: &[u8]) -> Result<FineIds, BadDelta> {
        if message.len() / FINE_LEN > CHUNKS {
            return Err(BadDelta::TooMany { what: "fine chunks" });
        }
        let (mut rest, mut ids) = (message, Vec::with_capacity(message.len() / FINE_LEN));
        while !rest.is_empty() {
            let id = take(&mut rest, FINE_LEN)?;
            ids.push(id.iter().rev().fold(0, |id, byte| id << 8 | u64::from(*byte)));
        }
        Ok(FineIds { ids, places: Vec::new() })
    }

    /// Where the chunk of this number is.
    pub(super) fn place(&self, chunk: u32) -> Option<(u64, usize)> {
        self.places.get(chunk as usize).map(|(offset, len)| (*offset, *len as usize))
    }

    /// The chunks by id, for a sender.
    pub(super) fn index(&self) -> FineIndex<'_> {
        let by_id = self.ids.iter().enumerate().rev().map(|(place, id)| (*id, place as u32)).collect();
        FineIndex { ids: &self.ids, by_id }
    }
}

/// Fine chunks by id.
#[derive(Debug)]
pub(super) struct FineIndex<'a> {
    ids: &'a [FineId],
    /// Of chunks with the same id, the first.
    by_id: BTreeMap<FineId, u32>,
}

impl FineIndex<'_> {
    /// A chunk with this id: `expected` if it has it, else the first.
    pub(super) fn find(&self, id: FineId, expected: u32) -> Option<u32> {
        if self.ids.get(expected as usize) == Some(&id) {
            return Some(expected);
        }
        self.by_id.get(&id).copied()
    }
}
