//! Marks of numbers in files.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A mark on disk.
#[derive(Debug)]
pub(super) struct MarkFile {
    file: File,
    /// What is in it.
    pub(super) value: u64,
}

impl MarkFile {
    /// A new one, which says that nothing was used.
    pub(super) fn open(path: &Path) -> io::Result<MarkFile> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        file.write_all_at(&0_u64.to_be_bytes(), 0)?;
        file.sync_all()?;
        Ok(MarkFile { file, value: 0 })
    }

    /// If it is to be durable, it is on disk when this returns.
    pub(super) fn write(&mut self, value: u64, durable: bool) -> io::Result<()> {
        self.file.write_all_at(&value.to_be_bytes(), 0)?;
        if durable {
            self.file.sync_data()?;
        }
        self.value = value;
        Ok(())
    }
}
