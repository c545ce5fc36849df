//! What the sender's two threads share: which entries are on their way, and what the receiver said of them.

mod patches;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::patches::PatchAnswers;
use super::event::{Tally, TransferError, TransferEvent, Watch};
use super::kept::MIN_KEPT;
use crate::delta::{FineIds, SignatureIds};
use crate::message::{EntryKind, EntryMessage, FileMessage, HowWanted};
use crate::pieces::pieces_of;

/// Entries that are announced and not yet answered, at most (the window of the protocol).
pub(crate) const MAX_UNANSWERED: usize = 4096;
/// Entries that are announced and not yet durable or failed, at most. A receiver makes them durable in groups of 2 s, so this many
/// small files can pass in that time.
pub(crate) const MAX_OPEN: usize = 16_384;
/// Bytes of their paths and attributes, at most.
pub(crate) const MAX_WEIGHT: usize = 4 << 20;
/// Subtrees of resumed files that are kept at most (2.6 MB). A file beyond that is sent whole.
const MAX_HELD: usize = 65_536;
/// Files whose receipt came that are remembered at most, until the sender looks.
const MAX_DELIVERED: usize = 65_536;
/// How often a waiting sender looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(200);

/// An entry that is on its way.
#[derive(Debug)]
struct OnItsWay {
    entry: EntryMessage,
    /// The receiver said how it wants it, or was not asked.
    answered: bool,
    /// It is sent as a patch, or as its hash. The receiver may want it whole after all, once.
    patched: bool,
    /// Bytes of its content that events reported as moved, and those that one reports when it is delivered.
    told: u64,
    promised: u64,
}

/// A file that the receiver wants.
#[derive(Debug)]
pub(crate) struct WantedFile {
    pub(crate) index: u64,
    pub(crate) how: HowWanted,
    /// For a patch.
    pub(crate) ids: Option<SignatureIds>,
    /// Its content was sent already and is void; events reported these bytes of it as moved.
    pub(crate) again: Option<u64>,
}

/// What is on its way.
#[derive(Debug, Default)]
struct Sheet {
    open: BTreeMap<u64, OnItsWay>,
    weight: usize,
    unanswered: usize,
    wants: VecDeque<WantedFile>,
    patches: PatchAnswers,
    /// Subtrees in them.
    held: usize,
    /// Files that the receiver has, and that may be kept here.
    delivered: VecDeque<u64>,
    /// Folders that the walk is in, and whether they were not there before.
    folders: BTreeMap<u64, bool>,
    nonce: Option<[u8; 32]>,
    end: Option<Result<Tally, TransferError>>,
    /// Why nothing can be written any more.
    unwritable: Option<io::Error>,
    /// True if no content is sent.
    dry_run: bool,
}

/// The two threads' common desk.
#[derive(Debug)]
pub(crate) struct Desk {
    sheet: Mutex<Sheet>,
    changed: Condvar,
}

/// The transfer is over, for a reason that the desk has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Over;

/// A message that cannot come now.
type Wrong = &'static str;

impl Desk {
    /// The desk of a transfer; in a dry run, an event says what is wanted, and nothing is sent.
    pub(crate) fn new(dry_run: bool) -> Desk {
        Desk { sheet: Mutex::new(Sheet { dry_run, ..Sheet::default() }), changed: Condvar::new() }
    }

    fn sheet(&self) -> MutexGuard<'_, Sheet> {
        self.sheet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another entry may be announced.
    pub(crate) fn has_room(&self) -> bool {
        let sheet = self.sheet();
        // An entry that was wanted and failed is not open any more, but its answer waits.
        sheet.unanswered + sheet.wants.len() < MAX_UNANSWERED
            && sheet.open.len() < MAX_OPEN
            && sheet.weight < MAX_WEIGHT
    }

