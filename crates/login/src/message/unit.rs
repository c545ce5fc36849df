//! The bytes of a channel in a message: as they are, or compressed.

use super::MAX_UNIT;
use super::fields::{FieldReader, put_number};
use crate::LoginError;

/// The flag: compressed.
const ZSTD: u8 = 1;
/// The flag: the history begins anew.
const ANEW: u8 = 2;

/// Bytes of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageUnit<'a> {
    /// As they are: 1 byte to 64 KiB.
    Stored(&'a [u8]),
    /// The next part of a Zstandard frame (RFC 8878, without magic number).
    Zstd {
        /// Whether this is the first part of a new frame.
        anew: bool,
        /// Bytes before compression: more than there are now, at most 64 KiB.
        raw: usize,
        /// The part of the frame.
        payload: &'a [u8],
    },
}

impl<'a> MessageUnit<'a> {
    pub(super) fn parse(body: &mut FieldReader<'a>) -> Result<MessageUnit<'a>, LoginError> {
        let flags = body.byte()?;
        let unit = match flags {
            0 => MessageUnit::Stored(body.rest()),
            ZSTD | 3 => {
                let raw = usize::try_from(body.number()?).map_err(|_| LoginError::Bound)?;
                MessageUnit::Zstd { anew: flags & ANEW != 0, raw, payload: body.rest() }
            }
            _ => return Err(LoginError::Unknown),
        };
        let possible = match unit {
            MessageUnit::Stored(bytes) => !bytes.is_empty() && bytes.len() <= MAX_UNIT,
            MessageUnit::Zstd { raw, payload, .. } => {
                !payload.is_empty() && payload.len() < raw && raw <= MAX_UNIT
            }
        };
        if possible { Ok(unit) } else { Err(LoginError::Bound) }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            MessageUnit::Stored(bytes) => {
                out.push(0);
                out.extend_from_slice(bytes);
            }
            MessageUnit::Zstd { anew, raw, payload } => {
                out.push(if *anew { ZSTD | ANEW } else { ZSTD });
                put_number(out, *raw as u64);
                out.extend_from_slice(payload);
            }
        }
    }

    /// Bytes before compression.
    #[must_use]
    pub fn raw(&self) -> usize {
        match self {
            MessageUnit::Stored(bytes) => bytes.len(),
            MessageUnit::Zstd { raw, .. } => *raw,
        }
    }
}
