//! The file in which one end of a peer's byte cache is stored, across restarts and crashes.
//!
//! ```text
//! head, 4,096 bytes:         "strait cache 1" and zeros to 16 bytes | capacity 8
//! a slot for each segment:   number 8 | length 4 | zeros 4 | the sealed segment
//! ```
//!
//! Numbers are in network order. A segment is in the slot of its number modulo the number of slots, so it takes the place of the one that
//! the log has overwritten. The file is opened before privileges are dropped, and written in place. A segment that was written in part
//! does not open, and is forgotten: it costs what its data costs to send again.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use strait_compress::history::cache::{CacheCapacity, CacheOwner, SEALED_MAX, SEED, SEGMENT, SegmentVault};

use crate::private_file::{self, PrivateFileError};

const MAGIC: [u8; 16] = *b"strait cache 1\0\0";
/// Bytes of the head: a page, so that slots begin at the start of one.
const HEAD: u64 = 4_096;
/// Bytes before a sealed segment in its slot.
const SLOT_HEAD: usize = 16;
/// Bytes from a slot to the next: whole pages.
const SLOT: u64 = (SLOT_HEAD + SEALED_MAX).next_multiple_of(4_096) as u64;

/// Why a cache is not stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CacheFileError {
    /// It cannot be used.
    #[error(transparent)]
    File(#[from] PrivateFileError),
    /// Another daemon has it.
    #[error("the file {} is in use by another daemon; give each its own `cache_dir`", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
}

/// A file of segments.
#[derive(Debug)]
pub(crate) struct CacheFile {
    file: File,
    slots: u64,
}

