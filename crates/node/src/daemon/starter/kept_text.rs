//! The text of the configuration that is in force: `strait restart` gives it to the program that it goes back to, whatever is in the file
//! by then. It is in memory of this process alone, where root finds it and what handles packets does not.

use std::ffi::CStr;
use std::fs::File;
use std::io::Write;

use crate::process::memory_file;

/// Names the file in memory.
pub(crate) const NAME: &CStr = c"configuration";

/// The text, held open as long as it is in force; nothing where the system has no memory for it.
pub(super) struct KeptText {
    _file: Option<File>,
}

impl KeptText {
    /// Keeps `text`.
    pub(super) fn of(text: &str) -> KeptText {
        let kept = memory_file(NAME).and_then(|mut file| file.write_all(text.as_bytes()).map(|()| file));
        KeptText { _file: kept.inspect_err(|error| tracing::debug!(%error, "its text is not kept")).ok() }
    }
}
