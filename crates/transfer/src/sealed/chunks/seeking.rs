//! Chunks of a file in any order.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use aws_lc_rs::aead::{Aad, LessSafeKey};

use super::{CHUNK, TAG, bad, nonce, scheduled};

/// Bytes of a whole chunk in the file.
const SEALED: u64 = (CHUNK + TAG) as u64;

/// Opens chunks wherever they are asked for; each is checked before any of its bytes is given, and the last one when it is opened,
/// so a file that was cut off is none.
pub struct SeekableChunks {
    file: File,
    key: LessSafeKey,
    /// Where the first chunk begins, and the number of the last.
    begin: u64,
    last: u64,
    /// The chunk in `opened`.
    number: u64,
    opened: Vec<u8>,
}

impl SeekableChunks {
    /// The chunks behind a header of `begin` bytes, under the key that [`super::super::header::read`] returned.
    ///
    /// # Errors
    /// As the system's; also where the file is not whole.
    pub fn new(file: File, begin: u64, key: &[u8; 32]) -> io::Result<SeekableChunks> {
        let sealed = file.metadata()?.len().saturating_sub(begin);
        let last = sealed.div_ceil(SEALED).saturating_sub(1);
        let mut chunks =
            SeekableChunks { file, key: scheduled(key), begin, last, number: 0, opened: Vec::new() };
        chunks.open(last)?;
        Ok(chunks)
    }

    /// Some bytes from this offset of what was sealed; none only at its end.
    ///
    /// # Errors
    /// As the system's, and for a chunk that was changed.
    pub fn read_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let number = offset / CHUNK as u64;
        if number > self.last {
            return Ok(0);
        }
        if number != self.number {
            self.open(number)?;
        }
        let from = usize::try_from(offset % CHUNK as u64).unwrap_or(CHUNK).min(self.opened.len());
        let count = out.len().min(self.opened.len() - from);
        out[..count].copy_from_slice(&self.opened[from..from + count]);
        Ok(count)
    }

    fn open(&mut self, number: u64) -> io::Result<()> {
        let at = self.begin + number * SEALED;
        let len = (self.file.metadata()?.len().saturating_sub(at)).min(SEALED);
        self.opened.resize(usize::try_from(len).unwrap_or(0), 0);
        let read = self.file.read_exact_at(&mut self.opened, at);
        let opened = read.and_then(|()| {
            let nonce = nonce(number, number == self.last);
            let opened = self.key.open_in_place(nonce, Aad::empty(), &mut self.opened);
            let changed = |_| bad(io::ErrorKind::InvalidData, "it is cut off or was changed");
            opened.map(|plain| plain.len()).map_err(changed)
        });
        // After an error the buffer holds no chunk.
        self.number = if opened.is_ok() { number } else { u64::MAX };
        self.opened.truncate(*opened.as_ref().unwrap_or(&0));
        opened.map(drop)
    }
}
