//! A secret as people write it: hex digits after `0x`, as `ip xfrm` takes it, or base64.

use zeroize::Zeroizing;

use crate::base64::{self, DecodeError};

/// Hex digits without `0x` in front are told from base64 from this many on: fewer are no key, and that many
/// characters of base64 have no letter beyond `f` once in some millions.
const TELLING: usize = 16;

/// A text that is not a key; it never repeats the text, which may be most of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyTextError {
    /// Nothing at all.
    #[error("is empty")]
    Empty,
    /// Half a byte is missing.
    #[error("has an odd number of hex digits ({digits})")]
    OddDigits {
        /// How many there are.
        digits: usize,
    },
    /// Something else among the hex digits.
    #[error("is not hex: character {place} is not one of 0-9 and a-f")]
    NotHex {
        /// Which character, counted from 1.
        place: usize,
    },
    /// What was meant as hex would be read as base64.
    #[error("is hex without `0x` in front, and without it would be read as base64")]
    BareHex,
    /// Something else among the characters of base64.
    #[error("is neither hex after `0x` nor base64: character {place} belongs to neither")]
    NotBase64 {
        /// Which character, counted from 1.
        place: usize,
    },
    /// Cut off.
    #[error("is base64 that was cut off or mistyped at its end")]
    BadEnd,
}

/// The secret bytes that `text` encodes, spaces around it left out.
///
/// # Errors
/// [`KeyTextError`].
pub fn read_key(text: &str) -> Result<Zeroizing<Vec<u8>>, KeyTextError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(KeyTextError::Empty);
    }
    if let Some(digits) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        return hex(digits);
    }
    if text.len() >= TELLING && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(KeyTextError::BareHex);
    }
    base64::decode_any(text).map_err(|error| match error {
        DecodeError::Character(place) => KeyTextError::NotBase64 { place },
        DecodeError::Length(_) | DecodeError::Padding | DecodeError::Spelling => KeyTextError::BadEnd,
    })
}

fn hex(digits: &str) -> Result<Zeroizing<Vec<u8>>, KeyTextError> {
    if digits.is_empty() {
        return Err(KeyTextError::Empty);
    }
    // In one piece from the start, so that growing leaves no copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(digits.len() / 2));
    let mut high = None;
    for (at, digit) in digits.bytes().enumerate() {
        let value = hex_value(digit).ok_or(KeyTextError::NotHex { place: at + "0x".len() + 1 })?;
        match high.take() {
            None => high = Some(value << 4),
            Some(high) => bytes.push(high | value),
        }
    }
    if high.is_some() { Err(KeyTextError::OddDigits { digits: digits.len() }) } else { Ok(bytes) }
}

/// The four bits of a hex digit, by arithmetic alone, as [`crate::base64`] does it.
fn hex_value(digit: u8) -> Option<u8> {
    let c = i16::from(digit);
    let within = |low: u8, high: u8| ((i16::from(low) - 1 - c) & (c - i16::from(high) - 1)) >> 8;
    let value = -1
        + (within(b'0', b'9') & (c - i16::from(b'0') + 1))
        + (within(b'a', b'f') & (c - i16::from(b'a') + 11))
        + (within(b'A', b'F') & (c - i16::from(b'A') + 11));
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hex_and_base64_are_accepted() {
        for text in ["0x000102ff", "0X000102FF", " 0x000102fF\n", "AAEC/w==", "AAEC/w==\n"] {
            assert_eq!(read_key(text).unwrap().as_slice(), [0, 1, 2, 255], "{text}");
        }
    }

    #[test]
    fn error_names_what_is_wrong() {
        for (text, wrong) in [
            ("", KeyTextError::Empty),
            ("0x", KeyTextError::Empty),
            ("0x123", KeyTextError::OddDigits { digits: 3 }),
            ("0x12g4", KeyTextError::NotHex { place: 5 }),
            ("0xé", KeyTextError::NotHex { place: 3 }),
            ("00112233445566778899aabbccddeeff", KeyTextError::BareHex),
            ("AAE!", KeyTextError::NotBase64 { place: 4 }),
            ("AAEC/w=", KeyTextError::BadEnd),
            ("AAEC/x==", KeyTextError::BadEnd),
        ] {
            assert_eq!(read_key(text).map(|_| ()), Err(wrong), "{text}");
        }
    }

    proptest! {
        #[test]
        fn hex_round_trip(bytes in proptest::collection::vec(any::<u8>(), 1..70)) {
            let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let read = read_key(&format!("0x{text}")).unwrap();
            prop_assert_eq!(read.as_slice(), bytes.as_slice());
        }

        #[test]
        fn never_panics_on_any_input(text: String) {
            let _ = read_key(&text);
        }
    }
}
