//! The parts of a message's body.

use crate::LoginError;

/// Bytes of a text for a person at most.
pub const MAX_TEXT: usize = 512;

/// Reads fields from the front of a body.
#[derive(Debug)]
pub(super) struct FieldReader<'a> {
    rest: &'a [u8],
}

impl<'a> FieldReader<'a> {
    pub(super) fn new(body: &'a [u8]) -> FieldReader<'a> {
        FieldReader { rest: body }
    }

    pub(super) fn byte(&mut self) -> Result<u8, LoginError> {
        let (first, rest) = self.rest.split_first().ok_or(LoginError::Short)?;
        self.rest = rest;
        Ok(*first)
    }

    /// A flag: 0 or 1.
    pub(super) fn flag(&mut self) -> Result<bool, LoginError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(LoginError::Unknown),
        }
    }

    pub(super) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], LoginError> {
        let (first, rest) = self.rest.split_first_chunk().ok_or(LoginError::Short)?;
        self.rest = rest;
        Ok(*first)
    }

    pub(super) fn number(&mut self) -> Result<u64, LoginError> {
        let (number, length) = leb128(self.rest)?.ok_or(LoginError::Short)?;
        self.rest = &self.rest[length..];
        Ok(number)
    }

    pub(super) fn number16(&mut self) -> Result<u16, LoginError> {
        u16::try_from(self.number()?).map_err(|_| LoginError::Bound)
    }

    /// A byte string of at most `limit` bytes.
    pub(super) fn string(&mut self, limit: usize) -> Result<&'a [u8], LoginError> {
        let length = usize::try_from(self.number()?).map_err(|_| LoginError::Bound)?;
        if length > limit {
            return Err(LoginError::Bound);
        }
        let (first, rest) = self.rest.split_at_checked(length).ok_or(LoginError::Short)?;
        self.rest = rest;
        Ok(first)
    }

    /// One line of printable UTF-8.
    pub(super) fn text(&mut self, limit: usize) -> Result<String, LoginError> {
        let text = core::str::from_utf8(self.string(limit)?).map_err(|_| LoginError::Text)?;
        if text.chars().any(char::is_control) { Err(LoginError::Text) } else { Ok(text.to_owned()) }
    }

    /// What is left, as it is.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn end(&self) -> Result<(), LoginError> {
        if self.rest.is_empty() { Ok(()) } else { Err(LoginError::Long) }
    }
}

/// A number at the front of `bytes` and how many bytes it takes; nothing if they end inside it.
pub(crate) fn leb128(bytes: &[u8]) -> Result<Option<(u64, usize)>, LoginError> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().enumerate() {
        let (shift, bits) = (7 * at, u64::from(byte & 0x7f));
        // The tenth byte has one bit left; a last byte of 0 would be a longer form of the same number.
        if shift > 63 || (shift == 63 && bits > 1) || (*byte == 0 && at > 0) {
            return Err(LoginError::Number);
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(Some((value, at + 1)));
        }
    }
    Ok(None)
}

pub(crate) fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

pub(super) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A text of at most `limit` bytes: what is not printable becomes a question mark, and what is too long is cut off.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str, limit: usize) {
    let mut printable = String::new();
    for character in text.chars().map(|character| if character.is_control() { '?' } else { character }) {
        if printable.len() + character.len_utf8() > limit {
            break;
        }
        printable.push(character);
    }
    put_string(out, printable.as_bytes());
}
