//! The contents of an object from any place on.

use std::fs::File;
use std::io::{self, BufReader, Seek};

use zstd_safe::DCtx;

use super::{OpenError, STEP};
use crate::sealed::chunks::SeekableChunks;
use crate::sealed::frames::{PIECE, failed};
use crate::sealed::header;
use crate::sealed::recipient::AgeIdentity;

/// The contents of an object that [`super::seal`] wrote, of which each frame is a piece. Where a frame begins is learnt as the ones
/// before it are passed: 8 bytes for each piece of 1 MiB stay in memory.
pub struct SeekableContents {
    chunks: SeekableChunks,
    codec: DCtx<'static>,
    /// Where the frames begin that are known, one behind the other; the last one may be the end.
    begins: Vec<u64>,
    /// The piece that was expanded last, and its number.
    piece: Vec<u8>,
    number: Option<usize>,
    frame: Vec<u8>,
}

impl SeekableContents {
    /// Opens the object in a file.
    ///
    /// # Errors
    /// [`OpenError`], also where the file was cut off.
    pub fn open(file: File, identity: &AgeIdentity<'_>) -> Result<SeekableContents, OpenError> {
        let mut input = BufReader::with_capacity(STEP, file);
        let key = header::read(&mut input, identity)?;
        let begin = input.stream_position().map_err(OpenError::Read)?;
        let chunks = SeekableChunks::new(input.into_inner(), begin, &key).map_err(OpenError::Read)?;
        Ok(SeekableContents {
            chunks,
            codec: DCtx::create(),
            begins: vec![0],
            piece: Vec::new(),
            number: None,
            frame: vec![0; zstd_safe::compress_bound(PIECE)],
        })
    }

    /// Some bytes from this offset; none only at the end.
    ///
    /// # Errors
    /// As the system's, and where the object was changed.
    pub fn read_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let number = usize::try_from(offset / PIECE as u64).map_err(io::Error::other)?;
        if self.number != Some(number) {
            self.number = None;
            if !self.expand(number)? {
                return Ok(0);
            }
            self.number = Some(number);
        }
        let from = usize::try_from(offset % PIECE as u64).unwrap_or(PIECE).min(self.piece.len());
        let count = out.len().min(self.piece.len() - from);
        out[..count].copy_from_slice(&self.piece[from..from + count]);
        Ok(count)
    }

    /// Expands a piece. False where the contents end before it.
    fn expand(&mut self, number: usize) -> io::Result<bool> {
        while self.begins.len() <= number {
            if self.pass(self.begins.len() - 1)?.is_none() {
                return Ok(false);
            }
        }
        let Some(len) = self.pass(number)? else { return Ok(false) };
        self.piece.resize(PIECE, 0);
        let frame = &self.frame[..len];
        let expanded = self.codec.decompress(&mut self.piece[..], frame).map_err(failed)?;
        self.piece.truncate(expanded);
        Ok(true)
    }

    /// Reads a frame whose beginning is known, and learns where the next one begins: the frame's bytes. None at the end.
    fn pass(&mut self, number: usize) -> io::Result<Option<usize>> {
        let Some(begin) = self.begins.get(number).copied() else { return Ok(None) };
        let mut filled = 0;
        while filled < self.frame.len() {
            match self.chunks.read_at(begin + filled as u64, &mut self.frame[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        if filled == 0 {
            return Ok(None);
        }
        let len = zstd_safe::find_frame_compressed_size(&self.frame[..filled]).map_err(failed)?;
        if self.begins.len() == number + 1 {
            self.begins.push(begin + len as u64);
        }
        Ok(Some(len))
    }
}
