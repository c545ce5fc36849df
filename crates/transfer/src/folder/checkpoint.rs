//! When pieces are written down: every 2 s or 16 MiB, whichever comes first.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::FolderError;
use super::keeper::{JobSender, KeeperJob};
use super::partial::PartialIdentity;
use super::records::TransferRecord;
use crate::pieces::Subtree;

/// What a crash may lose of a transfer, in bytes and in time. On a disk that takes 8 ms for an fsync, two for each 16 MiB cost a tenth of
/// 1 Gbit/s at most, and none of a slower link's.
pub(super) const EVERY_BYTES: u64 = 16 << 20;
/// As [`EVERY_BYTES`].
pub(super) const EVERY: Duration = Duration::from_secs(2);

/// A disk that is slower than the network may fall behind by so much before writing waits for it.
const BEHIND: u64 = 8 * EVERY_BYTES;

/// Pieces that are not written down before time and bytes say so, at most: holes need neither.
const MANY_PIECES: usize = 1024;

/// What of a file is not written down yet.
#[derive(Debug)]
pub(super) struct Checkpoint {
    jobs: JobSender,
    /// Whether the log knows the file.
    begun: bool,
    fresh: Vec<TransferRecord>,
    bytes: u64,
    since: Option<Instant>,
}

impl Checkpoint {
    /// Of a file that the log knows, or not.
    pub(super) fn new(jobs: JobSender, begun: bool) -> Checkpoint {
        Checkpoint { jobs, begun, fresh: Vec::new(), bytes: 0, since: None }
    }

    /// Writes down anew what is there of a file that the log knows, of this state of its source; zeros: its bytes may be of two states.
    pub(super) fn restate(
        &mut self,
        identity: &PartialIdentity,
        version: [u8; 8],
        file: &Arc<File>,
        held: &[Subtree],
    ) -> Result<(), FolderError> {
        let PartialIdentity { slot, path, size, .. } = identity;
        let (slot, size, path) = (*slot, *size, path.clone());
        self.fresh.clear();
        self.fresh.push(TransferRecord::Begin { slot, size, version, path });
        self.fresh.extend(held.iter().map(|subtree| TransferRecord::Held { slot, subtree: *subtree }));
        self.flush(slot, file, true)
    }

    /// Whether there are records of the file.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// Bytes were written.
    pub(super) fn wrote(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// A piece is complete.
    pub(super) fn add(
        &mut self,
        identity: &PartialIdentity,
        file: &Arc<File>,
        subtree: Subtree,
    ) -> Result<(), FolderError> {
        let PartialIdentity { slot, path, size, version } = identity;
        let slot = *slot;
        if !self.begun {
            let (size, version, path) = (*size, *version, path.clone());
            self.fresh.push(TransferRecord::Begin { slot, size, version, path });
            self.begun = true;
        }
        // Neighbours become one record.
        let mut subtree = subtree;
        while let Some(TransferRecord::Held { subtree: last, .. }) = self.fresh.last()
            && let Some(both) = last.with(&subtree)
        {
            self.fresh.pop();
            subtree = both;
        }
        self.fresh.push(TransferRecord::Held { slot, subtree });
        let since = *self.since.get_or_insert_with(Instant::now);
        let due = self.bytes >= EVERY_BYTES || self.fresh.len() >= MANY_PIECES || since.elapsed() >= EVERY;
        if due {
            let patient = self.bytes >= BEHIND || self.fresh.len() >= 8 * MANY_PIECES;
            self.flush(slot, file, patient)?;
        }
        Ok(())
    }

    /// Hands over what there is. Without patience, it stays here if the disk is busy.
    pub(super) fn flush(&mut self, slot: u32, file: &Arc<File>, patient: bool) -> Result<(), FolderError> {
        if self.fresh.is_empty() {
            return Ok(());
        }
        let job = KeeperJob::Pieces(slot, Arc::clone(file), std::mem::take(&mut self.fresh));
        match self.jobs.give(job, patient) {
            Ok(()) => (self.bytes, self.since) = (0, None),
            Err(KeeperJob::Pieces(_, _, fresh)) if !patient => self.fresh = fresh,
            Err(_) => return Err(FolderError::Busy),
        }
        Ok(())
    }

    /// The file is given up: its records are void.
    pub(super) fn forget(&self, slot: u32) -> Result<(), FolderError> {
        let note = KeeperJob::Note(TransferRecord::Dropped { slot });
        if self.begun { self.jobs.give(note, true).map_err(|_| FolderError::Busy) } else { Ok(()) }
    }
}
