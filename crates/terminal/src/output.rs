//! Standard output, and words beside it on standard error. A reader may stop early, as `head` does; the macros of the standard library
//! panic then, so no program of the project uses them.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use crate::{CommandResult, Failure};

/// Writes to standard output, and returns false if its reader is gone.
///
/// # Errors
/// A [`Failure`] when the system refuses the bytes for another reason.
pub fn still_read(bytes: &[u8]) -> Result<bool, Failure> {
    let mut out = io::stdout();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true).map_err(Failure::doing("write to standard output")),
    }
}

/// Writes to standard output; a reader that is gone is no failure.
///
/// # Errors
/// As [`still_read`].
pub fn print(bytes: &[u8]) -> CommandResult {
    still_read(bytes).map(drop)
}

/// Writes a line, as [`print()`] does.
///
/// # Errors
/// As [`still_read`].
pub fn line(text: impl Display) -> CommandResult {
    print(format!("{text}\n").as_bytes())
}

/// The first failure of [`tell`].
static UNTOLD: Mutex<Option<Failure>> = Mutex::new(None);

/// Writes a line of a command whose work goes on whatever becomes of its words; [`all_told`] says whether all were written.
pub fn tell(text: impl Display) {
    if let Err(failure) = line(text) {
        UNTOLD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }
}

/// Checks that all lines of [`tell`] were written.
///
/// # Errors
/// As [`still_read`].
pub fn all_told() -> CommandResult {
    UNTOLD.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
}

/// Writes a line to standard error, which may be closed or on a full disk: the exit code says how the command ended.
pub fn note(text: impl Display) {
    // At once, so that lines of two programs do not mix.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// The words of `text` in lines of at most `width` columns, unless a word is longer.
#[must_use]
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut();
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
