//! Names that the sender does not have.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, unlinkat};
use rustix::io::{self, Errno};

use super::{FolderError, WORKING_FOLDER, allow_owner, set_mode};
use crate::beneath::Beneath;
use crate::path::EntryPath;
use crate::stamp::Status;

/// The end of a name that the sender does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pruned<'a> {
    /// It is removed.
    Removed(&'a [u8]),
    /// It stays, and so do the folders above it.
    Stays(&'a [u8], FolderError),
}

/// See [`super::Folder::prune`].
pub(super) fn prune(
    beneath: &Beneath,
    folder: Option<&EntryPath>,
    dry_run: bool,
    keep: &dyn Fn(&[u8]) -> bool,
    tell: &mut dyn FnMut(Pruned<'_>),
) -> Result<(), FolderError> {
    let at = beneath.folder(folder.map(EntryPath::as_bytes)).map_err(because)?;
    for entry in Dir::read_from(&at).map_err(because)? {
        let entry = entry.map_err(because)?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") && name != WORKING_FOLDER.as_bytes() && !keep(name) {
            let path = folder.map_or_else(Vec::new, |folder| [folder.as_bytes(), b"/"].concat());
            Removal { dry_run, tell }.remove(&at, name, &path);
        }
    }
    Ok(())
}

fn because(error: Errno) -> FolderError {
    FolderError::new("remove a name", error)
}

struct Removal<'a> {
    dry_run: bool,
    tell: &'a mut dyn FnMut(Pruned<'_>),
}

/// An open folder with the names that are still to be removed in it.
struct Emptying {
    folder: OwnedFd,
    names: Dir,
    name: Vec<u8>,
    path: Vec<u8>,
    /// The permissions that it had before it was made writable for the moment.
    lent: Option<u32>,
    /// True if something in it stays.
    stays: bool,
}

/// The next step with a name.
enum Step {
    Done,
    Stays,
    Enter(Box<Emptying>),
}

impl Removal<'_> {
    /// Removes one name and all that is below it. One open folder a level; a folder's own name goes last. What cannot be removed keeps none
    /// of the others.
    fn remove(&mut self, parent: &OwnedFd, name: &[u8], prefix: &[u8]) {
        let mut levels: Vec<Emptying> = Vec::new();
        if let Step::Enter(level) = self.step(parent, name, prefix) {
            levels.push(*level);
        }
        while let Some(level) = levels.last_mut() {
            match level.names.read() {
                Some(Ok(entry)) => {
                    let name = entry.file_name().to_bytes();
                    if name == b"." || name == b".." {
                        continue;
                    }
                    let prefix = [&level.path[..], b"/"].concat();
                    match self.step(&level.folder, name, &prefix) {
                        Step::Done => {}
                        Step::Stays => level.stays = true,
                        Step::Enter(below) => levels.push(*below),
                    }
                }
                end => {
                    let Some(done) = levels.pop() else { break };
                    let above = levels.last().map_or(parent, |level| &level.folder);
                    let is_gone = self.leave(above, &done, end.and_then(Result::err));
                    if let Some(level) = levels.last_mut() {
                        level.stays |= !is_gone;
                    }
                }
            }
        }
    }

    /// Removes a name, or opens it if it is a folder.
    fn step(&mut self, parent: &OwnedFd, name: &[u8], prefix: &[u8]) -> Step {
        let path = [prefix, name].concat();
        let stepped = match Status::at(parent, name) {
            Err(Errno::NOENT) => return Step::Done,
            Ok(status) if status.kind() == FileType::Directory => {
                self.enter(parent, name, &path).map(|level| Step::Enter(Box::new(level)))
            }
            other => other.and_then(|_| self.unlink(parent, name, AtFlags::empty())).map(|()| {
                (self.tell)(Pruned::Removed(&path));
                Step::Done
            }),
        };
        stepped.unwrap_or_else(|error| {
            (self.tell)(Pruned::Stays(&path, because(error)));
            Step::Stays
        })
    }

    /// Opens a folder. Its owner gets the permissions to empty it.
    fn enter(&self, parent: &OwnedFd, name: &[u8], path: &[u8]) -> io::Result<Emptying> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let closed = openat(parent, name, flags | OFlags::PATH, Mode::empty())?;
        let lent = if self.dry_run { None } else { allow_owner(&closed, 0o700)? };
        let folder = openat(&closed, c".", flags | OFlags::RDONLY, Mode::empty())?;
        let names = Dir::read_from(&folder)?;
        Ok(Emptying { folder, names, name: name.to_vec(), path: path.to_vec(), lent, stays: false })
    }

    /// Removes a folder in which all was removed that can be. Returns true if it is gone.
    fn leave(&mut self, above: &OwnedFd, done: &Emptying, error: Option<Errno>) -> bool {
        let removed = match error {
            Some(error) => Err(error),
            None if done.stays => Ok(false),
            None => self.unlink(above, &done.name, AtFlags::REMOVEDIR).map(|()| true),
        };
        match removed {
            Ok(true) => (self.tell)(Pruned::Removed(&done.path)),
            Ok(false) => {}
            Err(error) => (self.tell)(Pruned::Stays(&done.path, because(error))),
        }
        if let Some(mode) = done.lent.filter(|_| removed != Ok(true)) {
            // It was its own a moment ago; else its owner has changed it.
            let _ = set_mode(&done.folder, mode);
        }
        removed == Ok(true)
    }

    fn unlink(&self, parent: &OwnedFd, name: &[u8], flags: AtFlags) -> io::Result<()> {
        if self.dry_run { Ok(()) } else { unlinkat(parent, name, flags) }
    }
}
