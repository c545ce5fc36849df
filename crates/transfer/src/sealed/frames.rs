//! zstd frames (RFC 8878), one for each piece of 1 MiB, and padding that `zstd -d` skips.

mod maker;

use std::io::{self, Read, Write};

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

pub use maker::{FrameLevel, FrameMaker};

/// Bytes of a piece: a frame holds no more, and all but the last hold as many.
pub const PIECE: usize = 1024 * 1024;
/// Magic number of a skippable frame (RFC 8878 section 3.1.2).
const SKIPPABLE: u32 = 0x184d_2a50;
/// Bytes before the content of a skippable frame: magic number and length.
const SKIPPABLE_HEAD: u64 = 8;
/// Content of one skippable frame: its length field has four bytes; larger padding takes several.
const SKIPPABLE_MAX: u64 = 1 << 30;
/// log2 of the largest window that is read: 8 MiB, which `zstd -19` takes. It bounds the memory of a reader.
const WINDOW_LOG_MAX: u32 = 23;
/// Bytes of frames that are read ahead; zstd's own proposal is a block of 128 KiB.
const INPUT: usize = 128 * 1024;

/// Whether an object hides its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizePadding {
    /// The size is that of what is inside, compressed.
    Exact,
    /// Rounded up so that it shows only its magnitude and a few bits (Padmé; Nikitin et al., PETS 2019): at most 12 % more,
    /// 1.1 % on average from 100 kB on.
    Padme,
}

impl SizePadding {
    /// Bytes of padding behind `len` bytes of frames.
    #[must_use]
    pub const fn of(self, len: u64) -> u64 {
        match self {
            SizePadding::Exact => 0,
            SizePadding::Padme => padded_len(len) - len,
        }
    }
}

/// The next size that Padmé has.
#[must_use]
pub const fn padme(len: u64) -> u64 {
    if len < 2 {
        return len;
    }
    let exponent = len.ilog2();
    let bits = exponent.ilog2() + 1;
    let mask = (1_u64 << (exponent - bits)) - 1;
    match len.checked_add(mask) {
        Some(sum) => sum & !mask,
        None => len,
    }
}

/// The size that `len` bytes get when padded: one of Padmé's that leaves room for a skippable frame.
#[must_use]
pub const fn padded_len(len: u64) -> u64 {
    let next = padme(len);
    match next - len {
        0 => len,
        SKIPPABLE_HEAD.. => next,
        _ => padme(len + SKIPPABLE_HEAD),
    }
}

/// Writes skippable frames of `len` bytes together, which is 0 or at least 8 (see [`padded_len`]).
///
/// # Errors
/// As the output.
pub fn pad(out: &mut impl Write, len: u64) -> io::Result<()> {
    let mut left = len;
    while left > 0 {
        // As long as it may be, so that what is left then has room for another or is nothing.
        let frame = if left <= SKIPPABLE_MAX { left } else { SKIPPABLE_MAX - SKIPPABLE_HEAD };
        let content = frame.checked_sub(SKIPPABLE_HEAD).and_then(|content| u32::try_from(content).ok());
        let content = content.ok_or(io::ErrorKind::InvalidInput)?;
        out.write_all(&SKIPPABLE.to_le_bytes())?;
        out.write_all(&content.to_le_bytes())?;
        io::copy(&mut io::repeat(0).take(content.into()), out)?;
        left -= frame;
    }
    Ok(())
}

/// Takes the pieces of what is written.
pub(crate) trait PieceTaker {
    /// The next piece: [`PIECE`] bytes, the last one fewer.
    fn take_piece(&mut self, piece: &[u8]) -> io::Result<()>;
}

/// Cuts what is written into pieces.
pub(crate) struct PieceWriter<T> {
    to: T,
    piece: Vec<u8>,
    any: bool,
}

impl<T: PieceTaker> PieceWriter<T> {
    pub(crate) fn new(to: T) -> PieceWriter<T> {
        PieceWriter { to, piece: Vec::with_capacity(PIECE), any: false }
    }

