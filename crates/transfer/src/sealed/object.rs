//! Whole objects: through all layers, in constant memory.

mod opening;
mod seeking;

use std::io::{self, Read, Write};

use super::ObjectSeed;
use super::chunks::ChunkWriter;
use super::frames::{FrameWriter, SizePadding};
use super::header::{self, HeaderError};
use super::manifest::{Manifest, ManifestError, SealedEntry, SealedKind};
use super::recipient::AgeRecipient;

pub use opening::{
    LandedEntries, MissingEntries, OpenError, open_contents, open_manifest, open_message, open_stream,
};
pub use seeking::SeekableContents;

/// Bytes that are read from a file at once.
const STEP: usize = 64 * 1024;

/// How an object is sealed.
#[derive(Clone, Copy, Debug)]
pub struct ObjectSealing<'a> {
    /// Who can open it.
    pub recipients: &'a [AgeRecipient],
    /// zstd's level, -7 to 19.
    pub level: i32,
    /// Whether it hides its size.
    pub padding: SizePadding,
}

/// Where the files of a transfer are read.
pub trait Contents {
    /// The file at this path of the manifest, from its first byte.
    ///
    /// # Errors
    /// As the system's; the object is then given up.
    fn open(&mut self, path: &[u8]) -> io::Result<Box<dyn Read + '_>>;

    /// Whether the file that was opened last is still what the manifest says of it.
    ///
    /// # Errors
    /// As the system's.
    fn unchanged(&mut self, entry: &SealedEntry) -> io::Result<bool>;
}

/// Where the entries of an opened transfer go. A file gets its name at [`Landing::end`], which is called when its bytes are
/// those that the sender signed.
pub trait Landing {
    /// Makes a folder or link, or begins a file.
    ///
    /// # Errors
    /// As the system's; the entry then failed, and others go on unless nothing can be written any more.
    fn begin(&mut self, entry: &SealedEntry) -> io::Result<()>;

    /// The next bytes of the file that was begun.
    ///
    /// # Errors
    /// As [`Landing::begin`].
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Gives the file that was begun its name.
    ///
    /// # Errors
    /// As [`Landing::begin`].
    fn end(&mut self, entry: &SealedEntry) -> io::Result<()>;

    /// Drops the file that was begun.
    fn abandon(&mut self);

    /// Makes all durable.
    ///
    /// # Errors
    /// As the system's; nothing may then be said to have arrived.
    fn finish(&mut self, entries: &[SealedEntry]) -> io::Result<()>;
}

/// Why a transfer could not be sealed. What was written is of no use, and no more is written under its key.
#[derive(Debug, thiserror::Error)]
pub enum ObjectSealError {
    /// A recipient, or the output.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The names do not fit.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.escape_ascii())]
    Read {
        /// Its path in the manifest.
        path: Vec<u8>,
        /// Why.
        error: io::Error,
    },
    /// A file changed while it was read.
    #[error("{} changed while it was read", path.escape_ascii())]
    Changed {
        /// Its path in the manifest.
        path: Vec<u8>,
    },
    /// The output took no more.
    #[error(transparent)]
    Write(io::Error),
}

/// Writes the contents of a manifest's files as an object, puts their BLAKE3 roots into the manifest, and returns the output.
///
/// # Errors
/// [`ObjectSealError`]. A file that changed under the reader has to be sent again from its beginning, with another seed.
pub fn seal<W: Write>(
    manifest: &mut Manifest,
    contents: &mut dyn Contents,
    mut out: W,
    seed: ObjectSeed,
    sealing: &ObjectSealing<'_>,
) -> Result<W, ObjectSealError> {
    let key = header::write(&mut out, sealing.recipients, seed)?;
    let mut frames = FrameWriter::new(ChunkWriter::new(out, &key), sealing.level);
    pour(&mut manifest.entries, contents, &mut frames)?;
    let chunks = frames.finish(sealing.padding).map_err(ObjectSealError::Write)?;
    chunks.finish().map_err(ObjectSealError::Write)
}

/// Writes the bytes of all files, one after the other, and puts their BLAKE3 roots into the entries.
pub(crate) fn pour(
    entries: &mut [SealedEntry],
    contents: &mut dyn Contents,
    out: &mut impl Write,
) -> Result<(), ObjectSealError> {
    let mut buffer = vec![0; STEP];
    for entry in entries {
        let SealedKind::File { size, .. } = entry.kind else { continue };
        let root = copy(&entry.path, size, contents, out, &mut buffer)?;
        let unchanged = contents.unchanged(entry).map_err(reading(&entry.path))?;
        if !unchanged {
            return Err(ObjectSealError::Changed { path: entry.path.clone() });
        }
        entry.kind = SealedKind::File { size, root };
    }
    Ok(())
}

/// One file's bytes, neither more nor fewer than its size; returns their BLAKE3.
fn copy(
    path: &[u8],
    size: u64,
    contents: &mut dyn Contents,
    out: &mut impl Write,
    buffer: &mut [u8],
) -> Result<[u8; 32], ObjectSealError> {
    let mut file = contents.open(path).map_err(reading(path))?;
    let mut hasher = blake3::Hasher::new();
    let mut left = size;
    loop {
        let count = match file.read(buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(reading(path)(error)),
        };
        if count as u64 > left || (count == 0 && left > 0) {
            return Err(ObjectSealError::Changed { path: path.to_vec() });
        }
        if count == 0 {
            return Ok(*hasher.finalize().as_bytes());
        }
        hasher.update(&buffer[..count]);
        out.write_all(&buffer[..count]).map_err(ObjectSealError::Write)?;
        left -= count as u64;
    }
}

fn reading(path: &[u8]) -> impl FnOnce(io::Error) -> ObjectSealError + use<> {
    let path = path.to_vec();
    move |error| ObjectSealError::Read { path, error }
}

/// Seals a signed manifest or receipt.
///
/// # Errors
/// [`ObjectSealError`].
pub fn seal_message<W: Write>(
    signed: &[u8],
    mut out: W,
    seed: ObjectSeed,
    sealing: &ObjectSealing<'_>,
) -> Result<W, ObjectSealError> {
    let key = header::write(&mut out, sealing.recipients, seed)?;
    let mut frames = FrameWriter::new(ChunkWriter::new(out, &key), sealing.level);
    frames.write_all(signed).map_err(ObjectSealError::Write)?;
    frames.finish(sealing.padding).and_then(ChunkWriter::finish).map_err(ObjectSealError::Write)
}

#[cfg(test)]
mod tests;
