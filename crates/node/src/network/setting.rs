//! A kernel setting that is put back when it is no longer wanted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::plan::SysctlSetting;

/// A setting that was changed, with what it was before.
#[derive(Debug)]
pub(super) struct Setting {
    path: PathBuf,
    before: String,
}

impl Setting {
    /// Changes it; nothing when it has this value already, and so is not ours to put back.
    pub(super) fn change(wanted: &SysctlSetting) -> io::Result<Option<Setting>> {
        let before = fs::read_to_string(&wanted.path)?.trim().to_owned();
        if before == wanted.value {
            return Ok(None);
        }
        fs::write(&wanted.path, wanted.value)?;
        Ok(Some(Setting { path: wanted.path.clone(), before }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn restore(self) -> io::Result<()> {
        match fs::write(&self.path, &self.before) {
            // With the interface its settings are gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}
