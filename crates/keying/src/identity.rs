//! One Ed25519 key pair a node (RFC 8032); peers name each other's public keys.

use core::fmt;
use core::str::FromStr;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use zeroize::Zeroizing;

use crate::base64::{self, DecodeError};

/// Which half of a key pair a text was meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRole {
    /// The secret half.
    Private,
    /// The half that others know.
    Public,
}

impl fmt::Display for KeyRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyRole::Private => "private",
            KeyRole::Public => "public",
        })
    }
}

/// A text that is not a key; it never repeats the text, which may be most of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseKeyError {
    /// Too short or too long.
    #[error("has {given} characters; a {role} key has 44")]
    Length {
        /// What was expected.
        role: KeyRole,
        /// Characters that were given.
        given: usize,
    },
    /// A character that base64 does not have.
    #[error(
        "has a character that is not base64 at place {place}; a {role} key has only A-Z, a-z, 0-9, + and /"
    )]
    Character {
        /// What was expected.
        role: KeyRole,
        /// Which character, counted from 1.
        place: usize,
    },
    /// Not the `=` that the last of 44 characters has to be.
    #[error("does not end with `=` as a {role} key does; it is cut off or not a {role} key")]
    Padding {
        /// What was expected.
        role: KeyRole,
    },
    /// Bits set that carry nothing.
    #[error("is not a valid {role} key: the last character before `=` is wrong (mistyped or cut off)")]
    Spelling {
        /// What was expected.
        role: KeyRole,
    },
}

impl ParseKeyError {
    pub(crate) const fn new(role: KeyRole, error: DecodeError) -> ParseKeyError {
        match error {
            DecodeError::Length(given) => ParseKeyError::Length { role, given },
            DecodeError::Character(place) => ParseKeyError::Character { role, place },
            DecodeError::Padding => ParseKeyError::Padding { role },
            DecodeError::Spelling => ParseKeyError::Spelling { role },
        }
    }
}

/// Bytes of an Ed25519 signature (RFC 8032 section 5.1.6).
pub const SIGNATURE_LEN: usize = 64;

/// What others know a node by: an Ed25519 public key, 44 characters of base64 as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

/// What precedes an Ed25519 key in a `SubjectPublicKeyInfo` (RFC 8410 sections 3 and 4).
const SPKI_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// Bytes of a `SubjectPublicKeyInfo` with an Ed25519 key.
pub(crate) const SPKI_LEN: usize = SPKI_HEAD.len() + 32;

impl PublicKey {
    /// The key with these 32 bytes (RFC 8032 section 5.1.5).
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> PublicKey {
        PublicKey(bytes)
    }

    /// Its 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether the holder of this key signed `message` (RFC 8032 section 5.1.7).
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8; SIGNATURE_LEN]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }

    /// Its form in TLS (RFC 7250 section 3).
    pub(crate) fn to_spki(self) -> [u8; SPKI_LEN] {
        let mut spki = [0; SPKI_LEN];
        let (head, key) = spki.split_at_mut(SPKI_HEAD.len());
        head.copy_from_slice(&SPKI_HEAD);
        key.copy_from_slice(&self.0);
        spki
    }

    /// The key in a `SubjectPublicKeyInfo`; none when that holds anything but one Ed25519 key.
    pub(crate) fn from_spki(spki: &[u8]) -> Option<PublicKey> {
        spki.strip_prefix(&SPKI_HEAD)?.try_into().ok().map(PublicKey)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&base64::encode(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base64::encode(&self.0))
    }
}

impl FromStr for PublicKey {
    type Err = ParseKeyError;

    /// Reads 44 characters of base64; white space around them is not part of a key.
    fn from_str(text: &str) -> Result<PublicKey, ParseKeyError> {
        let bytes =
            base64::decode(text.trim()).map_err(|error| ParseKeyError::new(KeyRole::Public, error))?;
        Ok(PublicKey(*bytes))
    }
}

/// What makes a node itself: an Ed25519 seed, wiped when dropped and never printed.
pub struct PrivateKey {
    seed: Box<Zeroizing<[u8; 32]>>,
    public: PublicKey,
}

/// What precedes an Ed25519 seed in PKCS #8 version 1 (RFC 8410 section 7).
const PKCS8_HEAD: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// Bytes of an Ed25519 seed in PKCS #8 version 1.
pub(crate) const PKCS8_LEN: usize = PKCS8_HEAD.len() + 32;

