//! What a node is to others without a handshake: its name, its ML-KEM key, and the check that comes before any public-key operation.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use aws_lc_rs::kem::{self, Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};
use strait_wire::sessionless::{CHECK_LEN, CIPHERTEXT_LEN, Name};
use zeroize::Zeroizing;

use super::daily::{DailyPolicy, DailyRing, OwnDailyKeys};
use super::shared::{EPOCH_SECRET_LEN, EpochSecret};
use crate::{PrivateKey, PublicKey, base64};

const CHECK_LABEL: &[u8] = b"strait sessionless v1 check";
const NAME_LABEL: &[u8] = b"strait sessionless v1 name";

/// Bytes of an ML-KEM-768 encapsulation key (FIPS 203 section 8, table 3).
pub const KEM_PUBLIC_LEN: usize = 1184;
/// Bytes of an ML-KEM-768 decapsulation key (FIPS 203 section 8, table 3).
pub const KEM_SECRET_LEN: usize = 2400;
/// Where the encapsulation key is in a decapsulation key (FIPS 203 algorithm 16).
const KEM_PUBLIC_AT: usize = 1152;
/// The number of ML-KEM-768 in key packets.
pub(crate) const KEM_ID: u8 = 1;

/// The name of a node by its key: the first 16 bytes of SHA-256 of its Ed25519 key.
#[must_use]
pub fn key_name(key: &PublicKey) -> Name {
    Name::key_hash(half(digest(&SHA256, key.as_bytes()).as_ref()))
}

/// The name of a node by what people call it: the first 16 bytes of SHA-256 of a label and that name.
#[must_use]
pub fn text_name(name: &str) -> Name {
    Name::name_hash(half(digest(&SHA256, &[NAME_LABEL, name.as_bytes()].concat()).as_ref()))
}

fn half(hash: &[u8]) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(hash.get(..16).unwrap_or(&[0; 16]));
    half
}

/// The MAC that says that a datagram is meant for one receiver, whose public key the sender has: as WireGuard's mac1.
pub struct CheckKey(hmac::Key);

impl CheckKey {
    /// The key for what is sent to `receiver`.
    #[must_use]
    pub fn of(receiver: &PublicKey) -> CheckKey {
        let key = digest(&SHA256, &[CHECK_LABEL, receiver.as_bytes()].concat());
        CheckKey(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()))
    }

    /// The check of `bytes`.
    #[must_use]
    pub fn sign(&self, bytes: &[u8]) -> [u8; CHECK_LEN] {
        half(hmac::sign(&self.0, bytes).as_ref())
    }

    /// Whether `check` is that of `bytes`. Its key is public: what time this takes tells nothing.
    #[must_use]
    pub fn verifies(&self, bytes: &[u8], check: &[u8; CHECK_LEN]) -> bool {
        self.sign(bytes) == *check
    }
}

impl core::fmt::Debug for CheckKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("CheckKey")
    }
}

/// Bytes that are no ML-KEM-768 key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not an ML-KEM-768 key")]
pub struct BadKemKey;

/// A peer's ML-KEM-768 key.
#[derive(Clone, PartialEq, Eq)]
pub struct KemPublic(Box<[u8; KEM_PUBLIC_LEN]>);

impl KemPublic {
    /// A key that passes the check of its encoding (FIPS 203 section 7.2).
    ///
    /// # Errors
    /// [`BadKemKey`] when it does not.
    pub fn from_bytes(bytes: &[u8]) -> Result<KemPublic, BadKemKey> {
        let bytes: &[u8; KEM_PUBLIC_LEN] = bytes.try_into().map_err(|_| BadKemKey)?;
        // Twelve bits for each of 3 * 256 coefficients, each below q = 3,329; the last 32 bytes are a seed.
        let coefficients = bytes.get(..KEM_PUBLIC_LEN - 32).unwrap_or_default();
        let reduced = coefficients.as_chunks::<3>().0.iter().all(|&[a, b, c]| {
            let low = u16::from(a) | u16::from(b & 0xf) << 8;
            let high = u16::from(b >> 4) | u16::from(c) << 4;
            low < 3329 && high < 3329
        });
        if reduced { Ok(KemPublic(Box::new(*bytes))) } else { Err(BadKemKey) }
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; KEM_PUBLIC_LEN] {
        &self.0
    }

