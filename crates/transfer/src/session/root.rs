//! The BLAKE3 hash of a file that is partly read and partly known.

use crate::pieces::{PIECE_LEN, PieceHasher, Pieces, Subtree, ZEROS};

/// Hashes a file from its beginning: bytes, holes, and subtrees whose value is known.
pub(crate) struct RootHash {
    pieces: Pieces,
    /// The piece that is being hashed; it is closed when a byte after it comes, as a file of one piece has no subtree.
    piece: PieceHasher,
}

impl RootHash {
    pub(crate) fn new() -> RootHash {
        RootHash { pieces: Pieces::default(), piece: PieceHasher::new(0) }
    }

    /// Bytes of the file so far.
    pub(crate) fn position(&self) -> u64 {
        self.piece.piece() * PIECE_LEN + self.piece.filled()
    }

    /// The next bytes.
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.piece.filled() == PIECE_LEN {
                self.close();
            }
            bytes = self.piece.update(bytes);
        }
    }

    /// The next bytes are so many zeros.
    pub(crate) fn zeros(&mut self, mut length: u64) {
        while length > 0 {
            let now = length.min(ZEROS.len() as u64);
            self.update(&ZEROS[..usize::try_from(now).unwrap_or(0)]);
            length -= now;
        }
    }

    /// The next pieces have this value. Nothing happens, and the answer is no, if they are not the next ones.
    pub(crate) fn subtree(&mut self, known: &Subtree) -> bool {
        if self.piece.filled() == PIECE_LEN {
            self.close();
        }
        let next = self.piece.filled() == 0 && self.piece.piece() == known.first();
        if !next || self.pieces.insert(*known).is_err() {
            return false;
        }
        self.piece = PieceHasher::new(known.end());
        true
    }

    /// The hash of all bytes so far. None if it is not known, which cannot be.
    pub(crate) fn finish(mut self) -> Option<[u8; 32]> {
        let size = self.position();
        let root = match self.piece.root() {
            Some(root) => Some(root),
            None => {
                self.close();
                self.pieces.root(size)
            }
        };
        root.map(|root| *root.as_bytes())
    }

    fn close(&mut self) {
        let next = self.piece.piece() + 1;
        // They come in order: none can overlap or leave a gap.
        let _ = self.piece.subtree().map(|subtree| self.pieces.insert(subtree));
        self.piece = PieceHasher::new(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at % 251) as u8).collect()
    }

    /// The value of pieces that are hashed alone.
    fn subtree(first: u64, level: u8, bytes: &[u8]) -> Subtree {
        let mut pieces = Pieces::default();
        for (at, piece) in bytes.chunks(PIECE_LEN as usize).enumerate() {
            let mut hasher = PieceHasher::new(first + at as u64);
            hasher.update(piece);
            pieces.insert(hasher.subtree().unwrap()).unwrap();
        }
        let found = pieces.subtrees().find(|it| it.level() == level).copied();
        found.unwrap_or_else(|| panic!("no subtree of level {level}"))
    }

    #[test]
    fn the_root_is_what_blake3_says_for_every_number_of_pieces() {
        let piece = PIECE_LEN as usize;
        for length in
            [0, 1, piece - 1, piece, piece + 1, 2 * piece, 3 * piece, 3 * piece + 7, 4 * piece, 5 * piece + 1]
        {
            let file = bytes(length);
            let mut root = RootHash::new();
            file.chunks(300_001).for_each(|part| root.update(part));
            assert_eq!(root.position(), length as u64);
            assert_eq!(root.finish(), Some(*blake3::hash(&file).as_bytes()), "{length}");
        }
    }

    #[test]
    fn known_subtrees_and_holes_count_as_their_bytes() {
        let piece = PIECE_LEN as usize;
        let mut file = bytes(9 * piece + 5);
        file[5 * piece..7 * piece + 100].fill(0);
        let mut root = RootHash::new();
        assert!(root.subtree(&subtree(0, 0, &file[..piece])));
        assert!(!root.subtree(&subtree(4, 0, &file[4 * piece..5 * piece])), "piece 1 is missing");
        root.update(&file[piece..4 * piece]);
        root.update(&file[4 * piece..5 * piece]);
        root.zeros(2 * PIECE_LEN + 100);
        root.update(&file[7 * piece + 100..8 * piece]);
        assert!(root.subtree(&subtree(8, 0, &file[8 * piece..9 * piece])));
        root.update(&file[9 * piece..]);
        assert_eq!(root.finish(), Some(*blake3::hash(&file).as_bytes()));
    }

    #[test]
    fn a_file_of_known_subtrees_alone_has_its_root() {
        let piece = PIECE_LEN as usize;
        let file = bytes(6 * piece);
        let mut root = RootHash::new();
        for (first, level) in [(0, 0), (1, 0), (2, 1), (4, 1)] {
            let bytes = &file[first * piece..][..piece << level];
            assert!(root.subtree(&subtree(first as u64, level, bytes)));
        }
        assert_eq!(root.finish(), Some(*blake3::hash(&file).as_bytes()));
    }
}
