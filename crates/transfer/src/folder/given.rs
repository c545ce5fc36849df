//! The files that a transfer has given names, for senders that may not hear what is there: a resume says of these files that they came,
//! and hard links are made to them alone.

use std::collections::BTreeMap;

use crate::path::EntryPath;

/// Files that are remembered at most: 24 bytes each. Of others, a resume says that they are wanted.
const MAX_GIVEN: usize = 1 << 18;

/// Files by the first bytes of the hash of their path, with those of the hash of what they were.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenFiles(BTreeMap<[u8; 16], [u8; 8]>);

impl GivenFiles {
    /// Adds a file. Whether there is room for it.
    pub(super) fn add(&mut self, path: [u8; 16], state: [u8; 8]) -> bool {
        let fits = self.0.len() < MAX_GIVEN || self.0.contains_key(&path);
        if fits {
            self.0.insert(path, state);
        }
        fits
    }

    /// The state of a file with this path.
    pub(super) fn get(&self, path: &EntryPath) -> Option<[u8; 8]> {
        self.0.get(&path_hash(path)).copied()
    }

    /// Paths and states.
    pub(super) fn all(&self) -> impl Iterator<Item = ([u8; 16], [u8; 8])> {
        self.0.iter().map(|(path, state)| (*path, *state))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

pub(super) fn path_hash(path: &EntryPath) -> [u8; 16] {
    *blake3::hash(path.as_bytes()).as_bytes().first_chunk().unwrap_or(&[0; 16])
}

/// The hash of what tells one state of a file from others: its length, time and permissions.
pub(super) fn state_hash(size: u64, modified: i64, mode: u32) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&size.to_be_bytes()).update(&modified.to_be_bytes()).update(&mode.to_be_bytes());
    *hasher.finalize().as_bytes().first_chunk().unwrap_or(&[0; 8])
}
