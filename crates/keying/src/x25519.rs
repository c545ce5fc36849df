//! X25519 (RFC 7748) with the keys that nodes have: the same key pair, on the curve that shares secrets.
//!
//! An Ed25519 public key has one point on the curve of X25519, and its private key the scalar for it: what age does with the SSH keys
//! of that kind. So the X25519 key is bound to the identity by arithmetic, and needs no signature.

use aws_lc_rs::digest::{SHA512, digest};
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::montgomery::MontgomeryPoint;
use zeroize::Zeroizing;

use crate::{PrivateKey, PublicKey};

impl PublicKey {
    /// The same key on the curve of X25519 (RFC 7748 section 4.1); none where the bytes are no point, or one with which every secret
    /// makes the same.
    #[must_use]
    pub fn to_x25519(&self) -> Option<[u8; 32]> {
        let point = CompressedEdwardsY(*self.as_bytes()).decompress()?;
        if point.is_small_order() { None } else { Some(point.to_montgomery().to_bytes()) }
    }
}

impl PrivateKey {
    /// The scalar of this key (RFC 8032 section 5.1.5), not clamped: X25519 does that.
    #[must_use]
    pub fn x25519_scalar(&self) -> Zeroizing<[u8; 32]> {
        let hash = digest(&SHA512, self.expose_seed());
        let mut scalar = Zeroizing::new([0; 32]);
        scalar.copy_from_slice(&hash.as_ref()[..32]);
        scalar
    }
}

/// X25519 (RFC 7748 section 5); nothing where the result is zero (section 6.1).
#[must_use]
pub fn x25519(scalar: &[u8; 32], point: &[u8; 32]) -> Option<Zeroizing<[u8; 32]>> {
    let shared = Zeroizing::new(MontgomeryPoint(*point).mul_clamped(*scalar).to_bytes());
    if *shared == [0; 32] { None } else { Some(shared) }
}

/// The point of a scalar: its public half (RFC 7748 section 6.1).
#[must_use]
pub fn x25519_public(scalar: &[u8; 32]) -> [u8; 32] {
    MontgomeryPoint::mul_base_clamped(*scalar).to_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hex(text: &str) -> [u8; 32] {
        core::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
    }

    #[test]
    fn the_exchange_is_that_of_the_rfc() {
        // RFC 7748 section 5.2, the first vector.
        let scalar = hex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4");
        let point = hex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c");
        let shared = hex("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
        assert_eq!(*x25519(&scalar, &point).unwrap(), shared);
    }

    #[test]
    fn points_without_a_secret_are_refused() {
        let mut one = [0; 32];
        one[0] = 1;
        assert_eq!(PublicKey::from_bytes(one).to_x25519(), None, "the neutral element");
        assert_eq!(PublicKey::from_bytes([0; 32]).to_x25519(), None, "order 4");
        let of = |byte| PublicKey::from_bytes(core::array::from_fn(|at| if at == 0 { byte } else { 0 }));
        assert!((2..20).any(|byte| of(byte).to_x25519().is_none()), "half of all numbers are no point");
        assert!(x25519(&[7; 32], &[0; 32]).is_none());
    }

    proptest! {
        #[test]
        fn both_halves_of_a_key_move_to_the_same_point(seed: [u8; 32]) {
            let key = PrivateKey::generate(&seed);
            prop_assert_eq!(key.public().to_x25519(), Some(x25519_public(&key.x25519_scalar())));
        }

        #[test]
        fn two_nodes_share_one_secret(one: [u8; 32], other: [u8; 32]) {
            let (one, other) = (PrivateKey::generate(&one), PrivateKey::generate(&other));
            let here = x25519(&one.x25519_scalar(), &other.public().to_x25519().unwrap()).unwrap();
            let there = x25519(&other.x25519_scalar(), &one.public().to_x25519().unwrap()).unwrap();
            prop_assert_eq!(here, there);
        }
    }
}
