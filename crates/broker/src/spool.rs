//! The spool: a folder for what was received and is not in the store yet.
//!
//! What is in it outlives this process, but not the system: files of an earlier boot are removed, since what of them is on the disk is
//! not known. So nothing here is flushed, and most of it never reaches the disk.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use strait_transfer::broker::message::ObjectName;
use tokio::task::spawn_blocking;

use crate::names::{self, hex};

/// Bytes that are gathered before they are written.
const TAIL: usize = 64 << 10;
/// Where Linux tells one boot from another (proc_sys_kernel(5)).
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The folder. Clones share it.
#[derive(Clone, Debug)]
pub struct Spool {
    folder: Arc<Path>,
    numbers: Arc<AtomicU64>,
    open: OpenFiles,
}

/// Files that an upload has, which counts what is in them.
type OpenFiles = Arc<Mutex<BTreeMap<PathBuf, usize>>>;

/// A file that grows.
#[derive(Debug)]
pub struct SpoolFile {
    file: Arc<File>,
    /// Where it is; nothing for one without a name.
    path: Option<OpenPath>,
    /// Bytes in the file, and those that are not in it yet.
    written: u64,
    tail: Vec<u8>,
}

impl Spool {
    /// The spool in `folder`, which has to be there; removes what an earlier boot left.
    ///
    /// # Errors
    /// As `mkdir(2)` and others.
    pub fn open(folder: &Path) -> io::Result<Spool> {
        // Where that cannot be read, nothing of an earlier run is known to be of this boot.
        let boot = fs::read_to_string(BOOT).ok();
        let this = folder.join(format!("boot-{}", boot.as_deref().map_or("unknown", str::trim)));
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with("boot-")
                && (entry.path() != this || boot.is_none())
            {
                fs::remove_dir_all(entry.path())?;
            }
        }
        match fs::create_dir(&this) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        Ok(Spool { folder: this.into(), numbers: Arc::default(), open: OpenFiles::default() })
    }

    /// Where its files are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn place(&self, object: &ObjectName, number: u64) -> OpenPath {
        let path = self.folder.join(format!("{}-{}-{number:012}", hex(&object.sender), object.id));
        *lock(&self.open).entry(path.clone()).or_default() += 1;
        OpenPath { path, open: Arc::clone(&self.open) }
    }

    /// A new file for a piece, in the place of one that is there.
    ///
    /// # Errors
    /// As `open(2)`.
    pub async fn begin(&self, object: &ObjectName, number: u64) -> io::Result<SpoolFile> {
        let path = self.place(object, number);
        blocking(move || {
            // What is there may be a piece of the store as well, since a kill: it is not to be written to.
            remove(&path.path)?;
            let file = options().create_new(true).open(&path.path)?;
            Ok(SpoolFile { file: Arc::new(file), path: Some(path), written: 0, tail: Vec::new() })
        })
        .await
    }

    /// A new file with these bytes of a piece.
    ///
    /// # Errors
    /// As `write(2)`; then there is none.
    pub async fn copy(&self, object: &ObjectName, number: u64, bytes: bytes::Bytes) -> io::Result<SpoolFile> {
        let mut file = self.begin(object, number).await?;
        match file.append(bytes).await {
            Ok(()) => Ok(file),
            Err(error) => {
                file.remove().await;
                Err(error)
            }
        }
    }

    /// What is there of a piece.
    ///
    /// # Errors
    /// As `open(2)`.
    pub async fn resume(&self, object: &ObjectName, number: u64) -> io::Result<Option<SpoolFile>> {
        let path = self.place(object, number);
        blocking(move || match OpenOptions::new().read(true).write(true).open(&path.path) {
            Ok(file) => {
                let written = file.metadata()?.len();
                Ok(Some(SpoolFile { file: Arc::new(file), path: Some(path), written, tail: Vec::new() }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    /// A file without a name, which is gone with this process.
    ///
    /// # Errors
    /// As `open(2)`.
    pub async fn unnamed(&self) -> io::Result<SpoolFile> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("unnamed-{}-{number}", std::process::id()));
        blocking(move || {
            let file = options().truncate(true).open(&path)?;
            fs::remove_file(&path)?;
            Ok(SpoolFile { file: Arc::new(file), path: None, written: 0, tail: Vec::new() })
        })
        .await
    }

    /// The pieces that no upload has open, with their numbers and lengths.
    ///
    /// # Errors
    /// As `readdir(3)`.
    pub async fn pieces(&self) -> io::Result<Vec<(ObjectName, u64, u64)>> {
        let (folder, open) = (Arc::clone(&self.folder), Arc::clone(&self.open));
        blocking(move || {
            let mut all = Vec::new();
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                let piece = entry.file_name().to_str().and_then(parse);
                // One that has just gone to the store is none.
                let Some(((object, number), about)) = piece.zip(entry.metadata().ok()) else { continue };
                if !lock(&open).contains_key(&entry.path()) {
                    all.push((object, number, about.len()));
                }
            }
            Ok(all)
        })
        .await
    }

    /// Removes what there is of a piece.
    ///
    /// # Errors
    /// As `unlink(2)`.
    pub async fn remove(&self, object: &ObjectName, number: u64) -> io::Result<()> {
        let path = self.place(object, number);
        blocking(move || remove(&path.path)).await
    }

    /// Removes what was not touched for so long; how many files that were.
    ///
    /// # Errors
    /// As `readdir(3)`.
    pub async fn sweep(&self, age: Duration) -> io::Result<usize> {
        let folder = Arc::clone(&self.folder);
        blocking(move || {
            let (now, mut removed) = (SystemTime::now(), 0);
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                let old = entry.metadata().and_then(|about| about.modified()).ok();
                let old = old.and_then(|at| now.duration_since(at).ok()).is_some_and(|since| since >= age);
                if old && fs::remove_file(entry.path()).is_ok() {
                    removed += 1;
                }
            }
            Ok(removed)
        })
        .await
    }
}

/// The place of a file that is open, until this is dropped.
#[derive(Debug)]
struct OpenPath {
    path: PathBuf,
    open: OpenFiles,
}

impl Drop for OpenPath {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        if let Some(count) = open.get_mut(&self.path) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.path);
            }
        }
    }
}

