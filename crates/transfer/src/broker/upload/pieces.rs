//! Pieces of a source become frames: new ones at a level that suits the link, or those of the journal, byte by byte the same.

use std::cell::Cell;
use std::io;
use std::time::Instant;

use zeroize::Zeroizing;

use super::handed::Sealed;
use super::kinds::{UploadError, UploadEvent};
use super::level::LevelChooser;
use super::queue::Queue;
use super::shared::Shared;
use crate::TransferId;
use crate::broker::journal::{Ending, JournalFrame, JournaledFrames};
use crate::sealed::frames::{FrameLevel, FrameMaker, PieceTaker, SizePadding};

/// Why no more pieces are taken.
#[derive(Debug)]
pub(super) enum PiecesEnd {
    /// They are not those of the journal.
    Differ,
    /// Nothing of the object is wanted any more.
    Unwanted,
    /// All ends.
    Failed(UploadError),
}

/// Takes the pieces of one object.
pub(super) struct PieceSealer<'a> {
    pub(super) number: u32,
    pub(super) id: TransferId,
    /// For the hashes of frames.
    pub(super) key: Zeroizing<[u8; 32]>,
    /// Frames that were sealed before.
    pub(super) journaled: Option<JournaledFrames>,
    /// The end of what was sealed before, if it was reached.
    pub(super) known_end: Option<Ending>,
    /// The first byte of the frames that has to be encrypted, again or for the first time.
    pub(super) from: u64,
    /// Bytes of frames so far.
    pub(super) packed: u64,
    pub(super) maker: &'a mut FrameMaker,
    pub(super) levels: &'a mut LevelChooser,
    pub(super) to: &'a Queue<Sealed>,
    pub(super) shared: &'a Shared<'a>,
    /// Why it failed.
    pub(super) end: &'a Cell<Option<PiecesEnd>>,
}

impl PieceSealer<'_> {
    fn ends(&self, end: PiecesEnd) -> io::Error {
        self.end.set(Some(end));
        io::Error::other("the upload of this object ends")
    }

    /// A frame that was sealed before, if there is one more.
    fn again(&mut self, piece: &[u8], plain: [u8; 32]) -> io::Result<bool> {
        let Some(frames) = &mut self.journaled else { return Ok(false) };
        let Some(known) = frames.next_frame().map_err(|error| self.ends(failed(error)))? else {
            self.journaled = None;
            return if self.known_end.is_some() { Err(self.ends(PiecesEnd::Differ)) } else { Ok(false) };
        };
        if known.plain != plain || known.plain_len as usize != piece.len() {
            return Err(self.ends(PiecesEnd::Differ));
        }
        let (begin, len) = (self.packed, u64::from(known.packed_len));
        self.packed += len;
        if self.packed > self.from {
            let bytes = self.maker.make(piece, known.level)?;
            // Another version of the library may make other bytes, which must not come under the same key.
            if bytes.len() as u64 != len || self.packed_hash(known.level, &plain, &bytes) != known.packed {
                return Err(self.ends(PiecesEnd::Differ));
            }
            let skip = usize::try_from(self.from.saturating_sub(begin)).unwrap_or(usize::MAX);
            self.push(None, bytes, skip)?;
        }
        Ok(true)
    }

    /// A new frame.
    fn new_frame(&mut self, piece: &[u8], plain: [u8; 32]) -> io::Result<()> {
        let mut level = self.levels.choose(piece, self.shared.pace.look());
        let begun = Instant::now();
        let mut frame = self.maker.make(piece, level)?;
        if self.levels.learn(level, piece.len(), frame.len(), begun.elapsed().as_secs_f64()) {
            level = FrameLevel::Stored;
            frame = self.maker.make(piece, level)?;
        }
        let record = JournalFrame {
            plain_len: u32::try_from(piece.len()).map_err(io::Error::other)?,
            packed_len: u32::try_from(frame.len()).map_err(io::Error::other)?,
            level,
            plain,
            packed: self.packed_hash(level, &plain, &frame),
        };
        self.packed += frame.len() as u64;
        self.push(Some(record), frame, 0)
    }

    /// What the journal has of a frame. One that is stored says no more than its piece.
    fn packed_hash(&self, level: FrameLevel, plain: &[u8; 32], frame: &[u8]) -> [u8; 16] {
        match level {
            FrameLevel::Stored => *plain.first_chunk().unwrap_or(&[0; 16]),
            // The hash of a piece has this key, too, so one byte stands before these.
            FrameLevel::Zstd(_) => {
                let hash = blake3::Hasher::new_keyed(&self.key).update(&[1]).update(frame).finalize();
                *hash.as_bytes().first_chunk().unwrap_or(&[0; 16])
            }
        }
    }

    fn push(&self, record: Option<JournalFrame>, bytes: Vec<u8>, skip: usize) -> io::Result<()> {
        let sealed = Sealed::Frame { number: self.number, record, bytes, skip };
        self.shared.pace.waits(sealed.waits());
        let weight = sealed.weight();
        self.to.push(sealed, weight).map_err(|_| self.ends(PiecesEnd::Failed(UploadError::Stopped)))
    }

    /// Where the contents end, behind the last piece.
    pub(super) fn ending(&mut self, padding: SizePadding) -> io::Result<Ending> {
        if let Some(frames) = &mut self.journaled
            && frames.next_frame().map_err(|error| self.ends(failed(error)))?.is_some()
        {
            return Err(self.ends(PiecesEnd::Differ));
        }
        let ending = Ending { packed: self.packed, padded: self.packed + padding.of(self.packed) };
        match self.known_end {
            Some(known) if known != ending => Err(self.ends(PiecesEnd::Differ)),
            _ => Ok(ending),
        }
    }
}

impl PieceTaker for PieceSealer<'_> {
    fn take_piece(&mut self, piece: &[u8]) -> io::Result<()> {
        if self.shared.is_stopped() {
            return Err(self.ends(PiecesEnd::Failed(UploadError::Stopped)));
        }
        if !self.shared.is_open(self.id) {
            return Err(self.ends(PiecesEnd::Unwanted));
        }
        let plain = *blake3::keyed_hash(&self.key, piece).as_bytes();
        if !self.again(piece, plain)? {
            self.new_frame(piece, plain)?;
        }
        self.shared.tell(UploadEvent::Read { bytes: piece.len() as u64 });
        Ok(())
    }
}

fn failed(error: io::Error) -> PiecesEnd {
    PiecesEnd::Failed(UploadError::Journal(error))
}
