//! Files as patches of the older ones that have their names.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};

use super::super::ends::{Aside, Destination};
use super::super::event::{TransferError, TransferEvent};
use super::super::incoming::Stage;
use super::{ReceiverState, Step};
use crate::delta::{ChunkKey, FineAsk, FineIds, PatchWindow, Signature};
use crate::message::{EntryMessage, FileMessage, HowWanted};

/// Shorter files go whole: their ids would save little, and cost a round trip.
pub(super) const MIN_PATCHED: u64 = 64 << 10;
/// First-level chunks of the older files of all patches under way, together, about; one file may have more.
const MAX_CHUNKS: usize = 1 << 20;
/// Older files that are open at once at most: the system allows a process 1,024 files.
const MAX_RUNNING: usize = 64;
/// Bytes of a chunk on average at least.
const CHUNK: u64 = 16 << 10;
/// Questions without a window at most: a sender has three windows under way.
const MAX_ASKED: usize = 8;

/// An older file and what is known of it.
struct OlderFile {
    /// None if the sender has a copy of it.
    signature: Option<Signature>,
    file: File,
    /// Answers whose windows did not come yet.
    answered: VecDeque<FineIds>,
    /// The window that is arriving.
    parts: Vec<u8>,
}

impl OlderFile {
    /// Reads an older file: whether it is what the sender has a copy of, or else its chunks; these if the transfer of the file resumes.
    /// None if it has no ids.
    fn of(
        mut file: File,
        size: u64,
        entry: &EntryMessage,
        resumes: bool,
        key: ChunkKey,
    ) -> Option<OlderFile> {
        let kept = entry.kept.as_ref().filter(|kept| kept.size == size && !resumes);
        let signature = if kept.is_some_and(|kept| has_root(&file, size, &kept.root)) {
            None
        } else {
            let signature = Signature::of(&mut file, size, std::iter::once(0..size), key).ok()??;
            Some(Some(signature).filter(|signature| !signature.is_empty())?)
        };
        Some(OlderFile { signature, file, answered: VecDeque::new(), parts: Vec::new() })
    }
}

/// Whether the first `size` bytes of a file have this hash.
fn has_root(file: &File, size: u64, root: &[u8; 32]) -> bool {
    let mut hasher = blake3::Hasher::new();
    let hashed = io::copy(&mut file.take(size), &mut hasher);
    hashed.is_ok_and(|bytes| bytes == size) && hasher.finalize() == *root
}

/// Patches under way, and files that wait for theirs.
pub(crate) struct PatchDeck {
    key: ChunkKey,
    running: BTreeMap<u64, OlderFile>,
    /// With how each is wanted where no patch can be made: whole, or but for the pieces that are there.
    waiting: VecDeque<(u64, HowWanted)>,
}

impl PatchDeck {
    pub(super) fn new(key: ChunkKey) -> PatchDeck {
        PatchDeck { key, running: BTreeMap::new(), waiting: VecDeque::new() }
    }

    pub(super) fn wait(&mut self, index: u64, how: HowWanted) {
        self.waiting.push_back((index, how));
    }

    /// A file needs its older one no more.
    pub(super) fn end(&mut self, index: u64) {
        self.running.remove(&index);
    }

    fn chunks(&self) -> usize {
        self.running.values().filter_map(|older| older.signature.as_ref()).map(Signature::len).sum()
    }
}

