//! Sealing and opening allocate nothing, neither in Rust nor in the library behind it.

#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::unwrap_used)]

#[path = "counting/malloc.rs"]
mod malloc;

use strait_crypto::{Aead, ICV_LEN, Key, KeyMaterial, MAX_KEY_MATERIAL, NonceCounter, Suite};

use malloc::calls;

#[test]
fn seal_and_open_allocate_nothing() {
    for suite in Suite::ALL {
        let material = KeyMaterial::new(suite, &[7; MAX_KEY_MATERIAL][..suite.key_material_len()]).unwrap();
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
                packet[len..][..ICV_LEN].copy_from_slice(&tag);
                packet[len] ^= u8::from(forged);
                let opened = key.open(iv, &[1; 12], &mut packet[..len + ICV_LEN]);
                assert_eq!(opened.is_err(), forged);
            }
        }
        assert_eq!(calls(), before, "{suite} allocated");
    }
}
