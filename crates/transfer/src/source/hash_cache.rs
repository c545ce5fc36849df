//! The hashes of pieces that were read before.
//!
//! One file for each state of a source: 40 bytes for each piece at the place that its index says, the chaining value and the first eight
//! bytes of a hash of both. Nothing is lost with it but time, so it is not fsynced; what is torn is not believed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use blake3::hazmat::{Mode, merge_subtrees_non_root};

use crate::pieces::{Subtree, pieces_of};
use crate::stamp::Stamp;

/// Bytes of one piece's entry.
const ENTRY: usize = 40;
/// Smaller files are read again: that takes 10 ms.
const MIN_SIZE: u64 = 16 << 20;
/// A file that changed less than this before it was read may change again without another time: file systems keep times in steps, FAT
/// in the largest, 2 s.
const SETTLED: Duration = Duration::from_secs(2);
/// Levels of a subtree that are put together from pieces at most: 2^20 pieces, 40 MB of the cache.
const MAX_LEVEL: u8 = 20;

/// A folder with the hashes of sources.
#[derive(Clone, Debug)]
pub struct HashCache {
    folder: PathBuf,
    budget: u64,
}

impl HashCache {
    /// Makes the folder if it is not there, for its owner alone. The cache takes at most `budget` bytes when [`HashCache::trim`] is
    /// called.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn open(folder: &Path, budget: u64) -> io::Result<HashCache> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Ok(HashCache { folder: folder.to_owned(), budget })
    }

    /// The hashes of one state of a source. None if the source is small.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn of(&self, stamp: &Stamp) -> io::Result<Option<CachedHashes>> {
        if stamp.size < MIN_SIZE {
            return Ok(None);
        }
        let changed = Duration::from_nanos(u64::try_from(stamp.changed.max(stamp.modified)).unwrap_or(0));
        // The name is a hash of the state: another state has another file.
        let key = *blake3::hash(&stamp.to_bytes()).as_bytes();
        let name: String = key[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.folder.join(name))?;
        let settled = UNIX_EPOCH + changed + SETTLED;
        Ok(Some(CachedHashes { file, key, pieces: pieces_of(stamp.size), settled }))
    }

    /// Removes the files that nothing was added to for longest, until the rest is within the budget.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn trim(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let found = entry.metadata()?;
            if found.is_file() {
                files.push((found.modified()?, found.len(), entry.path()));
            }
        }
        files.sort_unstable();
        let mut left: u64 = files.iter().map(|(_, len, _)| len).sum();
        for (_, len, path) in files {
            if left <= self.budget {
                break;
            }
            fs::remove_file(path)?;
            left -= len;
        }
        Ok(())
    }
}

/// The hashes of one state of a source.
#[derive(Debug)]
pub struct CachedHashes {
    file: File,
    key: [u8; 32],
    pieces: u64,
    /// From when on another change has another time.
    settled: SystemTime,
}

impl CachedHashes {
    /// Keeps the hash of a piece that was read at `now`, the time of day; not if the source had changed a moment before.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn put(&self, piece: &Subtree, now: SystemTime) -> io::Result<()> {
        if now < self.settled || piece.level() > 0 || piece.first() >= self.pieces {
            return Ok(());
        }
        let mut entry = [0; ENTRY];
        entry[..32].copy_from_slice(piece.value());
        entry[32..].copy_from_slice(&self.check(piece.first(), piece.value()));
        self.file.write_all_at(&entry, piece.first() * ENTRY as u64)
    }

    /// The hash of `2^level` pieces, fewer at the file's end. None if one is not known, or there are more than 2^20.
    #[must_use]
    pub fn subtree(&self, first: u64, level: u8) -> Option<Subtree> {
        if level > MAX_LEVEL || first >= self.pieces {
            return None;
        }
        Subtree::new(first, level, self.value(first, level)?)
    }

    fn value(&self, first: u64, level: u8) -> Option<[u8; 32]> {
        let Some(below) = level.checked_sub(1) else { return self.piece(first) };
        let left = self.value(first, below)?;
        let middle = first + (1 << below);
        if middle >= self.pieces {
            return Some(left);
        }
        Some(merge_subtrees_non_root(&left, &self.value(middle, below)?, Mode::Hash))
    }

    fn piece(&self, piece: u64) -> Option<[u8; 32]> {
        let mut entry = [0; ENTRY];
        self.file.read_exact_at(&mut entry, piece * ENTRY as u64).ok()?;
        let (value, check) = entry.split_first_chunk::<32>()?;
        (self.check(piece, value) == *check).then_some(*value)
    }

    fn check(&self, piece: u64, value: &[u8; 32]) -> [u8; 8] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&piece.to_be_bytes()).update(value);
        let hash = *hasher.finalize().as_bytes();
        let mut check = [0; 8];
        check.copy_from_slice(&hash[..8]);
        check
    }
}
