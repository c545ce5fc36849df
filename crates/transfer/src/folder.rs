//! The receiving side on disk: a permitted folder, which nothing that a sender says leaves.
//!
//! The kernel resolves every path below the folder and follows no symlink ([`crate::path`], openat2(2)). A file is written aside, in
//! [`WORKING_FOLDER`] of the same file system, and gets its name by rename(2) when it is whole, verified and durable; so no name ever
//! has a part of a file. Small files do that in groups of 2 s or 16 MiB. Pieces of larger files are written down at the same intervals,
//! after they are durable; a transfer that begins again goes on from there, and reads only the records.
//!
//! Two transfers to one name each write aside; the one that is whole last has the name. A directory is never replaced by something else,
//! nor something else by a directory.
//!
//! A sender that may not read is told nothing of what is there ([`FolderRules::hidden`]).

mod apply;
mod checkpoint;
mod error;
mod fitting;
mod given;
mod group;
mod keeper;
mod links;
mod log;
mod offer;
mod partial;
mod prune;
mod receiving;
pub mod records;
pub(crate) mod usage;
mod work;

use std::fs::File;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{FileType, OFlags};

pub(crate) use apply::{XATTR_NAMESPACE, allow_owner, set_mode};
pub use error::FolderError;
pub(crate) use fitting::{fit, is_numbered};
pub use group::Settled;
pub use links::SymlinkRule;
pub use log::KeptFile;
pub use offer::Offer;
pub use partial::Partial;
pub use prune::Pruned;
pub use receiving::Receiving;
pub use work::WORKING_FOLDER;
pub(crate) use work::names_in;

use crate::beneath::Beneath;
use crate::folder_path::FolderPath;
use crate::path::EntryPath;
use crate::stamp::{Attributes, Stamp, Status};

/// What senders may do in a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FolderRules {
    /// Bytes on disk of all that is in the folder, unfinished files included, at most. A transfer counts them when it begins.
    pub max_bytes: Option<u64>,
    /// Names in the folder and all that is below it, at most.
    pub max_entries: Option<u64>,
    /// Whether setuid, setgid and sticky bits are kept. They are dropped otherwise.
    pub keep_set_id: bool,
    /// Whether owners are kept, by number; root only.
    pub keep_owners: bool,
    /// Whether extended attributes of the namespace `user` are kept. Others never are.
    pub keep_xattrs: bool,
    /// The rule for symlinks.
    pub symlinks: SymlinkRule,
    /// True if a sender is told nothing of what is there: no answer depends on it. What is in the way of an entry stays, and the entry
    /// gets a number behind its name.
    pub hidden: bool,
}

/// What there is under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InPlace {
    /// Whether it is a regular file or a folder; neither: a symlink, a device, a FIFO or a socket.
    pub is_file: bool,
    /// As `is_file`.
    pub is_folder: bool,
    /// What tells this state of it from others.
    pub stamp: Stamp,
    /// Permissions, owner and time; no extended attributes.
    pub attributes: Attributes,
}

/// A permitted folder.
#[derive(Clone, Debug)]
pub struct Folder {
    beneath: Arc<Beneath>,
    rules: FolderRules,
}

impl Folder {
    /// Opens a folder. The path is the owner's own, and may go through symlinks.
    ///
    /// # Errors
    ///
    /// Those of the system, or another folder is there than was pinned.
    pub fn open(path: &FolderPath, rules: FolderRules) -> Result<Folder, FolderError> {
        let beneath =
            Beneath::open(path).map_err(|error| FolderError::new("open the folder", error.into()))?;
        Ok(Folder { beneath: Arc::new(beneath), rules })
    }

    /// Begins a transfer, or goes on with it. Its name is 16 random bytes.
    ///
    /// # Errors
    ///
    /// If another process works on it, or its records cannot be read.
    pub fn receive(&self, transfer: [u8; 16]) -> Result<Receiving, FolderError> {
        Receiving::open(self, transfer)
    }

    /// What there is under a name. None if nothing is, or a part of its path is not there.
    ///
    /// # Errors
    ///
    /// If the path leads through a symlink or cannot be searched.
    pub fn look(&self, path: &EntryPath) -> Result<Option<InPlace>, FolderError> {
        let found = self.beneath.status(path).map_err(|error| FolderError::new("look at a name", error))?;
        Ok(found.map(|found| InPlace {
            is_file: found.kind() == FileType::RegularFile,
            is_folder: found.kind() == FileType::Directory,
            stamp: found.stamp(),
            attributes: found.attributes(),
        }))
    }

    /// Gives a regular file other attributes; its content is as it should be.
    ///
    /// # Errors
    ///
    /// If it is none, or the system refuses.
    pub fn reapply(&self, path: &EntryPath, attributes: &Attributes) -> Result<(), FolderError> {
        apply::apply(self.read(path)?, attributes, &self.rules)
    }

    /// Opens a regular file to read it.
    ///
    /// # Errors
    ///
    /// If it is none, or cannot be read.
    pub fn read(&self, path: &EntryPath) -> Result<File, FolderError> {
        receiving::allowed(path)?;
        let because = |error| FolderError::new("open a file", error);
        let file = self.beneath.file(path.as_bytes(), OFlags::RDONLY).map_err(because)?;
        match Status::of(&file).map_err(because)?.kind() {
            FileType::RegularFile => Ok(file.into()),
            _ => Err(FolderError::InTheWay),
        }
    }

    /// Removes each name in a folder that `keep` does not know, with all that is below it; `tell` hears of each that is removed, or in a
    /// dry run would be, and of each that cannot be. `None` is the permitted folder itself.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read. What was removed before stays removed.
    pub fn prune(
        &self,
        folder: Option<&EntryPath>,
        dry_run: bool,
        keep: &dyn Fn(&[u8]) -> bool,
        tell: &mut dyn FnMut(Pruned<'_>),
    ) -> Result<(), FolderError> {
        let folder = folder.map(|path| self.fit(path, true)).transpose()?;
        prune::prune(&self.beneath, folder.as_ref(), dry_run, keep, tell)
    }

    /// The path under which an entry goes: its own, unless the rules hide what is there and something of another kind has it.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn fit(&self, path: &EntryPath, is_folder: bool) -> Result<EntryPath, FolderError> {
        fit(&self.beneath, &self.rules, path, is_folder)
    }

    /// The rules for senders.
    pub(crate) fn rules(&self) -> &FolderRules {
        &self.rules
    }

    /// Removes the unfinished files of other transfers than this one that no process works on and that nothing was written to since this
    /// time. Returns of how many.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn collect(&self, but: &[u8; 16], since: SystemTime) -> Result<usize, FolderError> {
        work::collect(&self.beneath, but, since)
    }

    /// The folder as a place to read from.
    pub(crate) fn beneath(&self) -> &Arc<Beneath> {
        &self.beneath
    }
}

#[cfg(test)]
mod tests;
