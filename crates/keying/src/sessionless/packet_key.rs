//! Packet keys: chosen by the sender, short-lived, and what comes out of them.

use core::time::Duration;

use strait_crypto::{KeyMaterial, KeyedAlgorithm, MAX_KEY_MATERIAL};
use strait_ipsec::{EspKeys, EspSpec, IvMode, Payloads, PeerId, SaSpec};
use strait_wire::Spi;
use zeroize::Zeroizing;

use super::algorithms::Protection;
use crate::kdf::derive_into;

/// Bytes of a packet key, whatever its algorithms: as much as the strongest of them needs.
pub const PACKET_KEY_LEN: usize = 32;
/// Bytes of the longest key of an integrity algorithm: HMAC-SHA-512 (RFC 4868).
const LONGEST_KEY: usize = 64;

const CRYPT_INFO: &[u8] = b"strait sessionless v1 crypt";
const MAC_INFO: &[u8] = b"strait sessionless v1 mac";

/// Kp: the secret of the packets that follow one header; wiped when dropped, never printed.
pub struct PacketKey(Box<Zeroizing<[u8; PACKET_KEY_LEN]>>);

impl PacketKey {
    /// From 32 unpredictable bytes that serve nothing else.
    #[must_use]
    pub fn from_bytes(random: [u8; PACKET_KEY_LEN]) -> PacketKey {
        PacketKey(Box::new(Zeroizing::new(random)))
    }

    pub(crate) fn from_slice(bytes: &[u8]) -> Option<PacketKey> {
        bytes.try_into().ok().map(PacketKey::from_bytes)
    }

    /// The bare secret, to be wrapped.
    pub(crate) fn expose(&self) -> &[u8; PACKET_KEY_LEN] {
        &self.0
    }

    /// The keys of ESP, the Crypt and the MAC key apart (draft-ietf-ipsec-skip-06 section 1.6); `seed` makes IVs unpredictable where a
    /// cipher needs that, at the sender.
    ///
    /// # Panics
    /// Never: every key has the length that its algorithm says.
    #[must_use]
    pub fn esp_keys(&self, protection: Protection, seed: u64) -> EspKeys {
        match protection {
            Protection::Aead(suite) => {
                let mut bytes = Zeroizing::new([0; MAX_KEY_MATERIAL]);
                let key = self.material(suite, CRYPT_INFO, bytes.as_mut_slice());
                EspKeys::Aead { key, iv: IvMode::Implicit }
            }
            Protection::Separate(cipher, integrity) => {
                let mut bytes = Zeroizing::new([0; LONGEST_KEY]);
                let cipher = self.material(cipher, CRYPT_INFO, bytes.as_mut_slice());
                let integrity = self.material(integrity, MAC_INFO, bytes.as_mut_slice());
                EspKeys::Separate { cipher, integrity: Some(integrity), seed }
            }
        }
    }

    fn material<A: KeyedAlgorithm>(&self, algorithm: A, info: &[u8], bytes: &mut [u8]) -> KeyMaterial<A> {
        let len = algorithm.key_material_len();
        let bytes = bytes.get_mut(..len).expect("no key is longer than the longest");
        if !bytes.is_empty() {
            derive_into(self.0.as_slice(), &[], &[info, algorithm.name().as_bytes()], bytes);
        }
        KeyMaterial::new(algorithm, bytes).expect("the length is the algorithm's own")
    }

    /// One direction's security association under this key: ESP in tunnel mode over UDP, with 64-bit numbers.
    #[must_use]
    pub fn association(
        &self,
        peer: PeerId,
        spi: Spi,
        protection: Protection,
        payloads: Payloads,
        seed: u64,
    ) -> SaSpec {
        let esp = Some(EspSpec { spi, keys: self.esp_keys(protection, seed) });
        // The rest is as sessions have it.
        SaSpec {
            peer,
            ah: None,
            esp,
            sequence: strait_ipsec::SequenceNumbers::Bits64,
            mode: strait_ipsec::Mode::Tunnel,
            carrier: strait_ipsec::Carrier::Udp,
            fragments: strait_ipsec::Fragments::Never,
            payloads,
        }
    }
}

impl core::fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("[key]")
    }
}

/// How much one packet key carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketKeyLimits {
    /// For how long it is used, at most [`PacketKeyLimits::LONGEST`].
    pub life: Duration,
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

impl PacketKeyLimits {
    /// The longest life of a packet key: a receiver that restarted, and cannot say so, is deaf for as long.
    pub const LONGEST: Duration = Duration::from_secs(60);

    /// The same with no limit above what is allowed, and none that lets no packet pass.
    #[must_use]
    pub fn bounded(self) -> PacketKeyLimits {
        let most = PacketKeyLimits::default();
        PacketKeyLimits {
            life: self.life.clamp(Duration::from_secs(1), PacketKeyLimits::LONGEST),
            bytes: self.bytes.clamp(1, most.bytes),
            packets: self.packets.clamp(1, most.packets),
        }
    }
}

impl Default for PacketKeyLimits {
    /// 60 s, 2^36 bytes as a session's keys, 2^30 packets: low halves of numbers, as long as a key lives, say which number is meant.
    fn default() -> PacketKeyLimits {
        PacketKeyLimits { life: PacketKeyLimits::LONGEST, bytes: 1 << 36, packets: 1 << 30 }
    }
}

#[cfg(test)]
mod tests {
    use strait_crypto::{Cipher, Integrity, Suite};

    use super::*;

    fn aead(key: &PacketKey, suite: Suite) -> Vec<u8> {
        match key.esp_keys(Protection::Aead(suite), 0) {
            EspKeys::Aead { key, iv: IvMode::Implicit } => key.expose().to_vec(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn algorithms_have_keys_apart() {
        let key = PacketKey::from_bytes([1; 32]);
        let all = Suite::ALL.map(|suite| aead(&key, suite));
        assert_ne!(all[0][..16], all[1][..16]);
        assert_ne!(all[1], all[2]);
        assert_ne!(aead(&PacketKey::from_bytes([2; 32]), Suite::Aes256Gcm), all[1]);
        let separate = Protection::Separate(Cipher::Aes256Cbc, Integrity::HmacSha256_128);
        match key.esp_keys(separate, 7) {
            EspKeys::Separate { cipher, integrity: Some(mac), seed: 7 } => {
                assert_eq!((cipher.expose().len(), mac.expose().len()), (32, 32));
                assert_ne!(cipher.expose(), mac.expose());
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(format!("{key:?}"), "[key]");
    }

    #[test]
    fn the_cipher_that_encrypts_nothing_is_still_authenticated() {
        let key = PacketKey::from_bytes([1; 32]);
        let protection = Protection::Separate(Cipher::Null, Integrity::HmacSha512_256);
        let EspKeys::Separate { integrity, .. } = key.esp_keys(protection, 0) else { panic!() };
        assert_eq!(integrity.unwrap().expose().len(), 64);
    }

    #[test]
    fn limits_are_bounded() {
        let wild = PacketKeyLimits { life: Duration::from_secs(3600), bytes: 0, packets: u64::MAX };
        let bounded = wild.bounded();
        assert_eq!((bounded.life, bounded.bytes, bounded.packets), (PacketKeyLimits::LONGEST, 1, 1 << 30));
        assert_eq!(PacketKeyLimits::default().bounded(), PacketKeyLimits::default());
    }
}
