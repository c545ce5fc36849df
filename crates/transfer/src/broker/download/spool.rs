//! Sealed contents that are on their way, in files from which a cut download goes on.
//!
//! A file has the ciphertext as it comes, so it needs no key and no record of its own: what is wrong with it shows when it is opened,
//! and then it is begun anew.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

use crate::broker::message::Letter;
use crate::outbox::spool::room_in;
use crate::transfer_id::hex;

/// The folder, in that of the outbox.
const FOLDER: &str = "incoming";
/// What a file's name ends in.
const ENDING: &str = ".part";
/// What the name of a claim ends in.
const CLAIM_ENDING: &str = ".claim";
/// Contents that are worth a file: what is shorter comes again in 3 s at 10 Mbit/s.
pub const SPOOL_MIN: u64 = 4 << 20;
/// How long a file stays that nothing was written to: as long as unfinished files of folders.
const AGE: Duration = Duration::from_secs(7 * 86_400);

/// The folder of contents that are on their way.
#[derive(Clone, Debug)]
pub struct IncomingSpool(PathBuf);

impl IncomingSpool {
    /// That of the outbox at `outbox`; made with mode 0700 where it lacks.
    ///
    /// # Errors
    /// As the system's.
    pub fn open(outbox: &Path) -> io::Result<IncomingSpool> {
        let path = outbox.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(IncomingSpool(path))
    }

    /// Keeps other processes of this node from fetching the same, for as long as the claim is there: two that land the same files at
    /// once would keep each other from it. None while another process has it.
    ///
    /// # Errors
    /// As the system's.
    pub fn claim(&self, letter: &Letter) -> io::Result<Option<TransferClaim>> {
        let Letter { object, .. } = letter;
        let path = self.0.join(format!("{}-{}{CLAIM_ENDING}", hex(object.sender.as_bytes()), object.id));
        loop {
            let file = open_own(&path)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
                Ok(()) => {}
            }
            // Whose claim it was may have removed the file between the opening and the lock.
            let named = fs::symlink_metadata(&path).ok();
            let held = file.metadata()?;
            if named.is_some_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())) {
                return Ok(Some(TransferClaim { path, _file: file }));
            }
        }
    }

    /// The file for the contents of a letter, which this process has [claimed](Self::claim). None where they are short, or where the disk
    /// has no room for them.
    ///
    /// # Errors
    /// As the system's.
    pub fn part(&self, letter: &Letter) -> io::Result<Option<SpooledPart>> {
        if letter.contents <= SPOOL_MIN {
            return Ok(None);
        }
        let sender = hex(letter.object.sender.as_bytes());
        let Letter { object, made, contents, .. } = letter;
        let path = self.0.join(format!("{sender}-{}-{made}-{contents}{ENDING}", object.id));
        let file = open_own(&path)?;
        let len = file.metadata()?.len();
        let part = SpooledPart { file, path, len };
        if len <= *contents && contents - len <= room_in(&self.0)? {
            return Ok(Some(part));
        }
        part.remove();
        Ok(None)
    }

    /// Removes files that nothing was written to for a week before `now`.
    ///
    /// # Errors
    /// As the system's.
    pub fn tidy(&self, now: SystemTime) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            let old = entry.metadata().and_then(|found| found.modified());
            let old = old.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age > AGE));
            let name = entry.file_name();
            let endings = [ENDING, CLAIM_ENDING];
            if old && endings.iter().any(|ending| name.as_encoded_bytes().ends_with(ending.as_bytes())) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Opens a file of this folder, and makes it where it lacks.
fn open_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path)
}

/// The right of one process to fetch a transfer; it ends with this, and with the process.
#[derive(Debug)]
pub struct TransferClaim {
    path: PathBuf,
    _file: File,
}

impl Drop for TransferClaim {
    fn drop(&mut self) {
        // What cannot be removed now is tidied later; it is no claim without the lock.
        let _ = fs::remove_file(&self.path);
    }
}

/// Contents that are on their way.
#[derive(Debug)]
pub struct SpooledPart {
    file: File,
    path: PathBuf,
    len: u64,
}

impl SpooledPart {
    /// Bytes that are there.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing is there.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Those bytes, from the first on.
    ///
    /// # Errors
    /// As the system's.
    pub fn read(&self) -> io::Result<impl Read + Send + use<>> {
        Ok(HeldBytes { file: self.file.try_clone()?, at: 0, end: self.len })
    }

    /// Adds the next bytes.
    ///
    /// # Errors
    /// As the system's; what was added before stays.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.len)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// The same without what was in it; none where that cannot be taken out.
    #[must_use]
    pub fn begun_anew(mut self) -> Option<SpooledPart> {
        self.len = 0;
        self.file.set_len(0).is_ok().then_some(self)
    }

    /// Removes it. What cannot be removed now is [tidied](IncomingSpool::tidy) later.
    pub fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The bytes that were there when it was made; the file has grown since.
struct HeldBytes {
    file: File,
    at: u64,
    end: u64,
}

impl Read for HeldBytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let wanted = out.len().min(left);
        let count = self.file.read_at(&mut out[..wanted], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
