//! What names a transfer.

use core::fmt;
use core::str::FromStr;

/// 16 random bytes that name a transfer through every resume; 32 digits of hexadecimal as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferId([u8; 16]);

/// A text that is not 32 digits of hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a transfer has 32 digits of 0-9 and a-f")]
pub struct ParseTransferIdError;

impl TransferId {
    /// The transfer with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> TransferId {
        TransferId(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for TransferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&hex(&self.0))
    }
}

impl fmt::Debug for TransferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for TransferId {
    type Err = ParseTransferIdError;

    /// Reads what `Display` writes, and nothing else: there is one spelling.
    fn from_str(text: &str) -> Result<TransferId, ParseTransferIdError> {
        let bytes = unhex(text).ok_or(ParseTransferIdError)?;
        bytes.try_into().map(TransferId).map_err(|_| ParseTransferIdError)
    }
}

/// Two digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }));
        }
    }
    text
}

/// The bytes that [`hex`] wrote so.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_and_has_one_spelling() {
        let id = TransferId::from_bytes(core::array::from_fn(|at| at as u8 * 17));
        assert_eq!(id.to_string(), "00112233445566778899aabbccddeeff");
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in
            ["", "00", "00112233445566778899AABBCCDDEEFF", "00112233445566778899aabbccddeeff0", "\u{e4}0"]
        {
            assert_eq!(text.parse::<TransferId>(), Err(ParseTransferIdError), "{text}");
        }
    }
}
