//! The cost of things on the disk, which peers are charged: whole blocks, names and inodes beside the bytes. A bucket is charged as a
//! folder is: its servers have disks, too, and take money for each object.

use crate::names::{LetterName, PIECE};

/// The unit in which file systems give out room: ext4, XFS and Btrfs have blocks of 4 KiB.
const BLOCK: u64 = 4096;
/// A file beside its blocks: an inode has 256 bytes in ext4 (mke2fs.conf), and a letter's name of 170 bytes as much in a folder that is two
/// thirds full.
const ENTRY: u64 = 512;

/// A file of so many bytes.
#[must_use]
pub const fn file(bytes: u64) -> u64 {
    let blocks = bytes.div_ceil(BLOCK);
    let blocks = if blocks == 0 { 1 } else { blocks };
    blocks.saturating_mul(BLOCK).saturating_add(ENTRY)
}

/// A letter, with the keys of its receivers.
#[must_use]
pub fn letter(name: &LetterName) -> u64 {
    file(name.head().saturating_add(name.manifest))
}

/// A piece of this number; the first one brings the folder of its object.
#[must_use]
pub const fn piece(number: u64, bytes: u64) -> u64 {
    let folder = if number == 0 { file(0) } else { 0 };
    file(bytes).saturating_add(folder)
}

/// All pieces of contents of this length.
#[must_use]
pub const fn contents(length: u64) -> u64 {
    if length == 0 {
        return 0;
    }
    let (whole, last) = (length / PIECE, length % PIECE);
    let last = if last == 0 { 0 } else { file(last) };
    whole.saturating_mul(file(PIECE)).saturating_add(last).saturating_add(file(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_cost_what_their_pieces_do() {
        for length in [0, 1, 4096, 4097, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
            let count = length.div_ceil(PIECE);
            let sum: u64 = (0..count).map(|number| piece(number, PIECE.min(length - number * PIECE))).sum();
            assert_eq!(contents(length), sum, "{length}");
        }
        assert_eq!((file(0), file(1), file(4096), file(4097)), (4608, 4608, 4608, 8704));
        assert_eq!(contents(u64::MAX).max(file(u64::MAX)), u64::MAX, "names of a store may say anything");
    }
}
