//! Entries that are whole, and become durable under their names together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, OFlags, fsync, linkat, readlinkat, renameat, syncfs};
use rustix::io::Errno;

use super::apply::apply;
use super::fitting::fit;
use super::given::path_hash;
use super::records::TransferRecord;
use super::usage::Usage;
use super::work::WorkFolder;
use super::{FolderError, FolderRules};
use crate::beneath::Beneath;
use crate::path::EntryPath;
use crate::stamp::{Attributes, Status};

/// Up to so many files or folders are made durable one by one, more by one syncfs(2) for the whole file system. On ext4, 1,000 files of
/// 10 kB took 3 to 6 s one by one and 16 to 60 ms together; a file system on which others write much makes the latter wait for them too.
const ONE_BY_ONE: usize = 8;

/// An entry that is whole.
#[derive(Debug)]
pub(super) struct WholeEntry {
    /// The caller's name for it.
    pub(super) tag: u64,
    /// Where it belongs.
    pub(super) path: EntryPath,
    /// What it is.
    pub(super) what: WholeKind,
}

/// What a whole entry is, and where.
#[derive(Debug)]
pub(super) enum WholeKind {
    /// A file aside.
    File {
        /// Its number.
        slot: u32,
        /// Whether there are records of it.
        recorded: bool,
        /// The state by which a resume knows it, if the sender may not read.
        state: Option<[u8; 8]>,
        /// Open, if the group has few.
        file: Option<Arc<File>>,
    },
    /// A symlink aside.
    Symlink {
        /// Its number.
        slot: u32,
    },
    /// Another name for what is under its name, or comes before it in the group.
    Link {
        /// That name.
        to: EntryPath,
        /// A number of its own.
        slot: u32,
    },
    /// A folder whose content is there.
    Folder {
        /// What it gets.
        attributes: Attributes,
    },
}

impl WholeKind {
    /// Forgets the open file. The group has too many to hold them all open.
    fn close(&mut self) {
        if let WholeKind::File { file, .. } = self {
            *file = None;
        }
    }
}

/// Entries that wait for each other.
#[derive(Debug, Default)]
pub(super) struct WholeGroup {
    entries: Vec<WholeEntry>,
    /// Bytes of their content.
    bytes: u64,
}

impl WholeGroup {
    /// Adds an entry with so many bytes of content.
    pub(super) fn push(&mut self, entry: WholeEntry, bytes: u64) {
        self.entries.push(entry);
        self.bytes += bytes;
        if self.entries.len() > ONE_BY_ONE {
            self.entries.iter_mut().rev().take(ONE_BY_ONE + 1).for_each(|entry| entry.what.close());
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of their content.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The result of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// What the caller named it.
    pub tag: u64,
    /// That it is durable under its name, or why it is not.
    pub result: Result<(), FolderError>,
}

/// Where groups go.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) beneath: Arc<Beneath>,
    pub(super) work: Arc<WorkFolder>,
    pub(super) rules: FolderRules,
    pub(super) usage: Arc<Usage>,
}

impl Place {
    /// Makes contents durable, then gives each its name, then makes the names durable; not to files that `lost` bytes before. One answer
    /// for each, in this order; and what a resume has to know.
    pub(super) fn commit(
        &self,
        group: WholeGroup,
        lost: &BTreeMap<u32, FolderError>,
    ) -> (Vec<Settled>, Vec<TransferRecord>) {
        let contents = self.sync_contents(&group.entries);
        let mut folders = BTreeSet::new();
        let mut settled: Vec<Settled> = Vec::with_capacity(group.entries.len());
        for entry in &group.entries {
            let whole = match &entry.what {
                WholeKind::File { slot, .. } => lost.get(slot).map_or(Ok(()), |error| Err(*error)),
                _ => Ok(()),
            };
            let placed = contents.and(whole).and_then(|()| self.place(entry));
            if let Ok(path) = &placed {
                folders.insert(path.parent());
                if let WholeKind::Folder { .. } = entry.what {
                    folders.insert(Some(path.clone()));
                }
            }
            settled.push(Settled { tag: entry.tag, result: placed.map(drop) });
        }
        if let Err(error) = self.sync_folders(&folders) {
            settled.iter_mut().for_each(|it| it.result = it.result.and(Err(error)));
        }
        let done = group.entries.iter().zip(&settled).filter(|(_, it)| it.result.is_ok());
        let records = done.flat_map(|(entry, _)| records(entry)).collect();
        (settled, records)
    }

    fn sync_contents(&self, entries: &[WholeEntry]) -> Result<(), FolderError> {
        let because = |error| FolderError::new("make a file durable", error);
        if entries.len() > ONE_BY_ONE {
            return syncfs(self.work.folder()).map_err(because);
        }
        for entry in entries {
            if let WholeKind::File { file: Some(file), .. } = &entry.what {
                fsync(file).map_err(because)?;
            }
        }
        Ok(())
    }

