//! A private folder for configurations, keys, sockets and logs, gone when its owner is.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::Error;

const PREFIX: &str = "strait-testbed-";
const LOCK: &str = ".in-use";

/// What is done with the folder when it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FolderFate {
    Removed,
    Kept,
}

/// A folder that only its owner may enter, removed on drop.
///
/// A killed program cannot remove its folder; the next one does, which it tells by the lock that the kernel
/// releases with the process.
#[derive(Debug)]
pub struct Workdir {
    path: PathBuf,
    fate: FolderFate,
    _lock: File,
}

impl Workdir {
    /// A new, empty folder in the system's folder for temporary files.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be made.
    pub fn create() -> Result<Workdir, Error> {
        let parent = std::env::temp_dir();
        sweep(&parent);
        let pid = std::process::id();
        for attempt in 0_u32.. {
            let path = parent.join(format!("{PREFIX}{pid}-{attempt}"));
            let doing = format!("make the folder {}", path.display());
            // Under a name that is not swept until it is locked: another program may be starting as well.
            let unlocked = parent.join(format!(".{PREFIX}{pid}-{attempt}"));
            match DirBuilder::new().mode(0o700).create(&unlocked) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                made => made.map_err(Error::doing(&doing))?,
            }
            let lock = File::create(unlocked.join(LOCK)).map_err(Error::doing(&doing))?;
            lock.lock().map_err(Error::doing(&doing))?;
            match fs::rename(&unlocked, &path) {
                Ok(()) => return Ok(Workdir { path, fate: FolderFate::Removed, _lock: lock }),
                // In use, or kept: a folder is only replaced by another while it is empty.
                Err(error)
                    if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty) =>
                {
                    fs::remove_dir_all(&unlocked).map_err(Error::doing(doing))?;
                }
                Err(source) => return Err(Error::System { doing, source }),
            }
        }
        unreachable!("4,294,967,296 folders of one process")
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the folder where it is when this value goes.
    pub fn keep(&mut self) {
        self.fate = FolderFate::Kept;
        // Without the lock file no later program takes the folder for an abandoned one.
        let _ = fs::remove_file(self.path.join(LOCK));
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        if self.fate == FolderFate::Removed {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes the folders of programs that were killed.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if ours && abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether the folder has a lock that is not held.
fn abandoned(folder: &Path) -> bool {
    match File::open(folder.join(LOCK)).map(|lock| lock.try_lock()) {
        Ok(Ok(())) => true,
        Ok(Err(TryLockError::WouldBlock | TryLockError::Error(_))) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_with_its_contents() {
        let dir = Workdir::create().unwrap();
        let path = dir.path().to_owned();
        fs::write(path.join("file"), "x").unwrap();
        drop(dir);
        assert!(!path.exists());
    }

    #[test]
    fn kept_on_request() {
        let mut dir = Workdir::create().unwrap();
        dir.keep();
        let path = dir.path().to_owned();
        drop(dir);
        assert!(path.exists());
        assert!(!abandoned(&path));
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn only_folders_without_a_lock_holder_are_swept() {
        let held = Workdir::create().unwrap();
        assert!(!abandoned(held.path()));
        let parent = held.path().join("parent");
        let left = parent.join(format!("{PREFIX}0-0"));
        fs::create_dir_all(&left).unwrap();
        File::create(left.join(LOCK)).unwrap();
        let other = parent.join("something-else");
        fs::create_dir_all(&other).unwrap();
        sweep(&parent);
        assert!(!left.exists() && other.exists() && held.path().exists());
    }
}
