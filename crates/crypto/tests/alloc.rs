//! Work on packets allocates nothing, neither in Rust nor in the libraries behind it.

#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::unwrap_used)]

#[path = "counting/malloc.rs"]
mod malloc;

use strait_crypto::{
    Cipher, CipherKey, ICV_LEN, ICV_MAX, IV_MAX, Integrity, Key, KeyMaterial, KeyedAlgorithm, MacKey,
    NonceCounter, Suite,
};

use malloc::calls;

fn material<A: KeyedAlgorithm>(algorithm: A) -> KeyMaterial<A> {
    KeyMaterial::new(algorithm, &vec![7; algorithm.key_material_len()]).unwrap()
}

#[test]
fn seal_and_open_allocate_nothing() {
    for suite in Suite::ALL {
        let material = material(suite);
        let before = calls();
        let key = Key::new(&material);
        assert!(calls() > before, "the library's own allocations are counted");
        let mut counter = NonceCounter::new();
        let mut packet = vec![0; 65_000 + ICV_LEN];
        // aws-lc keeps a record of errors a thread, made at the first: a thread's first forgery costs that.
        assert!(key.open(1, &[], &mut packet[..ICV_LEN]).is_err());

        let before = calls();
        for len in [0, 64, 1_400, 65_000] {
            for forged in [false, true] {
                let nonce = counter.next().unwrap();
                let iv = nonce.value();
                let tag = key.seal(nonce, &[1; 12], &mut packet[..len]).unwrap();
                packet[len..][..tag.len()].copy_from_slice(&tag);
                packet[len] ^= u8::from(forged);
                let opened = key.open(iv, &[1; 12], &mut packet[..len + tag.len()]);
                assert_eq!(opened.is_err(), forged);
            }
        }
        assert_eq!(calls(), before, "{suite} allocated");
    }
}

#[test]
fn a_cipher_and_an_integrity_algorithm_allocate_nothing() {
    let mut packet = vec![0; 65_024];
    // Every cipher with some integrity algorithm, every integrity algorithm with some cipher.
    for (cipher, integrity) in Cipher::ALL.into_iter().zip(Integrity::ALL.into_iter().cycle()) {
        let (material, secret) = (material(cipher), material(integrity));
        let before = calls();
        let (key, mac) = (CipherKey::new(&material), MacKey::new(&secret));
        assert!(calls() > before, "allocations are counted");

        let before = calls();
        let (mut iv, mut icv) = ([0; IV_MAX], [0; ICV_MAX]);
        let (iv, icv) = (&mut iv[..cipher.iv_len()], &mut icv[..integrity.icv_len()]);
        for (number, len) in [(1, 0), (2, 64), (3, 1_408), (4, 65_024)] {
            let text = &mut packet[..len];
            key.iv_for(number, 5, iv);
            key.encrypt(iv, text).unwrap();
            mac.sign(&[b"spi and number", iv, text], icv);
            mac.verify(&[b"spi and number", iv, text], icv).unwrap();
            mac.verify(&[b"spi and another", iv, text], icv).unwrap_err();
            key.decrypt(iv, text).unwrap();
        }
        assert_eq!(calls(), before, "{cipher} with {integrity} allocated");
    }
}

#[test]
fn refusing_blocks_allocates_nothing() {
    for cipher in Cipher::ALL.into_iter().filter(|cipher| cipher.block_len() > 1) {
        let key = CipherKey::new(&material(cipher));
        let before = calls();
        key.encrypt(&[0; IV_MAX][..cipher.iv_len()], &mut [0; 17]).unwrap_err();
        key.decrypt(&[0; 3], &mut [0; 16]).unwrap_err();
        assert_eq!(calls(), before, "{cipher} allocated");
    }
}
