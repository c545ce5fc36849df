//! Folders for tests, which are removed with what is in them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A new folder below the system's for temporary files.
pub(crate) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    pub(crate) fn new() -> ScratchFolder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("strait-transfer-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        ScratchFolder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A folder in it.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
