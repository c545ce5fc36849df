//! A folder that no path leaves: the kernel resolves every path below it, and follows no symlink (openat2(2), Linux 5.6).

use std::os::fd::OwnedFd;

use rustix::fs::{Access, AtFlags, Mode, OFlags, ResolveFlags, accessat, openat, openat2, unlinkat};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec};

use crate::folder_path::{FolderPath, FolderPathError};
use crate::path::EntryPath;
use crate::stamp::Status;

/// No way out, no symlink in any place, none of `/proc`'s links.
const RESOLVE: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// How often a path is resolved again when a folder was moved meanwhile: the kernel says EAGAIN (openat2(2)). Each try takes
/// microseconds; only a program that moves folders all the time fails so many.
const TRIES: usize = 1000;

/// Opens a folder to make, rename and remove names in it.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Looks whether names can be made in an open folder.
///
/// # Errors
///
/// The obstacle: its permissions, or a file system that is read only.
pub(crate) fn may_write(folder: &OwnedFd) -> io::Result<()> {
    match accessat(folder, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        Err(error @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => Err(error),
        // What cannot be looked at is said when it is written.
        _ => Ok(()),
    }
}

/// An open folder, below which paths are resolved.
#[derive(Debug)]
pub(crate) struct Beneath {
    root: OwnedFd,
}

impl Beneath {
    /// Opens the folder itself; its own path may go through symlinks.
    pub(crate) fn open(folder: &FolderPath) -> Result<Beneath, FolderPathError> {
        Ok(Beneath { root: folder.open(FOLDER)? })
    }

    /// Takes an open folder.
    pub(crate) fn of(root: OwnedFd) -> Beneath {
        Beneath { root }
    }

    /// The folder itself.
    pub(crate) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// Opens what is at a path. The last name is not followed either; without O_NOFOLLOW, which with O_PATH would open the symlink, the
    /// error says so.
    pub(crate) fn file(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let mut flags = flags | OFlags::CLOEXEC;
        if !flags.contains(OFlags::PATH) {
            // A FIFO that has taken a file's name must not make the opener wait.
            flags |= OFlags::NOCTTY | OFlags::NONBLOCK;
        }
        let mut last = Errno::AGAIN;
        for _ in 0..TRIES {
            match openat2(&self.root, path, flags, Mode::empty(), RESOLVE) {
                Err(error @ (Errno::AGAIN | Errno::INTR)) => last = error,
                other => return other,
            }
        }
        Err(last)
    }

    /// Opens a folder; none is the root.
    pub(crate) fn folder(&self, path: Option<&[u8]>) -> io::Result<OwnedFd> {
        match path {
            Some(path) => self.file(path, FOLDER),
            None => openat(&self.root, c".", FOLDER, Mode::empty()),
        }
    }

    /// The folder that has, or will have, an entry, and the entry's name in it.
    pub(crate) fn parent<'a>(&self, path: &'a EntryPath) -> io::Result<(OwnedFd, &'a [u8])> {
        let (parent, name) = path.split();
        let folder = match parent {
            // It may be a folder that can be searched but not read.
            Some(parent) => self.file(parent, OFlags::PATH | OFlags::DIRECTORY)?,
            None => fcntl_dupfd_cloexec(&self.root, 0)?,
        };
        Ok((folder, name))
    }

    /// Removes a folder at the top if nothing is in it.
    pub(crate) fn remove_empty(&self, name: &str) {
        let _ = unlinkat(&self.root, name, AtFlags::REMOVEDIR);
    }

    /// What is at a path; none if nothing is.
    pub(crate) fn status(&self, path: &EntryPath) -> io::Result<Option<Status>> {
        let found = self.parent(path).and_then(|(folder, name)| Status::at(folder, name));
        match found {
            Ok(status) => Ok(Some(status)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
