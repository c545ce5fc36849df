//! The secret bytes of one security association in one direction.

use core::fmt;

use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

use crate::algorithm::LONGEST;
use crate::{KeyedAlgorithm, SALT_LEN, Suite};

/// Keying material of the wrong length for its algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{algorithm} needs {expected} bytes of {}, but {given} were given", A::SECRET)]
pub struct WrongLength<A: KeyedAlgorithm = Suite> {
    /// The algorithm the material was meant for.
    pub algorithm: A,
    /// Bytes the algorithm needs.
    pub expected: usize,
    /// Bytes that were given.
    pub given: usize,
}

/// The secret of one algorithm in one direction of one security association: a key, and for a [`Suite`]
/// four bytes of salt after it (RFC 4106 section 8.1).
///
/// It is wiped when dropped, prints as `[key]`, compares in constant time and is not copied by chance. The
/// bytes stay in one place on the heap, so that moving the value leaves no copy behind.
pub struct KeyMaterial<A: KeyedAlgorithm = Suite> {
    algorithm: A,
    bytes: Box<Zeroizing<[u8; LONGEST]>>,
}

impl<A: KeyedAlgorithm> KeyMaterial<A> {
    /// Material for `algorithm`: its key; for a suite its key, then four bytes of salt.
    ///
    /// # Errors
    /// [`WrongLength`] when `material` is not exactly [`KeyedAlgorithm::key_material_len`] bytes.
    pub fn new(algorithm: A, material: &[u8]) -> Result<KeyMaterial<A>, WrongLength<A>> {
        let (expected, given) = (algorithm.key_material_len(), material.len());
        if given != expected {
            return Err(WrongLength { algorithm, expected, given });
        }
        let mut bytes = Box::new(Zeroizing::new([0; LONGEST]));
        bytes[..expected].copy_from_slice(material);
        Ok(KeyMaterial { algorithm, bytes })
    }

    /// The algorithm this material is for.
    #[must_use]
    pub const fn algorithm(&self) -> A {
        self.algorithm
    }

    /// The same secret in another place, for another association with it.
    #[must_use]
    pub fn duplicate(&self) -> KeyMaterial<A> {
        let mut bytes = Box::new(Zeroizing::new([0; LONGEST]));
        bytes.copy_from_slice(self.bytes.as_slice());
        KeyMaterial { algorithm: self.algorithm, bytes }
    }

    /// The bare secret: for the loud export of keys and for tests, nothing else.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.bytes[..self.algorithm.key_material_len()]
    }
}

impl KeyMaterial<Suite> {
    /// The key alone, [`Suite::key_len`] bytes.
    pub(crate) fn key(&self) -> &[u8] {
        &self.bytes[..self.algorithm.key_len()]
    }

    /// The salt alone.
    pub(crate) fn salt(&self) -> [u8; SALT_LEN] {
        let mut salt = [0; SALT_LEN];
        salt.copy_from_slice(&self.expose()[self.algorithm.key_len()..]);
        salt
    }
}

#[cfg(feature = "danger-legacy")]
impl KeyMaterial<crate::Cipher> {
    /// The first `LEN` bytes: the key, when the cipher's has that length.
    pub(crate) fn array<const LEN: usize>(&self) -> Zeroizing<[u8; LEN]> {
        let mut key = Zeroizing::new([0; LEN]);
        key.copy_from_slice(&self.bytes[..LEN]);
        key
    }
}

impl<A: KeyedAlgorithm> ConstantTimeEq for KeyMaterial<A> {
    /// Which algorithms the two are for is no secret; their bytes are.
    fn ct_eq(&self, other: &KeyMaterial<A>) -> Choice {
        Choice::from(u8::from(self.algorithm == other.algorithm))
            & self.bytes.as_slice().ct_eq(other.bytes.as_slice())
    }
}

impl<A: KeyedAlgorithm> PartialEq for KeyMaterial<A> {
    fn eq(&self, other: &KeyMaterial<A>) -> bool {
        self.ct_eq(other).into()
    }
}

impl<A: KeyedAlgorithm> Eq for KeyMaterial<A> {}

impl<A: KeyedAlgorithm> fmt::Debug for KeyMaterial<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cipher;
    use crate::Integrity;

    fn takes_its_exact_length_only<A: KeyedAlgorithm>() {
        for algorithm in A::EVERY.iter().copied() {
            for given in 0..=LONGEST + 1 {
                let made = KeyMaterial::new(algorithm, &vec![7; given]);
                let expected = algorithm.key_material_len();
                assert_eq!(made.is_ok(), given == expected, "{algorithm} with {given} bytes");
                if let Err(wrong) = made {
                    assert_eq!(wrong, WrongLength { algorithm, expected, given });
                }
            }
        }
    }

    #[test]
    fn only_the_exact_length_is_taken() {
        takes_its_exact_length_only::<Suite>();
        takes_its_exact_length_only::<Cipher>();
        takes_its_exact_length_only::<Integrity>();
    }

    #[test]
    fn the_message_says_what_the_bytes_are() {
        let suite = KeyMaterial::new(Suite::Aes128Gcm, &[7; 16]).unwrap_err();
        assert_eq!(suite.to_string(), "aes-128-gcm needs 20 bytes of key and then salt, but 16 were given");
        let cipher = KeyMaterial::new(Cipher::Aes128Cbc, &[7; 20]).unwrap_err();
        assert_eq!(cipher.to_string(), "aes-128-cbc needs 16 bytes of key, but 20 were given");
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
    fn material_never_prints_and_compares_by_algorithm_and_bytes() {
        let of = |suite, byte| KeyMaterial::new(suite, &[byte; 36]).unwrap();
        assert_eq!(format!("{:?}", of(Suite::Aes256Gcm, 1)), "[key]");
        assert_eq!(of(Suite::Aes256Gcm, 1), of(Suite::Aes256Gcm, 1));
        assert_ne!(of(Suite::Aes256Gcm, 1), of(Suite::Aes256Gcm, 2));
        assert_ne!(of(Suite::Aes256Gcm, 1), of(Suite::ChaCha20Poly1305, 1));
    }
}
