//! Files of a node's own, which only its user may read and which are written in place: they are opened while the process may open any.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Why such a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrivateFileError {
    /// Others may read it, or it is no file at all.
    #[error("the file {} is readable by others (mode {mode:03o}), or no file; run `chmod 600 {}`", path.display(), path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The system refuses.
    #[error("cannot open {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl PrivateFileError {
    /// What the system said of the file at `path`.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> PrivateFileError {
        |source| PrivateFileError::Io { path: path.to_owned(), source }
    }
}

/// Opens the file at `path`, which is begun if there is none. Its folder is there.
///
/// # Errors
/// [`PrivateFileError`] with the remedy.
pub(crate) fn open(path: &Path) -> Result<File, PrivateFileError> {
    let failed = PrivateFileError::io(path);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    // Never through a link: that could lead into the file of any user.
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).map_err(&failed)?;
    let found = file.metadata().map_err(&failed)?;
    if !found.is_file() || found.mode() & 0o077 != 0 {
        return Err(PrivateFileError::Open { path: path.to_owned(), mode: found.mode() & 0o777 });
    }
    Ok(file)
}
