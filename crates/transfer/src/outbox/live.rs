//! How far the transfers are that run at this moment: told by the process that sends them to those that list the outbox.
//!
//! A small file, encrypted as records are, in a folder of its own: what looks for changes of the outbox sees none in it. It is replaced
//! whole each time and not synchronised; after a power failure nothing runs.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use strait_keying::PrivateKey;

use super::AT_ONCE;
use super::json::as_text;
use super::vault::Vault;
use crate::TransferId;

/// The folder, in that of the outbox, and the file in it.
const FOLDER: &str = "live";
const NAME: &str = "progress";
const ASIDE: &str = "progress.new";
/// Bytes of the file at most: some 300 for each transfer.
const FILE_MAX: u64 = AT_ONCE as u64 * 1024;

/// How far a transfer is. All bytes are since this try began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferProgress {
    /// Bytes of content that moved.
    pub moved_bytes: u64,
    /// Bytes of content that the receiver had.
    pub held_bytes: u64,
    /// Bytes of all files that were announced so far.
    pub announced_bytes: u64,
    /// Bytes on the stream, after compression.
    pub wire_bytes: u64,
    /// Bytes of content a second.
    pub bytes_per_second: u64,
    /// Seconds until all that is announced is there, if that can be told.
    pub seconds_left: Option<u64>,
    /// Entries that are whole or failed.
    pub entries_done: u64,
    /// Entries that were announced so far.
    pub entries: u64,
}

/// A transfer that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningTransfer {
    /// The transfer.
    #[serde(with = "as_text")]
    pub id: TransferId,
    /// How far it is.
    pub progress: TransferProgress,
}

/// Where the running transfers of an outbox are told.
pub struct ProgressFile {
    folder: PathBuf,
    vault: Vault,
}

impl ProgressFile {
    /// That of the outbox in this folder, which is encrypted for this key.
    #[must_use]
    pub fn of(outbox: &Path, key: &PrivateKey) -> ProgressFile {
        ProgressFile { folder: outbox.join(FOLDER), vault: Vault::new(key) }
    }

    /// Tells what runs. The salt is random and used once.
    ///
    /// # Errors
    /// As the system's; readers then have what was told before.
    pub fn write(&self, running: &[RunningTransfer], salt: [u8; 32]) -> io::Result<()> {
        let content = serde_json::to_vec(running).map_err(io::Error::other)?;
        let sealed = self.vault.seal(NAME, &content, salt).ok_or(io::ErrorKind::FileTooLarge)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let aside = self.folder.join(ASIDE);
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(&sealed)?;
        fs::rename(aside, self.folder.join(NAME))
    }

    /// What runs, as far as it was told.
    #[must_use]
    pub fn read(&self) -> Vec<RunningTransfer> {
        let mut bytes = Vec::new();
        let read =
            File::open(self.folder.join(NAME)).and_then(|file| file.take(FILE_MAX).read_to_end(&mut bytes));
        let content = read.ok().and_then(|_| self.vault.open(NAME, &bytes));
        content.and_then(|content| serde_json::from_slice(&content).ok()).unwrap_or_default()
    }

    /// Nothing runs.
    pub fn remove(&self) {
        // It may not be there.
        let _ = fs::remove_file(self.folder.join(NAME));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::scratch::ScratchFolder;

    fn running(number: u8) -> RunningTransfer {
        let progress = TransferProgress {
            moved_bytes: u64::MAX,
            held_bytes: u64::MAX,
            announced_bytes: u64::MAX,
            wire_bytes: u64::MAX,
            bytes_per_second: u64::MAX,
            seconds_left: Some(u64::MAX),
            entries_done: u64::MAX,
            entries: u64::MAX,
        };
        RunningTransfer { id: TransferId::from_bytes([number; 16]), progress }
    }

    #[test]
    fn what_runs_is_read_by_who_has_the_key_and_by_no_other() {
        let scratch = ScratchFolder::new();
        let of = |seed: u8| ProgressFile::of(scratch.path(), &PrivateKey::generate(&[seed; 32]));
        let file = of(1);
        assert_eq!(file.read(), []);
        let all: Vec<_> = (0..AT_ONCE).map(|number| running(u8::try_from(number).unwrap())).collect();
        file.write(&all, [1; 32]).unwrap();
        assert_eq!(of(1).read(), all, "as many as can run fit");
        assert_eq!(of(2).read(), []);
        for (path, mode) in [("live", 0o700), ("live/progress", 0o600)] {
            let found = fs::metadata(scratch.path().join(path)).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode, "{path}");
        }
        file.write(&all[..1], [2; 32]).unwrap();
        assert_eq!(of(1).read(), all[..1]);
        fs::write(scratch.path().join("live/progress"), "[]").unwrap();
        assert_eq!(of(1).read(), []);
        file.remove();
        assert!(!scratch.path().join("live/progress").exists());
    }
}
