//! Sealing and opening packets in place.

use core::fmt;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

use crate::{FreshNonce, ICV_LEN, IV_LEN, KeyMaterial, SALT_LEN, Suite};

/// A packet that was not sealed with this key, this IV and this associated data: drop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the packet's integrity check failed")]
pub struct Forged;

/// A text the suite cannot seal because it is beyond the algorithm's limit of some 64 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{suite} cannot seal {len} bytes at once: seal shorter packets")]
pub struct SealError {
    /// The suite that refused.
    pub suite: Suite,
    /// Bytes of the refused text.
    pub len: usize,
}

/// Authenticated encryption with one key; neither direction allocates.
///
/// Prints as `[key]`. aws-lc wipes its schedule when freed.
pub struct Key {
    suite: Suite,
    salt: Zeroizing<[u8; SALT_LEN]>,
    scheduled: LessSafeKey,
}

impl Key {
    /// The key in `material`.
    ///
    /// # Panics
    /// Only when the library is out of memory.
    #[must_use]
    pub fn new(material: &KeyMaterial) -> Key {
        let suite = material.algorithm();
        let algorithm = match suite {
            Suite::Aes128Gcm => &AES_128_GCM,
            Suite::Aes256Gcm => &AES_256_GCM,
            Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        // A key of the algorithm's own length, which `KeyMaterial` guarantees, is always taken.
        let key =
            UnboundKey::new(algorithm, material.key()).expect("keying material has the suite's key length");
        Key { suite, salt: Zeroizing::new(material.salt()), scheduled: LessSafeKey::new(key) }
    }

    /// The suite of this key.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Encrypts `text` in place and returns the integrity check value that goes after it.
    ///
    /// # Errors
    /// [`SealError`] when `text` is longer than the algorithm allows; `text` is then garbage to drop.
    pub fn seal(&self, fresh: FreshNonce, aad: &[u8], text: &mut [u8]) -> Result<[u8; ICV_LEN], SealError> {
        let refused = SealError { suite: self.suite, len: text.len() };
        let nonce = nonce(*self.salt, fresh.value());
        let tag =
            self.scheduled.seal_in_place_separate_tag(nonce, Aad::from(aad), text).map_err(|_| refused)?;
        tag.as_ref().try_into().map_err(|_| refused)
    }

    /// Checks `sealed`, ciphertext then integrity check value, and decrypts it in place.
    ///
    /// `iv` is the packet's explicit IV, or its 64-bit sequence number where the IV is implicit
    /// (RFC 8750). Returns the plaintext at the front of `sealed`.
    ///
    /// # Errors
    /// [`Forged`] when anything differs from what was sealed, or `sealed` is shorter than the check
    /// value; what is left in `sealed` must not be used.
    pub fn open<'a>(&self, iv: u64, aad: &[u8], sealed: &'a mut [u8]) -> Result<&'a mut [u8], Forged> {
        self.scheduled.open_in_place(nonce(*self.salt, iv), Aad::from(aad), sealed).map_err(|_| Forged)
    }
}

/// The nonce of `salt` and `iv`, as all suites take it: salt, then the IV as eight bytes in network order (RFC 4106 section 4,
/// RFC 7634 section 2, RFC 8750 section 4).
fn nonce(salt: [u8; SALT_LEN], iv: u64) -> Nonce {
    let mut nonce = [0; SALT_LEN + IV_LEN];
    nonce[..SALT_LEN].copy_from_slice(&salt);
    nonce[SALT_LEN..].copy_from_slice(&iv.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

#[cfg(test)]
mod tests;
