//! age's STREAM: chunks of 64 KiB, each sealed under its number and whether it is the last (age-encryption.org/v1).

mod seeking;

use std::io::{self, Read, Write};

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

pub use seeking::SeekableChunks;

/// Plaintext of a whole chunk.
pub const CHUNK: usize = 64 * 1024;
/// What a chunk is longer by when sealed.
pub const TAG: usize = 16;

/// Bytes that `plain` bytes take behind the header.
#[must_use]
pub const fn sealed_len(plain: u64) -> u64 {
    let chunks = if plain == 0 { 1 } else { plain.div_ceil(CHUNK as u64) };
    plain + chunks * TAG as u64
}

/// Seals what is written; [`ChunkWriter::finish`] seals the last chunk. Once its output failed it writes no more, so that no
/// other bytes come under a number that may be out already.
pub struct ChunkWriter<W: Write> {
    inner: W,
    key: LessSafeKey,
    /// The number of the chunk in `held`.
    number: u64,
    held: Vec<u8>,
    failed: bool,
}

impl<W: Write> ChunkWriter<W> {
    /// Writes behind a header, under the key that [`super::header::write`] returned: each key once.
    pub fn new(inner: W, key: &[u8; 32]) -> ChunkWriter<W> {
        ChunkWriter::go_on(inner, key, 0)
    }

    /// Goes on with the chunk of this number: for who is sure that the bytes are those that were sealed before under this key, as far
    /// as any were.
    pub(crate) fn go_on(inner: W, key: &[u8; 32], number: u64) -> ChunkWriter<W> {
        ChunkWriter {
            inner,
            key: scheduled(key),
            number,
            held: Vec::with_capacity(CHUNK + TAG),
            failed: false,
        }
    }

    /// Seals the last chunk and returns what was written to.
    ///
    /// # Errors
    /// As the output, and always when it failed before.
    pub fn finish(mut self) -> io::Result<W> {
        self.seal(true)?;
        self.inner.flush()?;
        Ok(self.inner)
    }

    /// What is written to; what was written so far is in it but for the chunk that is not full.
    pub fn get_ref(&self) -> &W {
        &self.inner
    }

    /// The same, to take out what was written.
    pub(crate) fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    fn seal(&mut self, last: bool) -> io::Result<()> {
        if self.failed {
            return Err(failed_before());
        }
        // Until the output took the chunk: it may hold a part of it.
        self.failed = true;
        let nonce = nonce(self.number, last);
        self.key
            .seal_in_place_append_tag(nonce, Aad::empty(), &mut self.held)
            .map_err(|_| io::Error::other("a chunk cannot be sealed"))?;
        self.inner.write_all(&self.held)?;
        self.held.clear();
        self.number += 1;
        self.failed = last;
        Ok(())
    }
}

impl<W: Write> Write for ChunkWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failed {
            return Err(failed_before());
        }
        // A full chunk waits until it is known not to be the last.
        if self.held.len() == CHUNK && !bytes.is_empty() {
            self.seal(false)?;
        }
        let taken = bytes.len().min(CHUNK - self.held.len().min(CHUNK));
        self.held.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens what a [`ChunkWriter`] sealed. It gives no byte of a chunk before the chunk was checked, and the end only after the
/// last one was.
pub struct ChunkReader<R: Read> {
    inner: R,
    key: LessSafeKey,
    number: u64,
    /// A sealed chunk and a byte of the next, which tells that there is one; then the opened chunk.
    buffer: Vec<u8>,
    /// What of `buffer` is opened and not yet given out.
    ready: core::ops::Range<usize>,
    /// The first byte of the next chunk.
    ahead: Option<u8>,
    ended: bool,
}

impl<R: Read> ChunkReader<R> {
    /// Reads behind a header, under the key that [`super::header::read`] returned.
    pub fn new(inner: R, key: &[u8; 32]) -> ChunkReader<R> {
        let buffer = vec![0; CHUNK + TAG + 1];
        ChunkReader { inner, key: scheduled(key), number: 0, buffer, ready: 0..0, ahead: None, ended: false }
    }

    fn open(&mut self) -> io::Result<()> {
        let mut filled = 0;
        if let Some(byte) = self.ahead.take() {
            self.buffer[0] = byte;
            filled = 1;
        }
        while filled < self.buffer.len() {
            match self.inner.read(&mut self.buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let last = filled < self.buffer.len();
        let len = filled.min(CHUNK + TAG);
        self.ahead = (!last).then(|| self.buffer[len]);
        if last && (len < TAG || (len == TAG && self.number > 0)) {
            return Err(bad(io::ErrorKind::UnexpectedEof, "it is cut off"));
        }
        let nonce = nonce(self.number, last);
        let opened = self.key.open_in_place(nonce, Aad::empty(), &mut self.buffer[..len]);
        let opened =
            opened.map_err(|_| bad(io::ErrorKind::InvalidData, "it is cut off or was changed"))?.len();
        self.ready = 0..opened;
        self.number += 1;
        self.ended = last;
        Ok(())
    }
}

impl<R: Read> Read for ChunkReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.ready.is_empty() && !self.ended {
            self.open().inspect_err(|_| self.ready = 0..0)?;
        }
        let count = out.len().min(self.ready.len());
        out[..count].copy_from_slice(&self.buffer[self.ready.start..][..count]);
        self.ready.start += count;
        Ok(count)
    }
}

fn failed_before() -> io::Error {
    io::Error::other("an earlier write failed; the object has to be begun anew")
}

fn bad(kind: io::ErrorKind, why: &'static str) -> io::Error {
    io::Error::new(kind, why)
}

fn scheduled(key: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(
        UnboundKey::new(&CHACHA20_POLY1305, key).expect("32 bytes are a key of ChaCha20-Poly1305"),
    )
}

/// Eleven bytes of number, and one that marks the last chunk.
fn nonce(number: u64, last: bool) -> Nonce {
    let mut nonce = [0; 12];
    nonce[3..11].copy_from_slice(&number.to_be_bytes());
    nonce[11] = u8::from(last);
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests;
