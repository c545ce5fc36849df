//! The one error of every parser and emitter here.

use std::fmt;

/// Bytes that are not what they were read as, or a buffer that cannot hold what was to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Malformed {
    /// The header or field that does not fit.
    pub what: &'static str,
    /// How many bytes there were.
    pub len: usize,
}

impl Malformed {
    /// Names the header or field that `bytes` does not hold.
    #[must_use]
    pub const fn new(what: &'static str, bytes: &[u8]) -> Malformed {
        Malformed { what, len: bytes.len() }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed {} in {} bytes", self.what, self.len)
    }
}

impl std::error::Error for Malformed {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_and_how_many_bytes() {
        let malformed = Malformed::new("esp header", &[0; 7]);
        assert_eq!(malformed.to_string(), "malformed esp header in 7 bytes");
    }
}
