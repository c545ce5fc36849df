//! BLAKE3 as it flows: pieces of 64 KiB are hashed alone, in any order, and their chaining values give the root that `b3sum` prints.
//!
//! Source of the tree's shape: the BLAKE3 paper, section 2.1, and `blake3::hazmat`. A piece is a subtree of 64 chunks at a multiple of
//! 64, so that two neighbours have a parent, and so on.

use std::collections::BTreeMap;
use std::ops::Range;

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use blake3::{Hash, Hasher};

/// Bytes of a piece, but of a file's last: 64 KiB, 8 s of a link of 64 kbit/s. A piece that is not whole is lost with an interruption.
pub const PIECE_LEN: u64 = 1 << 16;

/// Zeros of a hole, to hash or to write: as many bytes as BLAKE3 hashes in one step with AVX-512, 16 chunks of 1 KiB.
pub(crate) static ZEROS: [u8; 16 << 10] = [0; 16 << 10];

/// The highest level of a [`Subtree`]: 2^47 pieces of 2^16 bytes are what a signed 64-bit offset counts.
const MAX_LEVEL: u8 = 47;

/// Subtrees that a [`Pieces`] keeps apart, at most (5 MB of memory). A file that is written in order needs one for each bit of its number
/// of pieces; only a peer that leaves gaps on purpose needs thousands.
const MAX_SUBTREES: usize = 1 << 16;

/// How many pieces a file of `size` bytes has.
#[must_use]
pub fn pieces_of(size: u64) -> u64 {
    size.div_ceil(PIECE_LEN)
}

/// Neighbouring pieces and their chaining value: `2^level` pieces from a multiple of that number on, fewer where the file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subtree {
    first: u64,
    level: u8,
    value: [u8; 32],
}

impl Subtree {
    /// None where no subtree can stand.
    #[must_use]
    pub fn new(first: u64, level: u8, value: [u8; 32]) -> Option<Subtree> {
        let aligned = level <= MAX_LEVEL && first.is_multiple_of(1 << level) && first < 1 << MAX_LEVEL;
        aligned.then_some(Subtree { first, level, value })
    }

    /// Index of its first piece.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The binary logarithm of its number of pieces.
    #[must_use]
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Its BLAKE3 chaining value at this place of the file.
    #[must_use]
    pub fn value(&self) -> &[u8; 32] {
        &self.value
    }

    /// Index of the piece behind it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.first + (1 << self.level)
    }

    /// Bytes of its pieces, the last one of a file counted as if it were whole.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.end() - self.first) * PIECE_LEN
    }

    /// Returns the parent of this subtree and the one behind it, if they are its children and not all of a file that may end there.
    pub(crate) fn with(&self, next: &Subtree) -> Option<Subtree> {
        let siblings = self.level == next.level && self.first ^ (1 << self.level) == next.first;
        (siblings && self.first != 0 && self.first < next.first).then(|| self.joined(next))
    }

    /// The parent of two neighbours.
    fn joined(&self, other: &Subtree) -> Subtree {
        let (left, right) = if self.first < other.first { (self, other) } else { (other, self) };
        let value = merge_subtrees_non_root(&left.value, &right.value, Mode::Hash);
        Subtree { first: left.first, level: self.level + 1, value }
    }
}

/// Why a subtree cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PiecesError {
    /// Some of its pieces are known.
    #[error("a piece came twice")]
    Twice,
    /// There are too many gaps between known pieces.
    #[error("the pieces of the file are too scattered")]
    TooScattered,
}

/// The pieces of a file that are known, as the fewest subtrees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// By first piece. A subtree at the file's beginning is not joined with its neighbour: both together may be the root.
    subtrees: BTreeMap<u64, Subtree>,
}

impl Pieces {
    /// Adds a subtree.
    ///
    /// # Errors
    ///
    /// If it overlaps one that is there, or there are too many.
    pub fn insert(&mut self, subtree: Subtree) -> Result<(), PiecesError> {
        let before = self.subtrees.range(..subtree.end()).next_back();
        if before.is_some_and(|(_, known)| known.end() > subtree.first) {
            return Err(PiecesError::Twice);
        }
        let mut joined = subtree;
        while joined.level < MAX_LEVEL {
            let sibling = joined.first ^ (1 << joined.level);
            let level = self.subtrees.get(&sibling).map(|known| known.level);
            if sibling == 0 || joined.first == 0 || level != Some(joined.level) {
                break;
            }
            let Some(known) = self.subtrees.remove(&sibling) else { break };
            joined = joined.joined(&known);
        }
        if self.subtrees.len() >= MAX_SUBTREES {
            return Err(PiecesError::TooScattered);
        }
        self.subtrees.insert(joined.first, joined);
        Ok(())
    }

