//! Objects as files of a folder, which may be a stick that others wrote to.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::object::ObjectSealError;
use crate::TransferId;

/// The three objects that there may be of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectPart {
    /// The bytes of its files.
    Contents,
    /// What it holds. Where this is, the contents are whole.
    Manifest,
    /// What its receiver says of it.
    Receipt,
}

impl ObjectPart {
    const ALL: [ObjectPart; 3] = [ObjectPart::Contents, ObjectPart::Manifest, ObjectPart::Receipt];

    /// What the file's name ends in, behind the transfer.
    const fn ending(self) -> &'static str {
        match self {
            ObjectPart::Contents => ".contents.age",
            ObjectPart::Manifest => ".manifest.age",
            ObjectPart::Receipt => ".receipt.age",
        }
    }
}

/// What a file is called until it is whole.
const ASIDE: &str = ".part";

/// A folder with objects.
#[derive(Clone, Debug)]
pub struct ObjectFolder(PathBuf);

impl ObjectFolder {
    /// The folder at `path`.
    #[must_use]
    pub fn at(path: &Path) -> ObjectFolder {
        ObjectFolder(path.to_owned())
    }

    /// Makes it where it lacks; the folder above it exists.
    ///
    /// # Errors
    /// As the system's.
    pub fn create(&self) -> io::Result<()> {
        match fs::create_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            result => result,
        }
    }

    /// The transfers of which there is this part; other files are none of ours.
    ///
    /// # Errors
    /// As the system's; a folder that lacks has none.
    pub fn transfers(&self, part: ObjectPart) -> io::Result<Vec<TransferId>> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            result => result?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            let id: Option<TransferId> =
                name.to_str().and_then(|name| name.strip_suffix(part.ending())?.parse().ok());
            found.extend(id);
        }
        found.sort();
        Ok(found)
    }

    /// Whether there is this part of a transfer.
    #[must_use]
    pub fn has(&self, id: TransferId, part: ObjectPart) -> bool {
        self.path(id, part).is_file()
    }

    /// Opens a part for reading. Only a file will do: neither a link nor a pipe, which a stranger may have put there.
    ///
    /// # Errors
    /// As the system's.
    pub fn read(&self, id: TransferId, part: ObjectPart) -> io::Result<File> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(self.path(id, part))?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no file")) }
    }

    /// Writes a part: aside, synchronised, renamed, and the folder synchronised. A failure leaves nothing behind that this can remove.
    ///
    /// # Errors
    /// As `write`, or [`ObjectSealError::Write`].
    pub fn write(
        &self,
        id: TransferId,
        part: ObjectPart,
        write: impl FnOnce(File) -> Result<File, ObjectSealError>,
    ) -> Result<u64, ObjectSealError> {
        let aside = self.aside(id, part);
        let written = self.write_aside(&aside, write).and_then(|len| {
            let renamed = fs::rename(&aside, self.path(id, part)).and_then(|()| self.sync());
            renamed.map(|()| len).map_err(ObjectSealError::Write)
        });
        written.inspect_err(|_| drop(fs::remove_file(&aside)))
    }

    fn write_aside(
        &self,
        aside: &Path,
        write: impl FnOnce(File) -> Result<File, ObjectSealError>,
    ) -> Result<u64, ObjectSealError> {
        match fs::remove_file(aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ObjectSealError::Write(error));
            }
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(aside);
        let file = write(file.map_err(ObjectSealError::Write)?)?;
        file.sync_all()
            .and_then(|()| file.metadata())
            .map(|metadata| metadata.len())
            .map_err(ObjectSealError::Write)
    }

    /// Removes a part and what was written aside of it, where they are there.
    ///
    /// # Errors
    /// As the system's.
    pub fn remove(&self, id: TransferId, part: ObjectPart) -> io::Result<()> {
        for path in [self.path(id, part), self.aside(id, part)] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes all of a transfer: the manifest first, which says that the rest is whole.
    ///
    /// # Errors
    /// As the system's.
    pub fn remove_all(&self, id: TransferId) -> io::Result<()> {
        self.remove(id, ObjectPart::Manifest)?;
        ObjectPart::ALL.into_iter().try_for_each(|part| self.remove(id, part))
    }

    /// Makes names durable.
    ///
    /// # Errors
    /// As the system's.
    pub fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    fn path(&self, id: TransferId, part: ObjectPart) -> PathBuf {
        self.0.join(format!("{id}{}", part.ending()))
    }

    fn aside(&self, id: TransferId, part: ObjectPart) -> PathBuf {
        self.0.join(format!("{id}{}{ASIDE}", part.ending()))
    }
}
