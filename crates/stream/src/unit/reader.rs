//! Turns units back into bytes.

use core::fmt;
use std::io::{self, Read};

use super::{UNIT_HEADER_LEN, UnitCoding, UnitContext, UnitDecoder, UnitHeader};

/// Bytes of a stored unit that are read ahead where the caller asks for fewer; larger reads go past the reader's own memory.
const AHEAD: usize = 8 << 10;

/// Reads the bytes of units from `R`.
///
/// It takes at most 6.5 MB: a window of 4 MiB, and a unit before and after it is expanded. A unit that is refused gives an
/// error of the kind [`io::ErrorKind::InvalidData`] around a [`super::BadUnit`]; so does every later call. A stream that
/// ends inside a unit gives [`io::ErrorKind::UnexpectedEof`].
pub struct UnitReader<R> {
    inner: R,
    decoder: UnitDecoder,
    payload: Vec<u8>,
    raw: Vec<u8>,
    /// Bytes of `raw` that were given to the caller.
    given: usize,
    /// Bytes of a stored unit that were not read yet.
    stored: usize,
    context: UnitContext,
    /// Bytes of units that were read.
    wire: u64,
    bad: Option<super::BadUnit>,
}

impl<R: Read> UnitReader<R> {
    /// A reader at the beginning of a stream.
    pub fn new(inner: R) -> UnitReader<R> {
        UnitReader {
            inner,
            decoder: UnitDecoder::new(),
            payload: Vec::new(),
            raw: Vec::new(),
            given: 0,
            stored: 0,
            context: UnitContext::Data,
            wire: 0,
            bad: None,
        }
    }

    /// The context of the bytes that were read last.
    #[must_use]
    pub const fn context(&self) -> UnitContext {
        self.context
    }

    /// Bytes of the units read so far, headers counted.
    #[must_use]
    pub const fn wire(&self) -> u64 {
        self.wire
    }

    /// The reader below.
    pub const fn get_ref(&self) -> &R {
        &self.inner
    }

    /// Reads the next unit; nothing at the stream's end.
    fn next_unit(&mut self) -> io::Result<Option<()>> {
        if let Some(bad) = self.bad {
            return Err(bad.into());
        }
        let mut header = [0; UNIT_HEADER_LEN];
        let Some(()) = self.header(&mut header)? else { return Ok(None) };
        let header = UnitHeader::parse(&header).inspect_err(|bad| self.bad = Some(*bad))?;
        self.wire += UNIT_HEADER_LEN as u64;
        self.context = header.context;
        if header.coding == UnitCoding::Stored {
            self.decoder.begin(&header);
            self.stored = header.raw;
            return Ok(Some(()));
        }
        self.payload.resize(header.payload, 0);
        self.inner.read_exact(&mut self.payload)?;
        self.wire += header.payload as u64;
        self.given = 0;
        let decoded = self.decoder.decode(&header, &self.payload, &mut self.raw);
        decoded.inspect_err(|bad| {
            self.bad = Some(*bad);
            self.raw.clear();
        })?;
        Ok(Some(()))
    }

    /// Reads of a stored unit, straight into `bytes`.
    fn read_stored(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let most = bytes.len().min(self.stored);
        let len = self.inner.read(&mut bytes[..most])?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.wire += len as u64;
        self.stored -= len;
        Ok(len)
    }

    /// Reads of a stored unit what small reads will ask for.
    fn read_ahead(&mut self) -> io::Result<()> {
        let mut raw = core::mem::take(&mut self.raw);
        raw.resize(AHEAD, 0);
        let read = self.read_stored(&mut raw);
        raw.truncate(*read.as_ref().unwrap_or(&0));
        (self.raw, self.given) = (raw, 0);
        read.map(drop)
    }

    /// Fills `header`; nothing if the stream ends before its first byte.
    fn header(&mut self, header: &mut [u8; UNIT_HEADER_LEN]) -> io::Result<Option<()>> {
        let first = loop {
            match self.inner.read(header) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        if first == 0 {
            return Ok(None);
        }
        self.inner.read_exact(&mut header[first..])?;
        Ok(Some(()))
    }
}

impl<R: Read> Read for UnitReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.given == self.raw.len() {
            if bytes.is_empty() {
                return Ok(0);
            }
            if self.stored > 0 {
                if bytes.len() >= self.stored.min(AHEAD) {
                    return self.read_stored(bytes);
                }
                self.read_ahead()?;
                continue;
            }
            if self.next_unit()?.is_none() {
                return Ok(0);
            }
        }
        let left = &self.raw[self.given..];
        let len = left.len().min(bytes.len());
        bytes[..len].copy_from_slice(&left[..len]);
        self.given += len;
        Ok(len)
    }
}

impl<R> fmt::Debug for UnitReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnitReader").field("wire", &self.wire).finish_non_exhaustive()
    }
}
