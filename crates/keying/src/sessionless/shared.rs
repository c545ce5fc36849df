//! Long-term secrets: Kij of two nodes, and Kijn of one epoch, under which packet keys are wrapped.
//!
//! ```text
//! Kij    = HKDF(X25519(i, j), both public keys in order)
//! Kij(d) = HKDF(Kij | X25519(day keys of i, j), both public keys in order; d, both day keys)     in place of Kij, with daily keys
//! Kijn   = HKDF(Kij | secret of the key packet, if any, n | Kij algorithm | sender's key | receiver's key)
//! ```
//!
//! Kij is the same for both nodes; each direction has a Kijn of its own, so that no packet key can be turned around.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, AES_256_GCM_SIV, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce,
    UnboundKey,
};
use aws_lc_rs::hmac;
use strait_wire::sessionless::{TAG_LEN, WRAPPED_LEN};
use strait_wire::{Esn, Spi};
use zeroize::Zeroizing;

use super::algorithms::KijAlgorithm;
use super::daily::{DAILY_KEY_LEN, DailySecret, Day};
use super::packet_key::{PACKET_KEY_LEN, PacketKey};
use crate::kdf::derive_key;
use crate::{PrivateKey, PublicKey, x25519};

const KIJ_INFO: &[u8] = b"strait sessionless v1 Kij";
const DAILY_INFO: &[u8] = b"strait sessionless v1 daily Kij";
const KIJN_INFO: &[u8] = b"strait sessionless v1 Kijn";
const KEY_PACKET_INFO: &[u8] = b"strait sessionless v1 key packet";

/// Bytes of an epoch's secret out of ML-KEM-768 (FIPS 203 section 8).
pub(crate) const EPOCH_SECRET_LEN: usize = 32;

/// The secret of one key packet; wiped when dropped, never printed.
pub struct EpochSecret(Box<Zeroizing<[u8; EPOCH_SECRET_LEN]>>);

impl EpochSecret {
    pub(crate) fn new(bytes: [u8; EPOCH_SECRET_LEN]) -> EpochSecret {
        EpochSecret(Box::new(Zeroizing::new(bytes)))
    }
}

impl core::fmt::Debug for EpochSecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("[key]")
    }
}

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From this node to the peer.
    Outbound,
    /// From the peer to this node.
    Inbound,
}

/// What two nodes share without a message; wiped when dropped, never printed.
pub struct Kij {
    secret: Box<Zeroizing<[u8; 32]>>,
    /// The day and the secret without its keys, where the secret is that of a day.
    daily: Option<(Day, Box<Zeroizing<[u8; 32]>>)>,
    own: PublicKey,
    peer: PublicKey,
}

impl Kij {
    /// The secret of `own` and `peer`; none where the peer's key is not one that a secret can be shared with, or this node's own.
    #[must_use]
    pub fn agree(own: &PrivateKey, peer: &PublicKey) -> Option<Kij> {
        let public = own.public();
        if public == *peer {
            return None;
        }
        let shared = x25519(&own.x25519_scalar(), &peer.to_x25519()?)?;
        let (low, high) = if public < *peer { (&public, peer) } else { (peer, &public) };
        let salt = [*low.as_bytes(), *high.as_bytes()];
        let secret = Box::new(derive_key(&*shared, salt.as_flattened(), &[KIJ_INFO]));
        Some(Kij { secret, daily: None, own: public, peer: *peer })
    }

    /// The secret of one day; none where the peer's key of that day is not one that a secret can be shared with.
    #[must_use]
    pub fn on_day(&self, day: Day, own: &DailySecret, peer: &[u8; DAILY_KEY_LEN]) -> Option<Kij> {
        let mut from = Zeroizing::new([0; 64]);
        from[..32].copy_from_slice(self.lasting());
        from[32..].copy_from_slice(own.agree(peer)?.as_slice());
        let ends = [(&self.own, own.public()), (&self.peer, *peer)];
        let [(low, of_low), (high, of_high)] = if self.own < self.peer { ends } else { [ends[1], ends[0]] };
        let salt = [*low.as_bytes(), *high.as_bytes()];
        let info: [&[u8]; 4] = [DAILY_INFO, &day.0.to_be_bytes(), &of_low, &of_high];
        let secret = Box::new(derive_key(from.as_slice(), salt.as_flattened(), &info));
        let lasting = Box::new(Zeroizing::new(*self.lasting()));
        Some(Kij { secret, daily: Some((day, lasting)), own: self.own, peer: self.peer })
    }