    /// Notes an entry before it is announced.
    pub(crate) fn announce(&self, entry: &EntryMessage) {
        let mut sheet = self.sheet();
        sheet.weight += entry.weight();
        let asks = matches!(entry.kind, EntryKind::File { .. }) && !entry.eager;
        sheet.unanswered += usize::from(asks);
        if entry.kind == EntryKind::Folder {
            sheet.folders.insert(entry.index, false);
        }
        let fresh = OnItsWay { entry: entry.clone(), answered: !asks, patched: false, told: 0, promised: 0 };
        sheet.open.insert(entry.index, fresh);
    }

    /// Whether a folder that the walk is in was not there before.
    pub(crate) fn is_in_fresh(&self) -> bool {
        self.sheet().folders.values().any(|fresh| *fresh)
    }

    /// The walk leaves a folder.
    pub(crate) fn leave(&self, folder: u64) {
        self.sheet().folders.remove(&folder);
    }

    /// The next file that the receiver wants.
    pub(crate) fn take_want(&self) -> Option<WantedFile> {
        let mut sheet = self.sheet();
        let mut wanted = sheet.wants.pop_front()?;
        sheet.held -= subtrees(&wanted.how);
        // Until now they count as ids that wait.
        if matches!(wanted.how, HowWanted::Patch | HowWanted::Pieces { .. }) {
            wanted.ids = sheet.patches.take_ids(wanted.index);
        }
        Some(wanted)
    }

    /// The next file that the receiver has.
    pub(crate) fn take_delivered(&self) -> Option<u64> {
        self.sheet().delivered.pop_front()
    }

    /// The next answer to a question about an entry.
    pub(crate) fn take_answer(&self, entry: u64) -> Option<FineIds> {
        self.sheet().patches.take_answer(entry)
    }

    /// The receiver may want a file of `size` bytes whole although its hash was sent, once; if not, they have moved.
    pub(crate) fn may_want_whole(&self, index: u64, size: u64) {
        if let Some(open) = self.sheet().open.get_mut(&index) {
            (open.patched, open.promised) = (true, size);
        }
    }

    /// Notes how many bytes of a file's content events reported as moved.
    pub(crate) fn note_told(&self, index: u64, bytes: u64) {
        if let Some(open) = self.sheet().open.get_mut(&index) {
            open.told = bytes;
        }
    }

    /// An entry that did not fail meanwhile.
    pub(crate) fn entry(&self, index: u64) -> Option<EntryMessage> {
        self.sheet().open.get(&index).map(|open| open.entry.clone())
    }

    pub(crate) fn is_open(&self, index: u64) -> bool {
        self.sheet().open.contains_key(&index)
    }

    /// Whether all files that were announced are answered, and none is wanted.
    pub(crate) fn is_all_sent(&self) -> bool {
        let sheet = self.sheet();
        sheet.unanswered == 0 && sheet.wants.is_empty()
    }

    pub(crate) fn check(&self) -> Result<(), Over> {
        let sheet = self.sheet();
        if sheet.end.is_some() || sheet.unwritable.is_some() { Err(Over) } else { Ok(()) }
    }

    /// Waits until the receiver says something, or some time.
    pub(crate) fn wait(&self) {
        let sheet = self.sheet();
        if sheet.end.is_none() && sheet.wants.is_empty() {
            drop(self.changed.wait_timeout(sheet, LOOK));
        }
    }

    /// Waits for an answer, or some time.
    pub(crate) fn wait_for_answer(&self) {
        let sheet = self.sheet();
        if sheet.end.is_none() && !sheet.patches.has_answer() {
            drop(self.changed.wait_timeout(sheet, LOOK));
        }
    }

    /// The transfer is over; the first reason counts.
    pub(crate) fn end(&self, how: Result<Tally, TransferError>) {
        self.sheet().end.get_or_insert(how);
        self.changed.notify_all();
    }

    /// Nothing can be written any more. The peer may have said why: what is heard counts first.
    pub(crate) fn writer_failed(&self, error: io::Error) {
        self.sheet().unwritable = Some(error);
        self.changed.notify_all();
    }

