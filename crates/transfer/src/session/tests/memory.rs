//! Both ends of a transfer in memory: a tree of names.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use crate::folder::Offer;
use crate::message::{EntryKind, EntryMessage, FaultReason, FileFault};
use crate::pieces::{PIECE_LEN, PieceHasher, Subtree};
use crate::session::ends::*;

/// The names from the root to an entry, so that what is in a folder stands behind it and before what is beside it.
pub(super) type Names = Vec<Vec<u8>>;

pub(super) fn names(path: &[u8]) -> Names {
    if path.is_empty() { Vec::new() } else { path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect() }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    File { bytes: Vec<u8>, mode: u32, modified: i64 },
    Folder { mode: u32, modified: i64 },
    Symlink(Vec<u8>),
}

/// What an end has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) nodes: BTreeMap<Names, Node>,
    /// Files that are not under their names yet: version and bytes.
    pub(super) asides: BTreeMap<Names, ([u8; 8], Vec<u8>)>,
}

pub(super) type Shared = Arc<Mutex<Tree>>;

/// Sends a tree. A file in `moving` changes each time after it was opened so often.
pub(super) struct MemoryOrigin {
    pub(super) tree: Shared,
    pub(super) left: Vec<(Names, Node)>,
    pub(super) moving: BTreeMap<Names, u32>,
}

impl MemoryOrigin {
    pub(super) fn new(tree: &Shared) -> MemoryOrigin {
        let mut left: Vec<_> = tree.lock().unwrap().nodes.clone().into_iter().collect();
        left.reverse();
        MemoryOrigin { tree: tree.clone(), left, moving: BTreeMap::new() }
    }
}

fn version(bytes: &[u8], modified: i64) -> [u8; 8] {
    if bytes.len() as u64 <= PIECE_LEN {
        return [0; 8];
    }
    let hash = blake3::hash(&[bytes, &modified.to_be_bytes()].concat());
    *hash.as_bytes().first_chunk().unwrap()
}

impl Origin for MemoryOrigin {
    type Content = MemoryContent;

    fn next_entry(&mut self) -> Option<Result<EntryMessage, NotFound>> {
        let (path, node) = self.left.pop()?;
        let (kind, mode, modified, version) = match node {
            Node::File { bytes, mode, modified } => (
                EntryKind::File { size: Some(bytes.len() as u64) },
                mode,
                modified,
                version(&bytes, modified),
            ),
            Node::Folder { mode, modified } => (EntryKind::Folder, mode, modified, [0; 8]),
            Node::Symlink(target) => (EntryKind::Symlink { target }, 0o777, 0, [0; 8]),
        };
        let path = path.join(&b'/');
        Some(Ok(EntryMessage { version, ..EntryMessage::new(path, kind, mode, modified) }))
    }

    fn open(&mut self, entry: &EntryMessage) -> Result<MemoryContent, FileFault> {
        let path = names(&entry.path);
        let mut tree = self.tree.lock().unwrap();
        match tree.nodes.get_mut(&path) {
            Some(Node::File { bytes, modified, .. }) => {
                let content = MemoryContent { path: path.clone(), tree: self.tree.clone() };
                if let Some(times) = self.moving.get_mut(&path).filter(|times| **times > 0) {
                    *times -= 1;
                    *modified += 1;
                    bytes.push(b'+');
                }
                Ok(content)
            }
            _ => Err(FaultReason::Vanished.into()),
        }
    }
}

pub(super) struct MemoryContent {
    path: Names,
    tree: Shared,
}

