//! `LibTomCrypt`'s chained vectors (notes/cipher_tv.txt): the first key and block count from 0; every
//! ciphertext is the next block and, repeated as often as it takes, the next key.

use super::cbc64::BlockCipher64;
use crate::published::{block, file};

/// The ciphertexts of the chain of `cipher` with keys of `key_len` bytes.
fn chain(file: &str, cipher: &str, key_len: usize) -> Vec<u64> {
    let (_, of_cipher) = file.split_once(&format!("Cipher: {cipher}\n")).unwrap();
    let (_, of_length) = of_cipher.split_once(&format!("Key Size: {key_len} bytes\n")).unwrap();
    let steps = of_length.lines().map_while(|line| line.split_once(": "));
    steps.map(|(_, digits)| block(digits)).collect()
}

/// Follows the chain of `cipher` with ciphers that `with_key` makes.
pub(super) fn check_chain<C: BlockCipher64>(cipher: &str, key_len: usize, with_key: impl Fn(&[u8]) -> C) {
    let Some(file) = file("libtomcrypt-safer-rc5-rc2-des.txt") else { return };
    let ciphertexts = chain(&file, cipher, key_len);
    assert_eq!(ciphertexts.len(), 50, "{cipher}");
    let mut key: Vec<u8> = (0..=u8::MAX).take(key_len).collect();
    let mut text = 0x0001_0203_0405_0607;
    for ciphertext in ciphertexts {
        let keyed = with_key(&key);
        assert_eq!(keyed.encrypt_block(text), ciphertext, "{cipher}");
        assert_eq!(keyed.decrypt_block(ciphertext), text, "{cipher}");
        key = ciphertext.to_be_bytes().into_iter().cycle().take(key_len).collect();
        text = ciphertext;
    }
}
