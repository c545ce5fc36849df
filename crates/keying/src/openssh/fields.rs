//! SSH's fields: numbers of four bytes, and strings behind their length (RFC 4251 section 5).

use super::OpenSshError::{self, Malformed};

/// A string with its length before it.
pub(super) fn string(bytes: &[u8]) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).unwrap_or(0).to_be_bytes();
    [&len[..], bytes].concat()
}

/// What is left to read.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    /// The next four bytes as a number.
    pub(super) fn number(&mut self) -> Result<u32, OpenSshError> {
        let (number, rest) = self.0.split_first_chunk::<4>().ok_or(Malformed("it is cut off"))?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*number))
    }

    /// The next string.
    pub(super) fn string(&mut self) -> Result<&'a [u8], OpenSshError> {
        let len = usize::try_from(self.number()?).map_err(|_| Malformed("a field is too long"))?;
        let (string, rest) = self.0.split_at_checked(len).ok_or(Malformed("it is cut off"))?;
        self.0 = rest;
        Ok(string)
    }

    /// The next string, which has `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], OpenSshError> {
        self.string()?.try_into().map_err(|_| Malformed("a key has the wrong length"))
    }

    /// There is nothing left.
    pub(super) fn end(&self) -> Result<(), OpenSshError> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("something follows it")) }
    }
}
