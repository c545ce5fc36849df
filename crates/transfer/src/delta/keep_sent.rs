//! Copies of what was sent last, so that the next version of a file is compressed against it without a question to the
//! receiver.
//!
//! A copy is a file of its own in the store's folder (mode 0600), named by a keyed hash of whom and what it was sent to.
//! Its bytes are in pieces of 256 KiB, each compressed and then sealed with AES-256-GCM under a key of its own: without the
//! store's secret neither names nor contents are readable, and a damaged copy gives an error, never other bytes. A copy is
//! written aside and renamed. It is not fsynced: what a power failure leaves of it is damaged, and so is none. Those that were
//! not used for longest go when the budget is used up.
//!
//! Several processes may use one store: a lock on `store.lock` is held while names change, and one on each copy that is being
//! written, so that what a killed process left behind is told from what another one writes.
//!
//! File: `StrKept1`, a salt of 16 bytes; then records, each with its length (24 bits, big-endian) before it: pieces, one flag
//! byte (0 as it is, 1 Zstandard) and its bytes; the last record is the size (64 bits, little-endian), the time of modification
//! in nanoseconds since 1970 (as the size) and the BLAKE3 root. Record n is sealed with nonce n + 1 and its number, and whether
//! it is the last, as associated data.

mod copy;
mod record;
mod sharing;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub use copy::KeptCopy;
use record::{PIECE, RecordSealer};
use sharing::{is_left, lock, own_secret};
use zeroize::Zeroizing;

/// The first bytes of a copy.
const MAGIC: &[u8; 8] = b"StrKept1";
/// Bytes of salt: two copies never have the same key.
const SALT: usize = 16;
/// How the name of a copy ends that is being written.
const ASIDE: &str = "part";

/// A store of copies, with a budget.
pub struct KeepSent {
    folder: PathBuf,
    /// Bytes on disk at most.
    budget: u64,
    secret: Zeroizing<[u8; 32]>,
}

impl KeepSent {
    /// Opens the store in `folder`, which is made with mode 0700 if it is not there; what an interrupted run left behind
    /// is removed. Copies that were made with another `secret` are not found.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn open(folder: &Path, budget: u64, secret: [u8; 32]) -> io::Result<KeepSent> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let store = KeepSent { folder: folder.to_owned(), budget, secret: Zeroizing::new(secret) };
        let _turn = lock(folder)?;
        for (path, _, _) in store.list()? {
            if path.extension().is_some_and(|it| it == ASIDE) && is_left(&path)? {
                remove(&path)?;
            }
        }
        store.make_room(0)?;
        Ok(store)
    }

    /// As [`KeepSent::open`], with a secret of the store's own, in a file of mode 0600 beside the copies. Where there is none,
    /// `random` becomes it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn open_own(folder: &Path, budget: u64, random: [u8; 32]) -> io::Result<KeepSent> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let turn = lock(folder)?;
        let secret = own_secret(folder, random)?;
        drop(turn);
        KeepSent::open(folder, budget, secret)
    }

    /// Bytes on disk at most.
    #[must_use]
    pub const fn budget(&self) -> u64 {
        self.budget
    }

    /// The copy of what was sent last as `name`: bytes that stand for the receiver, its folder and the file's path there.
    ///
    /// # Errors
    /// Those of reading. One that is damaged is removed, and is none.
    pub fn find(&self, name: &[u8]) -> io::Result<Option<KeptCopy>> {
        let path = self.path(name);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        match KeptCopy::open(file, &self.secret) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                remove(&path)?;
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    /// Begins a copy of what is sent as `name`. `salt` is random.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn keep(&self, name: &[u8], salt: [u8; SALT]) -> io::Result<KeptWriter<'_>> {
        let path = self.path(name);
        // Two transfers of the same name at once do not write to one file.
        let aside = path.with_extension(format!("{:016x}.{ASIDE}", u64::from_le_bytes(first_eight(&salt))));
        let turn = lock(&self.folder)?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        file.lock()?;
        drop(turn);
        let mut file = BufWriter::new(file);
        file.write_all(MAGIC)?;
        file.write_all(&salt)?;
        Ok(KeptWriter {
            store: self,
            file: Some(file),
            path,
            aside,
            sealer: RecordSealer::new(&self.secret, &salt)?,
            piece: Vec::with_capacity(PIECE),
            size: 0,
            on_disk: (MAGIC.len() + SALT) as u64,
        })
    }

    /// Forgets the copy of `name`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn forget(&self, name: &[u8]) -> io::Result<()> {
        remove(&self.path(name))
    }

    fn path(&self, name: &[u8]) -> PathBuf {
        let key = blake3::derive_key("strait 2026-11 files: names of kept copies, version 1", &*self.secret);
        let hash = blake3::keyed_hash(&key, name).to_hex();
        self.folder.join(hash.as_str())
    }

    /// Everything in the store: path, bytes, and when it was written.
    fn list(&self) -> io::Result<Vec<(PathBuf, u64, std::time::SystemTime)>> {
        let mut list = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                // Another process gave it up.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                found => found?,
            };
            if metadata.is_file() {
                list.push((entry.path(), metadata.len(), metadata.modified()?));
            }
        }
        Ok(list)
    }

    /// Removes the copies that were not used for longest until there is room for `more` bytes.
    fn make_room(&self, more: u64) -> io::Result<()> {
        let mut copies = self.list()?;
        copies.retain(|(path, _, _)| path.extension().is_none());
        copies.sort_by_key(|(_, _, written)| *written);
        let mut used: u64 = copies.iter().map(|(_, len, _)| len).sum();
        for (path, len, _) in copies {
            if used.saturating_add(more) <= self.budget {
                break;
            }
            remove(&path)?;
            used -= len;
        }
        Ok(())
    }
}