    /// The secret that does not go with a day.
    fn lasting(&self) -> &[u8; 32] {
        self.daily.as_ref().map_or(&self.secret, |(_, lasting)| lasting)
    }

    /// The day whose keys are in it.
    #[must_use]
    pub fn day(&self) -> Option<Day> {
        self.daily.as_ref().map(|(day, _)| *day)
    }

    /// Whom it is shared with.
    #[must_use]
    pub const fn peer(&self) -> PublicKey {
        self.peer
    }

    /// The sender's and the receiver's key.
    fn ends(&self, direction: Direction) -> [&[u8]; 2] {
        match direction {
            Direction::Outbound => [self.own.as_bytes(), self.peer.as_bytes()],
            Direction::Inbound => [self.peer.as_bytes(), self.own.as_bytes()],
        }
    }

    /// The key of epoch `n`; with the secret of a key packet, of that packet alone.
    #[must_use]
    pub fn epoch_key(
        &self,
        direction: Direction,
        algorithm: KijAlgorithm,
        n: u32,
        secret: Option<&EpochSecret>,
    ) -> Kijn {
        let mut from = Zeroizing::new([0; 32 + EPOCH_SECRET_LEN]);
        let len = if secret.is_some() { from.len() } else { 32 };
        from[..32].copy_from_slice(self.secret.as_slice());
        if let Some(secret) = secret {
            from[32..].copy_from_slice(secret.0.as_slice());
        }
        let [sender, receiver] = self.ends(direction);
        let n = n.to_be_bytes();
        let key = derive_key(&from[..len], &[], &[KIJN_INFO, &n, &[algorithm.id()], sender, receiver]);
        Kijn { algorithm, key: Box::new(key) }
    }

    /// The tag of a key packet, over all of `bound`: from the secret that lasts, as it proves the sender and hides nothing.
    pub(crate) fn key_packet_tag(&self, direction: Direction, bound: &[u8]) -> [u8; TAG_LEN] {
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(hmac::sign(&self.key_packet_key(direction), bound).as_ref());
        tag
    }

    /// Whether the tag of a key packet is right, in constant time.
    pub(crate) fn key_packet_is_authentic(
        &self,
        direction: Direction,
        bound: &[u8],
        tag: &[u8; TAG_LEN],
    ) -> bool {
        hmac::verify(&self.key_packet_key(direction), bound, tag).is_ok()
    }

    fn key_packet_key(&self, direction: Direction) -> hmac::Key {
        let [sender, receiver] = self.ends(direction);
        let key: Zeroizing<[u8; 32]> = derive_key(self.lasting(), &[], &[KEY_PACKET_INFO, sender, receiver]);
        hmac::Key::new(hmac::HMAC_SHA256, key.as_slice())
    }
}

impl core::fmt::Debug for Kij {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("[key]")
    }
}

/// The key of one epoch in one direction; wiped when dropped, never printed.
pub struct Kijn {
    algorithm: KijAlgorithm,
    key: Box<Zeroizing<[u8; 32]>>,
}

impl Kijn {
    /// Wraps a packet key; `bound`, the header before it, is authenticated with it.
    ///
    /// The nonce is the SPI and the number of the key's first packet: a sender uses no number twice.
    #[must_use]
    pub fn wrap(&self, key: &PacketKey, spi: Spi, first: Esn, bound: &[u8]) -> [u8; WRAPPED_LEN] {
        let mut wrapped = Zeroizing::new([0; WRAPPED_LEN]);
        let (text, place) = wrapped.split_at_mut(PACKET_KEY_LEN);
        text.copy_from_slice(key.expose());
        let tag = self.scheduled().seal_in_place_separate_tag(nonce(spi, first), Aad::from(bound), text);
        place.copy_from_slice(tag.expect("32 bytes are sealed by every algorithm").as_ref());
        *wrapped
    }

