//! An open source.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::stamp::{Stamp, Status};

/// An open regular file, and the state in which it was opened.
#[derive(Debug)]
pub struct SourceFile {
    file: File,
    opened: Stamp,
}

impl SourceFile {
    pub(crate) fn new(file: File, opened: Stamp) -> SourceFile {
        SourceFile { file, opened }
    }

    /// The state in which it was opened.
    #[must_use]
    pub fn opened(&self) -> Stamp {
        self.opened
    }

    /// The state now. If it is another one, what was read is of no one state.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn state(&self) -> io::Result<Stamp> {
        Ok(Status::of(&self.file)?.stamp())
    }

    /// Whether the file changed since it was opened: size, times, or the inode's.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn changed(&self) -> io::Result<bool> {
        Ok(self.state()? != self.opened)
    }

    /// Reads at an offset; nothing only at the end.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// The first extent with data that ends after `from`, from there on: begin and end. None: only a hole until the end. On a file system
    /// that knows no holes, all is data.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn extent(&self, from: u64) -> io::Result<Option<(u64, u64)>> {
        let size = self.opened.size;
        if from >= size {
            return Ok(None);
        }
        let begin = match seek(&self.file, SeekFrom::Data(from)) {
            Ok(begin) => begin,
            Err(Errno::NXIO) => return Ok(None),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(Some((from, size))),
            Err(error) => return Err(error.into()),
        };
        let end = seek(&self.file, SeekFrom::Hole(begin))?.min(size);
        Ok((begin < end).then_some((begin, end)))
    }
}
