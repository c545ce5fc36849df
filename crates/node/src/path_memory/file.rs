//! The file, which the starter writes and the packet process reads before it gives up its rights.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{PATH_FILE_MAX, PathMemory};
use crate::folders::state_folder;
use crate::kept_file;

/// Where what was found on paths is kept.
#[derive(Clone, Debug)]
pub(crate) struct PathFile(PathBuf);

impl PathFile {
    /// The file for the tunnel of this interface; nothing where there is no folder for it.
    pub(crate) fn of(interface: &str) -> Option<PathFile> {
        state_folder().map(|folder| PathFile(folder.join(format!("{interface}.paths"))))
    }

    /// The file at `path`.
    #[cfg(test)]
    pub(crate) fn at(path: PathBuf) -> PathFile {
        PathFile(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What it says. Nothing where there is none; of one that cannot be used, the log says why, and it is begun anew.
    pub(crate) fn read(&self) -> PathMemory {
        let path = self.0.display();
        let bytes = match kept_file::read(&self.0, PATH_FILE_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return PathMemory::default(),
            Err(error) => {
                tracing::warn!(%path, "cannot read what was found on paths: {error}; their rates are found again");
                return PathMemory::default();
            }
        };
        PathMemory::parse(&bytes, unix_time()).unwrap_or_else(|error| {
            tracing::warn!(
                %path,
                "the file of what was found on paths is not used: {error}; their rates are found again, and it is written anew"
            );
            PathMemory::default()
        })
    }

    /// Puts a new file in the place of the old one, whole or not at all.
    pub(crate) fn write(&self, memory: &PathMemory) -> io::Result<()> {
        kept_file::replace(&self.0, &memory.render())
    }
}

/// Seconds since 1970; 0 where the clock was never set.
#[must_use]
pub fn unix_time() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "no other clock goes on while the node does not run; a wrong one keeps or forgets a guess"
    )]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
