//! Paths inside a transfer: bytes, relative, without a way out.

use std::fmt::{self, Write};

/// Bytes of a path at most: Linux's PATH_MAX (4,096) without its closing zero.
pub const MAX_PATH_LEN: usize = 4095;
/// Bytes of one name between slashes at most: Linux's NAME_MAX.
pub const MAX_NAME_LEN: usize = 255;

/// A path below the place that a transfer names: names with a slash between them, none of them empty, `.` or `..`. Names are any bytes
/// but zero and the slash; they need not be UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryPath(Vec<u8>);

/// Why bytes are no [`EntryPath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A name is empty: the path is, it begins or ends with a slash, or two slashes follow each other.
    #[error("a name in the path is empty")]
    EmptyName,
    /// A name is `.` or `..`.
    #[error("the path has `.` or `..` in it")]
    Dots,
    /// A zero byte.
    #[error("the path has a zero byte in it")]
    Zero,
    /// A name or the path is longer than Linux can open.
    #[error("the path or a name in it is too long")]
    TooLong,
}

impl EntryPath {
    /// Checks a path.
    ///
    /// # Errors
    ///
    /// [`PathError`] says what is wrong with it.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<EntryPath, PathError> {
        let bytes = bytes.into();
        if bytes.len() > MAX_PATH_LEN {
            return Err(PathError::TooLong);
        }
        if bytes.contains(&0) {
            return Err(PathError::Zero);
        }
        bytes.split(|byte| *byte == b'/').try_for_each(check_name)?;
        Ok(EntryPath(bytes))
    }

    /// The path's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The last name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.split().1
    }

    /// The path of the folder that has this entry. None for an entry at the top.
    #[must_use]
    pub fn parent(&self) -> Option<EntryPath> {
        self.split().0.map(|parent| EntryPath(parent.to_vec()))
    }

    /// The first name.
    #[must_use]
    pub fn first(&self) -> &[u8] {
        self.0.split(|byte| *byte == b'/').next().unwrap_or_default()
    }

    /// This path with a name behind it.
    ///
    /// # Errors
    ///
    /// If the name is none, or the path would be too long.
    pub fn join(&self, name: &[u8]) -> Result<EntryPath, PathError> {
        EntryPath::new([&self.0[..], b"/", name].concat())
    }

    /// The number of folders that it is in.
    pub(crate) fn depth(&self) -> usize {
        self.0.iter().filter(|byte| **byte == b'/').count()
    }

    /// The folder's path, if there is one, and the last name.
    pub(crate) fn split(&self) -> (Option<&[u8]>, &[u8]) {
        match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (Some(&self.0[..slash]), &self.0[slash + 1..]),
            None => (None, &self.0),
        }
    }
}

fn check_name(name: &[u8]) -> Result<(), PathError> {
    match name {
        b"" => Err(PathError::EmptyName),
        b"." | b".." => Err(PathError::Dots),
        _ if name.len() > MAX_NAME_LEN => Err(PathError::TooLong),
        _ => Ok(()),
    }
}

impl fmt::Display for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printable(&self.0).fmt(f)
    }
}

impl fmt::Debug for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryPath({})", Printable(&self.0))
    }
}

/// Bytes from a peer or a disk as a terminal may show them: control characters, what changes the direction of text, backslashes and what
/// is not UTF-8 are escaped.
pub struct Printable<'a>(pub &'a [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if c == '\\' || c.is_control() || is_invisible(c) {
                    write!(f, "{}", c.escape_default())?;
                } else {
                    f.write_char(c)?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Characters that show nothing themselves and change how others are shown: Unicode's bidirectional controls, zero-width characters,
/// line and paragraph separators, tags.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_has_no_way_out_of_its_folder() {
        let long = [b'a'; 256];
        let cases: &[(&[u8], Result<(), PathError>)] = &[
            (b"a", Ok(())),
            (b"a/b c/\xff\n", Ok(())),
            (b"...", Ok(())),
            (b"..a/.b", Ok(())),
            (&long[..255], Ok(())),
            (b"", Err(PathError::EmptyName)),
            (b"/etc/passwd", Err(PathError::EmptyName)),
            (b"a/", Err(PathError::EmptyName)),
            (b"a//b", Err(PathError::EmptyName)),
            (b"..", Err(PathError::Dots)),
            (b"a/../b", Err(PathError::Dots)),
            (b"./a", Err(PathError::Dots)),
            (b"a\0b", Err(PathError::Zero)),
            (&long, Err(PathError::TooLong)),
        ];
        for (bytes, expected) in cases {
            assert_eq!(EntryPath::new(*bytes).map(|_| ()), *expected, "{}", Printable(bytes));
        }
        assert_eq!(EntryPath::new(vec![b'a'; 4096]), Err(PathError::TooLong));
    }

    #[test]
    fn control_characters_are_escaped_on_the_screen() {
        let shown = Printable(b"a\n\x1b[2J\xff\\\xe2\x80\xae\xc3\xa9 b").to_string();
        assert_eq!(shown, "a\\n\\u{1b}[2J\\xff\\\\\\u{202e}\u{e9} b");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_path_or_an_error(bytes in proptest::collection::vec(prop_oneof![Just(b'/'), Just(b'.'), any::<u8>()], 0..40)) {
            if let Ok(path) = EntryPath::new(bytes.clone()) {
                prop_assert_eq!(path.as_bytes(), &bytes[..]);
                let again = match path.parent() {
                    Some(parent) => parent.join(path.name()).unwrap(),
                    None => EntryPath::new(path.name()).unwrap(),
                };
                prop_assert_eq!(&again, &path);
                let components = std::path::Path::new(std::ffi::OsStr::new(&path.to_string())).components().count();
                prop_assert!(components >= 1);
            }
            prop_assert!(!Printable(&bytes).to_string().chars().any(char::is_control));
        }
    }
}
