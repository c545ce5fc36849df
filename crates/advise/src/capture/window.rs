//! A part of a file, in a buffer that never grows.

use std::io::{self, Read};

use super::{FRAME_MAX, ReadError};

/// Room for the longest record and as much again, so that few bytes are moved.
const CAPACITY: usize = 2 * FRAME_MAX;

/// What of `source` is in memory, from where reading stands.
#[derive(Debug)]
pub(super) struct ReadWindow<R> {
    source: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Bytes of the source before the buffer.
    before: u64,
}

impl<R> ReadWindow<R> {
    pub(super) fn new(source: R) -> ReadWindow<R> {
        ReadWindow { source, buffer: vec![0; CAPACITY].into_boxed_slice(), start: 0, end: 0, before: 0 }
    }

    /// Where reading stands, in bytes from the beginning.
    pub(super) const fn position(&self) -> u64 {
        self.before + self.start as u64
    }

    /// Bytes that are here.
    const fn held(&self) -> usize {
        self.end - self.start
    }
}

impl<R: Read> ReadWindow<R> {
    /// The next `len` bytes, which stay where they are; fewer only at the end of the source.
    pub(super) fn peek(&mut self, len: usize) -> io::Result<&[u8]> {
        self.fill(len)?;
        let len = len.min(self.held());
        Ok(self.buffer.get(self.start..self.start + len).unwrap_or_default())
    }

    /// The next `len` bytes, which are part of `what`; nothing when the source ends before the first of them.
    pub(super) fn take(&mut self, len: usize, what: &'static str) -> Result<Option<&[u8]>, ReadError> {
        let at = self.position();
        self.fill(len)?;
        if self.held() < len {
            return if self.held() == 0 { Ok(None) } else { Err(ReadError::CutShort { what, at }) };
        }
        let start = self.start;
        self.start += len;
        Ok(self.buffer.get(start..start + len))
    }

    /// The next `len` bytes, without which `what`, which began at `at`, is not whole.
    pub(super) fn rest(&mut self, len: usize, what: &'static str, at: u64) -> Result<&[u8], ReadError> {
        if len == 0 {
            return Ok(&[]);
        }
        let cut = ReadError::CutShort { what, at };
        match self.take(len, what) {
            Ok(bytes) => bytes.ok_or(cut),
            Err(ReadError::CutShort { .. }) => Err(cut),
            Err(other) => Err(other),
        }
    }

    /// Passes over `len` bytes of `what`, which began at `at`.
    pub(super) fn skip(&mut self, len: u64, what: &'static str, at: u64) -> Result<(), ReadError> {
        let mut left = len;
        while left > 0 {
            let step = left.min(CAPACITY as u64) as usize;
            self.rest(step, what, at)?;
            left -= step as u64;
        }
        Ok(())
    }

    /// Makes `len` bytes be here, if the source has them.
    fn fill(&mut self, len: usize) -> io::Result<()> {
        if self.held() >= len {
            return Ok(());
        }
        if self.start + len > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.before += self.start as u64;
            (self.start, self.end) = (0, self.end - self.start);
        }
        while self.held() < len {
            let Some(room) = self.buffer.get_mut(self.end..) else { break };
            match self.source.read(room) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
