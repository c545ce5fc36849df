//! Objects as files: the bucket is a folder of the root, and a key is a path below it.
//!
//! Every call here may wait for the disk.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where files are until they have their names. No bucket's name begins with a dot.
const UNFINISHED: &str = ".unfinished";

/// The longest name of a file on Linux, in bytes.
const LONGEST_NAME: usize = 255;

/// How often a put makes folders again that a removal took away meanwhile.
const ATTEMPTS: usize = 16;

/// The root of all buckets.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    next: AtomicU64,
}

/// A file that has no name yet; it is removed unless it gets one.
pub(crate) struct Unfinished {
    path: PathBuf,
    file: File,
}

impl Folder {
    /// Opens the root and makes it if needed.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn open(root: &Path) -> io::Result<Folder> {
        fs::create_dir_all(root.join(UNFINISHED))?;
        Ok(Folder { root: root.to_owned(), next: AtomicU64::new(0) })
    }

    /// The folder of a bucket.
    ///
    /// # Errors
    /// `NotFound` when there is no such bucket.
    pub(crate) fn bucket(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.root.join(name);
        if name.starts_with('.') || name.contains('/') || !path.is_dir() {
            return Err(ErrorKind::NotFound.into());
        }
        Ok(path)
    }

    /// Makes a bucket; answers false when it is there.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn make_bucket(&self, name: &str) -> io::Result<bool> {
        match fs::create_dir(self.root.join(name)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            made => made.map(|()| true),
        }
    }

    /// The file of an object, whether it is there or not.
    ///
    /// # Errors
    /// `NotFound` when there is no such bucket; `InvalidInput` when the key is no path that a file can have.
    pub(crate) fn file(&self, bucket: &str, key: &str) -> io::Result<PathBuf> {
        let is_name = |part: &str| {
            !matches!(part, "" | "." | "..") && part.len() <= LONGEST_NAME && !part.contains('\0')
        };
        if !key.split('/').all(is_name) {
            return Err(ErrorKind::InvalidInput.into());
        }
        Ok(self.bucket(bucket)?.join(key))
    }

    /// A file for an object that begins to come.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn begin(&self) -> io::Result<Unfinished> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.root.join(UNFINISHED).join(format!("{}-{number}", process::id()));
        Ok(Unfinished { file: File::create(&path)?, path })
    }

    /// Removes an object and the folders that it leaves empty. An object that is not there is no error, as in S3.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn remove(&self, bucket: &str, key: &str) -> io::Result<()> {
        let path = self.file(bucket, key)?;
        match fs::remove_file(&path) {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(error);
            }
            _ => {}
        }
        let depth = key.split('/').count() - 1;
        // `rmdir` refuses a folder that is not empty.
        let _ = path.ancestors().skip(1).take(depth).try_for_each(fs::remove_dir);
        Ok(())
    }
}

impl Unfinished {
    /// Adds bytes.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Gives the file the object's name, over what has it, or only if nothing has.
    ///
    /// # Errors
    /// `AlreadyExists` when something has the name and only a new object was wanted. Those of the file system.
    pub(crate) fn publish(self, path: &Path, create_only: bool) -> io::Result<Metadata> {
        for _ in 0..ATTEMPTS {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let done =
                if create_only { fs::hard_link(&self.path, path) } else { fs::rename(&self.path, path) };
            match done {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                done => return done.and_then(|()| self.file.metadata()),
            }
        }
        Err(io::Error::other("the folder is removed again and again"))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// An entity tag of a file: another when it has other contents.
pub(crate) fn tag(metadata: &Metadata) -> String {
    format!("{:x}-{:x}-{:x}", metadata.ino(), metadata.mtime_nsec(), metadata.len())
}
