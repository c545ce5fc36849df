//! Where unfinished files are: a hidden folder inside the permitted one, on the same file system, with a folder for each transfer.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::{SystemTime, UNIX_EPOCH};

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

/// Removes the unfinished files of transfers but this one that no process works on and that nothing was written to since this time. Returns of
/// how many. A younger one costs one look or two.
pub(super) fn collect(beneath: &Beneath, but: &[u8; 16], since: SystemTime) -> Result<usize, FolderError> {
    let because = |error| FolderError::new("collect unfinished files", error);
    let parent = match beneath.folder(Some(WORKING_FOLDER.as_bytes())) {
        Ok(parent) => parent,
        Err(Errno::NOENT) => return Ok(0),
        Err(error) => return Err(because(error)),
    };
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
    let (but, mut collected) = (name_of(but), 0);
    for name in names_in(&parent).map_err(because)? {
        if name != but.as_bytes() && is_older(&parent, &name, since) && remove_idle(&parent, &name).is_ok() {
            collected += 1;
        }
    }
    // Succeeds only if it is empty.
    let _ = unlinkat(beneath.root(), WORKING_FOLDER, AtFlags::REMOVEDIR);
    Ok(collected)
}

/// Looks whether nothing in a transfer's folder was written to since this time, in nanoseconds since 1970.
fn is_older(parent: &OwnedFd, name: &[u8], since: i64) -> bool {
    let is_older = |status: Status| status.stamp().modified.max(status.stamp().changed) < since;
    let look = || -> Result<bool, Errno> {
        if !is_older(Status::at(parent, name)?) {
            return Ok(false);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(parent, name, flags, Mode::empty())?;
        for file in names_in(&folder)? {
            if !is_older(Status::at(&folder, &file)?) {
                return Ok(false);
            }
        }
        Ok(true)
    };
    // What cannot be looked at stays.
    look().unwrap_or(false)
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