    /// A new secret, and the ciphertext that brings it to the holder of this key. The randomness is that of the library, as of a
    /// handshake's own keys.
    ///
    /// # Errors
    /// [`BadKemKey`] when the library refuses the key.
    pub fn encapsulate(&self) -> Result<([u8; CIPHERTEXT_LEN], EpochSecret), BadKemKey> {
        let key = EncapsulationKey::new(&ML_KEM_768, self.0.as_slice()).map_err(|_| BadKemKey)?;
        let (ciphertext, secret) = key.encapsulate().map_err(|_| BadKemKey)?;
        Ok((ciphertext.as_ref().try_into().map_err(|_| BadKemKey)?, epoch_secret(&secret)?))
    }
}

impl core::fmt::Debug for KemPublic {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("KemPublic")
    }
}

fn epoch_secret(secret: &kem::SharedSecret) -> Result<EpochSecret, BadKemKey> {
    let bytes: [u8; EPOCH_SECRET_LEN] = secret.as_ref().try_into().map_err(|_| BadKemKey)?;
    Ok(EpochSecret::new(bytes))
}

/// A node's own ML-KEM-768 key, beside its identity: never printed.
pub struct KemKey {
    secret: DecapsulationKey,
    public: KemPublic,
}

impl KemKey {
    /// A new key, from the randomness of the library.
    ///
    /// # Errors
    /// [`BadKemKey`] when the library fails.
    pub fn generate() -> Result<KemKey, BadKemKey> {
        let secret = DecapsulationKey::generate(&ML_KEM_768).map_err(|_| BadKemKey)?;
        let bytes = secret.key_bytes().map_err(|_| BadKemKey)?;
        KemKey::from_bytes(bytes.as_ref())
    }

    /// The key that [`KemKey::expose`] gave.
    ///
    /// # Errors
    /// [`BadKemKey`] when the bytes are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<KemKey, BadKemKey> {
        let secret = DecapsulationKey::new(&ML_KEM_768, bytes).map_err(|_| BadKemKey)?;
        let public = bytes.get(KEM_PUBLIC_AT..KEM_PUBLIC_AT + KEM_PUBLIC_LEN).ok_or(BadKemKey)?;
        // The hash of the public half is behind it (FIPS 203 section 7.3).
        let hash = bytes.get(KEM_PUBLIC_AT + KEM_PUBLIC_LEN..KEM_SECRET_LEN - 32).ok_or(BadKemKey)?;
        if digest(&aws_lc_rs::digest::SHA3_256, public).as_ref() != hash {
            return Err(BadKemKey);
        }
        Ok(KemKey { secret, public: KemPublic::from_bytes(public)? })
    }

    /// The secret, to be stored with the care that the identity has.
    ///
    /// # Errors
    /// [`BadKemKey`] when the library fails.
    pub fn expose(&self) -> Result<Zeroizing<Vec<u8>>, BadKemKey> {
        Ok(Zeroizing::new(self.secret.key_bytes().map_err(|_| BadKemKey)?.as_ref().to_vec()))
    }

    /// The secret as the one line that a key file holds.
    ///
    /// # Errors
    /// As [`KemKey::expose`].
    pub fn expose_line(&self) -> Result<Zeroizing<String>, BadKemKey> {
        Ok(base64::encode(&self.expose()?))
    }

    /// What is on the card.
    #[must_use]
    pub const fn public(&self) -> &KemPublic {
        &self.public
    }

    /// The secret in a ciphertext; one that was not made for this key gives a secret that is of no use (FIPS 203 section 6.3).
    #[must_use]
    pub fn decapsulate(&self, ciphertext: &[u8; CIPHERTEXT_LEN]) -> Option<EpochSecret> {
        let secret = self.secret.decapsulate(Ciphertext::from(ciphertext.as_slice())).ok()?;
        epoch_secret(&secret).ok()
    }
}

impl core::str::FromStr for KemKey {
    type Err = BadKemKey;

    /// Reads the one line of a key file; white space around it is not part of the key.
    fn from_str(text: &str) -> Result<KemKey, BadKemKey> {
        KemKey::from_bytes(&base64::decode_any(text.trim()).map_err(|_| BadKemKey)?)
    }
}

