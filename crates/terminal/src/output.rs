//! Standard output.

use std::io;

use crate::{CommandResult, Failure};

/// Writes to standard output; the reader may stop early, as `head` does.
///
/// # Errors
/// A [`Failure`] when the system refuses the bytes for another reason.
pub fn print(bytes: &[u8]) -> CommandResult {
    match io::Write::write_all(&mut io::stdout(), bytes) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::doing("write to standard output")(error))
        }
        _ => Ok(()),
    }
}
