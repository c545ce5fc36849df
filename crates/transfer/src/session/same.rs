//! Files of a destination by their content, so that a renamed or copied file costs its hash.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::sync::Arc;

use super::content::MIN_SAME;
use crate::folder::Folder;
use crate::path::EntryPath;
use crate::source::patterns::Patterns;
use crate::source::{SourceFile, SourceKind, Sources, WalkOptions};
use crate::stamp::Status;

/// Names that are looked at in search of other files, at most: some 0.3 s.
const MAX_LOOKED: usize = 65_536;
/// Bytes of the paths that are remembered at most, and of what is beside each.
const MAX_PATHS: usize = 4 << 20;
const BESIDE: usize = 64;
/// Files of this transfer that are open at most. A later file is told to be the same before an earlier one has its name.
const MAX_OPEN: usize = 32;

/// What is known of contents.
#[derive(Default)]
pub(super) struct SameContents {
    /// Files that were there before, by their length, whose hash is not known. None before the first look.
    by_length: Option<BTreeMap<u64, Vec<EntryPath>>>,
    /// Files by length and hash.
    by_hash: BTreeMap<(u64, [u8; 32]), EntryPath>,
    /// Bytes of the paths in both.
    bytes: usize,
    /// The last files of this transfer.
    received: VecDeque<(u64, [u8; 32], Arc<File>)>,
}

impl SameContents {
    /// Whether a file of this length is there, below a place of a folder.
    pub(super) fn has_length(&mut self, folder: &Folder, place: Option<&EntryPath>, size: u64) -> bool {
        if self.by_length.is_none() {
            // What cannot be read is not found.
            let found = self.look(folder, place).unwrap_or_default();
            self.by_length = Some(found);
        }
        let known = self.by_hash.range((size, [0; 32])..=(size, [0xff; 32])).next().is_some();
        known || self.by_length.as_ref().is_some_and(|found| found.contains_key(&size))
    }

    fn look(
        &mut self,
        folder: &Folder,
        place: Option<&EntryPath>,
    ) -> Result<BTreeMap<u64, Vec<EntryPath>>, crate::source::SourceError> {
        let mut sources = Sources::default();
        sources.add_in_folder(folder, place, true)?;
        let walk = sources.walk(WalkOptions { patterns: Patterns::default(), xattrs: false });
        let mut found: BTreeMap<u64, Vec<EntryPath>> = BTreeMap::new();
        for entry in walk.take(MAX_LOOKED).flatten() {
            let (SourceKind::File { size }, Some(below)) = (entry.kind, entry.path) else { continue };
            let path = match place {
                Some(place) => EntryPath::new([place.as_bytes(), b"/", below.as_bytes()].concat()),
                None => Ok(below),
            };
            if let Ok(path) = path
                && size >= MIN_SAME
                && self.take_room(&path)
            {
                found.entry(size).or_default().push(path);
            }
        }
        Ok(found)
    }

    fn take_room(&mut self, path: &EntryPath) -> bool {
        let bytes = self.bytes + path.as_bytes().len() + BESIDE;
        let fits = bytes <= MAX_PATHS;
        if fits {
            self.bytes = bytes;
        }
        fits
    }

    /// A file of this transfer that has the content.
    pub(super) fn received(&self, size: u64, root: &[u8; 32]) -> Option<SourceFile> {
        let has = |(length, hash, _): &&(u64, [u8; 32], Arc<File>)| *length == size && hash == root;
        let (_, _, file) = self.received.iter().rev().find(has)?;
        opened(file.try_clone().ok()?)
    }

    /// A file of the folder that has the content. Files of that length are read until one has; each is read once.
    pub(super) fn find(&mut self, folder: &Folder, size: u64, root: &[u8; 32]) -> Option<SourceFile> {
        while !self.by_hash.contains_key(&(size, *root)) {
            let waiting = self.by_length.as_mut()?;
            let paths = waiting.get_mut(&size)?;
            let path = paths.pop();
            if paths.is_empty() {
                waiting.remove(&size);
            }
            if let Some(path) = path
                && let Some(hash) = hash(folder, &path, size)
            {
                self.by_hash.insert((size, hash), path);
            }
        }
        let path = self.by_hash.get(&(size, *root))?;
        opened(folder.read(path).ok()?)
    }

    /// A file of this transfer is whole.
    pub(super) fn add(&mut self, path: &EntryPath, size: u64, root: [u8; 32], file: &Arc<File>) {
        if size < MIN_SAME {
            return;
        }
        if self.received.len() == MAX_OPEN {
            self.received.pop_front();
        }
        self.received.push_back((size, root, Arc::clone(file)));
        if !self.by_hash.contains_key(&(size, root)) && self.take_room(path) {
            self.by_hash.insert((size, root), path.clone());
        }
    }
}

fn opened(file: File) -> Option<SourceFile> {
    let stamp = Status::of(&file).ok()?.stamp();
    Some(SourceFile::new(file, stamp))
}

/// The hash of a file if it has this length.
fn hash(folder: &Folder, path: &EntryPath, size: u64) -> Option<[u8; 32]> {
    let mut file = folder.read(path).ok()?;
    let mut hasher = blake3::Hasher::new();
    let bytes = io::copy(&mut file, &mut hasher).ok()?;
    (bytes == size).then(|| *hasher.finalize().as_bytes())
}
