//! The records of one transfer on disk.
//!
//! A flat file: records are appended, and read once when the transfer goes on. A database (`redb` 4.6) took as long for a commit and half
//! as many bytes more; a torn end costs here what it costs there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, OFlags, fallocate};

use super::FolderError;
use super::given::GivenFiles;
use super::offer::Offer;
use super::records::TransferRecord;
use super::work::WorkFolder;
use crate::path::EntryPath;
use crate::pieces::Pieces;

/// The file's name, and that of its successor while it is written.
const NAME: &str = "records";
const NEXT: &str = "records.next";

/// Unfinished files that are written down at most; of others a resume knows nothing. One takes 100 to 4,200 bytes.
const MAX_FILES: usize = 4096;
/// Subtrees that are written down at most, of all files together: 3.6 MB.
const MAX_HELD: usize = 1 << 16;
/// The file is written anew when it is longer than this and twice what it says: 20,000 records.
const MIN_REWRITE: u64 = 1 << 20;
/// Room on the disk that is taken in advance, so that a full disk does not keep the last records from being written: 1,200 of them.
const AHEAD: u64 = 64 << 10;
/// More is not read: the limits above need less than 30 MB.
const MAX_READ: u64 = 64 << 20;

/// What is written down of an unfinished file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// The number of the file that has its bytes.
    pub(crate) slot: u32,
    /// Where it will be.
    pub(crate) path: EntryPath,
    /// Its length in bytes, if it is known.
    pub size: Option<u64>,
    /// The state of the source, as the sender names it.
    pub version: [u8; 8],
    /// The pieces that are on the disk. If the version is zero, only their places count: their bytes may be those of another state.
    pub pieces: Pieces,
    /// The pieces that the sender heard of in this run.
    pub(crate) offer: Option<Offer>,
}

/// The open file of records.
#[derive(Debug)]
pub(crate) struct PieceLog {
    work: Arc<WorkFolder>,
    file: File,
    len: u64,
    files: BTreeMap<u32, KeptFile>,
    given: GivenFiles,
    /// Subtrees of all of them.
    held: usize,
}

impl PieceLog {
    /// Opens or begins the records of a transfer, and cuts off what was not written to its end.
    pub(crate) fn open(work: Arc<WorkFolder>) -> Result<PieceLog, FolderError> {
        let doing = "read the records of the transfer";
        let file = work.file(NAME, OFlags::CREATE | OFlags::RDWR, doing)?;
        let mut bytes = Vec::new();
        (&file).take(MAX_READ).read_to_end(&mut bytes).map_err(|error| FolderError::of(doing, &error))?;
        let (files, given) = (BTreeMap::new(), GivenFiles::default());
        let mut log = PieceLog { work, file, len: 0, files, given, held: 0 };
        let whole = log.read(&bytes);
        log.file.set_len(whole).map_err(|error| FolderError::of(doing, &error))?;
        log.len = whole;
        reserve(&log.file, log.len);
        if whole == 0 {
            let head = TransferRecord::Head { transfer: log.work.transfer() };
            log.append(&[head])?;
        }
        Ok(log)
    }

    /// Takes what the bytes say; how many of them are right.
    fn read(&mut self, bytes: &[u8]) -> u64 {
        let head = TransferRecord::Head { transfer: self.work.transfer() };
        let Some((_, mut rest)) = TransferRecord::take(bytes).filter(|(first, _)| *first == head) else {
            return 0;
        };
        while let Some((record, next)) = TransferRecord::take(rest) {
            self.apply(&record);
            rest = next;
        }
        (bytes.len() - rest.len()) as u64
    }

