//! The end of V.42bis that expands.

use super::dictionary::{BtlzDictionary, FIRST_WIDTH};
use super::{V42bisSettings, command, escape};

/// What a modem sends that is not as the Recommendation says: the connection is at its end (section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum V42bisError {
    /// A codeword of no string.
    UnknownString,
    /// Codewords longer than was agreed.
    TooWide,
    /// A command in transparent mode that there is not.
    UnknownCommand,
}

/// Expands what a [`V42bisEncoder`](super::V42bisEncoder) made of characters (V.42bis section 8).
#[derive(Clone, Debug)]
pub struct V42bisDecoder {
    settings: V42bisSettings,
    dictionary: BtlzDictionary,
    transparent: bool,
    escape: u8,
    /// Whether the last octet was the escape character.
    escaped: bool,
    width: u32,
    bits: (u32, u32),
}

impl V42bisDecoder {
    /// One that has seen nothing.
    #[must_use]
    pub fn new(settings: V42bisSettings) -> V42bisDecoder {
        V42bisDecoder {
            settings,
            dictionary: BtlzDictionary::new(settings),
            transparent: true,
            escape: 0,
            escaped: false,
            width: FIRST_WIDTH,
            bits: (0, 0),
        }
    }

    /// Takes an octet, and writes what is complete behind `out`: at most a string.
    ///
    /// # Errors
    /// [`V42bisError`] where the octet is not as it must be; the connection is of no use then.
    pub fn push(&mut self, octet: u8, out: &mut Vec<u8>) -> Result<(), V42bisError> {
        if self.transparent {
            return self.take(octet, out);
        }
        self.bits.0 |= u32::from(octet) << self.bits.1;
        self.bits.1 += 8;
        while !self.transparent && self.bits.1 >= self.width {
            let code = (self.bits.0 & ((1 << self.width) - 1)) as u16;
            self.bits.0 >>= self.width;
            self.bits.1 -= self.width;
            self.codeword(code, out)?;
        }
        Ok(())
    }

    /// An octet in transparent mode.
    fn take(&mut self, octet: u8, out: &mut Vec<u8>) -> Result<(), V42bisError> {
        if !core::mem::take(&mut self.escaped) {
            if octet == self.escape {
                self.escaped = true;
            } else {
                self.dictionary.take(octet);
                out.push(octet);
            }
            return Ok(());
        }
        match octet {
            escape::COMPRESS => {
                self.dictionary.close();
                self.transparent = false;
            }
            escape::DATA => {
                self.dictionary.take(self.escape);
                out.push(self.escape);
                self.escape = escape::after(self.escape);
            }
            escape::RESET => *self = V42bisDecoder::new(self.settings),
            _ => return Err(V42bisError::UnknownCommand),
        }
        Ok(())
    }

    fn codeword(&mut self, code: u16, out: &mut Vec<u8>) -> Result<(), V42bisError> {
        match code {
            // Both are followed by bits that only fill the octet.
            command::TRANSPARENT => {
                self.transparent = true;
                self.bits = (0, 0);
            }
            command::FLUSH => self.bits = (0, 0),
            command::STEP_UP => {
                self.width += 1;
                if self.width > self.settings.width() {
                    return Err(V42bisError::TooWide);
                }
            }
            code => {
                let from = out.len();
                if self.dictionary.expand(code, out).is_none() {
                    out.truncate(from);
                    return Err(V42bisError::UnknownString);
                }
                for octet in &out[from..] {
                    if *octet == self.escape {
                        self.escape = escape::after(self.escape);
                    }
                }
            }
        }
        Ok(())
    }
}
