//! Where unfinished files are: a hidden folder inside the permitted one, on the same file system, with a folder for each transfer.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, Dir, FlockOperation, Mode, OFlags, flock, fsync, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::FolderError;
use crate::beneath::Beneath;
use crate::stamp::Status;

/// The name of the hidden folder. No entry may have it, and no walk goes into it.
pub const WORKING_FOLDER: &str = ".strait-partial";

/// How often a transfer's folder is made anew when another process, which collects old ones, removes it meanwhile.
const TRIES: usize = 16;

/// The folder of one transfer, locked: no other process works on it.
#[derive(Debug)]
pub(crate) struct WorkFolder {
    /// All transfers' folders.
    parent: OwnedFd,
    /// This one's; the lock is on it, and ends with it.
    folder: OwnedFd,
    transfer: [u8; 16],
}

impl WorkFolder {
    /// Makes and locks the folder of a transfer.
    pub(crate) fn open(beneath: &Beneath, transfer: [u8; 16]) -> Result<WorkFolder, FolderError> {
        let doing = "make the folder for unfinished files";
        for _ in 0..TRIES {
            match WorkFolder::try_open(beneath, transfer) {
                Ok((_, parent)) if parent != geteuid().as_raw() => return Err(FolderError::NotOurs),
                Ok((Some(work), _)) => return Ok(work),
                Ok((None, _)) | Err(Errno::NOENT) => {}
                Err(Errno::WOULDBLOCK) => return Err(FolderError::Busy),
                Err(error) => return Err(FolderError::new(doing, error)),
            }
        }
        Err(FolderError::Busy)
    }

    /// None if it was removed before it was locked; and who owns the folder of all transfers. In a folder that others may write to,
    /// another user could have made it, and could change what is in it.
    fn try_open(beneath: &Beneath, transfer: [u8; 16]) -> Result<(Option<WorkFolder>, u32), Errno> {
        let make = |folder: &OwnedFd, name: &str| match mkdirat(folder, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error),
        };
        make(beneath.root(), WORKING_FOLDER)?;
        let parent = beneath.folder(Some(WORKING_FOLDER.as_bytes()))?;
        let owner = Status::of(&parent)?.attributes().owner.0;
        if owner != geteuid().as_raw() {
            return Ok((None, owner));
        }
        let name = name_of(&transfer);
        make(&parent, &name)?;
        let folder = open_folder(&parent, &name)?;
        flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
        let is_there = Status::of(&folder)?.names() > 0;
        Ok((is_there.then_some(WorkFolder { parent, folder, transfer }), owner))
    }

    /// The transfer's name.
    pub(crate) fn transfer(&self) -> [u8; 16] {
        self.transfer
    }

    /// The open folder.
    pub(crate) fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    /// Opens a file in it, for the owner alone.
    pub(crate) fn file(&self, name: &str, flags: OFlags, doing: &'static str) -> Result<File, FolderError> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR);
        file.map(File::from).map_err(|error| FolderError::new(doing, error))
    }

    /// Renames a file in it.
    pub(crate) fn rename(&self, from: &str, to: &str, doing: &'static str) -> Result<(), FolderError> {
        renameat(&self.folder, from, &self.folder, to).map_err(|error| FolderError::new(doing, error))
    }

    /// Makes its names durable.
    pub(crate) fn sync(&self, doing: &'static str) -> Result<(), FolderError> {
        fsync(&self.folder).map_err(|error| FolderError::new(doing, error))
    }

    /// Removes a file in it, if it is there.
    pub(crate) fn remove(&self, name: &str) {
        let _ = unlinkat(&self.folder, name, AtFlags::empty());
    }

    /// Removes the files in it that are not named.
    pub(crate) fn retain(&self, keep: impl Fn(&[u8]) -> bool) -> Result<(), FolderError> {
        let all = names_in(&self.folder)
            .map_err(|error| FolderError::new("read the folder for unfinished files", error))?;
        for name in all.iter().filter(|name| !keep(name)) {
            let _ = unlinkat(&self.folder, name, AtFlags::empty());
        }
        Ok(())
    }

    /// Removes the folder with all that is in it, and the folder of all transfers if it is empty.
    pub(crate) fn remove_all(&self) -> Result<(), FolderError> {
        self.retain(|_| false)?;
        let name = name_of(&self.transfer);
        let doing = "remove the folder for unfinished files";
        unlinkat(&self.parent, name, AtFlags::REMOVEDIR).map_err(|error| FolderError::new(doing, error))
    }
}

/// What [`Folder::collect`](super::Folder::collect) removed, and what it left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Transfers whose unfinished files were removed.
    pub transfers: usize,
    /// Bytes on disk that these had.
    pub bytes: u64,
    /// Bytes on disk that others still have.
    pub left: u64,
}

/// Removes the unfinished files of transfers that no process works on: those that nothing was written to for `age`, then the oldest until
/// all together take at most `budget` bytes on disk.
pub(super) fn collect(
    beneath: &Beneath,
    now: SystemTime,
    age: Duration,
    budget: u64,
) -> Result<Collected, FolderError> {
    let because = |error| FolderError::new("collect unfinished files", error);
    let parent = match beneath.folder(Some(WORKING_FOLDER.as_bytes())) {
        Ok(parent) => parent,
        Err(Errno::NOENT) => return Ok(Collected::default()),
        Err(error) => return Err(because(error)),
    };
    let mut found = Vec::new();
    for name in names_in(&parent).map_err(because)? {
        found.extend(last_written(&parent, &name).map(|(written, bytes)| (written, bytes, name)));
    }
    found.sort_unstable();
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut collected =
        Collected { left: found.iter().map(|(_, bytes, _)| bytes).sum(), ..Collected::default() };
    for (written, bytes, name) in found {
        let old = now.saturating_sub(age) > Duration::from_nanos(u64::try_from(written).unwrap_or(0));
        if (old || collected.left > budget) && remove_idle(&parent, &name).is_ok() {
            collected.transfers += 1;
            collected.bytes += bytes;
            collected.left -= bytes;
        }
    }
    // Succeeds only if it is empty.
    let _ = unlinkat(beneath.root(), WORKING_FOLDER, AtFlags::REMOVEDIR);
    Ok(collected)
}

/// When anything in a transfer's folder was last written to, and the bytes on disk of all.
fn last_written(parent: &OwnedFd, name: &[u8]) -> Option<(i64, u64)> {
    let folder =
        openat(parent, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).ok()?;
    let mut last = Status::of(&folder).ok()?.stamp().modified;
    let mut bytes = 0;
    for file in names_in(&folder).ok()? {
        let status = Status::at(&folder, &file).ok()?;
        last = last.max(status.stamp().changed);
        bytes += status.on_disk();
    }
    Some((last, bytes))
}

fn remove_idle(parent: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    let folder = openat(parent, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    for file in names_in(&folder)? {
        unlinkat(&folder, file, AtFlags::empty())?;
    }
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

fn open_folder(parent: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// The names in a folder, but for `.` and `..`.
pub(crate) fn names_in(folder: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// The transfer's name as that of a folder: 32 hexadecimal digits.
fn name_of(transfer: &[u8; 16]) -> String {
    transfer.iter().map(|byte| format!("{byte:02x}")).collect()
}
