//! What was sent before in the same transfer: a file that was renamed or copied costs its name.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::CoarseId;

/// Chunks that are remembered at most: 4 GiB at 16 KiB each, and some 15 MB here.
const CHUNKS: usize = 1 << 18;
/// Files that are remembered at most: some 8 MB here.
const FILES: usize = 1 << 17;

/// First-level chunks of files that were sent in this transfer, which the receiver therefore has.
///
/// A file's chunks count from the moment that they are added: the receiver must have what was sent of a file before it makes
/// a later one, which one stream in order gives. When it is full it takes no more.
#[derive(Debug, Default)]
pub struct SentChunks {
    by_id: BTreeMap<CoarseId, (u32, u64, u32)>,
}

impl SentChunks {
    /// The file and the offset of a chunk with this id and length.
    pub(super) fn find(&self, id: CoarseId, len: u32) -> Option<(u32, u64)> {
        let (source, offset, there) = self.by_id.get(&id)?;
        (*there == len).then_some((*source, *offset))
    }

    pub(super) fn add(&mut self, id: CoarseId, source: u32, offset: u64, len: u32) {
        if self.by_id.len() < CHUNKS {
            self.by_id.entry(id).or_insert((source, offset, len));
        }
    }

    /// Forgets the chunks of a file: it was not made, or it was sent again.
    pub fn forget(&mut self, source: u32) {
        self.by_id.retain(|_, (file, _, _)| *file != source);
    }
}

/// Whole files that were sent in this transfer, by size and BLAKE3 root.
#[derive(Debug, Default)]
pub struct SentFiles(BTreeSet<(u64, [u8; 32])>);

impl SentFiles {
    /// Whether a file of this size was sent: only then it pays to know the root of another before it is sent.
    #[must_use]
    pub fn has_size(&self, size: u64) -> bool {
        self.0.range((size, [0; 32])..=(size, [0xff; 32])).next().is_some()
    }

    /// Whether a file with this content was sent.
    #[must_use]
    pub fn has(&self, size: u64, root: &[u8; 32]) -> bool {
        self.0.contains(&(size, *root))
    }

    /// A file was sent.
    pub fn add(&mut self, size: u64, root: [u8; 32]) {
        if self.0.len() < FILES {
            self.0.insert((size, root));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_chunks_are_found_by_content_and_length() {
        let (mut files, mut chunks) = (SentFiles::default(), SentChunks::default());
        files.add(10, [7; 32]);
        assert_eq!(
            (files.has(10, &[7; 32]), files.has(11, &[7; 32]), files.has(10, &[8; 32])),
            (true, false, false)
        );
        assert!(files.has_size(10) && !files.has_size(9) && !files.has_size(11));
        chunks.add(1, 3, 100, 50);
        assert_eq!(
            (chunks.find(1, 50), chunks.find(1, 51), chunks.find(2, 50)),
            (Some((3, 100)), None, None)
        );
        chunks.forget(3);
        assert_eq!(chunks.find(1, 50), None);
    }
}
