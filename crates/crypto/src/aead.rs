//! Sealing and opening packets in place.

use core::fmt;
use core::ops::Deref;

use aes_gcm::aead::AeadInOut;
use aes_gcm::aead::consts::U12;
use aes_gcm::{AesGcm, KeyInit};
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

/// The integrity check value of a packet, as long as its suite has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icv {
    bytes: [u8; ICV_LEN],
    len: usize,
}

impl Icv {
    fn new(tag: &[u8]) -> Icv {
        let mut bytes = [0; ICV_LEN];
        let len = tag.len().min(ICV_LEN);
        bytes[..len].copy_from_slice(&tag[..len]);
        Icv { bytes, len }
    }
}

impl Deref for Icv {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A key as the library that has its suite keeps it.
enum Scheduled {
    /// aws-lc wipes its schedule when freed. It takes no ICV that was cut.
    Whole(LessSafeKey),
    /// AES-GCM with a nonce and an ICV of 12 bytes; wiped when dropped.
    Cut(Box<AesGcm<aes_gcm::aes::Aes128, U12, U12>>),
}

/// Authenticated encryption with one key; neither direction allocates.
///
/// Prints as `[key]`.
pub struct Key {
    suite: Suite,
    salt: Zeroizing<[u8; SALT_LEN]>,
    scheduled: Scheduled,
}

impl Key {
    /// The key in `material`.
    ///
    /// # Panics
    /// Only when the library is out of memory.
    #[must_use]
    pub fn new(material: &KeyMaterial) -> Key {
        let suite = material.algorithm();
        // A key of the algorithm's own length, which `KeyMaterial` guarantees, is always taken.
        const TAKEN: &str = "keying material has the suite's key length";
        let whole = |algorithm| {
            let key = UnboundKey::new(algorithm, material.key()).expect(TAKEN);
            Scheduled::Whole(LessSafeKey::new(key))
        };
        let scheduled = match suite {
            Suite::Aes128Gcm => whole(&AES_128_GCM),
            Suite::Aes256Gcm => whole(&AES_256_GCM),
            Suite::ChaCha20Poly1305 => whole(&CHACHA20_POLY1305),
            Suite::Aes128Gcm12 => {
                Scheduled::Cut(Box::new(AesGcm::new_from_slice(material.key()).expect(TAKEN)))
            }
        };
        Key { suite, salt: Zeroizing::new(material.salt()), scheduled }
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
    pub fn seal(&self, fresh: FreshNonce, aad: &[u8], text: &mut [u8]) -> Result<Icv, SealError> {
        let refused = SealError { suite: self.suite, len: text.len() };
        let nonce = nonce(*self.salt, fresh.value());
        match &self.scheduled {
            Scheduled::Whole(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(aad), text).map_err(|_| refused)?;
                Ok(Icv::new(tag.as_ref()))
            }
            Scheduled::Cut(key) => {
                let tag = key.encrypt_inout_detached(&nonce.into(), aad, text.into()).map_err(|_| refused)?;
                Ok(Icv::new(&tag))
            }
        }
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
        let nonce = nonce(*self.salt, iv);
        match &self.scheduled {
            Scheduled::Whole(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.open_in_place(nonce, Aad::from(aad), sealed).map_err(|_| Forged)
            }
            Scheduled::Cut(key) => {
                let text = sealed.len().checked_sub(self.suite.icv_len()).ok_or(Forged)?;
                let (text, icv) = sealed.split_at_mut(text);
                let icv: [u8; 12] = (&*icv).try_into().map_err(|_| Forged)?;
                key.decrypt_inout_detached(&nonce.into(), aad, (&mut *text).into(), &icv.into())
                    .map_err(|_| Forged)?;
                Ok(text)
            }
        }
    }
}

/// The nonce of `salt` and `iv`, as all suites take it: salt, then the IV as eight bytes in network order (RFC 4106 section 4,
/// RFC 7634 section 2, RFC 8750 section 4).
fn nonce(salt: [u8; SALT_LEN], iv: u64) -> [u8; SALT_LEN + IV_LEN] {
    let mut nonce = [0; SALT_LEN + IV_LEN];
    nonce[..SALT_LEN].copy_from_slice(&salt);
    nonce[SALT_LEN..].copy_from_slice(&iv.to_be_bytes());
    nonce
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

#[cfg(test)]
mod tests;
