//! Keys as SKIP has them (draft-ietf-ipsec-skip-06, 1995): from the secret of two hosts to those of a packet. None of these protects
//! anything but files that are made here, so they are not wiped.

use md5::{Digest, Md5};
use strait_crypto::{Cipher, CipherKey, IV_MAX, KeyMaterial};

use super::packet::PacketError;

/// Bytes of a packet key, Kp.
pub(super) const PACKET_KEY: usize = 16;
/// The secret that both hosts' long-term keys give, Kij. Its making is not measured: it is made once for each pair of hosts.
const KIJ: [u8; 32] = *b"a secret of two hosts of a table";
/// Kij algorithms: the draft's, and one of today.
pub(super) const KIJ_ALGORITHMS: [(&str, Cipher); 5] = [
    ("DES", Cipher::DesCbc),
    ("2DES", Cipher::TwoKeyTripleDesCbc),
    ("3DES", Cipher::TripleDesCbc),
    ("IDEA", Cipher::IdeaCbc),
    ("AES-128", Cipher::Aes128Cbc),
];
/// Bytes that are derived from a packet key for a cipher: three hashes, as today's suites take up to 36.
const DERIVED: usize = 48;

/// What wraps packet keys in hour `n`: Kijn under a Kij algorithm.
pub(super) struct WrappingKey(CipherKey);

impl WrappingKey {
    /// Of an hour since 1995.
    pub(super) fn new(cipher: Cipher, n: u32) -> Result<WrappingKey, PacketError> {
        let half = |which: u8| hashed(&[&KIJ, &n.to_be_bytes(), &[which]]);
        let kijn = [half(1), half(0)].concat();
        Ok(WrappingKey(cipher_key(cipher, &kijn[..cipher.key_len()])?))
    }

    /// Encrypts a packet key; it is random, so the IV may be zeros.
    pub(super) fn wrap(&self, key: &mut [u8; PACKET_KEY]) -> Result<(), PacketError> {
        self.0.encrypt(&[0; IV_MAX][..self.0.cipher().iv_len()], key).map_err(|_| PacketError::NoKey)
    }

    /// Takes that back.
    pub(super) fn unwrap(&self, key: &mut [u8; PACKET_KEY]) -> Result<(), PacketError> {
        self.0.decrypt(&[0; IV_MAX][..self.0.cipher().iv_len()], key).map_err(|_| PacketError::NoKey)
    }
}

/// A cipher with its key.
pub(super) fn cipher_key(cipher: Cipher, key: &[u8]) -> Result<CipherKey, PacketError> {
    KeyMaterial::new(cipher, key).map(|material| CipherKey::new(&material)).map_err(|_| PacketError::NoKey)
}

/// `E_kp`: the bytes for the Crypt algorithm of this number.
pub(super) fn encrypting(packet_key: &[u8; PACKET_KEY], number: u8) -> [u8; DERIVED] {
    let mut derived = [0; DERIVED];
    for (part, which) in derived.chunks_exact_mut(16).zip([2, 0, 4]) {
        part.copy_from_slice(&hashed(&[packet_key, &[number, which]]));
    }
    derived
}

/// `A_kp`: the key of HMAC-MD5.
pub(super) fn authenticating(packet_key: &[u8; PACKET_KEY]) -> [u8; 16] {
    hashed(&[packet_key, &[1, 3]])
}

/// MD5 of parts, one after another.
pub(super) fn hashed(parts: &[&[u8]]) -> [u8; 16] {
    parts.iter().fold(Md5::new(), |hash, part| hash.chain_update(part)).finalize().into()
}

/// 128 bits that follow from a shorter key by simple bit operations, as ENskip's 40-bit algorithms have theirs. The paper does not say
/// which: here the key is repeated, turned by a bit more and complemented every second time.
pub(super) fn expanded(key: &[u8]) -> [u8; 16] {
    core::array::from_fn(|place| {
        let turn = (place / key.len()) as u32;
        let byte = key[place % key.len()].rotate_left(turn);
        if turn % 2 == 1 { !byte } else { byte }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_keys_come_back_in_their_hour_only() {
        for (name, cipher) in KIJ_ALGORITHMS {
            let key = *b"packet key of 16";
            let mut wrapped = key;
            WrappingKey::new(cipher, 7).unwrap().wrap(&mut wrapped).unwrap();
            assert_ne!(wrapped, key, "{name}");
            let mut other = wrapped;
            WrappingKey::new(cipher, 8).unwrap().unwrap(&mut other).unwrap();
            assert_ne!(other, key, "{name}");
            WrappingKey::new(cipher, 7).unwrap().unwrap(&mut wrapped).unwrap();
            assert_eq!(wrapped, key, "{name}");
        }
    }

    #[test]
    fn keys_of_one_algorithm_are_no_keys_of_another() {
        let key = [7; PACKET_KEY];
        let derived = [encrypting(&key, 1), encrypting(&key, 2)];
        assert_ne!(derived[0], derived[1]);
        assert!(derived[0].chunks(16).all(|part| part != authenticating(&key)));
        assert_ne!(derived[0][..16], derived[0][16..32]);
    }

    #[test]
    fn a_short_key_fills_128_bits() {
        let short = expanded(&[1, 2, 3, 4, 5]);
        assert_eq!(short, [1, 2, 3, 4, 5, !2, !4, !6, !8, !10, 4, 8, 12, 16, 20, !8]);
        assert_eq!(expanded(&[9; 16]), [9; 16]);
        assert_ne!(expanded(&[1, 2, 3, 4, 6]), short);
    }
}
