//! What holds for every cipher; published vectors are where each cipher is made.

use std::collections::BTreeSet;

use proptest::prelude::*;
use strait_clock::Random;

use super::*;
use crate::published::{check, file, unhex};

fn random_bytes(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| random.next_u64().to_le_bytes()[0]).collect()
}

/// A key of `cipher` that depends on `seed`.
fn key(cipher: Cipher, seed: u64) -> CipherKey {
    let bytes = random_bytes(&mut Random::new(seed), cipher.key_len());
    CipherKey::new(&KeyMaterial::new(cipher, &bytes).unwrap())
}

#[test]
fn round_trips_at_every_number_of_blocks() {
    let mut random = Random::new(1);
    for cipher in Cipher::ALL {
        let key = key(cipher, 2);
        for blocks in 0..=200 {
            let iv = random_bytes(&mut random, cipher.iv_len());
            let text = random_bytes(&mut random, blocks * cipher.block_len());
            let mut packet = text.clone();
            key.encrypt(&iv, &mut packet).unwrap();
            let left_in_clear = text.len() >= 8 && packet == text;
            assert_eq!(left_in_clear, cipher == Cipher::Null && text.len() >= 8, "{cipher}, {blocks} blocks");
            key.decrypt(&iv, &mut packet).unwrap();
            assert_eq!(packet, text, "{cipher}, {blocks} blocks");
        }
    }
}

#[test]
fn only_whole_blocks_and_a_whole_iv_are_taken_and_nothing_else_is_touched() {
    for cipher in Cipher::ALL {
        let key = key(cipher, 3);
        for iv_len in 0..=IV_MAX + 1 {
            for text_len in 0..=2 * IV_MAX + 1 {
                let (iv, mut text) = (vec![1; iv_len], vec![2; text_len]);
                let fits = iv_len == cipher.iv_len() && text_len.is_multiple_of(cipher.block_len());
                let expected =
                    if fits { Ok(()) } else { Err(WrongBlocks { cipher, iv: iv_len, text: text_len }) };
                assert_eq!(key.encrypt(&iv, &mut text), expected);
                assert!(fits || text == vec![2; text_len], "{cipher} touched what it refused");
                assert_eq!(key.decrypt(&iv, &mut text), expected);
                assert_eq!(text, vec![2; text_len], "{cipher}");
            }
        }
    }
}

#[test]
fn the_message_says_what_would_fit() {
    let wrong = key(Cipher::Aes128Cbc, 4).encrypt(&[0; 8], &mut [0; 20]).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "aes-128-cbc takes an IV of 16 bytes and text in blocks of 16, not an IV of 8 and text of 20"
    );
}

#[test]
fn every_bit_of_key_iv_and_text_matters() {
    for cipher in Cipher::ALL.into_iter().filter(|cipher| *cipher != Cipher::Null) {
        let bytes = random_bytes(&mut Random::new(5), cipher.key_len());
        let (iv, text) = (vec![3; cipher.iv_len()], vec![4; 2 * cipher.block_len().max(8)]);
        let sealed = |key: &[u8], iv: &[u8], text: &[u8]| {
            let mut packet = text.to_vec();
            let key = CipherKey::new(&KeyMaterial::new(cipher, key).unwrap());
            key.encrypt(iv, &mut packet).unwrap();
            packet
        };
        let flipped = |bytes: &[u8], bit: usize| {
            let mut bytes = bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        };
        let usual = sealed(&bytes, &iv, &text);
        let is_des = matches!(cipher, Cipher::DesCbc | Cipher::TripleDesCbc | Cipher::TwoKeyTripleDesCbc);
        for bit in 0..8 * bytes.len() {
            let is_parity = is_des && bit % 8 == 0;
            assert_eq!(
                sealed(&flipped(&bytes, bit), &iv, &text) == usual,
                is_parity,
                "{cipher} key bit {bit}"
            );
        }
        for bit in 0..8 * iv.len() {
            assert_ne!(sealed(&bytes, &flipped(&iv, bit), &text), usual, "{cipher} IV bit {bit}");
        }
        for bit in 0..8 * text.len() {
            assert_ne!(sealed(&bytes, &iv, &flipped(&text, bit)), usual, "{cipher} text bit {bit}");
        }
    }
}

#[test]
fn an_iv_is_the_forward_cipher_of_its_nonce() {
    for cipher in Cipher::ALL {
        let key = key(cipher, 6);
        let mut iv = vec![0; cipher.iv_len()];
        key.iv_for(0x0102, 0x0a00_0000_0000_0000, &mut iv);
        let nonce = match iv.len() {
            0 => vec![],
            8 => unhex("0a00000000000102"),
            _ => unhex("0a00000000000000 0000000000000102"),
        };
        key.decrypt(&vec![0; iv.len()], &mut iv).unwrap();
        assert_eq!(iv, nonce, "{cipher}");
    }
}

#[test]
#[should_panic(expected = "the IV of aes-128-cbc")]
fn an_iv_has_its_own_length() {
    key(Cipher::Aes128Cbc, 7).iv_for(1, 2, &mut [0; 8]);
}

proptest! {
    #[test]
    fn no_two_numbers_have_one_iv(first: u64, seed: u64, which in 0..Cipher::ALL.len()) {
        let cipher = Cipher::ALL[which];
        let key = key(cipher, 8);
        let iv = |number| {
            let mut iv = vec![0; cipher.iv_len()];
            key.iv_for(number, seed, &mut iv);
            iv
        };
        let ivs: BTreeSet<Vec<u8>> = (0..50).map(|step| iv(first.wrapping_add(step))).collect();
        prop_assert_eq!(ivs.len(), if cipher.iv_len() == 0 { 1 } else { 50 });
    }
}

/// RFC 2410 section 2.5; the first case has 15 digits for 8 bytes there.
#[test]
fn null_changes_nothing() {
    let told = b"Network Security People Have A Strange Sense Of Humor";
    check(Cipher::Null, &[], &[], told, told);
    check(Cipher::Null, &[], &[], &unhex("0123456789abcdef"), &unhex("0123456789abcdef"));
    let Some(file) = file("rfc2410-null.txt") else { return };
    assert!(file.matches(std::str::from_utf8(told).unwrap()).count() == 2, "the text is the one above");
}

#[test]
fn keys_never_print_and_cross_threads() {
    const fn shared<T: Send + Sync>(_: &T) {}
    for cipher in Cipher::ALL {
        let key = key(cipher, 9);
        shared(&key);
        assert_eq!(format!("{key:?}"), "[key]");
        assert_eq!(key.cipher(), cipher);
    }
}
