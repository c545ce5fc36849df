//! The receiver of data: answers each file with how it wants it, writes what comes, and makes it durable in groups.
//!
//! [`ReceiverState`] has no thread and no clock: it takes messages. `driver.rs` runs it.

mod content;
mod patch;
mod same;
mod settle;

use std::collections::VecDeque;

use self::patch::{MIN_PATCHED, PatchDeck};
use super::content::MIN_SAME;
use super::ends::{Aside, Destination, Standing};
use super::event::{Tally, TransferError, TransferEvent, Watch};
use super::folders::FolderStack;
use super::incoming::{Incoming, Ledger, SMALL, Stage};
use crate::delta::ChunkKey;
use crate::folder::Offer;
use crate::message::{EntryKind, EntryMessage, FaultReason, FileFault, FileMessage, HowWanted};

/// What a receiver allows and does.
#[derive(Clone, Debug)]
pub(crate) struct ReceiverRules {
    /// Names that the sender does not have are removed.
    pub(crate) delete: bool,
    /// Nothing is written or removed.
    pub(crate) dry_run: bool,
    /// Names that may come at the top. None: any.
    pub(crate) tops: Option<Vec<Vec<u8>>>,
    /// Bytes of files at most, holes counted.
    pub(crate) max_bytes: u64,
    /// Entries at most.
    pub(crate) max_entries: u64,
}

/// A transfer as its receiver sees it.
pub(crate) struct ReceiverState<'a, D: Destination> {
    destination: D,
    rules: ReceiverRules,
    ledger: Ledger<D::Aside>,
    folders: FolderStack,
    /// Hard links, in order, until their files are no longer on their way.
    links: VecDeque<u64>,
    /// Entries that have nothing to write; they are told with the others.
    done: Vec<u64>,
    patches: PatchDeck,
    /// All was sent: names that the sender does not have are removed.
    ending: bool,
    tally: Tally,
    /// Answers, in order.
    out: Vec<FileMessage>,
    watch: Watch<'a>,
}

type Step = Result<(), TransferError>;

impl<'a, D: Destination> ReceiverState<'a, D> {
    pub(crate) fn new(destination: D, rules: ReceiverRules, key: ChunkKey, watch: Watch<'a>) -> Self {
        ReceiverState {
            destination,
            rules,
            ledger: Ledger::new(),
            folders: FolderStack::default(),
            links: VecDeque::new(),
            done: Vec::new(),
            patches: PatchDeck::new(key),
            ending: false,
            tally: Tally::default(),
            out: Vec::new(),
            watch,
        }
    }

    /// How many answers wait to be taken.
    pub(crate) fn answers(&self) -> usize {
        self.out.len()
    }

    /// The answers since the last call.
    pub(crate) fn take_answers(&mut self) -> Vec<FileMessage> {
        std::mem::take(&mut self.out)
    }

    /// Takes a message. The answer, once, is how the transfer ended.
    pub(crate) fn message(&mut self, message: FileMessage) -> Result<Option<Tally>, TransferError> {
        match message {
            FileMessage::Entry(entry) => self.entry(entry)?,
            FileMessage::Left { folder, complete } => self.left(folder, complete)?,
            FileMessage::Data { entry, offset, bytes } => self.data(entry, offset, &bytes)?,
            FileMessage::Hole { entry, offset, length } => {
                self.part(entry, offset, length, |aside| aside.hole(offset, length))?;
            }
            FileMessage::Ask { entry, bytes } => self.ask(entry, &bytes)?,
            FileMessage::Patch { entry, last, asked, bytes } => self.patch(entry, last, asked, &bytes)?,
            FileMessage::End { entry, size, root } => self.end(entry, size, &root)?,
            FileMessage::Same { entry, root } => self.same(entry, &root)?,
            FileMessage::Again { entry, size, modified, version } => {
                self.again(entry, size, modified, version)?;
            }
            FileMessage::Gone { entry, fault } => self.gone(entry, fault)?,
            FileMessage::Missing { path, fault } => {
                // Names that are no paths, or not of this folder, are no names to keep.
                let _ = self.folders.note(&path);
                self.tally.failed += 1;
                self.watch.tell(TransferEvent::Failed { path, fault });
            }
            FileMessage::Finish { entries } => return self.finish(entries),
            FileMessage::Alive => {}
            FileMessage::Refused(fault) => return Err(TransferError::Refused(fault)),
            FileMessage::Stopped(fault) => return Err(TransferError::Stopped(fault)),
            _ => return Err(TransferError::Protocol("a message that a sender does not send")),
        }
        self.begin_patches();
        Ok(None)
    }

