//! The content of one file, as the sender sends it: held pieces skipped, holes told, the rest read, hashed and handed on.

mod patch;
mod same;

pub(crate) use same::MIN_SAME;

use std::io;

use blake3::hazmat::HasherExt;

use super::desk::{Desk, Over, WantedFile};
use super::ends::{Content, ContentState, Origin};
use super::event::{TransferEvent, Watch};
use super::kept::SentContents;
use super::outgoing::{Outbound, WriterGone};
use super::root::RootHash;
use crate::delta::{ChunkKey, SentFiles, SignatureIds};
use crate::message::{EntryKind, EntryMessage, FaultReason, FileFault, FileMessage, HowWanted};
use crate::pieces::{PIECE_LEN, Subtree};

/// Bytes that are read at once: long enough that a read costs little, short enough that hashing and sending begin soon.
const BLOCK: usize = 256 << 10;
/// Shorter holes go as zeros, which compress to nothing: each hole costs a message and the end of a unit.
const SHORT_HOLE: u64 = 64 << 10;
/// Bytes of a hole that are hashed between two looks whether the file is still wanted.
const HOLE_STEP: u64 = 64 << 20;

/// Why the content of a file was not sent to its end.
enum Halt {
    /// It cannot be sent, or is not wanted any more.
    Entry(FileFault),
    /// The source is not what it was.
    Changed,
    /// The transfer is over.
    Over,
}

impl From<Over> for Halt {
    fn from(_: Over) -> Halt {
        Halt::Over
    }
}

impl From<WriterGone> for Halt {
    fn from(_: WriterGone) -> Halt {
        Halt::Over
    }
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Halt {
        Halt::Entry(FileFault::new(FaultReason::Unreadable, error.to_string()))
    }
}

/// What is needed to send contents.
pub(crate) struct ContentSender<'a> {
    pub(crate) desk: &'a Desk,
    pub(crate) out: Outbound,
    pub(crate) watch: Watch<'a>,
    /// What may be kept once it is delivered.
    pub(crate) sent: SentContents,
    /// What the receiver has of this transfer.
    repeats: SentFiles,
    nonces: SenderNonces,
    buffer: Vec<u8>,
    /// Bytes of the file under way that events reported as moved.
    told: u64,
}

/// The random bytes of both ends, of which the key of chunk ids is made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SenderNonces {
    /// This end is the client: the server's come with its welcome.
    Client([u8; 32]),
    /// This end is the server and knows both: the client's, its own.
    Server([u8; 32], [u8; 32]),
}

