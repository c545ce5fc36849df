//! Reading published vectors, and checking a cipher against them both ways.

use std::collections::BTreeMap;

use crate::{Cipher, CipherKey, KeyMaterial};

/// The bytes that `digits`, with any white space among them, write in hexadecimal.
pub(crate) fn unhex(digits: &str) -> Vec<u8> {
    let digits: Vec<char> = digits.chars().filter(|digit| !digit.is_whitespace()).collect();
    let pairs = digits.chunks(2).map(|pair| pair.iter().collect::<String>());
    pairs.map(|pair| u8::from_str_radix(&pair, 16).unwrap()).collect()
}

/// One 64-bit block in hexadecimal.
pub(crate) fn block(digits: &str) -> u64 {
    u64::from_be_bytes(unhex(digits).try_into().unwrap())
}

/// A file of vectors that is no part of the project, where it is there.
pub(crate) fn file(name: &str) -> Option<String> {
    let path = strait_testdata::find_or_skip(&format!("vectors/{name}"))?;
    Some(std::fs::read_to_string(path).unwrap())
}

/// The cases of a NIST response file, or one of that form: after each `COUNT`, `NAME = hex` lines.
pub(crate) fn cases(file: &str) -> Vec<BTreeMap<String, Vec<u8>>> {
    let fields = |case: &str| {
        let lines = case.lines().skip(1).filter_map(|line| line.split_once('='));
        lines.map(|(name, value)| (name.trim().to_uppercase(), unhex(value))).collect()
    };
    file.split("COUNT").skip(1).map(fields).collect()
}

/// Encrypts `text` and decrypts `sealed`; each must become the other.
pub(crate) fn check(cipher: Cipher, key: &[u8], iv: &[u8], text: &[u8], sealed: &[u8]) {
    let key = CipherKey::new(&KeyMaterial::new(cipher, key).unwrap());
    let mut packet = text.to_vec();
    key.encrypt(iv, &mut packet).unwrap();
    assert_eq!(packet, sealed, "{cipher} encrypts");
    key.decrypt(iv, &mut packet).unwrap();
    assert_eq!(packet, text, "{cipher} decrypts");
}

/// [`check`], in hexadecimal: key, IV, text and what it is sealed.
pub(crate) fn check_hex(cipher: Cipher, vector: [&str; 4]) {
    let [key, iv, text, sealed] = vector.map(unhex);
    check(cipher, &key, &iv, &text, &sealed);
}

/// Every case of the response file `name`, of which there must be `expected`; the key is the fields `keys`,
/// one after another.
pub(crate) fn check_responses(cipher: Cipher, name: &str, keys: &[&str], expected: usize) {
    let Some(file) = file(name) else { return };
    let cases = cases(&file);
    for case in &cases {
        let key: Vec<u8> = keys.iter().flat_map(|name| case[*name].clone()).collect();
        check(cipher, &key, &case["IV"], &case["PLAINTEXT"], &case["CIPHERTEXT"]);
    }
    assert_eq!(cases.len(), expected, "{name}");
}
