//! The pieces of an unfinished file that a sender can go on from.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use blake3::hazmat::HasherExt;

use super::log::KeptFile;
use crate::pieces::{PIECE_LEN, Pieces, Subtree, pieces_of};

/// Bytes that are read at once.
const BLOCK: usize = 256 << 10;

/// Pieces that are there, as a sender hears of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// True if they are of the state of the source that the sender has.
    pub same_version: bool,
    /// In rising order; none of them covers the whole file.
    pub held: Vec<Subtree>,
}

impl Offer {
    /// Bytes of the pieces, the last one of a file counted as if it were whole.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.held.iter().map(Subtree::bytes).sum()
    }

    /// The pieces that `kept` has for a source of `size` bytes in the state `version`: at most `most` subtrees. Of another state, they are
    /// hashed as they are on the disk, in short subtrees, of which the sender finds those that it has. None if there is nothing.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub(super) fn of(
        kept: &KeptFile,
        file: &File,
        (size, version): (u64, [u8; 8]),
        most: usize,
    ) -> io::Result<Option<Offer>> {
        let Some(before) = kept.size else { return Ok(None) };
        let same_version = before == size && kept.version == version && version != [0; 8];
        let mut held = Vec::new();
        if same_version {
            held.extend(kept.pieces.subtrees().take(most));
        } else {
            let last = kept.pieces.subtrees().last().map_or(0, Subtree::end);
            let whole_pieces = last.min(before.min(size) / PIECE_LEN);
            // Behind the last subtree of that level there is room for one of each lower level.
            let (mut level, mut first) = (level_for(whole_pieces, most - (most / 4).min(48)), 0);
            while first < whole_pieces {
                if first + (1 << level) > whole_pieces {
                    level -= 1;
                    continue;
                }
                if has(&kept.pieces, first, level) {
                    held.extend(hashed(file, first, level, before)?);
                }
                first += 1 << level;
            }
        }
        let total = pieces_of(size);
        held.retain(|subtree| subtree.first() > 0 || subtree.end() < total);
        Ok((!held.is_empty()).then_some(Offer { same_version, held }))
    }
}

/// The lowest level at which so many pieces are at most `most` subtrees.
fn level_for(pieces: u64, most: usize) -> u8 {
    (0..64).find(|level| pieces >> level <= most as u64).unwrap_or(63)
}

/// Returns true if all pieces of a subtree are known.
fn has(pieces: &Pieces, first: u64, level: u8) -> bool {
    pieces.gaps(first + (1 << level)).all(|gap| gap.end <= first)
}

/// The subtree of what is on the disk there, up to `size` at most; none where the file ends before.
pub(super) fn hashed(file: &File, first: u64, level: u8, size: u64) -> io::Result<Option<Subtree>> {
    let mut at = first * PIECE_LEN;
    let mut left = (PIECE_LEN << level).min(size.saturating_sub(at));
    let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; BLOCK]);
    hasher.set_input_offset(at);
    while left > 0 {
        let want = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
        match file.read_at(&mut buffer[..want], at)? {
            0 => return Ok(None),
            got => {
                hasher.update(&buffer[..got]);
                (at, left) = (at + got as u64, left - got as u64);
            }
        }
    }
    Ok(Subtree::new(first, level, hasher.finalize_non_root()))
}