    /// The stream ended before the transfer did: what is complete becomes durable, what is not is kept for a resume.
    pub(crate) fn abandon(mut self) {
        // What cannot become durable now was not told, and comes again.
        let _ = self.settle(true);
        let (mut kept, mut dropped) = (self.ledger.kept, false);
        for open in self.ledger.drain() {
            let Stage::Writing { aside, .. } = open.stage else { continue };
            if settle::can_resume(&open.entry.kind) {
                aside.suspend();
                kept = true;
            } else {
                self.destination.discard(aside);
                dropped = true;
            }
        }
        if dropped && !kept {
            self.destination.end();
        }
    }

    fn entry(&mut self, entry: EntryMessage) -> Step {
        let index = entry.index;
        self.watch.tell(TransferEvent::Announced { path: entry.path.clone(), kind: entry.kind.clone() });
        self.folders.note(&entry.path)?;
        let eager = entry.eager;
        let allowed = self.allowed(&entry);
        let (kind, copy) = (entry.kind.clone(), entry.clone());
        self.ledger.open(entry, Stage::Failed)?;
        match allowed.and_then(|()| self.begin(&copy, &kind)) {
            Ok(stage) => drop(self.ledger.stage(index, stage)),
            Err(fault) => {
                // What earlier runs left of it waits for another.
                self.ledger.kept |= self.destination.keeps(&copy);
                self.fail(index, fault, eager);
            }
        }
        if kind == EntryKind::Folder && self.ledger.get(index).is_none() {
            // What is in it is announced all the same, and fails by itself.
            self.folders.enter(&copy, false);
        }
        Ok(())
    }

    fn allowed(&mut self, entry: &EntryMessage) -> Result<(), FileFault> {
        let top = entry.path.split(|byte| *byte == b'/').next().unwrap_or_default();
        if self.rules.tops.as_ref().is_some_and(|tops| !tops.iter().any(|it| it == top)) {
            return Err(FileFault::new(FaultReason::Escapes, "not what was asked for"));
        }
        if entry.index >= self.rules.max_entries {
            return Err(FaultReason::OverLimit.into());
        }
        let EntryKind::File { size: Some(size) } = entry.kind else { return Ok(()) };
        self.rules.max_bytes = self.rules.max_bytes.checked_sub(size).ok_or(FaultReason::OverLimit)?;
        Ok(())
    }

    /// How far an entry is after it was announced.
    fn begin(&mut self, entry: &EntryMessage, kind: &EntryKind) -> Result<Stage<D::Aside>, FileFault> {
        match kind {
            EntryKind::Folder => {
                let made = if self.rules.dry_run { false } else { self.destination.folder(entry)? };
                let known = self.folders.is_fresh();
                if made && !known {
                    self.want(entry.index, HowWanted::Fresh);
                }
                self.folders.enter(entry, made || known);
                Ok(Stage::Folder)
            }
            EntryKind::Symlink { .. } | EntryKind::HardLink { .. } if self.rules.dry_run => {
                self.done.push(entry.index);
                Ok(Stage::Batched)
            }
            EntryKind::Symlink { .. } => self.destination.finish(entry, None).map(|()| Stage::Batched),
            EntryKind::HardLink { .. } => {
                self.links.push_back(entry.index);
                Ok(Stage::Linked)
            }
            EntryKind::File { size } => self.begin_file(entry, *size),
        }
    }

