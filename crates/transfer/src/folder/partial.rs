//! A file that is not whole yet: aside, with a record of the pieces that are on the disk.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use blake3::Hash;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::FolderError;
use super::checkpoint::Checkpoint;
use super::offer::{Offer, hashed};
use super::usage::Usage;
use crate::path::EntryPath;
use crate::pieces::{PIECE_LEN, PieceHasher, Pieces, Subtree, ZEROS, pieces_of};
use crate::stamp::Status;

/// What an unfinished file is, from its beginning on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartialIdentity {
    /// The number of the file that has its bytes.
    pub(super) slot: u32,
    /// Where it will be.
    pub(super) path: EntryPath,
    /// Its length in bytes, if it is known.
    pub(super) size: Option<u64>,
    /// The state of the source, as the sender names it.
    pub(super) version: [u8; 8],
}

/// A file that is being received. Pieces come in any order, the bytes of a piece from its beginning on and without a gap.
///
/// Dropped, it leaves what was recorded; the rest is lost as if the process had been killed.
pub struct Partial {
    pub(super) identity: PartialIdentity,
    file: Arc<File>,
    /// Pieces of this run, and of earlier ones that the sender passed over.
    pieces: Pieces,
    /// Pieces of earlier runs behind those: the sender passes over them, or sends what takes their place.
    offered: VecDeque<Subtree>,
    /// True while the records say that the bytes may be of two states; those in `offered` were read in this run then.
    mixed: bool,
    /// Those that were passed over and not read.
    unread: Vec<Subtree>,
    /// The piece that bytes are added to.
    current: Option<PieceHasher>,
    /// The hash of the first piece, if it were all.
    single: Option<Hash>,
    /// Whether earlier runs wrote to the file: what is to be a hole may have bytes.
    resumed: bool,
    usage: Arc<Usage>,
    pub(super) checkpoint: Checkpoint,
    verified: bool,
}

impl Partial {
    pub(super) fn new(
        identity: PartialIdentity,
        file: Arc<File>,
        offer: Option<Offer>,
        usage: Arc<Usage>,
        checkpoint: Checkpoint,
    ) -> Partial {
        let resumed = offer.is_some();
        let Offer { same_version, held } = offer.unwrap_or_default();
        Partial {
            identity,
            file,
            pieces: Pieces::default(),
            offered: held.into(),
            mixed: resumed && !same_version,
            unread: Vec::new(),
            current: None,
            single: None,
            resumed,
            usage,
            checkpoint,
            verified: false,
        }
    }

    /// Where it will be.
    #[must_use]
    pub fn path(&self) -> &EntryPath {
        &self.identity.path
    }

    /// The pieces that are not there, as ranges of indices of `total`; those of earlier runs are there until they are written.
    #[must_use]
    pub fn missing(&self, total: u64) -> Vec<Range<u64>> {
        let mut there = self.pieces.clone();
        for subtree in &self.offered {
            // None overlaps what was written.
            let _ = there.insert(*subtree);
        }
        there.gaps(total).collect()
    }

    /// The open file, to read what was written.
    #[must_use]
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Writes bytes of one or several pieces that are not there, or are there from earlier runs.
    ///
    /// # Errors
    ///
    /// If they are out of order, beyond the announced size or the folder's limits, or cannot be written.
    pub fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FolderError> {
        self.expect(offset, bytes.len() as u64)?;
        self.usage.take_bytes(bytes.len() as u64)?;
        if let Err(error) = self.file.write_all_at(bytes, offset) {
            self.usage.give_back(bytes.len() as u64, 0);
            return Err(FolderError::of("write a file", &error));
        }
        self.checkpoint.wrote(bytes.len() as u64);
        self.hash(offset, bytes)
    }

    /// Leaves a hole where pieces are not there. It counts as zeros in the hash, at 1 to 3 GB a second of processor; the caller asks in
    /// steps if it wants to be able to stop in between.
    ///
    /// # Errors
    ///
    /// As [`Partial::write_at`].
    pub fn hole(&mut self, offset: u64, len: u64) -> Result<(), FolderError> {
        self.expect(offset, len)?;
        let end = offset + len;
        let mut at = offset;
        while at < end {
            let step = (end - at).min(ZEROS.len() as u64);
            // At most 16 KiB, so it is a usize.
            let zeros = &ZEROS[..usize::try_from(step).unwrap_or(ZEROS.len())];
            self.hash(at, zeros)?;
            at += step;
        }
        if self.resumed {
            self.punch(offset, len)?;
        }
        Ok(())
    }

