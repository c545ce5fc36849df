//! Integrity check values: HMAC (RFC 2104) over a packet in parts.

use core::fmt;

use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
#[cfg(feature = "danger-legacy")]
use md5::Md5;
#[cfg(feature = "danger-legacy")]
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};
use subtle::ConstantTimeEq;

use crate::{Forged, ICV_MAX, Integrity, KeyMaterial};

/// An integrity algorithm with its key; neither direction allocates.
///
/// Prints as `[key]`. What is derived from the key is wiped when dropped, the copy that works on a packet
/// included; what deriving it left on the stack is not.
pub struct MacKey {
    integrity: Integrity,
    keyed: Box<dyn KeyedHash>,
}

impl MacKey {
    /// The key in `material`.
    #[must_use]
    pub fn new(material: &KeyMaterial<Integrity>) -> MacKey {
        let integrity = material.algorithm();
        MacKey { integrity, keyed: keyed(integrity, material.expose()) }
    }

    /// The integrity algorithm of this key.
    #[must_use]
    pub const fn integrity(&self) -> Integrity {
        self.integrity
    }

    /// Writes to `icv` the integrity check value of `parts`, one after another.
    ///
    /// # Panics
    /// When `icv` is not [`Integrity::icv_len`] bytes long.
    pub fn sign(&self, parts: &[&[u8]], icv: &mut [u8]) {
        assert_eq!(icv.len(), self.integrity.icv_len(), "the check value of {}", self.integrity);
        self.keyed.sign(parts, icv);
    }

    /// Checks, in a time that does not depend on where they differ, that `icv` is the integrity check value of
    /// `parts`, one after another.
    ///
    /// # Errors
    /// [`Forged`] when a part or `icv` differs in anything, its length included.
    pub fn verify(&self, parts: &[&[u8]], icv: &[u8]) -> Result<(), Forged> {
        let mut own = [0; ICV_MAX];
        let own = &mut own[..self.integrity.icv_len()];
        self.keyed.sign(parts, own);
        if own.ct_eq(icv).into() { Ok(()) } else { Err(Forged) }
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// What an algorithm does once it has a key.
trait KeyedHash: Send + Sync {
    /// Writes the front of the code of `parts`, as much as `icv` takes.
    fn sign(&self, parts: &[&[u8]], icv: &mut [u8]);
}

impl<M: Mac + Clone + Send + Sync> KeyedHash for M {
    fn sign(&self, parts: &[&[u8]], icv: &mut [u8]) {
        // Both pads are hashed already: a packet starts from a copy of that state (RFC 2104 section 4).
        let mut mac = self.clone();
        for part in parts {
            mac.update(part);
        }
        let code = mac.finalize().into_bytes();
        icv.copy_from_slice(&code[..icv.len()]);
    }
}

/// HMAC with a `key`, which may have any length (RFC 2104 section 3).
fn keyed(integrity: Integrity, key: &[u8]) -> Box<dyn KeyedHash> {
    match integrity {
        Integrity::HmacSha256_128 => hmac::<Hmac<Sha256>>(key),
        Integrity::HmacSha384_192 => hmac::<Hmac<Sha384>>(key),
        Integrity::HmacSha512_256 => hmac::<Hmac<Sha512>>(key),
        #[cfg(feature = "danger-legacy")]
        Integrity::HmacSha1_96 => hmac::<Hmac<Sha1>>(key),
        #[cfg(feature = "danger-legacy")]
        Integrity::HmacMd5_96 => hmac::<Hmac<Md5>>(key),
    }
}

fn hmac<M: Mac + KeyInit + Clone + Send + Sync + 'static>(key: &[u8]) -> Box<dyn KeyedHash> {
    Box::new(<M as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length"))
}

#[cfg(test)]
mod tests;
