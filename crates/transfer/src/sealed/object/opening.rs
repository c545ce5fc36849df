//! Objects that are opened.

use std::fmt;
use std::io::{self, BufReader, Read};

use super::{Landing, STEP};
use crate::folder::FolderError;
use crate::message::FileFault;
use crate::path::PathError;
use crate::sealed::DeliveryOutcome;
use crate::sealed::chunks::ChunkReader;
use crate::sealed::frames::FrameReader;
use crate::sealed::header::{self, HeaderError};
use crate::sealed::manifest::{MANIFEST_MAX, Manifest, ManifestError, SealedEntry, SealedKind};
use crate::sealed::receipt::{EntryFailure, FAILURES_SAID};
use crate::sealed::recipient::{AgeIdentity, AgeRecipient};

/// Failures that are kept with their names.
const FAILURES_KEPT: usize = crate::sealed::receipt::FAILURES_MAX;

/// Why an object could not be opened, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Not an age file, or not for us.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// Not signed, or malformed.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Cut off, changed, or unreadable.
    #[error("the object cannot be read: {0}")]
    Read(io::Error),
    /// The bytes are not those that the sender signed.
    #[error("the contents are not those of the manifest")]
    Mismatch,
    /// There is no room, or the disk fails.
    #[error("cannot write what is in it: {0}")]
    Landing(io::Error),
    /// Entries could not be written, and may be later; the others are under their names.
    #[error("{0}")]
    Missing(MissingEntries),
}

/// Entries that a receiver could not write for a reason of its own, such as the permissions of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingEntries {
    /// The first of them, and why.
    pub first: Vec<EntryFailure>,
    /// All of them.
    pub count: u64,
}

impl fmt::Display for MissingEntries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = if self.count == 1 { "1 entry" } else { &format!("{} entries", self.count) };
        write!(f, "{entries} could not be written here: {}", EntryFailure::list(&self.first, self.count))
    }
}

/// The result of opening the entries of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandedEntries {
    /// All, some, or none.
    pub outcome: DeliveryOutcome,
    /// Entries under their names.
    pub entries: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Entries that failed.
    pub failed: u64,
    /// The first of them.
    pub failures: Vec<EntryFailure>,
}

/// What `seal_message` sealed: [`MANIFEST_MAX`] bytes at most.
///
/// # Errors
/// [`OpenError`].
pub fn open_message(input: impl Read, identity: &AgeIdentity<'_>) -> Result<Vec<u8>, OpenError> {
    let frames = plain(input, identity)?;
    let mut bytes = Vec::new();
    frames.take(MANIFEST_MAX as u64 + 1).read_to_end(&mut bytes).map_err(OpenError::Read)?;
    if bytes.len() > MANIFEST_MAX { Err(ManifestError::TooLarge.into()) } else { Ok(bytes) }
}

/// Opens a manifest and checks its signature, and that it was meant for `receiver`, whose identity this is.
///
/// # Errors
/// [`OpenError`].
pub fn open_manifest(
    input: impl Read,
    identity: &AgeIdentity<'_>,
    receiver: &AgeRecipient,
) -> Result<Manifest, OpenError> {
    Ok(Manifest::verify(&open_message(input, identity)?, receiver)?)
}

/// Gives the contents to `landing`, a file at a time, each of which gets its name when its bytes are those of the manifest.
///
/// # Errors
/// [`OpenError`] when the object is not to be used from some point on; files that ended before it are whole. An entry that alone
/// fails is no error but a failure in what is returned, if it will always fail; if it may succeed later, the object is needed, and all
/// others are written before the error.
pub fn open_contents(
    input: impl Read,
    identity: &AgeIdentity<'_>,
    manifest: &Manifest,
    landing: &mut dyn Landing,
) -> Result<LandedEntries, OpenError> {
    let mut frames = plain(input, identity)?;
    let mut landed = LandedEntries {
        outcome: DeliveryOutcome::Whole,
        entries: 0,
        bytes: 0,
        failed: 0,
        failures: Vec::new(),
    };
    let mut buffer = vec![0; STEP];
    let mut missing = MissingEntries::default();
    let is_file = |entry: &SealedEntry| matches!(entry.kind, SealedKind::File { .. });
    let last = manifest.entries.iter().rposition(is_file);
    if last.is_none() {
        ended(&mut frames, &mut buffer)?;
    }
    for (at, entry) in manifest.entries.iter().enumerate() {
        let result = match &entry.kind {
            SealedKind::File { size, root } => {
                let is_last = last == Some(at);
                file((entry, is_last), *size, root, &mut frames, landing, &mut buffer)?
            }
            _ => landing.begin(entry),
        };
        if let Err(error) = landed.count(entry, result, &mut missing) {
            // Folders get their permissions back; what else fails then says nothing new.
            let _ = landing.finish(&manifest.entries);
            return Err(error);
        }
    }
    landing.finish(&manifest.entries).map_err(OpenError::Landing)?;
    if missing.count > 0 { Err(OpenError::Missing(missing)) } else { Ok(landed) }
}

