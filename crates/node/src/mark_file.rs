//! The file with the marks of keys without sessions: what was sent and taken, across starts and crashes.
//!
//! It is locked as long as it is in use. Entries of its journal are written in place. A table is written to a new file, which takes
//! the place of the old one when it is whole; the lock goes with it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use strait_keying::PublicKey;
use strait_keying::sessionless::{MARK_FILE_MAX, MarkFileError, MarkJournal, MarkTable, key_name};

use crate::runtime;

/// What the name of a file ends with.
const SUFFIX: &str = "marks";

/// Why marks cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MarksError {
    /// The environment names no folder.
    #[error(
        "there is no folder for the file that keeps what was sent and taken without a session: set STRAIT_STATE_DIR"
    )]
    NoFolder,
    /// What the file says, or does not say.
    #[error("the file {} cannot be used: {error}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: MarkFileError,
    },
    /// Others may read it, or it is no file at all.
    #[error("the file {} is readable by others (mode {mode:03o}), or no file; run `chmod 600 {}`", path.display(), path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Another daemon has the same key.
    #[error("the file {} is in use by another daemon; without sessions, each daemon needs its own private key", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("cannot {step} {}: {source}", path.display())]
    Io {
        /// What was tried.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The marks of a node, with their file.
#[derive(Debug)]
pub(crate) struct MarkFile {
    path: PathBuf,
    file: File,
    table: MarkTable,
    /// Nothing after a write that failed: what of it is on disk is not known.
    journal: Option<MarkJournal>,
    /// What is to be on disk and is not yet.
    wanted: BTreeMap<PublicKey, u64>,
}

impl MarkFile {
    /// The file of a node: called as headers call the node, so that it stays the same when the interface is renamed.
    pub(crate) fn path(folder: &Path, node: &PublicKey) -> PathBuf {
        named(folder, node, SUFFIX)
    }

    /// Goes on with the file at `path`, or begins it. What it says is in a new file when this returns.
    ///
    /// # Errors
    /// [`MarksError`] with the remedy.
    pub(crate) fn open(path: &Path, node: PublicKey) -> Result<MarkFile, MarksError> {
        if let Some(folder) = path.parent() {
            runtime::make(folder).map_err(io::Error::other).map_err(failed("make the folder of", path))?;
        }
        let (table, old) = match locked(path)? {
            Some(file) => (read(&file, path, node)?, Some(file)),
            None => (MarkTable::new(node), None),
        };
        let (journal, file) = begin(path, &table, old.is_none())?;
        Ok(MarkFile { path: path.to_owned(), file, table, journal: Some(journal), wanted: BTreeMap::new() })
    }

    /// The file, for a process that may read it and no more.
    ///
    /// # Errors
    /// [`MarksError::Io`].
    pub(crate) fn reader(&self) -> Result<File, MarksError> {
        File::open(&self.path).map_err(failed("open", &self.path))
    }

    /// Raises marks; they are safe when [`MarkFile::write`] has succeeded.
    ///
    /// # Errors
    /// [`MarkFileError::Full`] when there are too many senders.
    pub(crate) fn raise(&mut self, key: PublicKey, mark: u64) -> Result<(), MarkFileError> {
        self.table.raise(key, mark)?;
        self.wanted.insert(key, self.table.of(&key));
        Ok(())
    }

    /// Writes what was raised, and waits until it is safe.
    ///
    /// # Errors
    /// [`MarksError::Io`]; it is written with the next call then.
    pub(crate) fn write(&mut self) -> Result<(), MarksError> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        // After an error nothing is known of what is on disk: the next write makes a new file.
        let journal = self.journal.take();
        let entry =
            journal.and_then(|mut journal| journal.append(&self.wanted).map(|write| (journal, write)));
        match entry {
            Some((journal, write)) => {
                let written = self.file.write_all_at(&write.bytes, write.at);
                written.and_then(|()| self.file.sync_data()).map_err(failed("write", &self.path))?;
                self.journal = Some(journal);
            }
            None => {
                let (journal, file) = begin(&self.path, &self.table, false)?;
                (self.journal, self.file) = (Some(journal), file);
            }
        }
        self.wanted.clear();
        Ok(())
    }

    /// Has what follows written to another file, which may refuse it; gives back the one before.
    #[cfg(test)]
    pub(crate) fn write_to(&mut self, file: File) -> File {
        core::mem::replace(&mut self.file, file)
    }
}

/// The file of a node with this suffix.
pub(crate) fn named(folder: &Path, node: &PublicKey, suffix: &str) -> PathBuf {
    let name: String = key_name(node).bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    folder.join(format!("{name}.{suffix}"))
}

/// The file at `path`, locked; nothing where there is none.
fn locked(path: &Path) -> Result<Option<File>, MarksError> {
    loop {
        let mut options = OpenOptions::new();
        // Never through a link: that could lead into the file of any user.
        let file = match options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed("open", path))?,
        };
        lock(&file, path)?;
        let found = file.metadata().map_err(failed("look at", path))?;
        if !found.is_file() || found.mode() & 0o077 != 0 {
            return Err(MarksError::Open { path: path.to_owned(), mode: found.mode() & 0o777 });
        }
        // The daemon that had it may have put another in its place before it let go of this one.
        match fs::metadata(path) {
            Ok(now) if (now.dev(), now.ino()) == (found.dev(), found.ino()) => return Ok(Some(file)),
            _ => {}
        }
    }
}

fn read(file: &File, path: &Path, node: PublicKey) -> Result<MarkTable, MarksError> {
    MarkTable::read(&bytes(file).map_err(failed("read", path))?, node)
        .map_err(|error| MarksError::Content { path: path.to_owned(), error })
}

/// What a file holds: one byte more than the longest of them has, at most.
pub(crate) fn bytes(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MARK_FILE_MAX).unwrap_or(u64::MAX) + 1;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Makes a file with this table, locked and safe, and gives it the name `path`; the first one of all takes no other's place.
fn begin(path: &Path, table: &MarkTable, first: bool) -> Result<(MarkJournal, File), MarksError> {
    let (journal, bytes) = MarkJournal::begin(table);
    let draft = draft(path);
    let name = || {
        // Two that begin at the same time have not seen each other's lock.
        if first { fs::hard_link(&draft, path) } else { fs::rename(&draft, path) }
    };
    let made = fill(&draft, &bytes).and_then(|file| name().map(|()| file));
    // It is gone, or stays until the next start where even this fails.
    let _ = fs::remove_file(&draft);
    let file = match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(MarksError::Busy { path: path.to_owned() });
        }
        made => made.map_err(failed("write", path))?,
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("write the folder of", path))?;
    Ok((journal, file))
}

fn draft(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

fn fill(draft: &Path, bytes: &[u8]) -> io::Result<File> {
    // What an earlier run with the same number left there was not finished.
    match fs::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(draft)?;
    file.try_lock()?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(file)
}

fn lock(file: &File, path: &Path) -> Result<(), MarksError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => MarksError::Busy { path: path.to_owned() },
        TryLockError::Error(source) => MarksError::Io { step: "lock", path: path.to_owned(), source },
    })
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> MarksError {
    move |source| MarksError::Io { step, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