    /// Takes away what an earlier run wrote and did not record.
    fn punch(&self, offset: u64, len: u64) -> Result<(), FolderError> {
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, how, offset, len) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(offset, len),
            other => other.map_err(|error| FolderError::new("make a hole in a file", error)),
        }
    }

    fn write_zeros(&self, offset: u64, len: u64) -> Result<(), FolderError> {
        let zeros = [0; 1 << 16];
        let mut at = offset;
        while at < offset + len {
            let step = usize::try_from(offset + len - at).unwrap_or(usize::MAX).min(zeros.len());
            let written = self.file.write_all_at(&zeros[..step], at);
            written.map_err(|error| FolderError::of("write a file", &error))?;
            at += step as u64;
        }
        Ok(())
    }

    /// Takes pieces of earlier runs that lie before `range` as passed over, and removes those in it.
    fn pass(&mut self, range: Range<u64>) -> Result<(), FolderError> {
        while let Some(subtree) = self.offered.pop_front_if(|subtree| subtree.first() < range.end) {
            if subtree.end() <= range.start {
                self.pieces.insert(subtree)?;
                self.unread.extend(Some(subtree).filter(|_| !self.mixed));
                continue;
            }
            let before = Status::of(&self.file).map_or(0, |found| found.on_disk());
            self.punch(subtree.first() * PIECE_LEN, subtree.bytes())?;
            let after = Status::of(&self.file).map_or(before, |found| found.on_disk());
            self.usage.give_back(before.saturating_sub(after), 0);
        }
        if self.mixed && self.offered.is_empty() {
            // All that is there is of one state again.
            self.mixed = false;
            let held: Vec<Subtree> = self.pieces.subtrees().copied().collect();
            self.checkpoint.restate(&self.identity, self.identity.version, &self.file, &held)?;
        }
        Ok(())
    }

    /// Whether bytes may come here now.
    fn expect(&mut self, offset: u64, len: u64) -> Result<(), FolderError> {
        let end = offset.checked_add(len).filter(|end| i64::try_from(*end).is_ok());
        let end = end.ok_or(FolderError::WrongSize)?;
        if self.identity.size.is_some_and(|size| end > size) {
            return Err(FolderError::WrongSize);
        }
        let at = self.current.as_ref().map(|piece| piece.piece() * PIECE_LEN + piece.filled());
        let in_order = match at {
            Some(at) => offset == at,
            None => offset.is_multiple_of(PIECE_LEN),
        };
        let range = offset / PIECE_LEN..end.div_ceil(PIECE_LEN);
        if in_order && len > 0 {
            self.pass(range.clone())?;
        }
        let known = len > 0 && range.into_iter().any(|piece| self.pieces.has(piece));
        if in_order && !known { Ok(()) } else { Err(FolderError::OutOfOrder) }
    }

    /// Adds bytes to the hashes.
    fn hash(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FolderError> {
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let piece = self.current.get_or_insert_with(|| PieceHasher::new(at / PIECE_LEN));
            let before = rest.len();
            rest = piece.update(rest);
            at += (before - rest.len()) as u64;
            if piece.filled() == PIECE_LEN || Some(at) == self.identity.size {
                self.close_piece()?;
            }
        }
        Ok(())
    }

    /// The current piece has all its bytes.
    fn close_piece(&mut self) -> Result<(), FolderError> {
        let Some(piece) = self.current.take() else { return Ok(()) };
        let Some(subtree) = piece.subtree() else { return Ok(()) };
        self.single = self.single.or(piece.root());
        self.pieces.insert(subtree)?;
        // A file of one piece is not worth a record.
        if self.identity.size.is_none_or(|size| size > PIECE_LEN) {
            self.checkpoint.add(&self.identity, &self.file, subtree)?;
        }
        Ok(())
    }

    /// All was written: checks size and root. The file is then whole, and waits to be given its name.
    ///
    /// # Errors
    ///
    /// If the size is not the one announced, bytes are missing, or the root is another one.
    pub fn verify(&mut self, size: u64, root: &[u8; 32]) -> Result<(), FolderError> {
        if self.identity.size.is_some_and(|announced| announced != size) {
            return Err(FolderError::WrongSize);
        }
        if let Some(piece) = &self.current {
            // Only a file of unknown length may end inside a piece that was not closed by its length.
            let end = piece.piece() * PIECE_LEN + piece.filled();
            if self.identity.size.is_some() || end != size {
                return Err(FolderError::WrongSize);
            }
        }
        self.close_piece()?;
        self.pass(u64::MAX..u64::MAX)?;
        self.file.set_len(size).map_err(|error| FolderError::of("set the length of a file", &error))?;
        let found = match pieces_of(size) {
            0 | 1 => self.hash_of_one(size)?,
            total => {
                let beyond = self.pieces.subtrees().any(|subtree| subtree.first() >= total);
                self.pieces.root(size).filter(|_| !beyond).ok_or(FolderError::WrongSize)?
            }
        };
        // What an earlier run left may have changed since, which its records do not show.
        let mut unread = std::mem::take(&mut self.unread).into_iter();
        let same =
            |it: Subtree| hashed(&self.file, it.first(), it.level(), size).is_ok_and(|now| now == Some(it));
        self.verified = found == Hash::from_bytes(*root) && unread.all(same);
        if self.verified { Ok(()) } else { Err(FolderError::WrongHash) }
    }

    /// The hash of a file of at most one piece.
    fn hash_of_one(&self, size: u64) -> Result<Hash, FolderError> {
        let expected = u64::from(size > 0);
        if self.pieces.gaps(expected).next().is_some() || self.pieces.has(1) {
            return Err(FolderError::WrongSize);
        }
        if let Some(single) = self.single {
            return Ok(single);
        }
        // Its one piece is known from its record, which has no root; or there is nothing in it.
        let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
        let read = self.file.read_exact_at(&mut bytes, 0);
        read.map_err(|error| FolderError::of("read a file", &error))?;
        Ok(blake3::hash(&bytes))
    }

    /// Whether [`Partial::verify`] found it right.
    pub(super) fn is_verified(&self) -> bool {
        self.verified
    }

    /// The transfer stops here, and may go on later: makes what is there durable and writes it down. Bytes of a piece that is not
    /// complete are lost.
    ///
    /// # Errors
    ///
    /// If the thread that writes records has ended.
    pub fn suspend(mut self) -> Result<(), FolderError> {
        self.checkpoint.flush(self.identity.slot, &self.file, true)
    }
}