    fn begin_file(&mut self, entry: &EntryMessage, size: Option<u64>) -> Result<Stage<D::Aside>, FileFault> {
        let small = size.is_some_and(|size| size <= SMALL);
        let standing = self.destination.standing(entry)?;
        if entry.eager {
            return Ok(if small { Stage::Small(Vec::new()) } else { Stage::Waiting { held: 0 } });
        }
        let (how, held) = match standing {
            Standing::Same => (HowWanted::Skip, 0),
            Standing::Other => (HowWanted::Whole, 0),
            Standing::Begun(offer) => {
                let (bytes, Offer { same_version, held }) = (offer.bytes(), offer);
                (HowWanted::Pieces { same_version, held }, bytes)
            }
        };
        if how == HowWanted::Skip {
            let size = size.unwrap_or(0);
            self.rules.max_bytes = self.rules.max_bytes.saturating_add(size);
            self.watch.tell(TransferEvent::Skipped { path: entry.path.clone(), size });
        }
        let long = size.is_some_and(|size| size >= MIN_PATCHED);
        let comes = how != HowWanted::Skip && !self.rules.dry_run;
        // The ids of the older file cost some 2,000th of it: much, where little of the file is missing.
        let missing = size.unwrap_or(0).saturating_sub(held);
        let pays =
            |older: &mut D| older.older(entry).is_some_and(|(_, older)| held == 0 || missing > older / 256);
        if comes && long && pays(&mut self.destination) {
            self.patches.wait(entry.index, how);
            return Ok(Stage::Waiting { held });
        }
        if how == HowWanted::Whole
            && size.is_some_and(|size| size >= MIN_SAME)
            && comes
            && self.destination.may_have(entry)
        {
            self.want(entry.index, HowWanted::Hash);
            return Ok(Stage::Waiting { held: 0 });
        }
        self.want(entry.index, how);
        if !comes {
            self.done.push(entry.index);
            return Ok(Stage::Batched);
        }
        Ok(if small && held == 0 { Stage::Small(Vec::new()) } else { Stage::Waiting { held } })
    }

    /// Says how a file is wanted, together with the one before it if that is wanted alike.
    fn want(&mut self, index: u64, how: HowWanted) {
        if let Some(FileMessage::Want { last, how: before, .. }) = self.out.last_mut()
            && *last + 1 == index
            && *before == how
            && matches!(how, HowWanted::Skip | HowWanted::Whole | HowWanted::Hash)
        {
            *last = index;
            return;
        }
        self.out.push(FileMessage::Want { first: index, last: index, how });
    }

    /// An entry failed. Where the sender has yet to end it (`open`), what comes of it until then is dropped.
    fn fail(&mut self, index: u64, fault: FileFault, open: bool) {
        let before = if open {
            self.ledger.stage(index, Stage::Failed).zip(self.ledger.get(index).map(|it| it.entry.clone()))
        } else {
            self.ledger.close(index).map(|Incoming { entry, stage }| (stage, entry))
        };
        let Some((stage, entry)) = before else { return };
        self.patches.end(index);
        if let Stage::Writing { aside, .. } = stage {
            self.put_aside(aside, &entry.kind, fault.reason);
        }
        self.tally.failed += 1;
        self.watch.tell(TransferEvent::Failed { path: entry.path, fault: fault.clone() });
        self.out.push(FileMessage::Failed { entry: index, fault: self.destination.told(fault) });
    }

    fn left(&mut self, index: u64, complete: bool) -> Step {
        let prune = self.rules.delete && complete && self.ledger.get(index).is_some();
        let known = self.folders.leave(index, self.ledger.announced(), prune)?;
        if prune && !known {
            let fault = FileFault::new(FaultReason::OverLimit, "too many names: nothing was removed here");
            self.fail(index, fault, false);
        }
        Ok(())
    }

    fn finish(&mut self, entries: u64) -> Result<Option<Tally>, TransferError> {
        let redo = |index: u64| matches!(self.ledger.get(index).map(|open| &open.stage), Some(Stage::Redo));
        if self.ledger.unfinished().next().is_some() && self.ledger.unfinished().all(redo) {
            // The sender had not heard that a patch was wrong: it sends the file again, and then the end.
            return Ok(None);
        }
        let rest = self.ledger.unfinished().next();
        if entries != self.ledger.announced() || !self.folders.is_empty() || rest.is_some() {
            return Err(TransferError::Protocol("the end comes before all was sent"));
        }
        self.ending = true;
        self.settle(true)?;
        self.watch.tell(TransferEvent::Settled);
        if self.watch.is_cancelled() {
            return Err(TransferError::Stopped(FaultReason::Cancelled.into()));
        }
        if !self.ledger.kept {
            self.destination.end();
        }
        let Tally { whole, failed, removed } = self.tally;
        self.out.push(FileMessage::Done { whole, failed, removed });
        Ok(Some(self.tally))
    }
}
