//! The few things that the outbox does with a folder, so that a test can let each of them fail.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// A folder of small files.
pub trait OutboxDisk {
    /// The names of all files.
    ///
    /// # Errors
    /// As the system's.
    fn names(&self) -> io::Result<Vec<String>>;

    /// The bytes of a file, `max` at most.
    ///
    /// # Errors
    /// As the system's; a longer file is one.
    fn read(&self, name: &str, max: u64) -> io::Result<Vec<u8>>;

    /// Writes a file, in the place of one that is there. After a power failure it may be missing or hold anything.
    ///
    /// # Errors
    /// As the system's.
    fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Makes the bytes of a file durable.
    ///
    /// # Errors
    /// As the system's.
    fn sync(&mut self, name: &str) -> io::Result<()>;

    /// Gives a file another name, at once; what had that name is gone.
    ///
    /// # Errors
    /// As the system's.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// As the system's.
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Makes names durable: what was renamed and removed before.
    ///
    /// # Errors
    /// As the system's.
    fn sync_names(&mut self) -> io::Result<()>;
}

/// What a file is called until it is whole.
pub(super) const ASIDE: &str = ".new";

/// Puts a file in its place so that at every moment the old one or the new one is there, whole.
pub(super) fn replace(disk: &mut impl OutboxDisk, name: &str, bytes: &[u8]) -> io::Result<()> {
    let aside = format!("{name}{ASIDE}");
    disk.write(&aside, bytes)?;
    disk.sync(&aside)?;
    disk.rename(&aside, name)?;
    disk.sync_names()
}

/// A folder that only its owner can read, and that one process at a time has.
#[derive(Debug)]
pub struct FolderDisk {
    path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

/// The file that is locked.
const LOCK: &str = "lock";
/// How often, and how long after each other, the lock is tried: a command that lists the outbox has it for a moment, and a child
/// process of its holder has it between fork and exec.
const LOCK_TRIES: (u32, Duration) = (50, Duration::from_millis(20));

impl FolderDisk {
    /// Opens the folder, which is made with mode 0700 where it lacks.
    ///
    /// # Errors
    /// As the system's; [`io::ErrorKind::WouldBlock`] while another process has it open.
    pub fn open(path: &Path) -> io::Result<FolderDisk> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
        }
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path.join(LOCK))?;
        lock_soon(&lock)?;
        Ok(FolderDisk { path: path.to_owned(), _lock: lock })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn lock_soon(lock: &File) -> io::Result<()> {
    let (tries, pause) = LOCK_TRIES;
    for _ in 0..tries {
        match lock.try_lock() {
            Err(fs::TryLockError::WouldBlock) => thread::sleep(pause),
            Err(fs::TryLockError::Error(error)) => return Err(error),
            Ok(()) => return Ok(()),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

impl OutboxDisk for FolderDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        let names =
            fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name().into_string().unwrap_or_default()));
        names.filter(|name| !name.as_ref().is_ok_and(|name| name.is_empty() || name == LOCK)).collect()
    }

    fn read(&self, name: &str, max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.path.join(name))?.take(max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(self.path.join(name))?;
        file.write_all(bytes)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        File::open(self.path.join(name))?.sync_all()
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_names(&mut self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

#[cfg(test)]
pub(super) mod faulty;
