//! The parts of a message's body.

use thiserror::Error;

use crate::path::EntryPath;

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MessageFault {
    /// The body ends inside a field.
    #[error("a message ends inside a field")]
    Short,
    /// The body goes on after its last field.
    #[error("a message goes on after its last field")]
    Long,
    /// A number is not LEB128 in its shortest form, or has more than 64 bits.
    #[error("a number in a message is malformed")]
    Number,
    /// A length, a count or a range is beyond what the protocol allows.
    #[error("a length, a count or a range in a message is out of bounds")]
    Bound,
    /// A type, a kind or a flag is not known.
    #[error("a message has an unknown type, kind or flag")]
    Unknown,
    /// A path is empty, absolute, or has a component that is empty, `.`, `..`, too long or has a zero byte.
    #[error("a path in a message is malformed")]
    Path,
}

/// Reads fields from the front of a body.
#[derive(Debug)]
pub(crate) struct BodyReader<'a> {
    rest: &'a [u8],
}

impl<'a> BodyReader<'a> {
    pub(crate) fn new(body: &'a [u8]) -> BodyReader<'a> {
        BodyReader { rest: body }
    }

    pub(crate) fn byte(&mut self) -> Result<u8, MessageFault> {
        let (first, rest) = self.rest.split_first().ok_or(MessageFault::Short)?;
        self.rest = rest;
        Ok(*first)
    }

    /// A flag: 0 or 1.
    pub(crate) fn flag(&mut self) -> Result<bool, MessageFault> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(MessageFault::Unknown),
        }
    }

    pub(crate) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], MessageFault> {
        let (first, rest) = self.rest.split_first_chunk().ok_or(MessageFault::Short)?;
        self.rest = rest;
        Ok(*first)
    }

    pub(crate) fn number(&mut self) -> Result<u64, MessageFault> {
        let mut value = 0_u64;
        for shift in (0..).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has one bit left; a last byte of 0 would be a longer form of the same number.
            if shift > 63 || (shift == 63 && bits > 1) || (byte == 0 && shift > 0) {
                return Err(MessageFault::Number);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok(value)
    }

    pub(crate) fn number32(&mut self) -> Result<u32, MessageFault> {
        u32::try_from(self.number()?).map_err(|_| MessageFault::Bound)
    }

    /// A byte string of at most `limit` bytes.
    pub(crate) fn string(&mut self, limit: usize) -> Result<&'a [u8], MessageFault> {
        let length = usize::try_from(self.number()?).map_err(|_| MessageFault::Bound)?;
        if length > limit {
            return Err(MessageFault::Bound);
        }
        let (first, rest) = self.rest.split_at_checked(length).ok_or(MessageFault::Short)?;
        self.rest = rest;
        Ok(first)
    }

    /// Byte strings until the end of a list of at most `limit` bytes.
    pub(crate) fn strings(&mut self, limit: usize) -> Result<Vec<Vec<u8>>, MessageFault> {
        let mut list = BodyReader::new(self.string(limit)?);
        let mut all = Vec::new();
        while !list.rest.is_empty() {
            all.push(list.string(limit)?.to_vec());
        }
        Ok(all)
    }

    /// A range as two numbers, the second not below the first.
    pub(crate) fn ordered(&mut self) -> Result<(u64, u64), MessageFault> {
        let (first, more) = (self.number()?, self.number()?);
        Ok((first, first.checked_add(more).ok_or(MessageFault::Bound)?))
    }

    /// What is left, as it is.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(crate) fn end(&self) -> Result<(), MessageFault> {
        if self.rest.is_empty() { Ok(()) } else { Err(MessageFault::Long) }
    }
}

pub(crate) fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

pub(crate) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn put_strings(out: &mut Vec<u8>, all: &[Vec<u8>]) {
    let mut list = Vec::new();
    for one in all {
        put_string(&mut list, one);
    }
    put_string(out, &list);
}

pub(crate) fn put_ordered(out: &mut Vec<u8>, first: u64, last: u64) {
    put_number(out, first);
    put_number(out, last.saturating_sub(first));
}

/// Whether bytes are an [`EntryPath`]. What a peer names is checked here first, and again by the system where it is opened.
pub(crate) fn checked_path(path: &[u8]) -> Result<(), MessageFault> {
    EntryPath::new(path).map(drop).map_err(|_| MessageFault::Path)
}