fn lock(open: &OpenFiles) -> MutexGuard<'_, BTreeMap<PathBuf, usize>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SpoolFile {
    /// The file and where it is; nothing for one without a name. All of it was written.
    #[must_use]
    pub fn named(&self) -> Option<(Arc<File>, &Path)> {
        self.path.as_ref().map(|path| (Arc::clone(&self.file), &*path.path))
    }

    /// Bytes of it.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.written + self.tail.len() as u64
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the next bytes go, at most `count`.
    pub fn room(&mut self, count: usize) -> &mut Vec<u8> {
        self.tail.reserve(count.min(TAIL));
        &mut self.tail
    }

    /// How many bytes it takes before they are to be written.
    #[must_use]
    pub fn free(&self) -> usize {
        TAIL.saturating_sub(self.tail.len())
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// As `write(2)`.
    pub async fn append(&mut self, bytes: impl AsRef<[u8]> + Send + 'static) -> io::Result<()> {
        self.flush().await?;
        let (file, at) = (Arc::clone(&self.file), self.written);
        self.written += bytes.as_ref().len() as u64;
        blocking(move || file.write_all_at(bytes.as_ref(), at)).await
    }

    /// Writes what was gathered.
    ///
    /// # Errors
    /// As `write(2)`.
    pub async fn flush(&mut self) -> io::Result<()> {
        if self.tail.is_empty() {
            return Ok(());
        }
        let (file, at, tail) = (Arc::clone(&self.file), self.written, std::mem::take(&mut self.tail));
        let (count, mut tail) = blocking(move || {
            file.write_all_at(&tail, at)?;
            Ok((tail.len() as u64, tail))
        })
        .await?;
        tail.clear();
        self.written += count;
        self.tail = tail;
        Ok(())
    }

    /// Reads all of it, which was written, into the front of `buffer`.
    ///
    /// # Errors
    /// As `read(2)`; `UnexpectedEof` if it became shorter.
    pub async fn read<B: AsMut<[u8]> + Send + 'static>(&self, mut buffer: B) -> io::Result<B> {
        let (file, length) = (Arc::clone(&self.file), self.written);
        blocking(move || {
            let length = usize::try_from(length).map_err(io::Error::other)?;
            let part = buffer.as_mut().get_mut(..length).ok_or(io::ErrorKind::InvalidData)?;
            file.read_exact_at(part, 0)?;
            Ok(buffer)
        })
        .await
    }

    /// Removes it.
    pub async fn remove(self) {
        if let Some(path) = self.path {
            let _ = blocking(move || fs::remove_file(&path.path)).await;
        }
    }
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The piece that a file of this name has, if it has one.
fn parse(file: &str) -> Option<(ObjectName, u64)> {
    names::parse_piece(&file.split('-').fold(names::all_contents(), |path, part| path.join(part)))
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    options
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}
