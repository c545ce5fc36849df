//! Entries on their way to a receiver, and what bounds them.

use std::collections::{BTreeMap, BTreeSet};

use super::desk::{MAX_OPEN, MAX_WEIGHT};
use super::event::TransferError;
use crate::message::{EntryKind, EntryMessage, MAX_PATH, MAX_XATTRS};

/// Files up to this size wait in memory until all of them is there: no file descriptor each while a unit of many arrives.
pub(crate) const SMALL: u64 = 64 << 10;
/// Bytes of small files in memory at most; more go to the disk as they come. A sender ends files at least once a unit.
const MAX_BUFFERED: usize = 4 << 20;
/// Files that are written at once at most. A sender sends one after the other; the end of one may come after the next one began.
pub(crate) const MAX_WRITING: usize = 64;

/// How far an entry is.
#[derive(Debug)]
pub(crate) enum Stage<A> {
    /// A file that was asked for, or follows, of which nothing came.
    Waiting {
        /// Bytes of it that are there from an earlier run, to go on with.
        held: u64,
    },
    /// A small file in memory.
    Small(Vec<u8>),
    /// A file that is written.
    Writing {
        /// Where.
        aside: A,
        /// The end of what was written last.
        position: u64,
    },
    /// It failed, and the sender has yet to end it.
    Failed,
    /// Its patch was wrong: what comes of it is dropped until its content comes again.
    Redo,
    /// A hard link that waits for its file.
    Linked,
    /// A folder: complete when all that is in it is.
    Folder,
    /// It waits in the batch.
    Batched,
}

/// An entry on its way.
#[derive(Debug)]
pub(crate) struct Incoming<A> {
    pub(crate) entry: EntryMessage,
    pub(crate) stage: Stage<A>,
}

/// All entries on their way.
#[derive(Debug)]
pub(crate) struct Ledger<A> {
    open: BTreeMap<u64, Incoming<A>>,
    /// Those whose content did not end.
    unfinished: BTreeSet<u64>,
    next: u64,
    weight: usize,
    buffered: usize,
    writing: usize,
    /// Whether what was written of a file that failed is kept for another run.
    pub(crate) kept: bool,
}

/// One message's entry beyond the sender's window: it looks before it announces.
const SLACK: usize = MAX_PATH * 2 + MAX_XATTRS;

impl<A> Ledger<A> {
    pub(crate) fn new() -> Ledger<A> {
        Ledger {
            open: BTreeMap::new(),
            unfinished: BTreeSet::new(),
            next: 0,
            weight: 0,
            buffered: 0,
            writing: 0,
            kept: false,
        }
    }

    /// How many were announced.
    pub(crate) fn announced(&self) -> u64 {
        self.next
    }

    /// Takes an entry; its number must be the next one, and the sender must keep to its windows.
    pub(crate) fn open(&mut self, entry: EntryMessage, stage: Stage<A>) -> Result<(), TransferError> {
        if entry.index != self.next {
            return Err(TransferError::Protocol("entries out of order"));
        }
        self.next += 1;
        self.weight += entry.weight();
        // An entry that failed here is open until the sender, who has forgotten it, ends it.
        if self.open.len() >= 2 * MAX_OPEN || self.weight > 2 * MAX_WEIGHT + SLACK {
            return Err(TransferError::Protocol("more entries on their way than the window allows"));
        }
        self.mark(entry.index, has_ended(&stage));
        self.open.insert(entry.index, Incoming { entry, stage });
        Ok(())
    }

    pub(crate) fn get(&self, index: u64) -> Option<&Incoming<A>> {
        self.open.get(&index)
    }

    /// An entry that content, or the end of it, comes for.
    pub(crate) fn expect(&mut self, index: u64) -> Result<&mut Incoming<A>, TransferError> {
        self.open.get_mut(&index).ok_or(TransferError::Protocol("content of an entry that is not on its way"))
    }

    /// Moves an entry to another stage and hands out the one before.
    pub(crate) fn stage(&mut self, index: u64, stage: Stage<A>) -> Option<Stage<A>> {
        let open = self.open.get_mut(&index)?;
        let before = std::mem::replace(&mut open.stage, stage);
        let after = sizes(&open.stage);
        let ended = has_ended(&open.stage);
        self.mark(index, ended);
        (self.buffered, self.writing) = (self.buffered + after.0, self.writing + after.1);
        self.subtract(&before);
        Some(before)
    }

    /// Notes whether content is to come for an entry.
    fn mark(&mut self, index: u64, ended: bool) {
        if ended {
            self.unfinished.remove(&index);
        } else {
            self.unfinished.insert(index);
        }
    }

    fn subtract(&mut self, stage: &Stage<A>) {
        let (buffered, writing) = sizes(stage);
        (self.buffered, self.writing) = (self.buffered - buffered, self.writing - writing);
    }

    /// Adds bytes to a small file. The answer says whether there is room for them.
    pub(crate) fn buffer(&mut self, index: u64, bytes: &[u8]) -> bool {
        if self.buffered + bytes.len() > MAX_BUFFERED {
            return false;
        }
        match self.open.get_mut(&index) {
            Some(Incoming { stage: Stage::Small(buffer), .. }) => {
                buffer.extend_from_slice(bytes);
                self.buffered += bytes.len();
                true
            }
            _ => false,
        }
    }

    /// Whether another file may be written at the same time.
    pub(crate) fn may_write(&self) -> bool {
        self.writing < MAX_WRITING
    }

    /// An entry is not on its way any more.
    pub(crate) fn close(&mut self, index: u64) -> Option<Incoming<A>> {
        let open = self.open.remove(&index)?;
        self.mark(index, true);
        self.subtract(&open.stage);
        self.weight -= open.entry.weight();
        Some(open)
    }

    /// The first entry that is not a folder: what a folder gets does not change the one that it is in.
    pub(crate) fn lowest(&self) -> u64 {
        let first = self.open.iter().find(|(_, open)| open.entry.kind != EntryKind::Folder);
        first.map_or(self.next, |(index, _)| *index)
    }

    /// Entries whose content did not end, in order.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = u64> {
        self.unfinished.iter().copied()
    }

    /// All of them, in order, at the end.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Incoming<A>> {
        self.unfinished.clear();
        std::mem::take(&mut self.open).into_values()
    }
}

/// True if no content is to come for an entry.
fn has_ended<A>(stage: &Stage<A>) -> bool {
    matches!(stage, Stage::Batched | Stage::Folder | Stage::Linked)
}

/// Bytes in memory, and files that are written.
fn sizes<A>(stage: &Stage<A>) -> (usize, usize) {
    match stage {
        Stage::Small(buffer) => (buffer.len(), 0),
        Stage::Writing { .. } => (0, 1),
        _ => (0, 0),
    }
}
