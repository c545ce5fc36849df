//! What was typed, as keys: the few whose effect can be foretold, and all others.

use super::doubt;

/// A key, by what it does to the line that the cursor is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A printable character and the cells that it takes, 1 or 2.
    Text(char, u16),
    /// Backspace, as terminals send it (DEL).
    Erase,
    /// Arrow to the left.
    Left,
    /// Arrow to the right.
    Right,
    /// To the beginning of the line: `Home`, or ctrl-a of line editors.
    LineStart,
    /// To the end of the line: `End`, or ctrl-e.
    LineEnd,
    /// What hands a line on or gives it up (return, ctrl-j, ctrl-c): a new one follows.
    Enter,
    /// Anything else: what it does is seen when it was done.
    Other,
}

impl Key {
    /// Whether nothing can be foretold of what is typed behind it, until it was done.
    pub(super) fn is_barrier(self) -> bool {
        matches!(self, Key::Enter | Key::Other)
    }
}

/// Cuts typed bytes into keys. Bytes of a character that is not complete wait for the next call.
#[derive(Debug, Default)]
pub(super) struct KeyReader {
    /// The front of a character in UTF-8.
    partial: Vec<u8>,
}

impl KeyReader {
    /// Calls `each` with a key and how many of `bytes` were read when it was complete.
    pub(super) fn read(&mut self, bytes: &[u8], mut each: impl FnMut(Key, usize)) {
        let mut at = 0;
        while at < bytes.len() {
            let (key, len) = if self.partial.is_empty() && bytes[at] < 0x80 {
                ascii(&bytes[at..])
            } else {
                (self.character(bytes[at]), 1)
            };
            at += len;
            if let Some(key) = key {
                each(key, at);
            }
        }
    }

    /// Takes one byte of a character that is not ASCII.
    fn character(&mut self, byte: u8) -> Option<Key> {
        self.partial.push(byte);
        match core::str::from_utf8(&self.partial) {
            Ok(text) => {
                let key = text.chars().next().map_or(Key::Other, printable);
                self.partial.clear();
                Some(key)
            }
            // Cut short: the rest comes.
            Err(error) if error.error_len().is_none() => None,
            Err(_) => {
                self.partial.clear();
                Some(Key::Other)
            }
        }
    }
}

/// A character of 1 or 2 cells can be foretold; not one that joins what is before it, which terminals do in different ways.
fn printable(character: char) -> Key {
    doubt::width(character, false).map_or(Key::Other, |width| Key::Text(character, width))
}

/// The key at the front of `bytes`, which begins with an ASCII byte, and its length.
fn ascii(bytes: &[u8]) -> (Option<Key>, usize) {
    let key = match bytes[0] {
        0x7f => Key::Erase,
        0x01 => Key::LineStart,
        0x05 => Key::LineEnd,
        0x1b => return escape(bytes),
        b'\r' | b'\n' | 0x03 => Key::Enter,
        byte @ 0x20..=0x7e => Key::Text(char::from(byte), 1),
        _ => Key::Other,
    };
    (Some(key), 1)
}

/// A key that sends a sequence (ECMA-48 section 5.4, and SS3 of the cursor keys' application mode). Terminals write a sequence at
/// once, so one that is cut is not waited for.
fn escape(bytes: &[u8]) -> (Option<Key>, usize) {
    let start = match bytes.get(1) {
        Some(b'[') => 2,
        Some(b'O') => {
            return (Some(bytes.get(2).map_or(Key::Other, |last| cursor_key(*last))), bytes.len().min(3));
        }
        Some(_) => return (Some(Key::Other), 2),
        None => return (Some(Key::Other), 1),
    };
    let Some(end) = bytes[start..].iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return (Some(Key::Other), bytes.len());
    };
    let key = match &bytes[start..=start + end] {
        [last] => cursor_key(*last),
        b"1~" | b"7~" => Key::LineStart,
        b"4~" | b"8~" => Key::LineEnd,
        _ => Key::Other,
    };
    (Some(key), start + end + 1)
}

fn cursor_key(last: u8) -> Key {
    match last {
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::LineStart,
        b'F' => Key::LineEnd,
        _ => Key::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<(Key, usize)> {
        let mut found = Vec::new();
        KeyReader::default().read(bytes, |key, at| found.push((key, at)));
        found
    }

    #[test]
    fn sequences_are_one_key() {
        assert_eq!(keys(b"a\x1b[Db"), [(Key::Text('a', 1), 1), (Key::Left, 4), (Key::Text('b', 1), 5)]);
        assert_eq!(keys(b"\x1bOC\x1b[1;5C\x1b[4~"), [(Key::Right, 3), (Key::Other, 9), (Key::LineEnd, 13)]);
        assert_eq!(keys(b"\x1bb\x1b"), [(Key::Other, 2), (Key::Other, 3)]);
        assert_eq!(keys(b"\x1b[12"), [(Key::Other, 4)]);
        assert_eq!(
            keys(b"\x01\x05\x7f\r"),
            [(Key::LineStart, 1), (Key::LineEnd, 2), (Key::Erase, 3), (Key::Enter, 4)]
        );
    }

    #[test]
    fn characters_come_whole_however_they_are_cut() {
        let text = "é中a\u{301}🙂";
        let mut whole = Vec::new();
        KeyReader::default().read(text.as_bytes(), |key, _| whole.push(key));
        assert_eq!(
            whole,
            [Key::Text('é', 1), Key::Text('中', 2), Key::Text('a', 1), Key::Other, Key::Text('🙂', 2)]
        );
        let mut reader = KeyReader::default();
        let mut cut = Vec::new();
        for byte in text.as_bytes() {
            reader.read(&[*byte], |key, _| cut.push(key));
        }
        assert_eq!(cut, whole);
        assert_eq!(keys(b"\xff\xc3("), [(Key::Other, 1), (Key::Other, 3)]);
    }
}
