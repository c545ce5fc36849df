//! How much a folder may still take.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use rustix::io;

use super::{FolderError, FolderRules};
use crate::beneath::Beneath;
use crate::stamp::Status;

/// What is left of a folder's limits. It is counted once, when a transfer begins, if the folder has a limit; transfers at the same time
/// count each for itself.
#[derive(Debug)]
pub(crate) struct Usage {
    limited: bool,
    bytes: AtomicU64,
    entries: AtomicU64,
}

impl Usage {
    /// Counts what is in the folder.
    pub(crate) fn new(beneath: &Beneath, rules: &FolderRules) -> Result<Usage, FolderError> {
        let because = |error| FolderError::new("count what is in the folder", error);
        let limited = rules.max_bytes.is_some() || rules.max_entries.is_some();
        let (bytes, entries) = match limited {
            true => beneath.folder(None).and_then(count).map_err(because)?,
            false => (0, 0),
        };
        Ok(Usage {
            limited,
            bytes: AtomicU64::new(rules.max_bytes.unwrap_or(u64::MAX).saturating_sub(bytes)),
            entries: AtomicU64::new(rules.max_entries.unwrap_or(u64::MAX).saturating_sub(entries)),
        })
    }

    /// Whether there is a limit: whether it is worth the system calls to count.
    pub(crate) fn limited(&self) -> bool {
        self.limited
    }

    /// Bytes that are left.
    pub(crate) fn left(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes bytes of content.
    pub(crate) fn take_bytes(&self, bytes: u64) -> Result<(), FolderError> {
        take(&self.bytes, bytes).ok_or(FolderError::MaxBytes)
    }

    /// Takes a name.
    pub(crate) fn take_entry(&self) -> Result<(), FolderError> {
        self.take_entries(1)
    }

    /// Takes so many names.
    pub(crate) fn take_entries(&self, count: u64) -> Result<(), FolderError> {
        take(&self.entries, count).ok_or(FolderError::MaxEntries)
    }

    /// Gives bytes and names back: something was removed or replaced.
    pub(crate) fn give_back(&self, bytes: u64, entries: u64) {
        give(&self.bytes, bytes);
        give(&self.entries, entries);
    }
}

fn take(left: &AtomicU64, amount: u64) -> Option<()> {
    let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(amount));
    taken.ok().map(|_| ())
}

fn give(left: &AtomicU64, amount: u64) {
    let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_add(amount)));
}

/// Bytes on disk and names in a folder and all that is below it. One open folder a level.
fn count(folder: OwnedFd) -> io::Result<(u64, u64)> {
    let (mut bytes, mut entries) = (0_u64, 0_u64);
    let mut levels = vec![Dir::new(folder)?];
    while let Some(level) = levels.last_mut() {
        let Some(entry) = level.read() else {
            levels.pop();
            continue;
        };
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let Ok(status) = Status::at(level.fd()?, name) else { continue };
        bytes = bytes.saturating_add(status.on_disk());
        entries += 1;
        if status.kind() == FileType::Directory {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let below = openat(level.fd()?, name, flags, Mode::empty()).and_then(Dir::new);
            levels.extend(below.ok());
        }
    }
    Ok((bytes, entries))
}