    /// Whether a piece is known.
    #[must_use]
    pub fn has(&self, piece: u64) -> bool {
        self.subtrees.range(..=piece).next_back().is_some_and(|(_, known)| known.end() > piece)
    }

    /// How many subtrees there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.subtrees.len()
    }

    /// Whether no piece is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.subtrees.is_empty()
    }

    /// The subtrees, in rising order.
    pub fn subtrees(&self) -> impl Iterator<Item = &Subtree> {
        self.subtrees.values()
    }

    /// The pieces of a file with `total` of them that are not known, as ranges of indices in rising order.
    pub fn gaps(&self, total: u64) -> impl Iterator<Item = Range<u64>> {
        let begins = std::iter::once(0).chain(self.subtrees.values().map(Subtree::end));
        let ends = self.subtrees.keys().copied().chain(std::iter::once(u64::MAX));
        begins
            .zip(ends)
            .map(move |(begin, end)| begin.min(total)..end.min(total))
            .filter(|gap| !gap.is_empty())
    }

    /// The hash of a file of `size` bytes, more than one piece. None while a piece is missing.
    #[must_use]
    pub fn root(&self, size: u64) -> Option<Hash> {
        let total = pieces_of(size);
        if total < 2 {
            return None;
        }
        let left = left_of(total);
        let (left, right) = (self.value(0, left, total)?, self.value(left, total - left, total)?);
        Some(merge_subtrees_root(&left, &right, Mode::Hash))
    }

    /// The chaining value of `count` pieces of `total`, which are not the whole file.
    fn value(&self, first: u64, count: u64, total: u64) -> Option<[u8; 32]> {
        let known = self.subtrees.get(&first).filter(|known| known.end().min(total) - first == count);
        if let Some(known) = known {
            return Some(known.value);
        }
        if count < 2 {
            return None;
        }
        let left = left_of(count);
        let (left, right) = (self.value(first, left, total)?, self.value(first + left, count - left, total)?);
        Some(merge_subtrees_non_root(&left, &right, Mode::Hash))
    }
}

/// Pieces in the left child of a subtree of `count`, two or more: the largest power of two below it.
fn left_of(count: u64) -> u64 {
    count.next_power_of_two() / 2
}

/// Hashes one piece as its bytes flow.
#[derive(Clone)]
pub struct PieceHasher {
    piece: u64,
    filled: u64,
    hasher: Hasher,
}

impl PieceHasher {
    /// Begins piece number `piece`, below 2^47.
    #[must_use]
    pub fn new(piece: u64) -> PieceHasher {
        let mut hasher = Hasher::new();
        hasher.set_input_offset(piece * PIECE_LEN);
        PieceHasher { piece, filled: 0, hasher }
    }

    /// Its index.
    #[must_use]
    pub fn piece(&self) -> u64 {
        self.piece
    }

    /// Bytes that it has.
    #[must_use]
    pub fn filled(&self) -> u64 {
        self.filled
    }

    /// Adds bytes, and returns those that belong to the next piece.
    pub fn update<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let room = usize::try_from(PIECE_LEN - self.filled).unwrap_or(usize::MAX);
        let (mine, rest) = bytes.split_at(bytes.len().min(room));
        self.hasher.update(mine);
        self.filled += mine.len() as u64;
        rest
    }

    /// The piece as a subtree. None if it has no byte.
    #[must_use]
    pub fn subtree(&self) -> Option<Subtree> {
        let value = (self.filled > 0).then(|| self.hasher.finalize_non_root())?;
        Subtree::new(self.piece, 0, value)
    }

    /// The hash of the file if this piece is all of it. None for another piece than the first.
    #[must_use]
    pub fn root(&self) -> Option<Hash> {
        (self.piece == 0).then(|| self.hasher.finalize())
    }
}

#[cfg(test)]
mod tests;
