//! Sealing and opening packets in place.

use core::fmt;

use zeroize::Zeroizing;

use crate::provider::{Provider, Scheduled, nonce};
use crate::{FreshNonce, ICV_LEN, KeyMaterial, SALT_LEN, Suite};

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
pub trait Aead: Send {
    /// The suite of this key.
    fn suite(&self) -> Suite;

    /// Encrypts `text` in place and returns the integrity check value that goes after it.
    ///
    /// # Errors
    /// [`SealError`] when `text` is longer than the algorithm allows; `text` is then garbage to drop.
    fn seal(&self, nonce: FreshNonce, aad: &[u8], text: &mut [u8]) -> Result<[u8; ICV_LEN], SealError>;

    /// Checks `sealed`, ciphertext then integrity check value, and decrypts it in place.
    ///
    /// `iv` is the packet's explicit IV, or its 64-bit sequence number where the IV is implicit
    /// (RFC 8750). Returns the plaintext at the front of `sealed`.
    ///
    /// # Errors
    /// [`Forged`] when anything differs from what was sealed, or `sealed` is shorter than the check
    /// value; what is left in `sealed` must not be used.
    fn open<'a>(&self, iv: u64, aad: &[u8], sealed: &'a mut [u8]) -> Result<&'a mut [u8], Forged>;
}

/// A key scheduled for use, by whichever provider is the faster here.
///
/// Prints as `[key]`. aws-lc wipes its schedule when freed; ring does not.
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
        Key::by(Provider::preferred(material.algorithm()), material)
    }

    /// The key in `material`, computed by `provider`.
    pub(crate) fn by(provider: Provider, material: &KeyMaterial) -> Key {
        let (suite, salt) = (material.algorithm(), Zeroizing::new(material.salt()));
        Key { suite, salt, scheduled: Scheduled::new(material, provider) }
    }
}

impl Aead for Key {
    fn suite(&self) -> Suite {
        self.suite
    }

    fn seal(&self, fresh: FreshNonce, aad: &[u8], text: &mut [u8]) -> Result<[u8; ICV_LEN], SealError> {
        let len = text.len();
        let sealed = self.scheduled.seal(nonce(*self.salt, fresh.value()), aad, text);
        sealed.map_err(|_| SealError { suite: self.suite, len })
    }

    fn open<'a>(&self, iv: u64, aad: &[u8], sealed: &'a mut [u8]) -> Result<&'a mut [u8], Forged> {
        self.scheduled.open(nonce(*self.salt, iv), aad, sealed).map_err(|_| Forged)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

#[cfg(test)]
mod tests;
