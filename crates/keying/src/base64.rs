//! Base64 (RFC 4648 section 4), the text form of keys.
//!
//! No table is indexed by a secret and no branch depends on one, so that reading or writing a private
//! key leaves no trace of it in caches; only whether the text is well-formed shows.

use zeroize::Zeroizing;

/// Bytes in a key.
pub(crate) const BYTES: usize = 32;
/// Characters of a key as text: 43 that carry bits and one `=`.
pub(crate) const CHARS: usize = 44;

/// Why text is not the base64 of 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// It has this many characters instead of 44, or of a multiple of 4.
    Length(usize),
    /// The character at this place, counted from 1, is not one of base64's.
    Character(usize),
    /// The last character is not `=`.
    Padding,
    /// The unused bits of the last character are not zero, so this is a second spelling of some key.
    Spelling,
}

/// The characters for `bytes`, 44 for a key.
pub(crate) fn encode(bytes: &[u8]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(bytes.len().div_ceil(3) * 4));
    for group in bytes.chunks(3) {
        let at = |place: usize| group.get(place).copied().unwrap_or(0);
        let bits = u32::from(at(0)) << 16 | u32::from(at(1)) << 8 | u32::from(at(2));
        for place in 0..4_usize {
            let shift = 18 - 6 * place;
            let sextet = u8::try_from(bits >> shift & 0x3f).unwrap_or(0);
            text.push(if place <= group.len() { char::from(letter(sextet)) } else { '=' });
        }
    }
    text
}

/// The 32 bytes that `text` encodes; each key has exactly one encoding.
pub(crate) fn decode(text: &str) -> Result<Zeroizing<[u8; BYTES]>, DecodeError> {
    let count = text.chars().count();
    if count != CHARS {
        return Err(DecodeError::Length(count));
    }
    let Some((b'=', digits)) = text.as_bytes().split_last() else { return Err(DecodeError::Padding) };
    let mut bytes = Zeroizing::new([0; BYTES]);
    read(digits, bytes.as_mut_slice())?;
    Ok(bytes)
}

/// The bytes that `text` encodes, of any number, with all padding.
pub(crate) fn decode_any(text: &str) -> Result<Zeroizing<Vec<u8>>, DecodeError> {
    if !text.len().is_multiple_of(4) {
        return Err(DecodeError::Length(text.chars().count()));
    }
    let digits = text.strip_suffix("==").or(text.strip_suffix('=')).unwrap_or(text).as_bytes();
    let mut bytes = Zeroizing::new(vec![0; digits.len() * 3 / 4]);
    read(digits, &mut bytes)?;
    Ok(bytes)
}

/// Decodes `digits`, which fill `bytes`.
fn read(digits: &[u8], bytes: &mut [u8]) -> Result<(), DecodeError> {
    let (mut bits, mut held, mut next) = (0_u32, 0_u32, 0_usize);
    for (place, &digit) in digits.iter().enumerate() {
        let value = u32::try_from(value(digit)).map_err(|_| DecodeError::Character(place + 1))?;
        bits = bits << 6 | value;
        held += 6;
        if held >= 8 {
            held -= 8;
            if let Some(byte) = bytes.get_mut(next) {
                *byte = u8::try_from(bits >> held & 0xff).unwrap_or(0);
            }
            next += 1;
        }
    }
    if bits & ((1 << held) - 1) != 0 { Err(DecodeError::Spelling) } else { Ok(()) }
}

/// The character for six bits, by arithmetic alone.
fn letter(sextet: u8) -> u8 {
    let value = i16::from(sextet);
    let mut letter = value + i16::from(b'A');
    letter += ((25 - value) >> 8) & (i16::from(b'a') - i16::from(b'A') - 26);
    letter += ((51 - value) >> 8) & (i16::from(b'0') - i16::from(b'a') - 26);
    letter += ((61 - value) >> 8) & (i16::from(b'+') - i16::from(b'0') - 10);
    letter += ((62 - value) >> 8) & (i16::from(b'/') - i16::from(b'+') - 1);
    u8::try_from(letter).unwrap_or(0)
}

/// The six bits of a character, or -1, by arithmetic alone.
fn value(character: u8) -> i16 {
    let c = i16::from(character);
    let within = |low: u8, high: u8| ((i16::from(low) - 1 - c) & (c - i16::from(high) - 1)) >> 8;
    -1 + (within(b'A', b'Z') & (c - i16::from(b'A') + 1))
        + (within(b'a', b'z') & (c - i16::from(b'a') + 27))
        + (within(b'0', b'9') & (c - i16::from(b'0') + 53))
        + (within(b'+', b'+') & 63)
        + (within(b'/', b'/') & 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    #[test]
    fn the_alphabet_is_that_of_the_rfc() {
        for sextet in 0..64_u8 {
            assert_eq!(letter(sextet), ALPHABET[usize::from(sextet)]);
        }
        for character in 0..=u8::MAX {
            let place = ALPHABET.iter().position(|&known| known == character);
            assert_eq!(value(character), place.map_or(-1, |place| i16::try_from(place).unwrap()));
        }
    }

    #[test]
    fn known_key_encodes_and_decodes() {
        let bytes: [u8; 32] = core::array::from_fn(|at| u8::try_from(at).unwrap());
        let text = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        assert_eq!(encode(&bytes).as_str(), text);
        assert_eq!(*decode(text).unwrap(), bytes);
    }

    #[test]
    fn error_names_what_is_wrong() {
        let good = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let table = [
            (String::new(), DecodeError::Length(0)),
            (good[..43].to_owned(), DecodeError::Length(43)),
            (format!("{good}="), DecodeError::Length(45)),
            (good.replace('=', "A"), DecodeError::Padding),
            (good.replacen('Q', "-", 1), DecodeError::Character(7)),
            (good.replacen('Q', "=", 1), DecodeError::Character(7)),
            (good.replace("8=", "9="), DecodeError::Spelling),
        ];
        for (text, wrong) in table {
            assert_eq!(decode(&text).map(|_| ()), Err(wrong), "{text}");
        }
    }

    #[test]
    fn key_of_another_length_is_refused() {
        // RFC 4648 section 10.
        for (text, bytes) in [
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("", ""),
        ] {
            assert_eq!(decode_any(text).unwrap().as_slice(), bytes.as_bytes());
        }
        for (text, wrong) in [
            ("Zg=", DecodeError::Length(3)),
            ("Z===", DecodeError::Character(2)),
            ("Zh==", DecodeError::Spelling),
            ("Z-==", DecodeError::Character(2)),
        ] {
            assert_eq!(decode_any(text).map(|_| ()), Err(wrong), "{text}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(bytes: [u8; 32]) {
            prop_assert_eq!(*decode(&encode(&bytes)).unwrap(), bytes);
            let any = decode_any(&encode(&bytes)).unwrap();
            prop_assert_eq!(any.as_slice(), bytes);
        }

        #[test]
        fn one_spelling_a_key(text in "[A-Za-z0-9+/=]{44}") {
            if let Ok(bytes) = decode(&text) {
                let again = encode(bytes.as_slice());
                prop_assert_eq!(again.as_str(), text.as_str());
            }
        }

        #[test]
        fn never_panics_on_any_input(text: String) {
            let _ = (decode(&text), decode_any(&text));
        }
    }
}
