//! Copies in the outbox, sealed under the node's own key.

mod origin;

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::statvfs;
use strait_keying::PrivateKey;

use super::{FolderDisk, Outbox, OutboxError, TransferOrder};
use crate::TransferId;
use crate::sealed::files::{ObjectFolder, ObjectPart};
use crate::sealed::frames::SizePadding;
use crate::sealed::gather::GatheredSource;
use crate::sealed::object::{OpenError, SeekableContents};
use crate::sealed::{
    AgeIdentity, AgeRecipient, Contents, Manifest, ObjectSealError, ObjectSealing, ObjectSeed, SealedEntry,
    open_manifest, seal, seal_message,
};

pub use origin::SpooledOrigin;

/// The folder of copies, in that of the outbox.
const SPOOL: &str = "spool";
/// Locked while a copy is made, and while copies are removed.
const LOCK: &str = "lock";
/// The copy waits for a slow link: zstd's default, which is far faster than that.
const LEVEL: i32 = 3;
/// Copies leave so much of the file system free: one part in this many, and at most so many bytes. journald leaves 15 % and at most
/// 4 GiB (journald.conf(5), `SystemKeepFree=`).
const FREE: u64 = 10;
const FREE_MAX: u64 = 1 << 30;

/// The copies of an outbox. Their objects are those that [`crate::carry`] writes to a stick, but for this node alone and with
/// their size as it is.
#[derive(Clone, Debug)]
pub struct SpoolFolder {
    objects: ObjectFolder,
    path: PathBuf,
}

impl SpoolFolder {
    /// That of the outbox at `outbox`; made with mode 0700 where it lacks.
    ///
    /// # Errors
    /// As the system's.
    pub fn open(outbox: &Path) -> io::Result<SpoolFolder> {
        let path = outbox.join(SPOOL);
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(SpoolFolder { objects: ObjectFolder::at(&path), path })
    }

    /// Bytes that copies may still take.
    ///
    /// # Errors
    /// As the system's.
    pub fn room(&self) -> io::Result<u64> {
        room_in(&self.path)
    }

    /// Copies what is gathered, into `room` bytes at most; durable when it returns. The transfer is to be accepted after it.
    ///
    /// # Errors
    /// [`ObjectSealError`]; nothing is left of the copy then.
    pub fn copy(
        &self,
        id: TransferId,
        source: &mut GatheredSource,
        (order, room): (&TransferOrder, u64),
        node: &PrivateKey,
        mut random: impl FnMut() -> [u8; 32],
    ) -> Result<(), ObjectSealError> {
        let recipients = [AgeRecipient::Node(node.public())];
        let sealing = ObjectSealing { recipients: &recipients, level: LEVEL, padding: SizePadding::Exact };
        let mut manifest = Manifest {
            transfer: id,
            sender: node.public(),
            serial: 0,
            made: 0,
            expires: i64::MAX,
            folder: order.folder.clone(),
            below: order.below.0.clone(),
            recipients: recipients.to_vec(),
            entries: source.entries(),
        };
        let copied = self.objects.write(id, ObjectPart::Contents, |file| {
            let file = BoundedFile { file, left: room };
            seal(&mut manifest, source, file, ObjectSeed::new(random()), &sealing).map(|bounded| bounded.file)
        })?;
        let described = manifest.sign(node).map_err(ObjectSealError::from).and_then(|signed| {
            self.objects.write(id, ObjectPart::Manifest, |file| {
                let file = BoundedFile { file, left: room.saturating_sub(copied) };
                seal_message(&signed, file, ObjectSeed::new(random()), &sealing).map(|bounded| bounded.file)
            })
        });
        // Contents alone are of no use; what cannot be removed now is tidied away later.
        described.map(drop).inspect_err(|_| drop(self.objects.remove_all(id)))
    }

    /// The copy of a transfer.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::Read`] where there is none.
    pub fn read(&self, id: TransferId, node: &PrivateKey) -> Result<SpooledSource, OpenError> {
        let identity = AgeIdentity::Node(node);
        let manifest = self.objects.read(id, ObjectPart::Manifest).map_err(OpenError::Read)?;
        let manifest = open_manifest(manifest, &identity, &AgeRecipient::Node(node.public()))?;
        if manifest.transfer != id || manifest.sender != node.public() {
            return Err(OpenError::Mismatch);
        }
        let contents = self.objects.read(id, ObjectPart::Contents).map_err(OpenError::Read)?;
        let contents = SeekableContents::open(contents, &identity)?;
        Ok(SpooledSource::new(manifest.entries, contents))
    }

