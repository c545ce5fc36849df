//! The secret bytes of one security association in one direction.

use core::fmt;

use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

use crate::{MAX_KEY_MATERIAL, SALT_LEN, Suite};

/// Keying material of the wrong length for its suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{suite} needs {expected} bytes of keying material, key then 4 of salt, but {given} were given")]
pub struct WrongLength {
    /// The suite the material was meant for.
    pub suite: Suite,
    /// Bytes the suite needs.
    pub expected: usize,
    /// Bytes that were given.
    pub given: usize,
}

/// The key and then the salt of one direction of one security association (RFC 4106 section 8.1).
///
/// It is wiped when dropped, prints as `[key]`, compares in constant time and cannot be cloned. The
/// bytes stay in one place on the heap, so that moving the value leaves no copy behind.
pub struct KeyMaterial {
    suite: Suite,
    bytes: Box<Zeroizing<[u8; MAX_KEY_MATERIAL]>>,
}

impl KeyMaterial {
    /// Material for `suite`: its key, then four bytes of salt.
    ///
    /// # Errors
    /// [`WrongLength`] when `material` is not exactly [`Suite::key_material_len`] bytes.
    pub fn new(suite: Suite, material: &[u8]) -> Result<KeyMaterial, WrongLength> {
        let (expected, given) = (suite.key_material_len(), material.len());
        if given != expected {
            return Err(WrongLength { suite, expected, given });
        }
        let mut bytes = Box::new(Zeroizing::new([0; MAX_KEY_MATERIAL]));
        bytes[..expected].copy_from_slice(material);
        Ok(KeyMaterial { suite, bytes })
    }

    /// The suite this material is for.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// The bare secret, key then salt: for the loud export of keys and for tests, nothing else.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.bytes[..self.suite.key_material_len()]
    }

    /// The key alone, [`Suite::key_len`] bytes.
    pub(crate) fn key(&self) -> &[u8] {
        &self.bytes[..self.suite.key_len()]
    }

    /// The salt alone.
    pub(crate) fn salt(&self) -> [u8; SALT_LEN] {
        let mut salt = [0; SALT_LEN];
        salt.copy_from_slice(&self.expose()[self.suite.key_len()..]);
        salt
    }
}

impl ConstantTimeEq for KeyMaterial {
    fn ct_eq(&self, other: &KeyMaterial) -> Choice {
        self.suite.id().ct_eq(&other.suite.id()) & self.bytes.as_slice().ct_eq(other.bytes.as_slice())
    }
}

impl PartialEq for KeyMaterial {
    fn eq(&self, other: &KeyMaterial) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for KeyMaterial {}

impl fmt::Debug for KeyMaterial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_length_is_taken() {
        for suite in Suite::ALL {
            for given in 0..=MAX_KEY_MATERIAL + 1 {
                let made = KeyMaterial::new(suite, &vec![7; given]);
                let expected = suite.key_material_len();
                assert_eq!(made.is_ok(), given == expected, "{suite} with {given} bytes");
                if let Err(wrong) = made {
                    assert_eq!(wrong, WrongLength { suite, expected, given });
                }
            }
        }
    }

    #[test]
    fn key_and_salt_are_where_the_rfc_puts_them() {
        let bytes: Vec<u8> = (0..36).collect();
        let material = KeyMaterial::new(Suite::ChaCha20Poly1305, &bytes).unwrap();
        assert_eq!(material.key(), &bytes[..32]);
        assert_eq!(material.salt(), [32, 33, 34, 35]);
        assert_eq!(material.expose(), bytes);
    }

    #[test]
    fn material_never_prints_and_compares_by_suite_and_bytes() {
        let of = |suite, byte| KeyMaterial::new(suite, &[byte; 36]).unwrap();
        assert_eq!(format!("{:?}", of(Suite::Aes256Gcm, 1)), "[key]");
        assert_eq!(of(Suite::Aes256Gcm, 1), of(Suite::Aes256Gcm, 1));
        assert_ne!(of(Suite::Aes256Gcm, 1), of(Suite::Aes256Gcm, 2));
        assert_ne!(of(Suite::Aes256Gcm, 1), of(Suite::ChaCha20Poly1305, 1));
    }
}