impl<'a> ContentSender<'a> {
    pub(crate) fn new(
        desk: &'a Desk,
        out: Outbound,
        nonces: SenderNonces,
        watch: Watch<'a>,
    ) -> ContentSender<'a> {
        let (sent, repeats) = (SentContents::default(), SentFiles::default());
        ContentSender { desk, out, watch, sent, repeats, nonces, buffer: vec![0; BLOCK], told: 0 }
    }

    /// The key of chunk ids. None before the server said its half.
    fn key(&self) -> Option<ChunkKey> {
        match &self.nonces {
            SenderNonces::Client(own) => self.desk.nonce().map(|server| ChunkKey::agree(own, &server)),
            SenderNonces::Server(client, own) => Some(ChunkKey::agree(client, own)),
        }
    }

    /// Sends a file as it is wanted. Its end is told in any case: `End`, or `Gone`.
    pub(crate) fn send<O: Origin>(
        &mut self,
        origin: &mut O,
        entry: &EntryMessage,
        wanted: WantedFile,
    ) -> Result<(), Over> {
        let EntryKind::File { size } = entry.kind else { return Ok(()) };
        let mut expected = ContentState { size, modified: entry.modified, version: entry.version };
        let WantedFile { index, mut how, mut ids, again: void } = wanted;
        if let Some(bytes) = void {
            let ContentState { size, modified, version } = expected;
            self.out.put(FileMessage::Again { entry: index, size, modified, version }).map_err(|_| Over)?;
            self.out.tell(TransferEvent::Void { bytes });
        }
        if void.is_none() && self.may_be_there(&how, size) {
            let asked = how == HowWanted::Hash;
            match self.same(origin, entry, expected, asked) {
                Ok(true) => return Ok(()),
                // What changed is found changed once more.
                Ok(false) | Err(Halt::Changed) => how = HowWanted::Whole,
                Err(Halt::Over) => return Err(Over),
                Err(Halt::Entry(fault)) => return self.gone(index, fault),
            }
        }
        let mut again = false;
        loop {
            let sent = self.attempt(origin, entry, expected, &how, ids.take());
            if let Err(Halt::Changed | Halt::Entry(_)) = &sent {
                self.out.tell(TransferEvent::Void { bytes: self.told });
            }
            match sent {
                Ok(()) => return Ok(()),
                Err(Halt::Over) => return Err(Over),
                Err(Halt::Entry(fault)) => return self.gone(entry.index, fault),
                Err(Halt::Changed) if again => return self.gone(entry.index, FaultReason::Changing.into()),
                Err(Halt::Changed) => {
                    match origin.open(entry).and_then(|mut now| now.state().map_err(unreadable)) {
                        Ok(now) => {
                            (again, expected, how) = (true, now, HowWanted::Whole);
                            let ContentState { size, modified, version } = now;
                            let message = FileMessage::Again { entry: entry.index, size, modified, version };
                            self.out.put(message).map_err(|_| Over)?;
                        }
                        Err(fault) => return self.gone(entry.index, fault),
                    }
                }
            }
        }
    }

    fn gone(&mut self, entry: u64, fault: FileFault) -> Result<(), Over> {
        self.out.put(FileMessage::Gone { entry, fault }).map_err(|_| Over)
    }

    fn attempt<O: Origin>(
        &mut self,
        origin: &mut O,
        entry: &EntryMessage,
        expected: ContentState,
        how: &HowWanted,
        ids: Option<SignatureIds>,
    ) -> Result<(), Halt> {
        self.told = 0;
        let (mut content, opened) = open(origin, entry, expected)?;
        let held = match how {
            HowWanted::Pieces { held, .. } => &held[..],
            _ => &[],
        };
        let trusted = matches!(how, HowWanted::Pieces { same_version: true, .. });
        let bytes = held.iter().map(Subtree::bytes).sum();
        self.out.tell(TransferEvent::Begun { path: entry.path.clone(), size: expected.size, held: bytes });
        let mut hash = RootHash::new();
        for subtree in held {
            self.look(entry.index)?;
            self.range(entry, &mut content, &mut hash, Some(subtree.first() * PIECE_LEN))?;
            if hash.position() == subtree.first() * PIECE_LEN
                && (trusted || has(&mut content, subtree, &mut self.buffer)?)
            {
                hash.subtree(subtree);
            }
        }
        if let (Some(key), Some(size)) = (self.key(), expected.size) {
            if let Some(ids) = ids {
                self.patch(entry, &mut content, &mut hash, size, (ids, key))?;
            } else if *how == HowWanted::Kept
                && let Some(copy) = origin.copies().and_then(|copies| copies.open(entry))
            {
                self.patch_kept(entry, &mut content, &mut hash, size, (copy, key))?;
            }
        }
        self.range(entry, &mut content, &mut hash, expected.size)?;
        // The last piece may be one that the receiver has, and shorter than others.
        let size = expected.size.unwrap_or(u64::MAX).min(hash.position());
        if content.state()? != opened || expected.size.is_some_and(|expected| expected != size) {
            return Err(Halt::Changed);
        }
        let root = hash.finish().ok_or(Halt::Entry(FaultReason::System.into()))?;
        self.sent.add(origin.copies(), entry, opened, root);
        self.note(size, root);
        self.desk.note_told(entry.index, self.told);
        Ok(self.out.put(FileMessage::End { entry: entry.index, size, root })?)
    }

    /// Sends what lies between what is hashed and an offset, or the end of what has no size.
    fn range<C: Content>(
        &mut self,
        entry: &EntryMessage,
        content: &mut C,
        hash: &mut RootHash,
        to: Option<u64>,
    ) -> Result<(), Halt> {
        while to.is_none_or(|to| hash.position() < to) {
            self.look(entry.index)?;
            let at = hash.position();
            let limit = to.unwrap_or(u64::MAX);
            let (begin, end) = match to {
                Some(_) => content.extent(at)?.unwrap_or((limit, limit)),
                None => (at, limit),
            };
            let begin = begin.min(limit);
            if begin >= at.saturating_add(SHORT_HOLE) {
                self.hole(entry.index, hash, begin - at)?;
                continue;
            }
            // A short hole reads as zeros.
            let end = end.max(begin).min(limit);
            let want = usize::try_from(end - at).unwrap_or(BLOCK).min(BLOCK);
            let got = content.read_at(at, &mut self.buffer[..want])?;
            if got == 0 {
                return if to.is_none() { Ok(()) } else { Err(Halt::Changed) };
            }
            hash.update(&self.buffer[..got]);
            let bytes = self.buffer[..got].to_vec();
            self.out.put(FileMessage::Data { entry: entry.index, offset: at, bytes })?;
            self.moved(got as u64);
        }
        Ok(())
    }

    fn hole(&mut self, entry: u64, hash: &mut RootHash, length: u64) -> Result<(), Halt> {
        self.out.put(FileMessage::Hole { entry, offset: hash.position(), length })?;
        let mut left = length;
        while left > 0 {
            self.look(entry)?;
            let step = left.min(HOLE_STEP);
            hash.zeros(step);
            self.moved(step);
            left -= step;
        }
        Ok(())
    }

    fn moved(&mut self, bytes: u64) {
        self.told += bytes;
        self.out.tell(TransferEvent::Moved { bytes });
    }

    /// Whether the file is still wanted.
    fn look(&self, entry: u64) -> Result<(), Halt> {
        self.desk.check()?;
        if self.watch.is_cancelled() {
            return Err(Halt::Over);
        }
        if self.desk.is_open(entry) {
            return Ok(());
        }
        Err(Halt::Entry(FaultReason::Cancelled.into()))
    }
}

