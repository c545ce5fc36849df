//! The sending side on disk: what there is below some paths, in bounded memory for any number of names.
//!
//! A walk goes into a folder before what is beside it, follows no symlink, and reads names in portions. Devices, FIFOs, sockets and what
//! cannot be read are named and left out. An open file tells whether it changed.

mod bare;
mod error;
mod file;
mod links;
pub mod patterns;
mod walk;
mod xattrs;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, OFlags};

pub use bare::BareMountPoints;
pub use error::{SkipReason, Skipped, SourceError};
pub use file::SourceFile;
pub use walk::{Walk, WalkOptions};

use crate::beneath::Beneath;
use crate::folder::Folder;
use crate::path::EntryPath;
use crate::stamp::{Attributes, Stamp, Status};

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A regular file.
    File {
        /// Its length in bytes.
        size: u64,
    },
    /// A folder.
    Folder,
    /// A symlink, and what it names; that is not interpreted.
    Symlink {
        /// 1 to 4,095 bytes.
        target: Vec<u8>,
    },
    /// Another name of a file that the walk found before.
    HardLink {
        /// The path of that file.
        to: EntryPath,
    },
}

/// An entry that a walk found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceEntry {
    /// Its path in the transfer. None: the folder whose content is sent, itself.
    pub path: Option<EntryPath>,
    /// What it is.
    pub kind: SourceKind,
    /// What goes along with it.
    pub attributes: Attributes,
    /// What tells this state of it from others.
    pub stamp: Stamp,
    /// Bytes that it takes on the disk.
    pub on_disk: u64,
}

/// One of the places that are sent.
#[derive(Clone, Debug)]
struct SourceRoot {
    beneath: Arc<Beneath>,
    /// One name there; none: all that is there.
    name: Option<EntryPath>,
}

/// The places that are sent by one command.
#[derive(Debug, Default)]
pub struct Sources {
    roots: Vec<SourceRoot>,
    /// Folders that are open already: a command often names many files of one.
    open: BTreeMap<PathBuf, Arc<Beneath>>,
    names: BTreeSet<Vec<u8>>,
}

impl Sources {
    /// Adds a path of the user's, which may go through symlinks to its last name. With a slash behind it, the content of the folder is
    /// sent, otherwise the name itself, as rsync does.
    ///
    /// # Errors
    ///
    /// If the folder cannot be opened, or a name comes twice.
    pub fn add_path(&mut self, path: &Path) -> Result<(), SourceError> {
        let bytes = path.as_os_str().as_bytes();
        let all = bytes == b"." || bytes.ends_with(b"/") || bytes.ends_with(b"/.");
        let Some(name) = path.file_name().filter(|_| !all) else {
            let beneath = self.open(path)?;
            self.roots.push(SourceRoot { beneath, name: None });
            return Ok(());
        };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let beneath = self.open(parent)?;
        self.add_name(beneath, EntryPath::new(name.as_bytes())?)
    }

    /// Adds what a peer asked for in a folder that it may read: a path and what is below it, or all of the folder. With `content`, what
    /// is in the folder at the path, without its own name. No part of the path may be a symlink, but for the last without `content`.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or a name comes twice.
    pub fn add_in_folder(
        &mut self,
        folder: &Folder,
        path: Option<&EntryPath>,
        content: bool,
    ) -> Result<(), SourceError> {
        let (above, name) = match path {
            Some(path) if !content => (path.split().0, Some(EntryPath::new(path.name())?)),
            path => (path.map(EntryPath::as_bytes), None),
        };
        let beneath = Arc::new(Beneath::of(folder.beneath().folder(above)?));
        match name {
            Some(name) => self.add_name(beneath, name),
            None => {
                self.roots.push(SourceRoot { beneath, name: None });
                Ok(())
            }
        }
    }

    fn open(&mut self, path: &Path) -> Result<Arc<Beneath>, SourceError> {
        if let Some(open) = self.open.get(path) {
            return Ok(Arc::clone(open));
        }
        let beneath = Arc::new(Beneath::open(&path.into()).map_err(rustix::io::Errno::from)?);
        self.open.insert(path.to_owned(), Arc::clone(&beneath));
        Ok(beneath)
    }

    fn add_name(&mut self, beneath: Arc<Beneath>, name: EntryPath) -> Result<(), SourceError> {
        if beneath.status(&name)?.is_none() {
            return Err(SourceError::Vanished);
        }
        if !self.names.insert(name.as_bytes().to_vec()) {
            return Err(SourceError::SameName);
        }
        self.roots.push(SourceRoot { beneath, name: Some(name) });
        Ok(())
    }

    /// Walks over all that is there.
    #[must_use]
    pub fn walk(&self, options: WalkOptions) -> Walk {
        Walk::new(self.roots.clone(), options)
    }

    /// Returns true if a walk would find nothing to send: no file, no symlink, no folder but those whose content is sent. What cannot be
    /// read may be something.
    #[must_use]
    pub fn are_empty(&self, options: WalkOptions) -> bool {
        self.walk(options).all(|found| match found {
            Ok(entry) => entry.path.is_none(),
            Err(skipped) => matches!(skipped.reason, SkipReason::NotSent | SkipReason::Vanished),
        })
    }

    /// Opens a file that a walk found.
    ///
    /// # Errors
    ///
    /// If it vanished, is no regular file any more, or cannot be read.
    pub fn open_file(&self, path: &EntryPath) -> Result<SourceFile, SourceError> {
        let mut last = SourceError::Vanished;
        for root in self.roots_of(path) {
            match root.beneath.file(path.as_bytes(), OFlags::RDONLY) {
                Ok(file) => {
                    let status = Status::of(&file)?;
                    if status.kind() != FileType::RegularFile {
                        return Err(SourceError::NotSent);
                    }
                    return Ok(SourceFile::new(file.into(), status.stamp()));
                }
                Err(error) => last = error.into(),
            }
        }
        Err(last)
    }

    /// The place that has this name, or else those whose content is sent.
    fn roots_of(&self, path: &EntryPath) -> impl Iterator<Item = &SourceRoot> {
        let named = self.names.contains(path.first());
        let fits = move |root: &&SourceRoot| match &root.name {
            Some(name) => named && name.as_bytes() == path.first(),
            None => !named,
        };
        self.roots.iter().filter(fits)
    }
}

#[cfg(test)]
mod tests;
