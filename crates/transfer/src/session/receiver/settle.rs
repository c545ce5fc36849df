//! What is complete becomes durable in groups of the destination's, and is told.

use super::super::ends::{Aside, Destination};
use super::super::event::{TransferError, TransferEvent};
use super::super::folders::CurrentFolder;
use super::super::incoming::Stage;
use super::{ReceiverState, Step};
use crate::message::{EntryKind, EntryMessage, FaultReason, FileFault, FileMessage};

impl<D: Destination> ReceiverState<'_, D> {
    /// Hands a complete entry to the destination.
    pub(super) fn complete(&mut self, entry: &EntryMessage, content: Option<D::Aside>) {
        self.ledger.stage(entry.index, Stage::Batched);
        if let Err(fault) = self.destination.finish(entry, content) {
            self.fail(entry.index, fault, false);
        }
    }

    /// Tells what became durable; with `all`, makes the rest durable.
    pub(crate) fn settle(&mut self, all: bool) -> Step {
        self.complete_links();
        loop {
            let settled = self
                .destination
                .settle(all)
                .map_err(|fault| TransferError::Stopped(self.destination.told(fault)))?;
            let mut done = std::mem::take(&mut self.done);
            for (index, answer) in settled {
                match answer {
                    Ok(()) => done.push(index),
                    Err(fault) => self.fail(index, fault, false),
                }
            }
            self.receipts(done);
            // Folders end after what is in them, so the end of a transfer takes another turn.
            if !self.complete_folders() || !all {
                return Ok(());
            }
        }
    }

    /// A hard link is complete when all files before it are handed over, or failed.
    fn complete_links(&mut self) {
        let waiting = self.ledger.unfinished().next().unwrap_or(u64::MAX);
        while let Some(index) = self.links.pop_front_if(|index| *index < waiting) {
            if let Some(entry) = self.ledger.get(index).map(|open| open.entry.clone()) {
                self.complete(&entry, None);
            }
        }
    }

    /// Folders in which nothing is on its way any more get their times and permissions. Whether there was one.
    fn complete_folders(&mut self) -> bool {
        if !self.folders.may_complete(self.ending) {
            return false;
        }
        let (mut any, lowest) = (false, self.ledger.lowest());
        while let Some(left) = self.folders.complete(lowest, self.ending) {
            let index = left.folder.index;
            let Some(entry) = self.ledger.get(index).map(|open| open.entry.clone()) else { continue };
            any = true;
            if left.prune
                && let Err(fault) = self.prune(&left.folder)
            {
                self.fail(index, fault, false);
                continue;
            }
            if self.rules.dry_run {
                self.ledger.stage(index, Stage::Batched);
                self.done.push(index);
            } else {
                self.complete(&entry, None);
            }
        }
        any
    }

    /// Removes the names in a folder that the sender does not have.
    fn prune(&mut self, folder: &CurrentFolder) -> Result<(), FileFault> {
        let mut removed = Vec::new();
        let keep = |name: &[u8]| folder.has(name);
        let pruned = self
            .destination
            .prune(&folder.path, self.rules.dry_run, &keep, &mut |path| removed.push(path.to_vec()));
        for path in removed {
            self.tally.removed += 1;
            self.watch.tell(TransferEvent::Removed { path: path.clone() });
            self.out.push(FileMessage::Removed { path });
        }
        pruned
    }

    /// Tells that entries are durable, neighbours at once.
    fn receipts(&mut self, mut done: Vec<u64>) {
        done.sort_unstable();
        for index in done {
            let Some(open) = self.ledger.close(index) else { continue };
            self.tally.whole += 1;
            self.watch.tell(TransferEvent::Whole { path: self.destination.went(&open.entry) });
            match self.out.last_mut() {
                Some(FileMessage::Receipt { last, .. }) if *last + 1 == index => *last = index,
                _ => self.out.push(FileMessage::Receipt { first: index, last: index }),
            }
        }
    }

    /// Keeps what was written for a resume, unless there is none, or it would be wrong again.
    pub(super) fn put_aside(&mut self, aside: D::Aside, kind: &EntryKind, reason: FaultReason) {
        match reason {
            FaultReason::WrongHash
            | FaultReason::WrongSize
            | FaultReason::Changing
            | FaultReason::Vanished => {
                self.destination.discard(aside);
            }
            _ if !can_resume(kind) => self.destination.discard(aside),
            _ => {
                aside.suspend();
                self.ledger.kept = true;
            }
        }
    }
}

/// Returns true if a sender can go on with a file: what has no length is read from a pipe, once.
pub(super) fn can_resume(kind: &EntryKind) -> bool {
    matches!(kind, EntryKind::File { size: Some(_) })
}
