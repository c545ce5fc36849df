//! What an upload needs to go on where it stopped, in another process too, without ever encrypting other bytes under a used key and
//! chunk number.
//!
//! The ciphertext is not kept: it is made again of the source. That gives the same bytes if the key, the frames' contents and their
//! levels are the same, so the journal has the object's seed and, of each frame, what its bytes were before and after compression
//! and its level. A chunk leaves only when the records of all frames in it are on the disk. A source that gives another frame than
//! the journal says is another object, with another key.
//!
//! A journal is one file for one command: some text that says what it is, then records. Each record has a check, keyed and
//! chained to the one before, so a tail that a power failure tore, and all behind it, is cut. Seeds are encrypted as the outbox's
//! records are. The hashes of frames are keyed by the seed, so that they tell nothing of what was sent. Who sets the file back to an
//! older state has frames sealed again at levels that may be others: a journal must not be restored from a copy of the disk while
//! its object is at the broker.

mod reading;
mod record;

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use strait_keying::PrivateKey;
use zeroize::Zeroizing;

use crate::TransferId;
use crate::outbox::vault::Vault;
use crate::sealed::derive;

pub use reading::JournaledFrames;
use record::{Check, JournalRecord};
pub(crate) use record::{Ending, JournalFrame};

/// What the file begins with.
const MAGIC: &[u8; 18] = b"strait uploads 1\n\0";
/// For what the node's key is used here.
const INFO: &str = "strait upload journal 1";
/// Objects of one command: each has some 200 bytes in memory.
pub const OBJECTS_MAX: usize = 100_000;
/// What the name of a journal ends in.
const ENDING: &str = ".upload";
/// How long a journal stays that no command comes back to. A broker keeps what was begun for a day.
const FORGOTTEN: Duration = Duration::from_secs(30 * 86_400);

/// How often, and how long after each other, the lock of a journal is tried.
const LOCK_TRIES: (u32, Duration) = (25, Duration::from_millis(20));

/// 32 secret random bytes from which the keys of one upload are derived.
#[derive(Clone)]
pub(crate) struct UploadSeed(pub(crate) Zeroizing<[u8; 32]>);

/// How an upload ended, or that it has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UploadStage {
    /// It goes on.
    Open,
    /// The broker has it.
    Stored,
    /// It was given up; its key is used no more.
    Dropped,
}

/// An object of the journal.
#[derive(Clone)]
pub(crate) struct JournaledObject {
    /// What of the command it is.
    pub(crate) place: [u8; 16],
    /// In which state its source was when it was begun.
    pub(crate) state: [u8; 16],
    /// Who can open it and how it is padded: the same in every try.
    pub(crate) sealing: [u8; 16],
    pub(crate) seed: UploadSeed,
    pub(crate) id: TransferId,
    pub(crate) serial: u64,
    pub(crate) made: i64,
    pub(crate) expires: i64,
    pub(crate) stage: UploadStage,
    /// Frames so far.
    pub(crate) frames: u64,
    /// Bytes of them.
    pub(crate) packed: u64,
    /// Where the contents end, once that is known.
    pub(crate) ending: Option<Ending>,
}

/// A journal that is written. One process has it at a time.
pub struct UploadJournal {
    file: Arc<File>,
    path: PathBuf,
    /// Where the next record goes.
    end: u64,
    buffer: Vec<u8>,
    check: Check,
    vault: Vault,
    /// Whether the file's name is durable, too.
    is_named: bool,
    failed: bool,
}

/// What a journal said when it was opened.
pub struct JournalMemory {
    file: Arc<File>,
    end: u64,
    /// By their numbers.
    pub(crate) objects: Vec<JournaledObject>,
}

/// Locks a journal. A process that another thread starts has this one's files until it becomes another program, some milliseconds; a
/// lock that was given up is held for as long.
fn lock(file: &File) -> io::Result<()> {
    for _ in 0..LOCK_TRIES.0 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_TRIES.1),
            locked => return Ok(locked?),
        }
    }
    Ok(file.try_lock()?)
}

