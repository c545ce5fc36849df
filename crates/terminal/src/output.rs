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