impl CacheFile {
    /// Opens the file at `path`, which is begun if there is none, or where it is that of a cache of another size or not one at all.
    pub(crate) fn open(path: &Path, capacity: CacheCapacity) -> Result<CacheFile, CacheFileError> {
        let (file, failed) = (private_file::open(path)?, PrivateFileError::io(path));
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => CacheFileError::Busy { path: path.to_owned() },
            TryLockError::Error(source) => failed(source).into(),
        })?;
        let mut head = [0; 24];
        let wanted = [&MAGIC[..], &capacity.bytes().to_be_bytes()].concat();
        let is_ours = file.read_exact_at(&mut head, 0).is_ok() && head[..] == wanted;
        if !is_ours {
            file.set_len(0).and_then(|()| file.write_all_at(&wanted, 0)).map_err(&failed)?;
        }
        Ok(CacheFile { file, slots: capacity.bytes() / SEGMENT as u64 })
    }

    /// Opens what is stored, in the order of the segments' numbers, and gives each to `restore`. What is damaged is left out; says how
    /// many segments that were.
    pub(crate) fn read(
        &self,
        (vault, owner): (&SegmentVault, CacheOwner<'_>),
        mut restore: impl FnMut(&[u8]) -> bool,
    ) -> usize {
        let mut stored: Vec<(u64, usize, u64)> = (0..self.slots).filter_map(|slot| self.slot(slot)).collect();
        stored.sort_unstable();
        let (mut sealed, mut damaged) = (Vec::new(), 0);
        for (number, len, at) in stored {
            sealed.resize(len, 0);
            let read = self.file.read_exact_at(&mut sealed, at).is_ok();
            let opened = if read { vault.open(owner, number, &mut sealed) } else { None };
            damaged += usize::from(!opened.is_some_and(&mut restore));
        }
        damaged
    }

    /// Which segment is in a slot, its length there, and where it is.
    fn slot(&self, slot: u64) -> Option<(u64, usize, u64)> {
        let at = HEAD + slot * SLOT;
        let mut head = [0; SLOT_HEAD];
        self.file.read_exact_at(&mut head, at).ok()?;
        let (number, rest) = head.split_first_chunk()?;
        let number = u64::from_be_bytes(*number);
        let len = usize::try_from(u32::from_be_bytes(*rest.first_chunk()?)).ok()?;
        let is_there = number % self.slots == slot && len > 0 && len <= SEALED_MAX;
        is_there.then_some((number, len, at + SLOT_HEAD as u64))
    }

    /// Seals a segment with 32 random bytes that are used once, and writes it.
    pub(crate) fn write(
        &self,
        (vault, owner): (&SegmentVault, CacheOwner<'_>),
        (number, stored): (u64, &[u8]),
        seed: [u8; SEED],
    ) -> io::Result<()> {
        let sealed = vault.seal(owner, number, stored, seed).ok_or(io::ErrorKind::InvalidInput)?;
        let len = u32::try_from(sealed.len()).unwrap_or(u32::MAX);
        let slot = [&number.to_be_bytes()[..], &len.to_be_bytes(), &[0; 4], &sealed].concat();
        self.file.write_all_at(&slot, HEAD + number % self.slots * SLOT)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use strait_compress::history::cache::{CachePosition, CacheReceiver, CacheRole};
    use zeroize::Zeroizing;

    use super::*;

    const CAPACITY: CacheCapacity = CacheCapacity::new(4 << 20).unwrap();
    const OWNER: CacheOwner<'_> = CacheOwner { domain: "office", peer: &[3; 32], role: CacheRole::Receiver };

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("strait-cache-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Keeps so many bytes from this position on, and writes what changed.
    fn fill(cache: &mut CacheReceiver, file: &CacheFile, at: u64, len: usize) {
        let vault = SegmentVault::new(Zeroizing::new([1; 32]));
        for (part, payload) in vec![7; len].chunks(50_000).enumerate() {
            cache.keep(CachePosition(at + part as u64 * 50_000), payload).unwrap();
        }
        let mut stored = Vec::new();
        while let Some(number) = cache.store_changed(&mut stored) {
            file.write((&vault, OWNER), (number, &stored), [9; SEED]).unwrap();
            stored.clear();
        }
    }

    /// What is held after what is in the file was read, and how much of that was damaged.
    fn read(file: &CacheFile) -> (u64, usize) {
        let vault = SegmentVault::new(Zeroizing::new([1; 32]));
        let mut cache = CacheReceiver::new(CAPACITY);
        let damaged = file.read((&vault, OWNER), |stored| cache.restore(stored).is_ok());
        (cache.held_bytes(), damaged)
    }

    #[test]
    fn what_was_kept_is_there_again_and_what_is_damaged_is_left_out() {
        let (folder, mut cache) = (folder("again"), CacheReceiver::new(CAPACITY));
        let path = folder.join("a.cache");
        let file = CacheFile::open(&path, CAPACITY).unwrap();
        assert_eq!(read(&file), (0, 0));
        fill(&mut cache, &file, 0, 2_500_000);
        drop(file);
        let file = CacheFile::open(&path, CAPACITY).unwrap();
        assert_eq!(read(&file), (2_500_000, 0));
        fill(&mut cache, &file, 2_500_000, 3_000_000);
        assert_eq!(read(&file).0, 5_500_000 - (2 << 20), "the first two segments were overwritten");
        file.file.write_all_at(&[1], HEAD + SLOT_HEAD as u64 + 100).unwrap();
        file.file.write_all_at(&[1], HEAD + SLOT + 8).unwrap();
        assert_eq!(read(&file), (2 << 20, 1), "one does not open, and one cannot be so long");
        file.file.set_len(HEAD + 2 * SLOT + 1_000).unwrap();
        assert_eq!(read(&file).1, 2);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn file_of_another_size_or_of_something_else_begins_anew() {
        let (folder, mut cache) = (folder("size"), CacheReceiver::new(CAPACITY));
        let path = folder.join("a.cache");
        fill(&mut cache, &CacheFile::open(&path, CAPACITY).unwrap(), 0, 1_000_000);
        let other = CacheCapacity::new(8 << 20).unwrap();
        assert_eq!(read(&CacheFile::open(&path, other).unwrap()), (0, 0));
        std::fs::write(&path, vec![0xff; 3 << 20]).unwrap();
        assert_eq!(read(&CacheFile::open(&path, CAPACITY).unwrap()), (0, 0));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn file_that_others_read_or_have_or_that_is_a_link_is_refused() {
        let folder = folder("refused");
        let path = folder.join("a.cache");
        let _held = CacheFile::open(&path, CAPACITY).unwrap();
        assert!(matches!(CacheFile::open(&path, CAPACITY), Err(CacheFileError::Busy { .. })));
        let open = folder.join("open.cache");
        std::fs::write(&open, "").unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(
            CacheFile::open(&open, CAPACITY),
            Err(CacheFileError::File(PrivateFileError::Open { mode: 0o640, .. }))
        ));
        let link = folder.join("link.cache");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(
            CacheFile::open(&link, CAPACITY),
            Err(CacheFileError::File(PrivateFileError::Io { .. }))
        ));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