    /// What is known with one more record. Whether it is worth writing.
    fn apply(&mut self, record: &TransferRecord) -> bool {
        match record {
            TransferRecord::Head { .. } => true,
            TransferRecord::Begin { slot, size, version, path } => {
                let (size, version, path) = (*size, *version, path.clone());
                let file =
                    KeptFile { slot: *slot, path, size, version, pieces: Pieces::default(), offer: None };
                let fits = self.files.len() < MAX_FILES || self.files.contains_key(slot);
                let before = if fits { self.files.insert(*slot, file) } else { None };
                self.held -= before.map_or(0, |file| file.pieces.len());
                fits
            }
            TransferRecord::Held { slot, subtree } => {
                let Some(file) = self.files.get_mut(slot).filter(|_| self.held < MAX_HELD) else {
                    return false;
                };
                let before = file.pieces.len();
                let fits = file.pieces.insert(*subtree).is_ok();
                self.held = self.held + file.pieces.len() - before;
                fits
            }
            TransferRecord::Dropped { slot } => {
                let file = self.files.remove(slot);
                self.held -= file.as_ref().map_or(0, |file| file.pieces.len());
                file.is_some()
            }
            TransferRecord::Given { path, state } => self.given.add(*path, *state),
        }
    }

    /// The files that got their names.
    pub(super) fn given(&self) -> &GivenFiles {
        &self.given
    }

    /// The unfinished files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &KeptFile> {
        self.files.values()
    }

    /// Writes records. They are durable after [`PieceLog::sync`].
    pub(crate) fn append(&mut self, records: &[TransferRecord]) -> Result<(), FolderError> {
        let mut bytes = Vec::new();
        for record in records {
            if self.apply(record) {
                record.put(&mut bytes);
            }
        }
        if let Err(error) = self.file.write_all_at(&bytes, self.len) {
            // Half a record would hide all that follow it.
            let _ = self.file.set_len(self.len);
            return Err(FolderError::of("write the records of the transfer", &error));
        }
        let before = self.len;
        self.len += bytes.len() as u64;
        if before / (AHEAD / 2) < self.len / (AHEAD / 2) {
            reserve(&self.file, self.len);
        }
        if self.len > MIN_REWRITE.max(2 * self.needed()) { self.rewrite() } else { Ok(()) }
    }

    /// Makes all records durable.
    pub(crate) fn sync(&self) -> Result<(), FolderError> {
        self.file.sync_data().map_err(|error| FolderError::of("write the records of the transfer", &error))
    }

    /// Bytes that say the same: at most 56 for a subtree, the path for a file, and 35 for one that has its name.
    fn needed(&self) -> u64 {
        let file = |file: &KeptFile| 40 + file.path.as_bytes().len() + 56 * file.pieces.len();
        (self.files.values().map(file).sum::<usize>() + 35 * self.given.len()) as u64
    }

    /// Writes what is known into a new file, which takes the place of this one.
    fn rewrite(&mut self) -> Result<(), FolderError> {
        let doing = "write the records of the transfer anew";
        let mut bytes = Vec::new();
        TransferRecord::Head { transfer: self.work.transfer() }.put(&mut bytes);
        for KeptFile { slot, path, size, version, pieces, .. } in self.files.values() {
            let (slot, path) = (*slot, path.clone());
            TransferRecord::Begin { slot, size: *size, version: *version, path }.put(&mut bytes);
            pieces
                .subtrees()
                .for_each(|subtree| TransferRecord::Held { slot, subtree: *subtree }.put(&mut bytes));
        }
        self.given.all().for_each(|(path, state)| TransferRecord::Given { path, state }.put(&mut bytes));
        let next = self.work.file(NEXT, OFlags::CREATE | OFlags::TRUNC | OFlags::RDWR, doing)?;
        let written = next.write_all_at(&bytes, 0).and_then(|()| next.sync_data());
        written.map_err(|error| FolderError::of(doing, &error))?;
        self.work.rename(NEXT, NAME, doing)?;
        self.work.sync(doing)?;
        (self.file, self.len) = (next, bytes.len() as u64);
        reserve(&self.file, self.len);
        Ok(())
    }
}

/// Takes room behind the records. A file system that cannot does without.
fn reserve(file: &File, len: u64) {
    let _ = fallocate(file, FallocateFlags::KEEP_SIZE, len, AHEAD);
}
