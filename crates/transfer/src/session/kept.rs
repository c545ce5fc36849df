//! What a sender keeps of what it sent, so that the next version goes as what differs from it.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;

use super::desk::Desk;
use super::ends::{Content, ContentState, Origin};
use super::root::RootHash;
use crate::delta::{KeepSent, KeptCopy};
use crate::message::{EntryKind, EntryMessage, KeptVersion};

/// Shorter files are not kept: they go whole, and are never patched.
pub(crate) const MIN_KEPT: u64 = 64 << 10;
/// Contents that wait for their receipt, or to be kept, at most; others are not kept.
const MAX_WAITING: usize = 4096;
/// Bytes that are read at once.
const BLOCK: usize = 256 << 10;

/// Copies of what was sent to one place of one peer.
#[derive(Debug)]
pub struct SentCopies {
    store: KeepSent,
    /// What tells the names of these copies from those of other places.
    place: Vec<u8>,
    /// Random bytes, of which salts are made.
    seed: [u8; 32],
    salts: u64,
    /// Bytes that this transfer may still keep: with more it would drive out what it kept first.
    left: u64,
    trouble: Option<io::Error>,
}

impl SentCopies {
    /// Copies in a store. `place` names the receiver, its folder and the place there; `seed` is random, and another one each time.
    #[must_use]
    pub fn new(store: KeepSent, place: &[&[u8]], seed: [u8; 32]) -> SentCopies {
        let place =
            place.iter().flat_map(|part| [&(part.len() as u64).to_le_bytes()[..], part].concat()).collect();
        let left = store.budget();
        SentCopies { store, place, seed, salts: 0, left, trouble: None }
    }

    /// Why something could not be kept. Nothing is lost with it but bytes on the wire next time.
    #[must_use]
    pub const fn trouble(&self) -> Option<&io::Error> {
        self.trouble.as_ref()
    }

    fn name(&self, path: &[u8]) -> Vec<u8> {
        [&self.place, path].concat()
    }

    /// The copy of what was sent last to a path.
    fn find(&self, path: &[u8]) -> Option<KeptCopy> {
        // One that cannot be read is none: the file goes as if it had not been kept.
        self.store.find(&self.name(path)).ok().flatten()
    }

    /// What an entry can go relative to. None if it did not change since, by size and time: the receiver then most likely has it.
    pub(crate) fn version(&self, entry: &EntryMessage) -> Option<KeptVersion> {
        let EntryKind::File { size: Some(size) } = entry.kind else { return None };
        let copy = if size < MIN_KEPT { None } else { self.find(&entry.path) }?;
        let unchanged = (copy.size(), copy.modified()) == (size, entry.modified);
        (!unchanged).then(|| KeptVersion { size: copy.size(), root: *copy.root() })
    }

    /// The copy that was announced with an entry, to be used.
    pub(crate) fn open(&self, entry: &EntryMessage) -> Option<KeptCopy> {
        let announced = entry.kept.as_ref()?;
        let copy = self.find(&entry.path).filter(|copy| *copy.root() == announced.root)?;
        // A store that cannot be written can be read.
        let _ = copy.touch();
        Some(copy)
    }

    /// Reads a file that was delivered, and keeps it if it is still what was sent.
    fn keep(&mut self, content: &mut impl Content, sent: &SentContent) -> io::Result<()> {
        self.salts += 1;
        let salt = blake3::keyed_hash(&self.seed, &self.salts.to_le_bytes());
        let salt = *salt.as_bytes().first_chunk().unwrap_or(&[0; 16]);
        let name = self.name(&sent.entry.path);
        let mut copy = self.store.keep(&name, salt)?;
        let (mut hash, mut buffer) = (RootHash::new(), vec![0; BLOCK]);
        while hash.position() < sent.size {
            let at = hash.position();
            let (begin, end) = content.extent(at)?.unwrap_or((sent.size, sent.size));
            let begin = begin.min(sent.size);
            if begin > at {
                copy.hole(begin - at)?;
                hash.zeros(begin - at);
                continue;
            }
            let want = usize::try_from(end.min(sent.size).saturating_sub(at)).unwrap_or(BLOCK).min(BLOCK);
            let got = content.read_at(at, &mut buffer[..want])?;
            if got == 0 {
                return Ok(());
            }
            hash.update(&buffer[..got]);
            copy.write_all(&buffer[..got])?;
        }
        if hash.finish() == Some(sent.root) && content.state()? == sent.state {
            copy.finish(&sent.root, sent.state.modified)?;
        }
        Ok(())
    }
}

/// A store of what a server sent.
#[derive(Clone)]
pub struct ServedCopies {
    /// Its folder.
    pub folder: PathBuf,
    /// Bytes on disk at most.
    pub budget: u64,
    /// What names the peer.
    pub peer: Vec<u8>,
    /// Secret random bytes: of which the store's secret is made if it has none.
    pub random: [u8; 32],
}

impl fmt::Debug for ServedCopies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedCopies").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl ServedCopies {
    /// Copies for what a request names. A store that cannot be opened is none: all goes as if it had not been kept.
    pub(super) fn open(&self, folder: &[u8], paths: &[Vec<u8>], nonce: [u8; 32]) -> Option<SentCopies> {
        let store = KeepSent::open_own(&self.folder, self.budget, self.random).ok()?;
        let paths = paths.join(&0);
        Some(SentCopies::new(store, &[b"get", &self.peer, folder, &paths], nonce))
    }
}

/// A content that was sent.
#[derive(Debug)]
struct SentContent {
    entry: EntryMessage,
    state: ContentState,
    size: u64,
    root: [u8; 32],
}

/// Contents that were sent, and are kept when the receiver has them.
#[derive(Debug, Default)]
pub(crate) struct SentContents(BTreeMap<u64, SentContent>);

impl SentContents {
    /// All of an entry's content was sent.
    pub(crate) fn add(
        &mut self,
        copies: Option<&mut SentCopies>,
        entry: &EntryMessage,
        state: ContentState,
        root: [u8; 32],
    ) {
        let (Some(copies), Some(size)) = (copies, state.size) else { return };
        let room = size <= copies.left && self.0.len() < MAX_WAITING;
        if size >= MIN_KEPT && room && copies.trouble.is_none() {
            copies.left -= size;
            self.0.insert(entry.index, SentContent { entry: entry.clone(), state, size, root });
        }
    }

    /// Keeps one file that the receiver has. Whether there was one.
    pub(crate) fn keep_one(&mut self, origin: &mut impl Origin, desk: &Desk) -> bool {
        let Some(sent) = std::iter::from_fn(|| desk.take_delivered()).find_map(|index| self.0.remove(&index))
        else {
            return false;
        };
        // What is not there any more is not kept.
        let Ok(mut content) = origin.open(&sent.entry) else { return true };
        if let Some(copies) = origin.copies()
            && copies.trouble.is_none()
            && let Err(error) = copies.keep(&mut content, &sent)
        {
            copies.trouble = Some(error);
        }
        true
    }
}
