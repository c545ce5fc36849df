//! Names that the sender does not have.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, unlinkat};
use rustix::io::{self, Errno};

use super::{FolderError, WORKING_FOLDER};
use crate::beneath::Beneath;
use crate::path::EntryPath;
use crate::stamp::Status;

/// See [`super::Folder::prune`].
pub(super) fn prune(
    beneath: &Beneath,
    folder: Option<&EntryPath>,
    dry_run: bool,
    keep: &dyn Fn(&[u8]) -> bool,
    removed: &mut dyn FnMut(&[u8]),
) -> Result<(), FolderError> {
    let because = |error| FolderError::new("remove a name", error);
    let at = beneath.folder(folder.map(EntryPath::as_bytes)).map_err(because)?;
    for entry in Dir::read_from(&at).map_err(because)? {
        let entry = entry.map_err(because)?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") && name != WORKING_FOLDER.as_bytes() && !keep(name) {
            let path = folder.map_or_else(Vec::new, |folder| [folder.as_bytes(), b"/"].concat());
            Removal { dry_run, removed }.remove(&at, name, &path).map_err(because)?;
        }
    }
    Ok(())
}

struct Removal<'a> {
    dry_run: bool,
    removed: &'a mut dyn FnMut(&[u8]),
}

/// An open folder with the names that are still to be removed in it.
struct Emptying {
    folder: OwnedFd,
    names: Dir,
    name: Vec<u8>,
    path: Vec<u8>,
}

impl Removal<'_> {
    /// Removes one name and all that is below it. One open folder a level; a folder's own name goes last.
    fn remove(&mut self, parent: &OwnedFd, name: &[u8], prefix: &[u8]) -> io::Result<()> {
        let mut levels: Vec<Emptying> = Vec::new();
        levels.extend(self.step(parent, name, prefix)?);
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.names.read() else {
                let Some(done) = levels.pop() else { break };
                let above = levels.last().map_or(parent, |level| &level.folder);
                self.unlink(above, &done.name, AtFlags::REMOVEDIR)?;
                (self.removed)(&done.path);
                continue;
            };
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                let prefix = [&level.path[..], b"/"].concat();
                let below = self.step(&level.folder, name, &prefix)?;
                levels.extend(below);
            }
        }
        Ok(())
    }

    /// Removes a name, or opens it if it is a folder.
    fn step(&mut self, parent: &OwnedFd, name: &[u8], prefix: &[u8]) -> io::Result<Option<Emptying>> {
        let path = [prefix, name].concat();
        match Status::at(parent, name) {
            Err(Errno::NOENT) => return Ok(None),
            Ok(status) if status.kind() == FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let folder = openat(parent, name, flags, Mode::empty())?;
                let names = Dir::read_from(&folder)?;
                return Ok(Some(Emptying { folder, names, name: name.to_vec(), path }));
            }
            other => other.map(|_| ())?,
        }
        self.unlink(parent, name, AtFlags::empty())?;
        (self.removed)(&path);
        Ok(None)
    }

    fn unlink(&self, parent: &OwnedFd, name: &[u8], flags: AtFlags) -> io::Result<()> {
        if self.dry_run { Ok(()) } else { unlinkat(parent, name, flags) }
    }
}
