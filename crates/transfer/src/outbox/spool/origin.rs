//! A copy as the origin of a session.

use std::collections::BTreeMap;
use std::io;

use super::{SpooledFile, SpooledSource};
use crate::message::{EntryKind, EntryMessage, FaultReason, FileFault};
use crate::pieces::PIECE_LEN;
use crate::sealed::{SealedEntry, SealedKind};
use crate::session::{Content, ContentState, NotFound, Origin};

/// Sends a copy. Its files never change, so a resume finds them as they were.
pub struct SpooledOrigin {
    source: SpooledSource,
    /// What is yet to be announced, the next one last.
    left: Vec<SealedEntry>,
    /// Of hard links whose file comes after them in this order: the name under which its content goes.
    first: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Where the content of such a first name is in the copy.
    stands_for: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl SpooledOrigin {
    /// What this copy has.
    #[must_use]
    pub fn new(source: SpooledSource) -> SpooledOrigin {
        let mut left = source.entries().to_vec();
        // All that is in a folder comes before what is beside it: `a/b` before `a-`, which ascending bytes do not give.
        left.sort_by(|one, other| names(&other.path).cmp(names(&one.path)));
        SpooledOrigin { source, left, first: BTreeMap::new(), stands_for: BTreeMap::new() }
    }

    /// The root and size of a file of the copy.
    fn found(&self, path: &[u8]) -> Option<(u64, [u8; 32])> {
        let entries = self.source.entries();
        let at = entries.binary_search_by(|entry| entry.path[..].cmp(path)).ok()?;
        match entries[at].kind {
            SealedKind::File { size, root } => Some((size, root)),
            _ => None,
        }
    }

    /// What a name is in this order: of the names of one file, the first has its content.
    fn kind(&mut self, entry: &SealedEntry) -> SealedKind {
        match &entry.kind {
            SealedKind::File { .. } => match self.first.get(&entry.path) {
                Some(first) => SealedKind::HardLink { to: first.clone() },
                None => entry.kind.clone(),
            },
            SealedKind::HardLink { to } => {
                if let Some(first) = self.first.get(to) {
                    return SealedKind::HardLink { to: first.clone() };
                }
                match self.found(to).filter(|_| names(&entry.path).lt(names(to))) {
                    Some((size, root)) => {
                        self.first.insert(to.clone(), entry.path.clone());
                        self.stands_for.insert(entry.path.clone(), to.clone());
                        SealedKind::File { size, root }
                    }
                    None => entry.kind.clone(),
                }
            }
            other => other.clone(),
        }
    }
}

fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/')
}

/// What names the state of a file: the beginning of its root. A file of one piece has none, as it is never resumed.
fn version(size: u64, root: &[u8; 32]) -> [u8; 8] {
    let number = u64::from_le_bytes(*root.first_chunk().unwrap_or(&[0; 8])).max(1);
    if size > PIECE_LEN { number.to_le_bytes() } else { [0; 8] }
}

impl Origin for SpooledOrigin {
    type Content = SpooledContent;

    fn next_entry(&mut self) -> Option<Result<EntryMessage, NotFound>> {
        let entry = self.left.pop()?;
        let (kind, version) = match self.kind(&entry) {
            SealedKind::File { size, root } => (EntryKind::File { size: Some(size) }, version(size, &root)),
            SealedKind::Folder => (EntryKind::Folder, [0; 8]),
            SealedKind::Symlink { target } => (EntryKind::Symlink { target }, [0; 8]),
            SealedKind::HardLink { to } => (EntryKind::HardLink { to }, [0; 8]),
        };
        Some(Ok(EntryMessage { version, ..EntryMessage::new(entry.path, kind, entry.mode, entry.mtime) }))
    }

    fn open(&mut self, entry: &EntryMessage) -> Result<SpooledContent, FileFault> {
        let path = self.stands_for.get(&entry.path).unwrap_or(&entry.path);
        let file = self.source.file(path).map_err(|_| FaultReason::Vanished)?;
        Ok(SpooledContent { file, modified: entry.modified, version: entry.version })
    }
}

/// An open file of a copy.
pub struct SpooledContent {
    file: SpooledFile,
    modified: i64,
    version: [u8; 8],
}

impl Content for SpooledContent {
    fn state(&mut self) -> io::Result<ContentState> {
        let size = Some(self.file.size);
        Ok(ContentState { size, modified: self.modified, version: self.version })
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_from(offset, buffer)
    }

    fn extent(&mut self, from: u64) -> io::Result<Option<(u64, u64)>> {
        // Holes were copied as zeros.
        Ok((from < self.file.size).then_some((from, self.file.size)))
    }
}