/// What is behind the last file has to be padding alone, and the object whole.
fn ended(frames: &mut impl Read, buffer: &mut [u8]) -> Result<(), OpenError> {
    match frames.read(buffer).map_err(OpenError::Read)? {
        0 => Ok(()),
        _ => Err(OpenError::Mismatch),
    }
}

/// The bytes of one file, to `landing` as long as that takes them. The last one gets its name when all of the object was checked.
fn file(
    (entry, is_last): (&SealedEntry, bool),
    size: u64,
    root: &[u8; 32],
    frames: &mut impl Read,
    landing: &mut dyn Landing,
    buffer: &mut [u8],
) -> Result<io::Result<()>, OpenError> {
    let mut result = landing.begin(entry);
    let mut hasher = blake3::Hasher::new();
    let mut left = size;
    while left > 0 {
        let step = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let count = match frames.read(&mut buffer[..step]) {
            Ok(0) => Err(OpenError::Mismatch),
            Ok(count) => Ok(count),
            Err(error) => Err(OpenError::Read(error)),
        };
        let count = count.inspect_err(|_| landing.abandon())?;
        hasher.update(&buffer[..count]);
        if result.is_ok() {
            result = landing.bytes(&buffer[..count]);
        }
        left -= count as u64;
    }
    if hasher.finalize() != *root {
        landing.abandon();
        return Err(OpenError::Mismatch);
    }
    if is_last {
        ended(frames, buffer).inspect_err(|_| landing.abandon())?;
    }
    let result = result.and_then(|()| landing.end(entry));
    if result.is_err() {
        landing.abandon();
    }
    Ok(result)
}

impl LandedEntries {
    fn count(
        &mut self,
        entry: &SealedEntry,
        result: io::Result<()>,
        missing: &mut MissingEntries,
    ) -> Result<(), OpenError> {
        use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let failure =
            |error: &io::Error| EntryFailure { path: entry.path.clone(), reason: error.to_string() };
        match result {
            Ok(()) => {
                self.entries += 1;
                self.bytes += entry.kind.size();
            }
            Err(error) if matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem) => {
                return Err(OpenError::Landing(error));
            }
            Err(error) if fault(&error).reason.is_final() => {
                self.outcome = DeliveryOutcome::Partly;
                self.failed += 1;
                if self.failures.len() < FAILURES_KEPT {
                    self.failures.push(failure(&error));
                }
            }
            Err(error) => {
                missing.count += 1;
                if missing.first.len() < FAILURES_SAID {
                    missing.first.push(failure(&error));
                }
            }
        }
        Ok(())
    }
}

/// Returns the fault that a sender over the network hears for this error.
fn fault(error: &io::Error) -> FileFault {
    let inner = error.get_ref();
    let known = inner.and_then(|inner| inner.downcast_ref::<FolderError>()).copied();
    let path = || inner.and_then(|inner| inner.downcast_ref::<PathError>()).copied().map(FolderError::Path);
    known.or_else(path).unwrap_or_else(|| FolderError::of("write it", error)).into()
}

/// The frames' content of an object.
fn plain<R: Read>(
    input: R,
    identity: &AgeIdentity<'_>,
) -> Result<FrameReader<ChunkReader<BufReader<R>>>, OpenError> {
    let mut input = BufReader::with_capacity(STEP, input);
    let key = header::read(&mut input, identity)?;
    Ok(FrameReader::new(ChunkReader::new(input, &key)))
}

/// The content of an object as it flows, for a reader that needs no manifest; nothing of a chunk before the chunk was checked.
///
/// # Errors
/// [`OpenError::Header`].
pub fn open_stream<'a, R: Read + 'a>(
    input: R,
    identity: &AgeIdentity<'_>,
) -> Result<impl Read + 'a, OpenError> {
    plain(input, identity)
}