    fn sync_folders(&self, folders: &BTreeSet<Option<EntryPath>>) -> Result<(), FolderError> {
        let because = |error| FolderError::new("make a folder durable", error);
        if folders.len() > ONE_BY_ONE {
            return syncfs(self.work.folder()).map_err(because);
        }
        for folder in folders {
            match self.beneath.folder(folder.as_ref().map(EntryPath::as_bytes)).and_then(fsync) {
                // It cannot be read, so it cannot be opened to be synced.
                Err(Errno::ACCESS) => syncfs(self.work.folder()).map_err(because)?,
                other => other.map_err(because)?,
            }
        }
        Ok(())
    }

    /// Gives one entry its name, and says which.
    fn place(&self, entry: &WholeEntry) -> Result<EntryPath, FolderError> {
        let is_folder = matches!(entry.what, WholeKind::Folder { .. });
        let path = fit(&self.beneath, &self.rules, &entry.path, is_folder)?;
        let because = |error| FolderError::new("give a file its name", error);
        let name = match &entry.what {
            WholeKind::Folder { attributes } => {
                let folder = self.beneath.folder(Some(path.as_bytes()));
                let folder = folder.map_err(|error| FolderError::new("open a folder", error))?;
                return apply(folder, attributes, &self.rules).map(|()| path);
            }
            WholeKind::File { slot, .. } | WholeKind::Symlink { slot } => aside_name(*slot),
            WholeKind::Link { to, slot } => self.link(&entry.path, to, *slot)?,
        };
        let (folder, last) = self.beneath.parent(&path).map_err(because)?;
        let placed = self.rename(&name, &folder, last);
        let kept = matches!(entry.what, WholeKind::File { recorded: true, .. });
        if placed.is_err() && !kept {
            self.work.remove(&name);
        }
        placed.map_err(|error| match error {
            // Not the path of a peer, which the kernel has resolved.
            Errno::XDEV => {
                FolderError::System { doing: "rename a file to where another disk is mounted", error }
            }
            error => because(error),
        })?;
        Ok(path)
    }

    fn rename(&self, name: &str, folder: &OwnedFd, last: &[u8]) -> Result<(), Errno> {
        let before = self.usage.limited().then(|| Status::at(folder, last).ok()).flatten();
        renameat(self.work.folder(), name, folder, last)?;
        // Of two names of one file, rename(2) removes neither.
        self.work.remove(name);
        if let Some(before) = before {
            let bytes = if before.names() == 1 { before.on_disk() } else { 0 };
            self.usage.give_back(bytes, 1);
        }
        Ok(())
    }

    /// Makes the other name aside, to replace what may be under its own.
    fn link(&self, path: &EntryPath, to: &EntryPath, slot: u32) -> Result<String, FolderError> {
        let because = |error| FolderError::new("make a hard link", error);
        let name = aside_name(slot);
        let to = fit(&self.beneath, &self.rules, to, false)?;
        let (folder, last) = self.beneath.parent(&to).map_err(because)?;
        self.work.remove(&name);
        let linked = linkat(&folder, last, self.work.folder(), &name, AtFlags::empty());
        linked
            .map_err(|error| if error == Errno::NOENT { FolderError::NoFirstName } else { because(error) })?;
        // What a symlink leads to depends on the folder that it is in.
        let checked = self.check_symlink(path, &name);
        checked.inspect_err(|_| self.work.remove(&name)).map(|()| name)
    }

    /// Checks that what is aside may have a path, if it is a symlink.
    fn check_symlink(&self, path: &EntryPath, aside: &str) -> Result<(), FolderError> {
        let because = |error| FolderError::new("look at a symlink", error);
        let status = Status::at(self.work.folder(), aside.as_bytes()).map_err(because)?;
        if status.kind() != FileType::Symlink {
            return Ok(());
        }
        let target = readlinkat(self.work.folder(), aside, Vec::new()).map_err(because)?;
        self.rules.symlinks.check(path.depth(), target.as_bytes())
    }
}

/// The records for a resume of an entry that has its name.
fn records(entry: &WholeEntry) -> impl Iterator<Item = TransferRecord> {
    let (slot, state) = match entry.what {
        WholeKind::File { slot, recorded, state, .. } => (recorded.then_some(slot), state),
        _ => (None, None),
    };
    let dropped = slot.map(|slot| TransferRecord::Dropped { slot });
    let given = state.map(|state| TransferRecord::Given { path: path_hash(&entry.path), state });
    dropped.into_iter().chain(given)
}

/// What a file aside is called.
pub(super) fn aside_name(slot: u32) -> String {
    format!("aside-{slot}")
}

/// How a file aside is opened.
pub(super) const ASIDE: OFlags = OFlags::RDWR.union(OFlags::CREATE);