/// Opens a file that is in the state that was announced.
fn open<O: Origin>(
    origin: &mut O,
    entry: &EntryMessage,
    expected: ContentState,
) -> Result<(O::Content, ContentState), Halt> {
    let mut content = origin.open(entry).map_err(Halt::Entry)?;
    let opened = content.state()?;
    // A version is announced of larger files only.
    let version = if expected.version == [0; 8] { opened.version } else { expected.version };
    if opened != (ContentState { version, ..expected }) {
        return Err(Halt::Changed);
    }
    Ok((content, opened))
}

fn unreadable(error: io::Error) -> FileFault {
    FileFault::new(FaultReason::Unreadable, error.to_string())
}

/// Whether the source has these pieces as the receiver has them.
fn has<C: Content>(content: &mut C, subtree: &Subtree, buffer: &mut [u8]) -> io::Result<bool> {
    let mut hasher = blake3::Hasher::new();
    let (mut at, end) = (subtree.first() * PIECE_LEN, subtree.end() * PIECE_LEN);
    hasher.set_input_offset(at);
    while at < end {
        let want = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
        let got = content.read_at(at, &mut buffer[..want])?;
        if got == 0 {
            break;
        }
        hasher.update(&buffer[..got]);
        at += got as u64;
    }
    Ok(at > subtree.first() * PIECE_LEN && hasher.finalize_non_root() == *subtree.value())
}