    /// Whether the receiver said that it is done.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.sheet().end, Some(Ok(_)))
    }

    /// How it ended.
    pub(crate) fn take_end(&self) -> Option<Result<Tally, TransferError>> {
        let mut sheet = self.sheet();
        match (sheet.end.take(), sheet.unwritable.take()) {
            (Some(Err(TransferError::Interrupted(_))) | None, Some(error)) => Some(Err(error.into())),
            (end, _) => end,
        }
    }

    /// The server's half of the key for chunk ids, if this end is the client and heard it.
    pub(crate) fn nonce(&self) -> Option<[u8; 32]> {
        self.sheet().nonce
    }

    /// Takes a message of the receiver's.
    pub(crate) fn hear(&self, message: FileMessage, watch: Watch<'_>) -> Result<(), TransferError> {
        let wrong = match message {
            FileMessage::Welcome { nonce } => self.sheet().welcome(nonce),
            FileMessage::Want { first, last, how } => self.sheet().want(first, last, &how, watch),
            FileMessage::Ids { entry, bytes } => self.sheet().ids(entry, &bytes),
            FileMessage::Fine { entry, bytes } => self.sheet().patches.answer(entry, &bytes),
            FileMessage::Receipt { first, last } => self.sheet().receipt(first, last, watch),
            FileMessage::Failed { entry, fault } => match self.sheet().close(entry) {
                Some(entry) => {
                    watch.tell(TransferEvent::Failed { path: entry.path, fault });
                    Ok(())
                }
                None => Err("a failure of an entry that is not on its way"),
            },
            FileMessage::Removed { path } => {
                watch.tell(TransferEvent::Removed { path });
                Ok(())
            }
            FileMessage::Done { whole, failed, removed } => {
                self.end(Ok(Tally { whole, failed, removed }));
                return Ok(());
            }
            FileMessage::Alive => return Ok(()),
            FileMessage::Refused(fault) => return Err(TransferError::Refused(fault)),
            FileMessage::Stopped(fault) => return Err(TransferError::Stopped(fault)),
            _ => Err("a message that a receiver does not send"),
        };
        self.changed.notify_all();
        wrong.map_err(TransferError::Protocol)
    }
}

impl Sheet {
    fn welcome(&mut self, nonce: [u8; 32]) -> Result<(), Wrong> {
        if self.nonce.replace(nonce).is_some() { Err("two welcomes") } else { Ok(()) }
    }

    /// The entries of a range, all of which are on their way.
    fn range(&self, first: u64, last: u64) -> Result<Vec<u64>, Wrong> {
        let found: Vec<u64> = self.open.range(first..=last).map(|(index, _)| *index).collect();
        if found.len() as u64 != (last - first).saturating_add(1) {
            return Err("an answer about an entry that is not on its way");
        }
        Ok(found)
    }

