//! RC4, a stream cipher that was never published by its maker (RFC 6229 has vectors), by `RustCrypto`.

use cipher::StreamCipher;
use rc4::{KeyInit, Rc4};
use zeroize::Zeroizing;

use crate::cipher_key::{Keyed, Unfit};

/// A key of RC4 that every packet begins anew with, key schedule included: the same key stream for all of
/// them. Two packets under one key give each other away, so a key serves for one packet, or for measuring.
pub(crate) struct Rc4PerPacket<const LEN: usize>(pub(crate) Zeroizing<[u8; LEN]>);

impl<const LEN: usize> Keyed for Rc4PerPacket<LEN> {
    fn encrypt(&self, iv: &[u8], text: &mut [u8]) -> Result<(), Unfit> {
        if !iv.is_empty() {
            return Err(Unfit);
        }
        let mut stream = Rc4::new_from_slice(self.0.as_slice()).map_err(|_| Unfit)?;
        stream.try_apply_keystream(text).map_err(|_| Unfit)
    }

    fn decrypt(&self, iv: &[u8], text: &mut [u8]) -> Result<(), Unfit> {
        self.encrypt(iv, text)
    }
}

#[cfg(test)]
mod tests {
    use crate::published::{check_hex, file, unhex};
    use crate::{Cipher, CipherKey, KeyMaterial};

    /// RFC 6229 section 2, the first 16 bytes of key stream.
    #[test]
    fn published_cases() {
        let zeros = "00000000000000000000000000000000";
        check_hex(Cipher::Rc4_40, ["0102030405", "", zeros, "b2396305f03dc027ccc3524a0a1118a8"]);
        let key = "0102030405060708090a0b0c0d0e0f10";
        check_hex(Cipher::Rc4_128, [key, "", zeros, "9ac7cc9a609d1ef7b2932899cde41b97"]);
    }

    #[test]
    fn every_case_of_rfc_6229_with_our_lengths() {
        let Some(file) = file("rfc6229-rc4.txt") else { return };
        let mut cases = 0;
        for case in file.split("key: 0x").skip(1) {
            let (key, lines) = case.split_once('\n').unwrap();
            let cipher = match unhex(key).len() {
                5 => Cipher::Rc4_40,
                16 => Cipher::Rc4_128,
                _ => continue,
            };
            let mut stream = vec![0; 4096 + 16];
            let key = CipherKey::new(&KeyMaterial::new(cipher, &unhex(key)).unwrap());
            key.encrypt(&[], &mut stream).unwrap();
            for line in lines.lines().filter(|line| line.contains("DEC")) {
                let (offset, bytes) = line.split_once(':').unwrap();
                let offset: usize = offset.split_whitespace().nth(1).unwrap().parse().unwrap();
                assert_eq!(stream[offset..][..16], unhex(bytes), "{cipher} at {offset}");
            }
            cases += 1;
        }
        assert_eq!(cases, 4);
    }

    #[test]
    fn every_packet_begins_anew() {
        let key = CipherKey::new(&KeyMaterial::new(Cipher::Rc4_128, &[7; 16]).unwrap());
        let mut packets = [[0; 100]; 2];
        packets.iter_mut().for_each(|packet| key.encrypt(&[], packet).unwrap());
        assert_eq!(packets[0], packets[1]);
    }
}
