//! The folders that a sender is in: which names it has there, and when a folder is complete.

use std::collections::{BTreeSet, VecDeque};

use super::event::TransferError;
use super::sender::parent;
use crate::message::EntryMessage;

/// Names in all folders from the place to where the sender is, at most, that are remembered to remove others: 8 bytes each.
const MAX_NAMES: usize = 1_000_000;
/// Folders that wait for the end to have names removed, at most, and bytes of their paths: a sender has 16 times as many entries on
/// their way, and 4 MiB of their names. With more, the first ones are not waited with.
const MAX_LEFT: usize = 1024;
const MAX_LEFT_BYTES: usize = 1 << 20;
/// Names in them that are remembered at most.
const MAX_LEFT_NAMES: usize = 262_144;

/// A folder that the sender is in.
#[derive(Debug)]
pub(crate) struct CurrentFolder {
    pub(crate) index: u64,
    pub(crate) path: Vec<u8>,
    /// It was not there before, or is in one that was not.
    pub(crate) fresh: bool,
    /// Hashes of the names that the sender has in it. Two names with one hash keep a name that would have been removed, no more.
    names: BTreeSet<u64>,
}

/// From the place to where the sender is.
#[derive(Debug, Default)]
pub(crate) struct FolderStack {
    current: Vec<CurrentFolder>,
    names: usize,
    /// More names than are remembered: nothing is removed until the sender is out of these folders.
    crowded: bool,
    /// Folders that the sender left, in order.
    left: VecDeque<LeftFolder>,
    /// Names and bytes of paths in those of them that wait to have names removed.
    waiting: (usize, usize),
}

/// A folder that the sender left.
#[derive(Debug)]
pub(crate) struct LeftFolder {
    pub(crate) folder: CurrentFolder,
    /// It is complete when all entries before this index are.
    next: u64,
    /// Whether names that the sender does not have are removed first.
    pub(crate) prune: bool,
}

fn hash(name: &[u8]) -> u64 {
    let hash = blake3::hash(name);
    u64::from_le_bytes(std::array::from_fn(|at| hash.as_bytes()[at]))
}

impl CurrentFolder {
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.names.contains(&hash(name))
    }
}

impl FolderStack {
    /// Notes a name, in the folder that the sender is in.
    pub(crate) fn note(&mut self, path: &[u8]) -> Result<(), TransferError> {
        let Some(folder) = self.current.last_mut() else { return Ok(()) };
        let Some(name) = below(path, &folder.path) else {
            return Err(TransferError::Protocol(
                "an entry outside of the folder that was announced before it",
            ));
        };
        if self.names >= MAX_NAMES {
            self.crowded = true;
        } else if folder.names.insert(hash(name)) {
            self.names += 1;
        }
        Ok(())
    }

    /// Whether the folder that the sender is in was not there before.
    pub(crate) fn is_fresh(&self) -> bool {
        self.current.last().is_some_and(|folder| folder.fresh)
    }

    pub(crate) fn enter(&mut self, entry: &EntryMessage, fresh: bool) {
        let folder =
            CurrentFolder { index: entry.index, path: entry.path.clone(), fresh, names: BTreeSet::new() };
        self.current.push(folder);
    }

    /// The sender leaves a folder; all before `next` is in it or before it. With `prune`, names are to be removed in it. The answer:
    /// whether those that stay are known.
    pub(crate) fn leave(&mut self, index: u64, next: u64, prune: bool) -> Result<bool, TransferError> {
        let folder = self.current.pop_if(|folder| folder.index == index);
        let mut folder =
            folder.ok_or(TransferError::Protocol("a folder is left that the sender is not in"))?;
        let known = !self.crowded;
        self.names -= folder.names.len();
        self.crowded = self.crowded && !self.current.is_empty();
        if !prune || !known {
            folder.names.clear();
        }
        self.waiting.0 += folder.names.len();
        self.waiting.1 += folder.path.len();
        self.left.push_back(LeftFolder { folder, next, prune });
        Ok(known)
    }

    /// Whether the first folder that was left need not wait for the `ending`. One in which names are removed does, unless too many do:
    /// what is removed may be what a later entry has under another name.
    pub(crate) fn may_complete(&self, ending: bool) -> bool {
        let (names, bytes) = self.waiting;
        let crowded = self.left.len() > MAX_LEFT || names > MAX_LEFT_NAMES || bytes > MAX_LEFT_BYTES;
        self.left.front().is_some_and(|left| !left.prune || ending || crowded)
    }

    /// The first folder that was left, if it need not wait and its entries are all before `lowest`.
    pub(crate) fn complete(&mut self, lowest: u64, ending: bool) -> Option<LeftFolder> {
        let may = self.may_complete(ending);
        let left = self.left.pop_front_if(|left| may && left.next <= lowest)?;
        self.waiting.0 -= left.folder.names.len();
        self.waiting.1 -= left.folder.path.len();
        Some(left)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_empty()
    }
}

/// The name of a path that is directly in a folder.
fn below<'a>(path: &'a [u8], folder: &[u8]) -> Option<&'a [u8]> {
    let name = &path[path.len() - path.iter().rev().position(|byte| *byte == b'/').unwrap_or(path.len())..];
    (parent(path) == folder && !name.is_empty()).then_some(name)
}