impl core::fmt::Debug for KeepSent {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("KeepSent").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// A copy that is being written. It is kept by [`KeptWriter::finish`]; dropped before that, it is removed.
#[derive(Debug)]
pub struct KeptWriter<'a> {
    store: &'a KeepSent,
    /// Nothing once it is larger than the budget: it is then not kept.
    file: Option<BufWriter<File>>,
    path: PathBuf,
    aside: PathBuf,
    sealer: RecordSealer,
    piece: Vec<u8>,
    size: u64,
    on_disk: u64,
}

impl KeptWriter<'_> {
    /// A hole of so many bytes.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn hole(&mut self, len: u64) -> io::Result<()> {
        io::copy(&mut io::repeat(0).take(len), self).map(|_| ())
    }

    /// The receiver has the whole file, whose BLAKE3 root and time of modification these are: keeps the copy in place of the one
    /// before. Returns whether there was room for it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn finish(mut self, root: &[u8; 32], modified: i64) -> io::Result<bool> {
        self.put_piece()?;
        let last = self.sealer.last(self.size, modified, root)?;
        self.put(&last)?;
        let Some(file) = self.file.take() else { return Ok(false) };
        // It stays locked until it has its name.
        let _file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let _turn = lock(&self.store.folder)?;
        remove(&self.path)?;
        self.store.make_room(self.on_disk)?;
        fs::rename(&self.aside, &self.path)?;
        Ok(true)
    }

    fn put_piece(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let record = self.sealer.piece(&self.piece)?;
        self.piece.clear();
        self.put(&record)
    }

    fn put(&mut self, record: &[u8]) -> io::Result<()> {
        self.on_disk += record.len() as u64;
        if self.on_disk > self.store.budget {
            self.file = None;
        }
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(record))
    }
}

impl Write for KeptWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = &bytes[..bytes.len().min(PIECE - self.piece.len())];
        self.piece.extend_from_slice(taken);
        self.size += taken.len() as u64;
        if self.piece.len() == PIECE {
            self.put_piece()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for KeptWriter<'_> {
    fn drop(&mut self) {
        // After `finish` it is not there; what cannot be removed now is removed when the store is next opened.
        let _ = fs::remove_file(&self.aside);
    }
}

/// Removes a file that may not be there.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

const fn first_eight(salt: &[u8; SALT]) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h, ..] = *salt;
    [a, b, c, d, e, f, g, h]
}