impl MemoryContent {
    fn with<T>(&self, with: impl FnOnce(&[u8], i64) -> T) -> io::Result<T> {
        match self.tree.lock().unwrap().nodes.get(&self.path) {
            Some(Node::File { bytes, modified, .. }) => Ok(with(bytes, *modified)),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Content for MemoryContent {
    fn state(&mut self) -> io::Result<ContentState> {
        self.with(|bytes, modified| ContentState {
            size: Some(bytes.len() as u64),
            modified,
            version: version(bytes, modified),
        })
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.with(|bytes, _| {
            let rest = &bytes[(offset as usize).min(bytes.len())..];
            let got = rest.len().min(buffer.len());
            buffer[..got].copy_from_slice(&rest[..got]);
            got
        })
    }

    fn extent(&mut self, from: u64) -> io::Result<Option<(u64, u64)>> {
        self.with(|bytes, _| {
            let pages = bytes.chunks(4096).enumerate().skip(from as usize / 4096);
            let data = pages.clone().find(|(_, page)| page.iter().any(|byte| *byte != 0))?.0 * 4096;
            let hole = pages
                .skip_while(|(at, _)| at * 4096 < data)
                .find(|(_, page)| page.iter().all(|byte| *byte == 0));
            Some(((data as u64).max(from), hole.map_or(bytes.len(), |(at, _)| at * 4096) as u64))
        })
    }
}

/// Receives into a tree.
pub(super) struct MemoryDestination {
    pub(super) tree: Shared,
    /// Bytes that its disk takes.
    pub(super) room: u64,
    pub(super) group: Vec<(EntryMessage, Option<MemoryAside>)>,
}

impl MemoryDestination {
    pub(super) fn new(tree: &Shared) -> MemoryDestination {
        MemoryDestination { tree: tree.clone(), room: u64::MAX, group: Vec::new() }
    }

    fn has_parent(&self, path: &Names) -> Result<(), FileFault> {
        let tree = self.tree.lock().unwrap();
        let mut above = (0..path.len()).filter_map(|depth| tree.nodes.get(&path[..depth]));
        let through = above.all(|node| matches!(node, Node::Folder { .. }));
        if through { Ok(()) } else { Err(FaultReason::Escapes.into()) }
    }
}

impl Destination for MemoryDestination {
    type Aside = MemoryAside;

    fn folder(&mut self, entry: &EntryMessage) -> Result<bool, FileFault> {
        let path = names(&entry.path);
        self.has_parent(&path)?;
        let mut tree = self.tree.lock().unwrap();
        match tree.nodes.get(&path) {
            Some(Node::Folder { .. }) => Ok(false),
            Some(_) => Err(FaultReason::InTheWay.into()),
            None => {
                tree.nodes.insert(path, Node::Folder { mode: 0, modified: 0 });
                Ok(true)
            }
        }
    }

    fn standing(&mut self, entry: &EntryMessage) -> Result<Standing, FileFault> {
        let path = names(&entry.path);
        self.has_parent(&path)?;
        let tree = self.tree.lock().unwrap();
        if let Some(Node::Folder { .. }) = tree.nodes.get(&path) {
            return Err(FaultReason::InTheWay.into());
        }
        if let (Some(Node::File { bytes, modified, .. }), EntryKind::File { size: Some(size) }) =
            (tree.nodes.get(&path), &entry.kind)
            && (bytes.len() as u64, *modified) == (*size, entry.modified)
        {
            return Ok(Standing::Same);
        }
        let Some((version, bytes)) = tree.asides.get(&path) else { return Ok(Standing::Other) };
        let piece = |(at, bytes): (usize, &[u8])| {
            let mut hasher = PieceHasher::new(at as u64);
            hasher.update(bytes);
            hasher.subtree().unwrap()
        };
        let held: Vec<Subtree> = bytes.chunks_exact(PIECE_LEN as usize).enumerate().map(piece).collect();
        if held.is_empty() || matches!(entry.kind, EntryKind::File { size: Some(size) } if size <= PIECE_LEN)
        {
            return Ok(Standing::Other);
        }
        Ok(Standing::Begun(Offer { same_version: *version == entry.version, held }))
    }

    fn older(&mut self, _entry: &EntryMessage) -> Option<(std::fs::File, u64)> {
        None
    }

    fn aside(&mut self, entry: &EntryMessage, resume: bool) -> Result<MemoryAside, FileFault> {
        let path = names(&entry.path);
        let before = self.tree.lock().unwrap().asides.remove(&path);
        let bytes = before.filter(|_| resume).map(|(_, bytes)| bytes).unwrap_or_default();
        Ok(MemoryAside { tree: self.tree.clone(), path, version: entry.version, bytes, room: self.room })
    }

    fn discard(&mut self, _aside: MemoryAside) {}

    fn finish(&mut self, entry: &EntryMessage, content: Option<MemoryAside>) -> Result<(), FileFault> {
        self.group.push((entry.clone(), content));
        Ok(())
    }

    fn settle(&mut self, all: bool) -> Result<Vec<Settlement>, FileFault> {
        if !all && self.group.len() < 100 {
            return Ok(Vec::new());
        }
        let mut tree = self.tree.lock().unwrap();
        let mut put = |(entry, content): (EntryMessage, Option<MemoryAside>)| {
            if entry.kind == EntryKind::Folder {
                tree.nodes
                    .insert(names(&entry.path), Node::Folder { mode: entry.mode, modified: entry.modified });
                return Ok(());
            }
            let path = names(&entry.path);
            match path.split_last().and_then(|(_, parent)| tree.nodes.get(parent)) {
                Some(Node::Folder { .. }) => {}
                None if path.len() == 1 => {}
                _ => return Err(FaultReason::Escapes.into()),
            }
            let node = match (entry.kind, content) {
                (EntryKind::File { .. }, Some(content)) => {
                    Node::File { bytes: content.bytes, mode: entry.mode, modified: entry.modified }
                }
                (EntryKind::Symlink { target }, None) => Node::Symlink(target),
                (EntryKind::HardLink { to }, None) => {
                    tree.nodes.get(&names(&to)).cloned().ok_or(FaultReason::NoFirstName)?
                }
                _ => return Err(FaultReason::System.into()),
            };
            if let Some(Node::Folder { .. }) = tree.nodes.get(&path) {
                return Err(FaultReason::InTheWay.into());
            }
            tree.nodes.insert(path, node);
            Ok(())
        };
        Ok(self.group.drain(..).map(|item| (item.0.index, put(item))).collect())
    }

    fn end(&mut self) {}

    fn prune(
        &mut self,
        folder: &[u8],
        dry_run: bool,
        keep: &dyn Fn(&[u8]) -> bool,
        removed: &mut dyn FnMut(&[u8]),
    ) -> Result<(), FileFault> {
        let folder = names(folder);
        let mut tree = self.tree.lock().unwrap();
        let here = |path: &Names| path.len() == folder.len() + 1 && path.starts_with(&folder);
        let gone: Vec<Names> =
            tree.nodes.keys().filter(|path| here(path) && !keep(&path[folder.len()])).cloned().collect();
        for path in gone {
            removed(&path.join(&b'/'));
            if !dry_run {
                tree.nodes.retain(|other, _| !other.starts_with(&path));
            }
        }
        Ok(())
    }
}

pub(super) struct MemoryAside {
    tree: Shared,
    path: Names,
    version: [u8; 8],
    bytes: Vec<u8>,
    room: u64,
}

impl MemoryAside {
    /// Of a tree that nothing else has.
    pub(super) fn empty(entry: &EntryMessage) -> MemoryAside {
        let (tree, path) = (Shared::default(), names(&entry.path));
        MemoryAside { tree, path, version: entry.version, bytes: Vec::new(), room: u64::MAX }
    }
}

impl Aside for MemoryAside {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FileFault> {
        let end = offset as usize + bytes.len();
        if end as u64 > self.room {
            return Err(FaultReason::DiskFull.into());
        }
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn hole(&mut self, offset: u64, length: u64) -> Result<(), FileFault> {
        self.write(offset, &vec![0; length as usize])
    }

    fn verify(&mut self, size: u64, root: &[u8; 32]) -> Result<(), FileFault> {
        self.bytes.truncate(size as usize);
        if self.bytes.len() as u64 == size && blake3::hash(&self.bytes).as_bytes() == root {
            Ok(())
        } else {
            Err(FaultReason::WrongHash.into())
        }
    }

    fn suspend(self) {
        let aside = (self.version, self.bytes);
        self.tree.lock().unwrap().asides.insert(self.path, aside);
    }
}
