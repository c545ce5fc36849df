//! The file that keeps count of a manual key's sequence numbers, across starts and crashes.
//!
//! It is open, and locked, as long as the key is in use, and written in place: a daemon that has given up its
//! privileges may not make files in every folder it could read, and a lock would not follow a file that takes the
//! place of another.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write as _};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use strait_ipsec::{Reserve, SequenceNumbers};
use strait_keying::manual::{CounterError, FILE_LEN, Identity, SequenceCounter, Write};

/// Why sequence numbers cannot be counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CounterFileError {
    /// What the file says, or does not say.
    #[error("the counter file {} cannot be used: {error}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: CounterError,
    },
    /// Others may write it, or it is no file at all.
    #[error(
        "the counter file {} is readable by others (mode {mode:03o}); run `chmod 600 {}`, or name another",
        path.display(),
        path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Another daemon counts there.
    #[error("the counter file {} is in use by another daemon; each key needs its own file", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("cannot {step} the counter file {}: {source}", path.display())]
    Io {
        /// What was tried.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A counter with its file, locked against other processes.
#[derive(Debug)]
pub struct CounterFile {
    file: File,
    path: PathBuf,
    counter: SequenceCounter,
}

impl CounterFile {
    /// Goes on where the file at `path` says that an earlier run may have been, or begins it. Some numbers are
    /// reserved when this returns.
    ///
    /// # Errors
    /// [`CounterFileError`] with the remedy.
    pub fn open(
        path: &Path,
        identity: Identity,
        length: SequenceNumbers,
    ) -> Result<CounterFile, CounterFileError> {
        match found_or_begun(path, identity, length)? {
            (file, None) => CounterFile::resume(file, path, identity, length),
            (file, Some(counter)) => Ok(CounterFile { file, path: path.to_owned(), counter }),
        }
    }

    /// The file at `path`, begun if there is none, for a process that may open no file and goes on with
    /// [`CounterFile::resume`].
    ///
    /// # Errors
    /// As [`CounterFile::open`], but for what stands in the file.
    pub(crate) fn file(
        path: &Path,
        identity: Identity,
        length: SequenceNumbers,
    ) -> Result<File, CounterFileError> {
        found_or_begun(path, identity, length).map(|(file, _)| file)
    }

    /// The same file, which stays locked, for keys that are made new: goes on behind all that was reserved.
    ///
    /// # Errors
    /// As [`CounterFile::open`].
    pub fn again(
        &self,
        identity: Identity,
        length: SequenceNumbers,
    ) -> Result<CounterFile, CounterFileError> {
        let file = self.file.try_clone().map_err(failed("open", &self.path))?;
        CounterFile::resume(file, &self.path, identity, length)
    }

    /// Goes on where `file`, which is the one at `path`, says that an earlier run may have been.
    ///
    /// # Errors
    /// As [`CounterFile::open`].
    pub(crate) fn resume(
        mut file: File,
        path: &Path,
        identity: Identity,
        length: SequenceNumbers,
    ) -> Result<CounterFile, CounterFileError> {
        let found = file.metadata().map_err(failed("look at", path))?;
        if !found.is_file() || found.mode() & 0o077 != 0 {
            return Err(CounterFileError::Open { path: path.to_owned(), mode: found.mode() & 0o777 });
        }
        lock(&file, path)?;
        let mut bytes = Vec::with_capacity(FILE_LEN + 1);
        file.rewind().map_err(failed("read", path))?;
        let most = u64::try_from(FILE_LEN).unwrap_or(u64::MAX) + 1;
        (&file).take(most).read_to_end(&mut bytes).map_err(failed("read", path))?;
        let counter = SequenceCounter::resume(&bytes, identity, length)
            .map_err(|error| CounterFileError::Content { path: path.to_owned(), error })?;
        let mut resumed = CounterFile { file, path: path.to_owned(), counter };
        resumed.keep(0)?;
        Ok(resumed)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The numbers for the association.
    #[must_use]
    pub fn reserve(&self) -> Reserve {
        self.counter.reserve()
    }

    /// The number of the last packet, when `packets` were sealed since this was opened.
    #[must_use]
    pub fn used(&self, packets: u64) -> u64 {
        self.counter.used(packets)
    }

    /// Reserves more numbers if it is time to, when `packets` were sealed since this was opened; they may be used
    /// once they are safe on disk, which is before this returns.
    ///
    /// # Errors
    /// [`CounterFileError::Io`]; what was reserved before may still be used.
    pub fn keep(&mut self, packets: u64) -> Result<(), CounterFileError> {
        // Twice after a start that found a record damaged.
        while let Some(write) = self.counter.due(packets) {
            self.write(write)?;
        }
        Ok(())
    }

    /// Notes the last number that was used, if the association is gone: no number is lost then.
    ///
    /// # Errors
    /// [`CounterFileError::Io`]; all that was reserved counts as used then.
    pub fn close(mut self) -> Result<(), CounterFileError> {
        match self.counter.reserve().ended_at() {
            Some(last) => {
                let write = self.counter.close(last);
                self.write(write)
            }
            None => Ok(()),
        }
    }

    /// Has what follows written to another file, which may refuse it; gives back the one before.
    #[cfg(test)]
    pub(crate) fn write_to(&mut self, file: File) -> File {
        core::mem::replace(&mut self.file, file)
    }

    fn write(&mut self, write: Write) -> Result<(), CounterFileError> {
        let written = self.file.write_all_at(&write.bytes, write.at).and_then(|()| self.file.sync_data());
        written.map_err(failed("write", &self.path))?;
        self.counter.written(write);
        Ok(())
    }
}

/// The file at `path`; with a counter if it was made now.
fn found_or_begun(
    path: &Path,
    identity: Identity,
    length: SequenceNumbers,
) -> Result<(File, Option<SequenceCounter>), CounterFileError> {
    loop {
        // Never through a link: that could lead into the file of any user.
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        match options.open(path) {
            Ok(file) => return Ok((file, None)),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("open", path)(error)),
            Err(_) => {}
        }
        match begin(path, SequenceCounter::new(identity, length)) {
            Ok((file, counter)) => return Ok((file, Some(counter))),
            // Another was quicker.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("make", path)(error)),
        }
    }
}

/// Makes the file under another name and gives it its own once it is whole and safe.
fn begin(path: &Path, mut counter: SequenceCounter) -> io::Result<(File, SequenceCounter)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut draft = std::ffi::OsString::from(".");
    draft.push(name);
    draft.push(format!(".{}", std::process::id()));
    let draft = folder.join(draft);
    let made = fill(&draft, &mut counter).and_then(|file| fs::hard_link(&draft, path).map(|()| file));
    let removed = fs::remove_file(&draft);
    let file = made?;
    removed?;
    File::open(folder)?.sync_all()?;
    Ok((file, counter))
}

fn fill(draft: &Path, counter: &mut SequenceCounter) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(draft)?;
    file.try_lock()?;
    file.write_all(&[0; FILE_LEN])?;
    if let Some(write) = counter.due(0) {
        file.write_all_at(&write.bytes, write.at)?;
        file.sync_all()?;
        counter.written(write);
    }
    Ok(file)
}

fn lock(file: &File, path: &Path) -> Result<(), CounterFileError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => CounterFileError::Busy { path: path.to_owned() },
        TryLockError::Error(source) => CounterFileError::Io { step: "lock", path: path.to_owned(), source },
    })
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CounterFileError {
    move |source| CounterFileError::Io { step, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
