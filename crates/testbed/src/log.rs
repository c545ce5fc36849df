//! What a program that runs in the background has said.

use std::fs;
use std::path::Path;

/// How much of a log an error shows, in bytes.
const END: usize = 2000;

/// The end of the log in `file`, or nothing when there is none.
pub(crate) fn end_of(file: &Path) -> String {
    let said = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&said);
    let from = text.len().saturating_sub(END);
    text.get(text.ceil_char_boundary(from)..).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workdir;

    #[test]
    fn the_end_is_whole_characters() {
        let dir = Workdir::create().unwrap();
        let file = dir.path().join("log");
        assert_eq!(end_of(&file), "");
        fs::write(&file, "a".to_owned() + &"\u{2713}".repeat(1000)).unwrap();
        // 2,000 bytes are 666 characters of three bytes and a part of one.
        assert_eq!(end_of(&file), "\u{2713}".repeat(666));
        fs::write(&file, b"not \xff text\n").unwrap();
        assert_eq!(end_of(&file), "not \u{fffd} text");
    }
}