    /// Ends the last piece.
    pub(crate) fn finish(mut self) -> io::Result<T> {
        // Even nothing has a frame: `zstd -d` takes an empty file for an error.
        if !self.piece.is_empty() || !self.any {
            self.to.take_piece(&self.piece)?;
        }
        Ok(self.to)
    }
}

impl<T: PieceTaker> Write for PieceWriter<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == PIECE {
            self.any = true;
            self.to.take_piece(&self.piece)?;
            self.piece.clear();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compresses what is written, a frame a piece.
pub struct FrameWriter<W: Write>(PieceWriter<FramesOut<W>>);

/// Compresses pieces at one level.
struct FramesOut<W> {
    inner: W,
    maker: FrameMaker,
    level: FrameLevel,
    /// Bytes of frames so far.
    written: u64,
}

impl<W: Write> PieceTaker for FramesOut<W> {
    fn take_piece(&mut self, piece: &[u8]) -> io::Result<()> {
        let frame = self.maker.make(piece, self.level)?;
        self.written += frame.len() as u64;
        self.inner.write_all(&frame)
    }
}

impl<W: Write> FrameWriter<W> {
    /// Compresses at this level of zstd, -7 to 19; others are taken as the nearest.
    pub fn new(inner: W, level: i32) -> FrameWriter<W> {
        let level = FrameLevel::Zstd(i8::try_from(level.clamp(-7, 19)).unwrap_or(0));
        FrameWriter(PieceWriter::new(FramesOut { inner, maker: FrameMaker::new(), level, written: 0 }))
    }

    /// Ends the last piece, pads, and returns what was written to.
    ///
    /// # Errors
    /// As the output.
    pub fn finish(self, padding: SizePadding) -> io::Result<W> {
        let mut out = self.0.finish()?;
        pad(&mut out.inner, padding.of(out.written))?;
        Ok(out.inner)
    }
}

impl<W: Write> Write for FrameWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Expands frames of any writer, one after the other, and skips skippable ones. It is for the caller to stop reading when more
/// comes than there should be: a reader keeps at most a window of 8 MiB.
pub struct FrameReader<R: Read> {
    inner: R,
    codec: DCtx<'static>,
    input: Vec<u8>,
    /// What of `input` is not yet expanded.
    ready: core::ops::Range<usize>,
    /// Whether a frame has begun and not ended.
    inside: bool,
    begun: bool,
}

impl<R: Read> FrameReader<R> {
    /// Reads frames from `inner`.
    pub fn new(inner: R) -> FrameReader<R> {
        let mut codec = DCtx::create();
        let window = codec.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX));
        debug_assert!(window.is_ok());
        FrameReader { inner, codec, input: vec![0; INPUT], ready: 0..0, inside: false, begun: false }
    }

    /// More input; false at its end.
    fn refill(&mut self) -> io::Result<bool> {
        let count = self.inner.read(&mut self.input)?;
        self.ready = 0..count;
        Ok(count > 0)
    }
}

impl<R: Read> Read for FrameReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let mut output = OutBuffer::around(&mut *out);
            // Also without input: an earlier call may have left expanded bytes in the library.
            if self.begun {
                let mut input = InBuffer::around(&self.input[self.ready.clone()]);
                let had = !self.ready.is_empty();
                if had || self.inside {
                    let hint = self.codec.decompress_stream(&mut output, &mut input).map_err(failed)?;
                    self.ready.start += input.pos();
                    self.inside = hint != 0;
                }
                if output.pos() > 0 {
                    return Ok(output.pos());
                }
                if had && !self.ready.is_empty() {
                    continue;
                }
            }
            self.begun = true;
            if !self.refill()? {
                let whole = !self.inside;
                return if whole {
                    Ok(0)
                } else {
                    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a frame is cut off"))
                };
            }
        }
    }
}

/// The library's error in words.
pub(super) fn failed(code: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("zstd: {}", zstd_safe::get_error_name(code)))
}

#[cfg(test)]
mod tests;
