//! Keys as people write them: read as what they are or refused, never repeated in an error, and one spelling each.

use strait_keying::manual::read_key;
use strait_keying::{PrivateKey, PublicKey};

/// What stands in a key file, or in a configuration.
pub fn check(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    match read_key(text) {
        Ok(key) => {
            let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(read_key(&format!("0x{hex}")).as_deref(), Ok(&*key));
        }
        Err(error) => not_repeated(text, &error.to_string()),
    }
    match text.parse::<PublicKey>() {
        Ok(key) => assert_eq!(key.to_string(), text.trim()),
        Err(error) => not_repeated(text, &error.to_string()),
    }
    match text.parse::<PrivateKey>() {
        Ok(key) => assert_eq!(key.expose().as_str(), text.trim()),
        Err(error) => not_repeated(text, &error.to_string()),
    }
}

/// The text may be most of a secret.
fn not_repeated(text: &str, error: &str) {
    assert!(!error.is_empty());
    // Keys have no blanks, and no word of an error is so long.
    let mut parts = text.split_whitespace().filter(|part| part.len() >= 20);
    assert!(parts.all(|part| !error.contains(part)), "{error}");
}
