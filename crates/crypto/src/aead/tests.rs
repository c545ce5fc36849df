//! Every suite against published vectors and against tampering.

mod vectors;

use strait_clock::Random;

use super::*;
use crate::NonceCounter;

fn random_bytes(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| random.next_u64().to_le_bytes()[0]).collect()
}

fn material(suite: Suite, random: &mut Random) -> KeyMaterial {
    KeyMaterial::new(suite, &random_bytes(random, suite.key_material_len())).unwrap()
}

/// A key of every suite.
fn every_key() -> Vec<Key> {
    let mut random = Random::new(1);
    Suite::ALL.iter().map(|suite| Key::new(&material(*suite, &mut random))).collect()
}

/// Ciphertext then tag of `text`, sealed with number 1.
fn seal(key: &Key, aad: &[u8], text: &[u8]) -> Vec<u8> {
    let mut sealed = text.to_vec();
    let tag = key.seal(NonceCounter::new().next().unwrap(), aad, &mut sealed).unwrap();
    sealed.extend_from_slice(&tag);
    sealed
}

#[test]
fn round_trips_at_every_small_length_and_at_the_longest() {
    let mut random = Random::new(2);
    for key in every_key() {
        for len in (0..=300).chain([1_400, 1_500, 9_000, 65_000, 65_535]) {
            let aad = random_bytes(&mut random, len % 20);
            let text = random_bytes(&mut random, len);
            let mut sealed = seal(&key, &aad, &text);
            assert_eq!(sealed.len(), len + key.suite().icv_len());
            assert!(len < 16 || sealed[..len] != text, "{} of {len} bytes left in clear", key.suite());
            assert_eq!(key.open(1, &aad, &mut sealed).unwrap(), text, "{} of {len} bytes", key.suite());
        }
    }
}

#[test]
fn any_byte_changed_is_a_forgery() {
    let (aad, text) =
        ([1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 1], b"a packet of no particular interest".as_slice());
    for key in every_key() {
        let sealed = seal(&key, &aad, text);
        for place in 0..sealed.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut tampered = sealed.clone();
                tampered[place] ^= flip;
                assert_eq!(key.open(1, &aad, &mut tampered), Err(Forged), "{} byte {place}", key.suite());
            }
        }
        for place in 0..aad.len() {
            let mut other = aad;
            other[place] ^= 1;
            assert_eq!(key.open(1, &other, &mut sealed.clone()), Err(Forged), "{} aad {place}", key.suite());
        }
        for bit in 0..64 {
            let iv = 1 ^ (1_u64 << bit);
            assert_eq!(key.open(iv, &aad, &mut sealed.clone()), Err(Forged), "{} iv {iv}", key.suite());
        }
    }
}

#[test]
fn any_other_length_is_a_forgery() {
    for key in every_key() {
        let sealed = seal(&key, b"aad", b"thirty bytes of text, or about");
        for len in 0..sealed.len() {
            assert_eq!(key.open(1, b"aad", &mut sealed[..len].to_vec()), Err(Forged), "{len} bytes");
        }
        let mut longer = sealed.clone();
        longer.push(0);
        assert_eq!(key.open(1, b"aad", &mut longer), Err(Forged));
    }
}

#[test]
fn the_salt_and_the_key_are_both_part_of_the_secret() {
    for suite in Suite::ALL {
        let bytes = random_bytes(&mut Random::new(3), suite.key_material_len());
        let sealed = seal(&Key::new(&KeyMaterial::new(suite, &bytes).unwrap()), b"", b"text");
        for place in 0..bytes.len() {
            let mut other = bytes.clone();
            other[place] ^= 1;
            let key = Key::new(&KeyMaterial::new(suite, &other).unwrap());
            assert_eq!(key.open(1, b"", &mut sealed.clone()), Err(Forged), "{suite} byte {place}");
        }
    }
}

#[test]
fn keys_never_print_and_cross_threads() {
    const fn shared<T: Send + Sync>(_: &T) {}
    let key = Key::new(&material(Suite::Aes128Gcm, &mut Random::new(5)));
    shared(&key);
    assert_eq!(format!("{key:?}"), "[key]");
    assert_eq!(key.suite(), Suite::Aes128Gcm);
}
