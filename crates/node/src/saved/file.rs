//! The file of a tunnel's figures.
//!
//! ```text
//! head, 4,096 bytes:   "strait saved 2" and zeros
//! for each series:     635 blocks of 256 bytes, 162,560 bytes:
//!   a name             number 4 (1 a peer, 2 a rule, 3 control, 4 a service, 5 a class, and 1) | length 1 | name
//!   90 of seconds      number 4 (ten seconds since 1970, and 1) | 10 slots of 24
//!   144 of minutes     number 4 (ten minutes since 1970, and 1) | 10 slots of 24
//!   400 of hours       number 4 (days since 1970, and 1) | 24 slots of 8
//! ```
//!
//! Each block ends with the CRC-32 of what is before it. It is in the place of its number modulo 90, 144 or 400, so it takes the place of
//! what is older. Numbers are in network order.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use strait_ipsec::ServiceClass;

use super::block::BLOCK;
use super::{SERIES_LEN, SavedKind, SavedName, SavedSeries};
use crate::private_file::{self, PrivateFileError};

const MAGIC: [u8; 16] = *b"strait saved 2\0\0";
/// Bytes of the head: a page.
const HEAD: usize = 4_096;
/// Series at most: 42 MB.
const SERIES_MAX: usize = 256;
/// Series of services among them: further services share one series, so that peers and rules find room however many there are.
const SERVICES_MAX: usize = 48;

/// Why figures are not kept, or cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SavedFileError {
    /// The file cannot be used.
    #[error("{0}")]
    File(String),
    /// Another daemon has it.
    #[error("the file {} is in use by another daemon; give each its own STRAIT_STATE_DIR", .0.display())]
    Busy(PathBuf),
    /// It is of something else, or of another version.
    #[error("the file {} is no file of figures of this version; move it away, and another is begun", .0.display())]
    Other(PathBuf),
}

impl From<PrivateFileError> for SavedFileError {
    fn from(error: PrivateFileError) -> SavedFileError {
        SavedFileError::File(error.to_string())
    }
}

/// The file, open for writing, and what is in it. The default has no file: its figures last as long as it does.
#[derive(Debug, Default)]
pub struct SavedFile {
    file: Option<File>,
    series: Vec<SavedSeries>,
}

impl SavedFile {
    /// Opens the file at `path`, which is begun if there is none. Its folder is there.
    ///
    /// # Errors
    /// [`SavedFileError`] with the remedy.
    pub fn open(path: &Path) -> Result<SavedFile, SavedFileError> {
        let (mut file, failed) = (private_file::open(path)?, PrivateFileError::io(path));
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => SavedFileError::Busy(path.to_owned()),
            TryLockError::Error(source) => failed(source).into(),
        })?;
        if file.metadata().map_err(&failed)?.len() == 0 {
            let mut head = [0; HEAD];
            head[..MAGIC.len()].copy_from_slice(&MAGIC);
            file.write_all_at(&head, 0).map_err(&failed)?;
        }
        let series = read_all(&mut file, path)?;
        Ok(SavedFile { file: Some(file), series })
    }

    /// The series of this name, which is begun if there is none; nothing where there are too many. Services beyond 48 have the one of
    /// [`ServiceClass::Others`].
    pub fn series(&mut self, SavedName { kind, name }: &SavedName) -> Option<&mut SavedSeries> {
        let place = |all: &[SavedSeries], name: &str| all.iter().position(|it| it.is(*kind, name));
        let mut name = name.as_str();
        let mut known = place(&self.series, name);
        let shared;
        if known.is_none() && *kind == SavedKind::Service && self.services() >= SERVICES_MAX {
            shared = [ServiceClass::Others, ServiceClass::Streams].map(|class| class.to_string());
            if !shared.iter().any(|it| it == name) {
                name = &shared[0];
                known = place(&self.series, name);
            }
        }
        if known.is_none() {
            if self.series.len() >= SERIES_MAX {
                return None;
            }
            self.series.push(SavedSeries::new(*kind, name));
        }
        let at = known.unwrap_or(self.series.len() - 1);
        self.series.get_mut(at)
    }

    /// Wire bytes that crossed in a span of time, in seconds since 1970, by whole hours: those of the peer of this name, or of all peers
    /// and what keeps the tunnel up.
    #[must_use]
    pub fn wire_bytes(&self, peer: Option<&str>, span: Range<i64>) -> u64 {
        let counts = |name: &SavedName| match peer {
            Some(peer) => name.kind == SavedKind::Peer && name.name == peer,
            None => name.kind.is_of_link(),
        };
        let [from, to] = [span.start, span.end].map(|at| u64::try_from(at).unwrap_or(0));
        if to <= from {
            return 0;
        }
        let series = self.series.iter().filter(|series| counts(series.name()));
        series.map(|series| series.between(from, to - 1).wire()).sum()
    }

    fn services(&self) -> usize {
        self.series.iter().filter(|series| series.name().kind == SavedKind::Service).count()
    }

    /// All series.
    #[must_use]
    pub fn all(&self) -> &[SavedSeries] {
        &self.series
    }

    /// Writes the blocks that changed. What could not be written is written next time.
    ///
    /// # Errors
    /// What the system said of the first block that could not be written.
    pub fn write(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        for (place, series) in self.series.iter_mut().enumerate() {
            for (number, block) in &mut series.blocks {
                let at = (HEAD + place * SERIES_LEN + number * BLOCK) as u64;
                let Some(bytes) = block.take_changed() else { continue };
                if let Err(error) = file.write_all_at(bytes, at) {
                    block.changed_again();
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// What the file at `path` says, also while a daemon writes it: in the order in which they began.
///
/// # Errors
/// [`SavedFileError`] with the remedy.
pub fn read(path: &Path) -> Result<Vec<SavedSeries>, SavedFileError> {
    let failed = PrivateFileError::io(path);
    let mut options = File::options();
    let file = options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    read_all(&mut file.map_err(&failed)?, path)
}

/// Reads all series. Of a file that is cut short, what is left.
fn read_all(file: &mut File, path: &Path) -> Result<Vec<SavedSeries>, SavedFileError> {
    let failed = PrivateFileError::io(path);
    let mut bytes = Vec::new();
    let most = (HEAD + SERIES_MAX * SERIES_LEN) as u64;
    file.take(most).read_to_end(&mut bytes).map_err(&failed)?;
    let Some(rest) = bytes.strip_prefix(&MAGIC) else { return Err(SavedFileError::Other(path.to_owned())) };
    let series = rest.get(HEAD - MAGIC.len()..).unwrap_or_default().chunks(SERIES_LEN);
    // One whose name is damaged keeps its place.
    let unnamed = |place: usize| SavedSeries::new(SavedKind::Peer, &format!("(damaged {place})"));
    let series =
        series.enumerate().map(|(place, bytes)| SavedSeries::stored(bytes).unwrap_or_else(|| unnamed(place)));
    Ok(series.collect())
}