impl core::fmt::Debug for KemKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("[key]")
    }
}

/// What this node needs of itself to send and to receive without sessions.
#[derive(Debug)]
pub struct NodeKeys {
    /// Its identity.
    pub identity: PrivateKey,
    /// Its ML-KEM key, if it has one.
    pub kem: Option<KemKey>,
    /// Its daily keys, and those of its peers.
    pub daily: DailyRing,
    pub(crate) name: Name,
    pub(crate) check: CheckKey,
}

impl NodeKeys {
    /// The node with this identity.
    #[must_use]
    pub fn new(identity: PrivateKey, kem: Option<KemKey>) -> NodeKeys {
        let public = identity.public();
        let daily = DailyRing::new(DailyPolicy::Off, OwnDailyKeys::new(public));
        NodeKeys { name: key_name(&public), check: CheckKey::of(&public), identity, kem, daily }
    }

    /// The same with daily keys.
    #[must_use]
    pub fn with_daily_keys(self, policy: DailyPolicy, own: OwnDailyKeys) -> NodeKeys {
        NodeKeys { daily: DailyRing::new(policy, own), ..self }
    }

    /// What it is called in headers.
    #[must_use]
    pub const fn name(&self) -> Name {
        self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_for_one_receiver_and_one_content() {
        let [one, other] = [[1; 32], [2; 32]].map(|seed| PrivateKey::generate(&seed).public());
        let check = CheckKey::of(&one).sign(b"header");
        assert!(CheckKey::of(&one).verifies(b"header", &check));
        assert!(!CheckKey::of(&one).verifies(b"headers", &check));
        assert!(!CheckKey::of(&other).verifies(b"header", &check));
        assert_ne!(key_name(&one), key_name(&other));
        assert_ne!(text_name("a"), text_name("b"));
    }

    #[test]
    fn a_secret_comes_to_the_holder_of_the_key_also_after_a_restart() {
        let key = KemKey::generate().unwrap();
        let again = KemKey::from_bytes(&key.expose().unwrap()).unwrap();
        let public = KemPublic::from_bytes(again.public().as_bytes()).unwrap();
        let (ciphertext, secret) = public.encapsulate().unwrap();
        let kij = super::super::shared::Kij::agree(
            &PrivateKey::generate(&[1; 32]),
            &PrivateKey::generate(&[2; 32]).public(),
        )
        .unwrap();
        let tag = |secret: &EpochSecret| {
            let direction = super::super::shared::Direction::Outbound;
            let kijn = kij.epoch_key(direction, super::super::KijAlgorithm::default(), 1, Some(secret));
            kijn.wrap(
                &super::super::PacketKey::from_bytes([0; 32]),
                strait_wire::Spi(1),
                strait_wire::Esn(1),
                b"",
            )
        };
        assert_eq!(tag(&key.decapsulate(&ciphertext).unwrap()), tag(&secret));
        assert_eq!(tag(&again.decapsulate(&ciphertext).unwrap()), tag(&secret));
        let mut other = ciphertext;
        other[0] ^= 1;
        assert_ne!(tag(&key.decapsulate(&other).unwrap()), tag(&secret));
        assert_eq!(format!("{key:?} {secret:?}"), "[key] [key]");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let key = KemKey::generate().unwrap();
        let secret = key.expose().unwrap();
        assert!(KemKey::from_bytes(&secret[1..]).is_err());
        let line = key.expose_line().unwrap();
        assert_eq!(format!("{}\n", line.as_str()).parse::<KemKey>().unwrap().public(), key.public());
        for text in ["", "x", &line[4..], &line.replace('A', "!")] {
            assert!(text.parse::<KemKey>().is_err(), "{text}");
        }
        let mut torn = secret.clone();
        torn[KEM_PUBLIC_AT] ^= 1;
        assert!(KemKey::from_bytes(&torn).is_err());
        assert!(KemPublic::from_bytes(&[0; 10]).is_err());
        assert!(KemPublic::from_bytes(&[0xff; KEM_PUBLIC_LEN]).is_err(), "coefficients that are not reduced");
    }
}