    fn want(&mut self, first: u64, last: u64, how: &HowWanted, watch: Watch<'_>) -> Result<(), Wrong> {
        for index in self.range(first, last)? {
            let Some(open) = self.open.get_mut(&index) else { continue };
            if *how == HowWanted::Fresh {
                if open.entry.kind != EntryKind::Folder {
                    return Err("a fresh file");
                }
                // The walk may have left it meanwhile.
                self.folders.entry(index).and_modify(|fresh| *fresh = true);
                continue;
            }
            if std::mem::replace(&mut open.answered, true) {
                if *how != HowWanted::Whole || !std::mem::take(&mut open.patched) {
                    return Err("two answers about an entry");
                }
                open.promised = 0;
                let again = Some(std::mem::take(&mut open.told));
                self.wants.push_back(WantedFile { index, how: HowWanted::Whole, ids: None, again });
                continue;
            }
            self.unanswered -= 1;
            match (how, &open.entry.kind) {
                (HowWanted::Skip, EntryKind::File { size }) => {
                    let size = size.unwrap_or(0);
                    watch.tell(TransferEvent::Skipped { path: open.entry.path.clone(), size });
                }
                // A receipt may be right behind.
                (HowWanted::Whole | HowWanted::Pieces { .. }, EntryKind::File { size }) if self.dry_run => {
                    let (path, size) = (open.entry.path.clone(), *size);
                    watch.tell(TransferEvent::Begun { path, size, held: 0 });
                }
                _ if self.dry_run => return Err("content is wanted in a dry run"),
                (HowWanted::Patch, EntryKind::File { size: Some(_) }) => {
                    open.patched = true;
                    if !self.patches.has_ids(index) {
                        return Err("a patch is wanted before its ids came");
                    }
                    self.wants.push_back(WantedFile { index, how: HowWanted::Patch, ids: None, again: None });
                }
                (HowWanted::Kept, _) => {
                    if open.entry.kept.is_none() {
                        return Err("a version is wanted against that was not announced");
                    }
                    open.patched = true;
                    self.wants.push_back(WantedFile { index, how: HowWanted::Kept, ids: None, again: None });
                }
                (_, EntryKind::File { size }) => {
                    let beyond = size.map_or(u64::MAX, pieces_of);
                    if let HowWanted::Pieces { held, .. } = how
                        && held.last().is_some_and(|last| last.end() > beyond)
                    {
                        return Err("pieces behind the end of a file");
                    }
                    let fits = self.held + subtrees(how) <= MAX_HELD;
                    let how = if fits { how.clone() } else { HowWanted::Whole };
                    self.held += subtrees(&how);
                    // What follows the pieces that are there may be a patch.
                    open.patched = self.patches.has_ids(index) && how != HowWanted::Whole;
                    self.wants.push_back(WantedFile { index, how, ids: None, again: None });
                }
                _ => return Err("an entry is wanted that has no content"),
            }
        }
        Ok(())
    }

    fn ids(&mut self, entry: u64, bytes: &[u8]) -> Result<(), Wrong> {
        match self.open.get(&entry) {
            Some(open) if !open.answered => self.patches.ids(entry, bytes),
            _ => Err("ids for an entry that is not on its way"),
        }
    }

    fn receipt(&mut self, first: u64, last: u64, watch: Watch<'_>) -> Result<(), Wrong> {
        for index in self.range(first, last)? {
            let promised = self.open.get(&index).map_or(0, |open| open.promised);
            if let Some(entry) = self.close(index) {
                if promised > 0 {
                    watch.tell(TransferEvent::Moved { bytes: promised });
                }
                let may_be_kept =
                    matches!(entry.kind, EntryKind::File { size: Some(size) } if size >= MIN_KEPT);
                if may_be_kept && self.delivered.len() < MAX_DELIVERED {
                    self.delivered.push_back(index);
                }
                watch.tell(TransferEvent::Whole { path: entry.path });
            }
        }
        Ok(())
    }

    /// An entry is not on its way any more.
    fn close(&mut self, index: u64) -> Option<EntryMessage> {
        let open = self.open.remove(&index)?;
        self.patches.take_ids(index);
        self.weight -= open.entry.weight();
        self.unanswered -= usize::from(!open.answered);
        Some(open.entry)
    }
}

fn subtrees(how: &HowWanted) -> usize {
    match how {
        HowWanted::Pieces { held, .. } => held.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_dry_run_tells_what_would_be_sent_though_its_receipt_comes_at_once() {
        let told = Mutex::new(Vec::new());
        let event = |event| told.lock().unwrap().push(event);
        let cancel = AtomicBool::new(false);
        let watch = Watch { event: &event, cancel: &cancel, hang_up: &|| () };
        let desk = Desk::new(true);
        desk.announce(&EntryMessage::new(b"a".to_vec(), EntryKind::File { size: Some(5) }, 0o600, 5));
        desk.hear(FileMessage::Want { first: 0, last: 0, how: HowWanted::Whole }, watch).unwrap();
        desk.hear(FileMessage::Receipt { first: 0, last: 0 }, watch).unwrap();
        assert!(desk.take_want().is_none());
        let told = told.into_inner().unwrap();
        assert!(matches!(told[..], [TransferEvent::Begun { .. }, TransferEvent::Whole { .. }]), "{told:?}");
    }
}