    /// Removes the copy of a transfer.
    ///
    /// # Errors
    /// As the system's.
    pub fn remove(&self, id: TransferId) -> io::Result<()> {
        self.objects.remove_all(id)
    }

    /// As long as this is open, no process removes copies: a transfer is copied before it is accepted.
    ///
    /// # Errors
    /// As the system's.
    pub fn hold(&self) -> io::Result<File> {
        let file = self.lock_file()?;
        file.lock_shared()?;
        Ok(file)
    }

    fn lock_file(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).open(self.path.join(LOCK))
    }

    /// Removes the copies of transfers that are over or were never accepted, unless one is being made.
    ///
    /// # Errors
    /// As the system's.
    pub fn tidy(&self, outbox: &Outbox<FolderDisk>) -> Result<(), OutboxError> {
        let lock = self.lock_file()?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error.into()),
            Ok(()) => {}
        }
        // What cannot be read may be a record of one of them.
        if !outbox.damaged().is_empty() {
            return Ok(());
        }
        for part in [ObjectPart::Contents, ObjectPart::Manifest] {
            for id in self.objects.transfers(part)? {
                if outbox.get(id).map_or(true, |transfer| transfer.state.over().is_some()) {
                    self.objects.remove_all(id)?;
                }
            }
        }
        Ok(())
    }
}

/// Bytes that copies in a folder may still take.
pub(crate) fn room_in(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    let [whole, free] = [disk.f_blocks, disk.f_bavail].map(|blocks| blocks.saturating_mul(disk.f_frsize));
    Ok(free.saturating_sub((whole / FREE).min(FREE_MAX)))
}

/// A file that takes no more than so many bytes.
struct BoundedFile {
    file: File,
    left: u64,
}

impl Write for BoundedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            let text = "the copy would leave too little of the disk free, less than a tenth or 1 GiB";
            return Err(io::Error::new(io::ErrorKind::StorageFull, text));
        }
        let count = self.file.write(bytes)?;
        self.left -= count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A copy that is read.
pub struct SpooledSource {
    /// In ascending order of their paths, as a manifest has them.
    entries: Vec<SealedEntry>,
    /// Where the bytes of each begin in the contents.
    begins: Vec<u64>,
    contents: Arc<Mutex<SeekableContents>>,
}

impl SpooledSource {
    fn new(entries: Vec<SealedEntry>, contents: SeekableContents) -> SpooledSource {
        let sizes = entries.iter().map(|entry| entry.kind.size());
        let begins = sizes.scan(0, |at, size| Some(std::mem::replace(at, *at + size))).collect();
        SpooledSource { entries, begins, contents: Arc::new(Mutex::new(contents)) }
    }

    /// What was copied, with the roots that the files had then.
    #[must_use]
    pub fn entries(&self) -> &[SealedEntry] {
        &self.entries
    }

    /// A file of the copy.
    fn file(&self, path: &[u8]) -> io::Result<SpooledFile> {
        let found = self.entries.binary_search_by(|entry| entry.path[..].cmp(path));
        let at = found.map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
        let size = self.entries[at].kind.size();
        Ok(SpooledFile { contents: Arc::clone(&self.contents), begin: self.begins[at], size, position: 0 })
    }
}

/// A file of a copy.
pub struct SpooledFile {
    contents: Arc<Mutex<SeekableContents>>,
    begin: u64,
    size: u64,
    /// What was read in order.
    position: u64,
}

impl SpooledFile {
    /// Some bytes from this offset; none only at the end.
    fn read_from(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        match contents.read_at(self.begin + offset, &mut buffer[..count])? {
            0 if count > 0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the copy is cut off")),
            count => Ok(count),
        }
    }
}

impl Read for SpooledFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read_from(self.position, buffer)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Contents for SpooledSource {
    fn open(&mut self, path: &[u8]) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.file(path)?))
    }

    fn unchanged(&mut self, _: &SealedEntry) -> io::Result<bool> {
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
