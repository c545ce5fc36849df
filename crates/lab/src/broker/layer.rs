//! Layers that bytes pass on their way to a file or a wire, each in constant memory: compression here, encryption in
//! [`encrypt`], TLS records in [`record`].

pub(super) mod encrypt;
pub(super) mod record;

use std::fs::File;
use std::io::{self, Write};

use strait_compress::{Codecs, Method};
use strait_transfer::sealed::chunks::ChunkWriter;
use strait_transfer::sealed::frames::{FrameWriter, SizePadding};
use zlib_rs::{Deflate, DeflateFlush, Status};

use super::pipeline::CHUNK;

/// Bytes that DEFLATE puts out at once.
const DEFLATE_OUT: usize = 16 * 1024;
/// DEFLATE's window, 32 KiB, as `java.util.zip.Deflater` has it.
const WINDOW_BITS: u8 = 15;

/// Something that bytes are written through.
pub(super) trait Layer: Write {
    /// Writes what it still holds, and returns where all ends.
    fn finish(self: Box<Self>) -> io::Result<Sink>;
}

/// The layer below another one.
pub(super) type Below = Box<dyn Layer>;

/// Where bytes end.
pub(super) enum Sink {
    /// In a file, which has so many.
    File(File, u64),
    /// In memory, which stands for a socket.
    Memory(Vec<u8>),
    /// Nowhere; so many came.
    Nothing(u64),
}

impl Sink {
    /// Bytes that came.
    pub(super) fn len(&self) -> u64 {
        match self {
            Sink::File(_, len) | Sink::Nothing(len) => *len,
            Sink::Memory(bytes) => bytes.len() as u64,
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::File(file, len) => {
                let count = file.write(bytes)?;
                *len += count as u64;
                return Ok(count);
            }
            Sink::Memory(all) => all.extend_from_slice(bytes),
            Sink::Nothing(len) => *len += std::hint::black_box(bytes).len() as u64,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Layer for Sink {
    fn finish(self: Box<Self>) -> io::Result<Sink> {
        Ok(*self)
    }
}

/// DEFLATE in zlib's format, as Java's `DeflaterOutputStream` writes it.
pub(super) struct DeflateLayer {
    below: Below,
    deflate: Deflate,
    out: Vec<u8>,
}

impl DeflateLayer {
    /// At this level of zlib-rs, 0 to 9.
    pub(super) fn new(below: Below, level: i32) -> DeflateLayer {
        DeflateLayer { below, deflate: Deflate::new(level, true, WINDOW_BITS), out: vec![0; DEFLATE_OUT] }
    }

    /// One call of the library: how much of `bytes` it took, and whether it is done.
    fn step(&mut self, bytes: &[u8], flush: DeflateFlush) -> io::Result<(usize, Status)> {
        let before = (self.deflate.total_in(), self.deflate.total_out());
        let status = self.deflate.compress(bytes, &mut self.out, flush);
        let status = status.map_err(|error| io::Error::other(error.as_str()))?;
        let made = (self.deflate.total_out() - before.1) as usize;
        self.below.write_all(&self.out[..made])?;
        Ok(((self.deflate.total_in() - before.0) as usize, status))
    }
}

impl Write for DeflateLayer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < bytes.len() {
            taken += self.step(&bytes[taken..], DeflateFlush::NoFlush)?.0;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Layer for DeflateLayer {
    fn finish(mut self: Box<Self>) -> io::Result<Sink> {
        while self.step(&[], DeflateFlush::Finish)?.1 != Status::StreamEnd {}
        self.below.finish()
    }
}

/// zstd frames of 1 MiB, as sealed objects have them.
impl Layer for FrameWriter<Below> {
    fn finish(self: Box<Self>) -> io::Result<Sink> {
        FrameWriter::finish(*self, SizePadding::Exact)?.finish()
    }
}

/// Chunks of age v1.
impl Layer for ChunkWriter<Below> {
    fn finish(self: Box<Self>) -> io::Result<Sink> {
        ChunkWriter::finish(*self)?.finish()
    }
}

/// LZ4 blocks of [`CHUNK`] bytes, each behind its length.
pub(super) struct Lz4Layer {
    below: Below,
    codecs: Codecs,
    held: Vec<u8>,
    out: Vec<u8>,
}

impl Lz4Layer {
    pub(super) fn new(below: Below) -> Lz4Layer {
        Lz4Layer { below, codecs: Codecs::new(), held: Vec::with_capacity(CHUNK), out: vec![0; 2 * CHUNK] }
    }

    fn block(&mut self) -> io::Result<()> {
        let len = self.codecs.compress(Method::LZ4, &self.held, &mut self.out);
        // What does not shrink goes as it is.
        let made = len.filter(|len| *len < self.held.len()).map_or(&self.held[..], |len| &self.out[..len]);
        let head = u32::try_from(made.len()).map_err(io::Error::other)?;
        self.below.write_all(&head.to_le_bytes())?;
        self.below.write_all(made)?;
        self.held.clear();
        Ok(())
    }
}

impl Write for Lz4Layer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK - self.held.len());
        self.held.extend_from_slice(&bytes[..taken]);
        if self.held.len() == CHUNK {
            self.block()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Layer for Lz4Layer {
    fn finish(mut self: Box<Self>) -> io::Result<Sink> {
        if !self.held.is_empty() {
            self.block()?;
        }
        self.below.finish()
    }
}