impl UploadJournal {
    /// Opens the journal of this name in a folder, which is made with mode 0700 where it lacks; a torn tail is cut. The name says
    /// which command it is: hexadecimal digits.
    ///
    /// # Errors
    /// As the system's; [`io::ErrorKind::WouldBlock`] while another process has it, [`io::ErrorKind::InvalidData`] where it is none of
    /// this node's.
    pub fn open(folder: &Path, name: &str, node: &PrivateKey) -> io::Result<(UploadJournal, JournalMemory)> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join(format!("{name}{ENDING}"));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        lock(&file)?;
        let key: Zeroizing<[u8; 32]> = derive(node.expose_seed(), name.as_bytes(), INFO);
        let (file, vault) = (Arc::new(file), Vault::new(node));
        let mut check = Check::new(&key);
        let (end, objects) = reading::objects(&file, &mut check, &vault)?;
        let buffer = if end == 0 { MAGIC.to_vec() } else { Vec::new() };
        file.set_len(end)?;
        let memory = JournalMemory { file: Arc::clone(&file), end, objects };
        Ok((UploadJournal { file, path, end, buffer, check, vault, is_named: false, failed: false }, memory))
    }

    /// Removes journals in a folder that no command came back to for 30 days.
    pub fn tidy(folder: &Path, now: SystemTime) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let old = entry
                .metadata()
                .and_then(|metadata| metadata.modified())
                .is_ok_and(|changed| now.duration_since(changed).is_ok_and(|since| since > FORGOTTEN));
            if old && entry.file_name().to_string_lossy().ends_with(ENDING) {
                // What cannot be removed stays.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Begins an object; `salt` is random and used once.
    pub(crate) fn begin(&mut self, number: u32, object: &JournaledObject, salt: [u8; 32]) {
        if let Some(sealed) = record::sealed_begin(number, object, &self.vault, salt) {
            self.append(&JournalRecord::Begin { object: number, sealed });
        } else {
            self.failed = true;
        }
    }

    /// A frame.
    pub(crate) fn frame(&mut self, object: u32, frame: JournalFrame) {
        self.append(&JournalRecord::Frame { object, frame });
    }

    /// The contents end.
    pub(crate) fn end(&mut self, object: u32, ending: Ending) {
        self.append(&JournalRecord::End { object, ending });
    }

    /// The broker has it.
    pub(crate) fn stored(&mut self, object: u32) {
        self.append(&JournalRecord::Stored { object });
    }

    /// It is given up.
    pub(crate) fn dropped(&mut self, object: u32) {
        self.append(&JournalRecord::Dropped { object });
    }

    fn append(&mut self, record: &JournalRecord) {
        let from = self.buffer.len();
        record.emit(&mut self.buffer);
        let check = self.check.next(&self.buffer[from..]);
        self.buffer.extend(check);
    }

    /// Writes what was appended, which a power failure may still lose.
    ///
    /// # Errors
    /// As the system's; after one, nothing is written any more.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("an earlier write of the upload's journal failed"));
        }
        self.failed = true;
        self.file.write_all_at(&self.buffer, self.end)?;
        self.end += self.buffer.len() as u64;
        self.buffer.clear();
        self.failed = false;
        Ok(())
    }

    /// Makes what was appended durable.
    ///
    /// # Errors
    /// As [`UploadJournal::write`].
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.write()?;
        self.failed = true;
        self.file.sync_data()?;
        if !std::mem::replace(&mut self.is_named, true)
            && let Some(folder) = self.path.parent()
        {
            File::open(folder)?.sync_all()?;
        }
        self.failed = false;
        Ok(())
    }

    /// Whether it says nothing of any object.
    pub(crate) fn is_empty(&self) -> bool {
        self.end <= MAGIC.len() as u64
    }

    /// All is stored, or given up: the journal is of no more use.
    ///
    /// # Errors
    /// As the system's.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

impl JournalMemory {
    /// The frames of an object, in order.
    pub(crate) fn frames(&self, object: u32) -> JournaledFrames {
        JournaledFrames::new(Arc::clone(&self.file), self.end, object)
    }

    /// How many objects were begun and neither stored nor given up.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.objects.iter().filter(|object| object.stage == UploadStage::Open).count()
    }
}

impl UploadSeed {
    /// The key for the hashes of its frames.
    pub(crate) fn frames_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&*self.0, &[], "frames")
    }
}

impl core::fmt::Debug for UploadSeed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("[seed]")
    }
}

#[cfg(test)]
mod tests;
