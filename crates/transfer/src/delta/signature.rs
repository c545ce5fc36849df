//! Ids of the first-level chunks of a file: made by the end that has it, searched by the end that sends another.

use std::io;
use std::ops::Range;

use super::chunks::{ChunkCutter, ChunkSizes, DeltaSource};
use super::ids::{COARSE_LEN, ChunkKey, CoarseId};
use super::number::{read_number, read_small, take, write_number};
use super::{BadDelta, FineAsk, FineIds};

/// First-level chunks at most: twice what a file of any size has on average. Both ends take 12 to 16 bytes for each.
const CHUNKS: usize = 1 << 21;
/// Ids in one message at most: 1 MiB with their head.
const IDS_A_MESSAGE: usize = 1 << 16;

/// The first-level chunks of a file that this end has.
#[derive(Debug)]
pub struct Signature {
    key: ChunkKey,
    sizes: ChunkSizes,
    ids: Vec<CoarseId>,
    /// Where each chunk is.
    offsets: Vec<u64>,
    lengths: Vec<u32>,
}

impl Signature {
    /// Reads `old`, a file of `size` bytes whose data lies in `ranges` (in order; the rest is holes). Nothing if it has more chunks
    /// than this end takes memory for; the file is then sent whole.
    ///
    /// # Errors
    /// Those of reading.
    pub fn of(
        old: &mut impl DeltaSource,
        size: u64,
        ranges: impl Iterator<Item = Range<u64>>,
        key: ChunkKey,
    ) -> io::Result<Option<Signature>> {
        let sizes = ChunkSizes::coarse(size);
        let mut signature =
            Signature { key, sizes, ids: Vec::new(), offsets: Vec::new(), lengths: Vec::new() };
        let mut cutter = ChunkCutter::new(sizes, ranges);
        while let Some((offset, chunk)) = cutter.next_chunk(old)? {
            if signature.ids.len() == CHUNKS {
                return Ok(None);
            }
            signature.ids.push(key.coarse(chunk));
            signature.offsets.push(offset);
            // At most `AVERAGE_MAX` times four.
            signature.lengths.push(chunk.len() as u32);
        }
        Ok(Some(signature))
    }

    /// The message of this number, counted from 0, of at most 0.5 MiB; nothing after the last. Every signature has a first.
    #[must_use]
    pub fn message(&self, number: usize) -> Option<Vec<u8>> {
        let from = number.checked_mul(IDS_A_MESSAGE)?;
        let ids = self.ids.get(from..).filter(|ids| number == 0 || !ids.is_empty())?;
        let ids = &ids[..ids.len().min(IDS_A_MESSAGE)];
        let mut message = Vec::with_capacity(ids.len() * COARSE_LEN + 16);
        write_number(self.sizes.average as u64, &mut message);
        write_number(self.ids.len() as u64, &mut message);
        for id in ids {
            message.extend_from_slice(&id.to_le_bytes());
        }
        Some(message)
    }

    /// Answers a question for fine chunks: the message, and what [`super::PatchWindow::apply`] needs to know of them.
    ///
    /// It reads at most 8 MiB of `old`; what is asked beyond that is not answered.
    ///
    /// # Errors
    /// Those of reading.
    pub fn fine(&self, ask: &FineAsk, old: &mut impl DeltaSource) -> io::Result<FineIds> {
        FineIds::of(self, ask, &self.key, old)
    }

    /// Where the chunk of this number is.
    pub(super) fn place(&self, chunk: u32) -> Option<(u64, usize)> {
        let chunk = usize::try_from(chunk).ok()?;
        Some((*self.offsets.get(chunk)?, *self.lengths.get(chunk)? as usize))
    }

    /// The key of its ids.
    #[must_use]
    pub const fn key(&self) -> &ChunkKey {
        &self.key
    }

    /// Chunks in all.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether the file has no data.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The same as the other end gets it by messages.
    #[must_use]
    pub fn ids(&self) -> SignatureIds {
        let mut ids = SignatureIds {
            sizes: self.sizes,
            count: self.ids.len(),
            ids: self.ids.clone(),
            sorted: Vec::new(),
        };
        ids.sort();
        ids
    }
}

/// What a sender knows of the receiver's file: ids by number.
#[derive(Debug)]
pub struct SignatureIds {
    sizes: ChunkSizes,
    /// Ids that there are in all, as the other end says.
    count: usize,
    ids: Vec<CoarseId>,
    /// Numbers of chunks in the order of their ids, once all are there.
    sorted: Vec<u32>,
}

impl SignatureIds {
    /// Takes in the first message of [`Signature::message`].
    ///
    /// # Errors
    /// [`BadDelta`] if it is none.
    pub fn begin(message: &[u8]) -> Result<SignatureIds, BadDelta> {
        let mut rest = message;
        let average = read_small(&mut rest)?;
        let sizes = ChunkSizes::of_average(average).ok_or(BadDelta::Impossible { what: "chunk size" })?;
        let count = read_number(&mut rest)?;
        let count = usize::try_from(count).ok().filter(|count| *count <= CHUNKS);
        let count = count.ok_or(BadDelta::TooMany { what: "chunks" })?;
        let mut ids = SignatureIds { sizes, count, ids: Vec::new(), sorted: Vec::new() };
        ids.take(rest)?;
        Ok(ids)
    }

    /// Takes in a later message.
    ///
    /// # Errors
    /// [`BadDelta`] if it does not go on where the one before ended.
    pub fn go_on(&mut self, message: &[u8]) -> Result<(), BadDelta> {
        let mut rest = message;
        let (average, count) = (read_small(&mut rest)?, read_number(&mut rest)?);
        if average as usize != self.sizes.average || count != self.count as u64 {
            return Err(BadDelta::Impossible { what: "continuation" });
        }
        self.take(rest)
    }

    fn take(&mut self, mut rest: &[u8]) -> Result<(), BadDelta> {
        if rest.len() / COARSE_LEN > self.count - self.ids.len() {
            return Err(BadDelta::TooMany { what: "ids" });
        }
        while !rest.is_empty() {
            let id = take(&mut rest, COARSE_LEN)?;
            // `take` gives exactly as many.
            self.ids.push(id.iter().rev().fold(0, |id, byte| id << 8 | u64::from(*byte)));
        }
        if self.is_whole() {
            self.sort();
        }
        Ok(())
    }

    fn sort(&mut self) {
        self.sorted = (0..self.ids.len() as u32).collect();
        self.sorted.sort_by_key(|chunk| self.ids[*chunk as usize]);
    }

    /// Whether all ids are there.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.ids.len() == self.count
    }

    /// How the new file is to be cut.
    pub(super) const fn sizes(&self) -> ChunkSizes {
        self.sizes
    }

    /// Chunks in all.
    pub(super) const fn len(&self) -> usize {
        self.ids.len()
    }

    /// A chunk with this id: `expected` if it has it, else the first.
    pub(super) fn find(&self, id: CoarseId, expected: u32) -> Option<u32> {
        if self.ids.get(expected as usize) == Some(&id) {
            return Some(expected);
        }
        let place = self.sorted.partition_point(|chunk| self.ids[*chunk as usize] < id);
        self.sorted.get(place).copied().filter(|chunk| self.ids[*chunk as usize] == id)
    }
}