impl PrivateKey {
    /// A new key from 32 bytes of the system's randomness (RFC 8032 section 5.1.5: the seed is the key).
    ///
    /// # Panics
    /// Never for any input: every 32 bytes are a seed, and the library is asked for nothing else.
    #[must_use]
    pub fn generate(random: &[u8; 32]) -> PrivateKey {
        let seed = Box::new(Zeroizing::new(*random));
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_slice()).expect("any 32 bytes are a seed");
        let mut public = [0; 32];
        public.copy_from_slice(pair.public_key().as_ref());
        PrivateKey { seed, public: PublicKey(public) }
    }

    /// What others know this node by.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    /// The secret as the one line that a key file holds; wiped when dropped.
    #[must_use]
    pub fn expose(&self) -> Zeroizing<String> {
        base64::encode(self.seed.as_slice())
    }

    /// The 32 bytes that are the secret: what an X25519 key and keys for what is stored are derived from.
    #[must_use]
    pub fn expose_seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// Signs `message` (RFC 8032 section 5.1.6). What is signed has to begin with words that say for what, so that no signature
    /// serves two purposes; TLS 1.3 signs what begins with 64 spaces (RFC 8446 section 4.4.3).
    ///
    /// # Panics
    /// Never for any input, as [`PrivateKey::generate`].
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_LEN] {
        let pair =
            Ed25519KeyPair::from_seed_unchecked(self.seed.as_slice()).expect("any 32 bytes are a seed");
        let mut signature = [0; SIGNATURE_LEN];
        signature.copy_from_slice(pair.sign(message).as_ref());
        signature
    }

    /// The secret as TLS wants it.
    pub(crate) fn to_pkcs8(&self) -> Zeroizing<[u8; PKCS8_LEN]> {
        let mut pkcs8 = Zeroizing::new([0; PKCS8_LEN]);
        let (head, seed) = pkcs8.split_at_mut(PKCS8_HEAD.len());
        head.copy_from_slice(&PKCS8_HEAD);
        seed.copy_from_slice(self.seed.as_slice());
        pkcs8
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

impl FromStr for PrivateKey {
    type Err = ParseKeyError;

    /// Reads the one line of a key file; white space around it is not part of the key.
    fn from_str(text: &str) -> Result<PrivateKey, ParseKeyError> {
        let seed =
            base64::decode(text.trim()).map_err(|error| ParseKeyError::new(KeyRole::Private, error))?;
        Ok(PrivateKey::generate(&seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032 section 7.1, tests 1 and 2: secret key, public key.
    const PAIRS: [(&str, &str); 2] = [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        ),
    ];

    #[test]
    fn a_signature_is_that_of_the_rfc_and_of_no_other_message() {
        // RFC 8032 section 7.1, test 2: the message is one byte.
        let key = PrivateKey::generate(&hex(PAIRS[1].0));
        let signature = key.sign(&[0x72]);
        assert_eq!(signature[..8], [0x92, 0xa0, 0x09, 0xa9, 0xf0, 0xd4, 0xca, 0xb8]);
        assert!(key.public().verifies(&[0x72], &signature));
        assert!(!key.public().verifies(&[0x73], &signature));
        assert!(!PrivateKey::generate(&hex(PAIRS[0].0)).public().verifies(&[0x72], &signature));
    }

    fn hex(text: &str) -> [u8; 32] {
        core::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
    }

    #[test]
    fn the_public_key_is_that_of_the_rfc() {
        for (secret, public) in PAIRS {
            assert_eq!(*PrivateKey::generate(&hex(secret)).public().as_bytes(), hex(public));
        }
    }

    #[test]
    fn text_round_trips() {
        let key = PrivateKey::generate(&[7; 32]);
        let line = format!("{}\n", key.expose().as_str());
        assert_eq!(line.parse::<PrivateKey>().unwrap().public(), key.public());
        let public = key.public().to_string();
        assert_eq!(public.len(), 44);
        assert_eq!(public.parse::<PublicKey>(), Ok(key.public()));
    }

    #[test]
    fn a_bad_text_is_explained_and_not_repeated() {
        let message = "c2VjcmV0".parse::<PrivateKey>().unwrap_err().to_string();
        assert_eq!(message, "has 8 characters; a private key has 44");
        let public = PrivateKey::generate(&[7; 32]).public().to_string();
        let message = public[..43].parse::<PublicKey>().unwrap_err().to_string();
        assert_eq!(message, "has 43 characters; a public key has 44");
        let message = public.replace('=', "!").parse::<PublicKey>().unwrap_err().to_string();
        assert!(message.starts_with("does not end with `=`"), "{message}");
    }

    #[test]
    fn a_private_key_does_not_print() {
        assert_eq!(format!("{:?}", PrivateKey::generate(&[7; 32])), "[key]");
    }

    #[test]
    fn tls_forms_hold_the_key_and_nothing_else() {
        let key = PrivateKey::generate(&[9; 32]);
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.to_pkcs8().as_slice()).unwrap();
        assert_eq!(pair.public_key().as_ref(), key.public().as_bytes());
        let spki = key.public().to_spki();
        assert_eq!(PublicKey::from_spki(&spki), Some(key.public()));
        for len in 0..spki.len() {
            assert_eq!(PublicKey::from_spki(&spki[..len]), None);
        }
        let mut other = spki;
        other[8] = 0x71;
        assert_eq!(PublicKey::from_spki(&other), None, "Ed448 is not Ed25519");
        assert_eq!(PublicKey::from_spki(&[&spki[..], &[0]].concat()), None);
    }
}