    /// The packet key in a header, if that is authentic.
    #[must_use]
    pub fn unwrap_key(
        &self,
        wrapped: &[u8; WRAPPED_LEN],
        spi: Spi,
        first: Esn,
        bound: &[u8],
    ) -> Option<PacketKey> {
        let mut text = Zeroizing::new(*wrapped);
        let key =
            self.scheduled().open_in_place(nonce(spi, first), Aad::from(bound), text.as_mut_slice()).ok()?;
        PacketKey::from_slice(key)
    }

    fn scheduled(&self) -> LessSafeKey {
        let algorithm: &'static Algorithm = match self.algorithm {
            KijAlgorithm::Aes256GcmSiv => &AES_256_GCM_SIV,
            KijAlgorithm::ChaCha20Poly1305 => &CHACHA20_POLY1305,
            KijAlgorithm::Aes256Gcm => &AES_256_GCM,
            KijAlgorithm::Aes128Gcm => &AES_128_GCM,
        };
        let key = self.key.get(..algorithm.key_len()).unwrap_or_default();
        LessSafeKey::new(UnboundKey::new(algorithm, key).expect("no algorithm has keys above 32 bytes"))
    }
}

impl core::fmt::Debug for Kijn {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("[key]")
    }
}

fn nonce(spi: Spi, first: Esn) -> Nonce {
    let ([a, b, c, d], [e, f, g, h, i, j, k, l]) = (spi.0.to_be_bytes(), first.0.to_be_bytes());
    Nonce::assume_unique_for_key([a, b, c, d, e, f, g, h, i, j, k, l])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pair() -> (Kij, Kij) {
        let (one, other) = (PrivateKey::generate(&[1; 32]), PrivateKey::generate(&[2; 32]));
        (Kij::agree(&one, &other.public()).unwrap(), Kij::agree(&other, &one.public()).unwrap())
    }

    #[test]
    fn both_ends_have_one_secret_and_each_direction_a_key() {
        let (here, there) = pair();
        assert_eq!(here.secret, there.secret);
        let key = |kij: &Kij, direction| *kij.epoch_key(direction, KijAlgorithm::default(), 7, None).key;
        assert_eq!(key(&here, Direction::Outbound), key(&there, Direction::Inbound));
        assert_eq!(key(&here, Direction::Inbound), key(&there, Direction::Outbound));
        assert_ne!(key(&here, Direction::Inbound), key(&here, Direction::Outbound));
        let tag = here.key_packet_tag(Direction::Outbound, b"bound");
        assert!(there.key_packet_is_authentic(Direction::Inbound, b"bound", &tag));
        assert!(!there.key_packet_is_authentic(Direction::Outbound, b"bound", &tag));
        assert!(!there.key_packet_is_authentic(Direction::Inbound, b"other", &tag));
    }

    #[test]
    fn epochs_algorithms_and_secrets_have_keys_apart() {
        let (here, _) = pair();
        let secret = EpochSecret::new([3; 32]);
        let key = |algorithm, n, secret| *here.epoch_key(Direction::Outbound, algorithm, n, secret).key;
        let base = key(KijAlgorithm::Aes256GcmSiv, 7, None);
        assert_ne!(base, key(KijAlgorithm::Aes256GcmSiv, 8, None));
        assert_ne!(base, key(KijAlgorithm::Aes256Gcm, 7, None));
        assert_ne!(base, key(KijAlgorithm::Aes256GcmSiv, 7, Some(&secret)));
    }

    #[test]
    fn the_secret_of_a_day_needs_a_secret_of_that_day_and_proves_the_same_sender() {
        let (here, there) = pair();
        let [mine, yours, third] = [[3; 32], [4; 32], [5; 32]].map(DailySecret::from_bytes);
        let day = |kij: &Kij, day, own: &DailySecret, peer: &DailySecret| {
            *kij.on_day(Day(day), own, &peer.public()).unwrap().secret
        };
        let base = day(&here, 20_000, &mine, &yours);
        assert_eq!(base, day(&there, 20_000, &yours, &mine));
        assert_ne!(base, *here.secret, "not that of every day");
        assert_ne!(base, day(&here, 20_001, &mine, &yours));
        assert_ne!(base, day(&here, 20_000, &third, &yours));
        assert_ne!(base, day(&here, 20_000, &mine, &third));
        let today = here.on_day(Day(20_000), &mine, &yours.public()).unwrap();
        assert_eq!((today.day(), here.day()), (Some(Day(20_000)), None));
        let tag = today.key_packet_tag(Direction::Outbound, b"bound");
        assert!(there.key_packet_is_authentic(Direction::Inbound, b"bound", &tag));
        assert!(here.on_day(Day(20_000), &mine, &[0; 32]).is_none(), "no key");
    }

    #[test]
    fn a_node_shares_nothing_with_itself_nor_with_what_is_no_key() {
        let one = PrivateKey::generate(&[1; 32]);
        assert!(Kij::agree(&one, &one.public()).is_none());
        assert!(Kij::agree(&one, &PublicKey::from_bytes([0; 32])).is_none());
    }

    /// Vectors that another implementation made from the definitions alone, in Python: what was once derived stays what it is.
    #[test]
    fn derivation_stays_what_it_is() {
        let (here, _) = pair();
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            hex(here.secret.as_slice()),
            "c1302124c8da989715ffbff9cdeff0042197e52a7a69505d09fb2789f618b39c"
        );
        let kijn = here.epoch_key(Direction::Outbound, KijAlgorithm::Aes256GcmSiv, 271_752, None);
        assert_eq!(
            hex(kijn.key.as_slice()),
            "2c7ef7d53f74f4047fb201b194569da85fff8338b888696b08368dec5277377b"
        );
        let wrapped = kijn.wrap(&PacketKey::from_bytes([9; 32]), Spi(0x0400_0001), Esn(5), b"header");
        assert_eq!(
            hex(&wrapped),
            "eb23f48b49ef62a2fe44fa1807466d83f1eac709c3ae5c84b46277bbb598dd9c\
                        022d7977e69897a0916da9b38575928f"
        );
    }

    proptest! {
        #[test]
        fn a_packet_key_comes_out_of_an_untouched_header_only(
            bytes: [u8; 32],
            spi: u32,
            first: u64,
            bound: Vec<u8>,
            algorithm in 0..4_usize,
            touched in 0..WRAPPED_LEN,
            bit in 0..8_u8,
        ) {
            let (here, there) = pair();
            let algorithm = KijAlgorithm::ALL[algorithm];
            let (spi, first) = (Spi(spi), Esn(first));
            let wrapped = here
                .epoch_key(Direction::Outbound, algorithm, 1, None)
                .wrap(&PacketKey::from_bytes(bytes), spi, first, &bound);
            let kijn = there.epoch_key(Direction::Inbound, algorithm, 1, None);
            let open = |wrapped, spi, first, bound: &[u8]| kijn.unwrap_key(wrapped, spi, first, bound);
            let opened = open(&wrapped, spi, first, &bound);
            prop_assert_eq!(opened.as_ref().map(PacketKey::expose), Some(&bytes));
            let mut forged = wrapped;
            forged[touched] ^= 1 << bit;
            prop_assert!(open(&forged, spi, first, &bound).is_none());
            prop_assert!(open(&wrapped, Spi(spi.0 ^ 1), first, &bound).is_none());
            prop_assert!(open(&wrapped, spi, Esn(first.0 ^ 1), &bound).is_none());
            prop_assert!(open(&wrapped, spi, first, &[&bound[..], &[0]].concat()).is_none());
            let next = there.epoch_key(Direction::Inbound, algorithm, 2, None);
            prop_assert!(next.unwrap_key(&wrapped, spi, first, &bound).is_none());
        }
    }
}
