//! Base64 without padding, one spelling for each value, as age's header has it.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The characters for `bytes`, none of which is secret.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 4 / 3 + 3);
    for group in bytes.chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..=group.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * place) & 63) as usize]));
        }
    }
    text
}

/// The bytes that `text` encodes; nothing where it is not what [`encode`] writes.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for group in text.chunks(4) {
        let mut bits = 0_u32;
        for &character in group {
            let value = ALPHABET.iter().position(|&known| known == character)?;
            bits = bits << 6 | u32::try_from(value).ok()?;
        }
        let spare = match group.len() {
            4 => 0,
            3 => 2,
            2 => 4,
            _ => return None,
        };
        if bits & ((1 << spare) - 1) != 0 {
            return None;
        }
        let count = group.len() - 1;
        bytes.extend_from_slice(&(bits >> spare).to_be_bytes()[4 - count..]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_those_of_the_rfc_without_padding() {
        // RFC 4648 section 10.
        for (bytes, text) in
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes.as_bytes()));
        }
        for text in ["Z", "Zh", "Zm9", "Zg==", "Zm 8", "Zm8\n"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(bytes: Vec<u8>) {
            prop_assert_eq!(decode(encode(&bytes).as_bytes()), Some(bytes));
        }
    }
}