impl<D: Destination> ReceiverState<'_, D> {
    /// Begins patches as long as their ids take little memory, at both ends.
    pub(super) fn begin_patches(&mut self) {
        while let Some((index, _)) = self.patches.waiting.front() {
            let index = *index;
            let Some(open) =
                self.ledger.get(index).filter(|open| matches!(open.stage, Stage::Waiting { .. }))
            else {
                self.patches.waiting.pop_front();
                continue;
            };
            let entry = open.entry.clone();
            let older = self.destination.older(&entry);
            let chunks =
                older.as_ref().map_or(0, |(_, size)| usize::try_from(size / CHUNK).unwrap_or(MAX_CHUNKS));
            let many = self.patches.chunks() + chunks.min(MAX_CHUNKS) > MAX_CHUNKS;
            let running = self.patches.running.len();
            if running > 0 && (many || running >= MAX_RUNNING) {
                return;
            }
            let Some((_, how)) = self.patches.waiting.pop_front() else { return };
            let (key, resumes) = (self.patches.key, how != HowWanted::Whole);
            let found = older.and_then(|(file, size)| OlderFile::of(file, size, &entry, resumes, key));
            let how = match &found {
                // It cannot be read, or changed to nothing.
                None => how,
                Some(OlderFile { signature: None, .. }) => HowWanted::Kept,
                Some(OlderFile { signature: Some(signature), .. }) => {
                    let messages = (0..).map_while(|number| signature.message(number));
                    self.out.extend(messages.map(|bytes| FileMessage::Ids { entry: index, bytes }));
                    // With pieces, what is behind them comes as a patch.
                    if resumes { how } else { HowWanted::Patch }
                }
            };
            if let Some(older) = found {
                self.patches.running.insert(index, older);
            }
            self.want(index, how);
        }
    }

    /// The sender wants to know more of the older file.
    pub(super) fn ask(&mut self, index: u64, bytes: &[u8]) -> Step {
        let stage = &self.ledger.expect(index)?.stage;
        if matches!(stage, Stage::Failed) {
            return Ok(());
        }
        let ask = FineAsk::parse(bytes)
            .map_err(|_| TransferError::Protocol("a question about chunks is malformed"))?;
        let mut message = Vec::new();
        match self.patches.running.get_mut(&index) {
            Some(OlderFile { signature: Some(signature), file, answered, .. })
                if answered.len() < MAX_ASKED =>
            {
                // What cannot be read any more is not there.
                let fine = signature.fine(&ask, file).unwrap_or(FineIds::NONE);
                message = fine.message();
                answered.push_back(fine);
            }
            None if matches!(stage, Stage::Redo) => {}
            _ => return Err(TransferError::Protocol("a question that cannot be asked now")),
        }
        self.out.push(FileMessage::Fine { entry: index, bytes: message });
        Ok(())
    }

    /// A part of a window.
    pub(super) fn patch(&mut self, index: u64, last: bool, asked: bool, bytes: &[u8]) -> Step {
        if matches!(self.ledger.expect(index)?.stage, Stage::Failed | Stage::Redo) {
            return Ok(());
        }
        let older = self.patches.running.get_mut(&index);
        let older = older.ok_or(TransferError::Protocol("a patch that was not asked for"))?;
        if older.parts.len() + bytes.len() > PatchWindow::MESSAGE_MAX {
            return Err(TransferError::Protocol("a window of a patch is too long"));
        }
        older.parts.extend_from_slice(bytes);
        if !last {
            return Ok(());
        }
        let window = PatchWindow::parse(&std::mem::take(&mut older.parts));
        let window = window.map_err(|_| TransferError::Protocol("a window of a patch is malformed"))?;
        let answer = if asked { older.answered.pop_front() } else { None }.unwrap_or(FineIds::NONE);
        let (key, offset) = (self.patches.key, window.offset());
        match window.apply(older.signature.as_ref(), &answer, &key, &mut older.file) {
            Ok(content) => {
                self.part(index, offset, content.len() as u64, |aside| aside.write(offset, &content))
            }
            Err(_) => {
                self.redo(index);
                Ok(())
            }
        }
    }

    /// The patch is not what the sender meant: the older file changed, or ids met by chance; or there is no other file with the same
    /// content. The whole file comes.
    pub(super) fn redo(&mut self, index: u64) {
        self.patches.end(index);
        if let Some(Stage::Writing { aside, position }) = self.ledger.stage(index, Stage::Redo) {
            self.watch.tell(TransferEvent::Void { bytes: position });
            self.destination.discard(aside);
        }
        self.out.push(FileMessage::Want { first: index, last: index, how: HowWanted::Whole });
    }
}
