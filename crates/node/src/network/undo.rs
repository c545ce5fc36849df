//! Kernel settings that a killed daemon leaves, in a file beside its socket, until the next start or `strait down`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::setting::Setting;
use crate::runtime::{self, RuntimeError};

/// The network namespace of this process: settings of another one are not there to be put back.
const NAMESPACE: &str = "/proc/thread-self/ns/net";

/// Where the settings that are changed are written down, if anywhere.
#[derive(Debug)]
pub(super) struct UndoFile(Option<PathBuf>);

impl UndoFile {
    /// Puts back what an earlier daemon wrote down.
    pub(super) fn open(path: Option<PathBuf>) -> UndoFile {
        if let Some(count) = path.as_deref().map(put_back_from).filter(|count| *count > 0) {
            tracing::info!(count, "put back kernel settings of an earlier run");
        }
        UndoFile(path)
    }

    /// Writes down `settings` in place of those before; without any, there is no file.
    pub(super) fn write(&self, settings: &[Setting]) {
        let Some(path) = &self.0 else { return };
        let written = if settings.is_empty() { remove(path) } else { write(path, settings) };
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "cannot write down what to put back after a crash");
        }
    }
}

fn write(path: &Path, settings: &[Setting]) -> io::Result<()> {
    let lines: String = settings.iter().map(Setting::line).collect();
    let text = format!("{}\n{lines}", namespace()?);
    let fresh = path.with_extension("new");
    remove(&fresh)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&fresh, path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn namespace() -> io::Result<String> {
    Ok(fs::read_link(NAMESPACE)?.display().to_string())
}

/// Puts back the settings of the file, the last first, unless another program has changed them since; says how many.
pub(super) fn put_back_from(path: &Path) -> usize {
    let Ok(text) = fs::read_to_string(path) else { return 0 };
    let (whose, lines) = text.split_once('\n').unwrap_or_default();
    let mut count = 0;
    if namespace().is_ok_and(|own| own == whose) {
        for setting in lines.lines().rev().filter_map(Setting::from_line).filter(Setting::holds) {
            count += usize::from(setting.restore().is_ok());
        }
    }
    if let Err(error) = remove(path) {
        tracing::warn!(path = %path.display(), %error, "cannot remove the file of settings to put back");
    }
    count
}

/// The file for `interface` in the folder of sockets.
///
/// # Errors
/// [`RuntimeError`] where there is no such folder.
pub(crate) fn file(interface: &str) -> Result<PathBuf, RuntimeError> {
    Ok(runtime::folder()?.join(format!("{interface}.undo")))
}

/// Puts back the kernel settings that a killed daemon of `interface` left; says how many.
///
/// # Errors
/// [`RuntimeError`] where there is no folder that could have them.
pub fn put_back(interface: &str) -> Result<usize, RuntimeError> {
    Ok(put_back_from(&file(interface)?))
}
