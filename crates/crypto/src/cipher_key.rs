//! Ciphers with their keys, at work on whole packets in place.

use core::fmt;

use aws_lc_rs::cipher::{AES_128, AES_192, AES_256};

use crate::aes_cbc::AesCbc;
#[cfg(feature = "danger-legacy")]
use crate::legacy::rc4::Rc4PerPacket;
#[cfg(feature = "danger-legacy")]
use crate::legacy::{des, idea, rc2, rc5, safer};
use crate::{Cipher, IV_MAX, KeyMaterial};

/// An IV or a text of a length that the cipher cannot work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{cipher} takes an IV of {} bytes and text in blocks of {}, not an IV of {iv} and text of {text}",
    cipher.iv_len(),
    cipher.block_len()
)]
pub struct WrongBlocks {
    /// The cipher that refused.
    pub cipher: Cipher,
    /// Bytes of IV that were given.
    pub iv: usize,
    /// Bytes of text that were given.
    pub text: usize,
}

/// What a cipher does once it has a key; both directions leave a text alone that they refuse.
pub(crate) trait Keyed: Send + Sync {
    /// Encrypts `text`, whole blocks, in place.
    fn encrypt(&self, iv: &[u8], text: &mut [u8]) -> Result<(), Unfit>;
    /// Decrypts `text`, whole blocks, in place.
    fn decrypt(&self, iv: &[u8], text: &mut [u8]) -> Result<(), Unfit>;
}

/// An IV or a text that is not of the cipher's length.
pub(crate) struct Unfit;

/// A cipher with its key; neither direction allocates.
///
/// It authenticates nothing: check a packet's [`MacKey`](crate::MacKey) before decrypting it, for a peer
/// who is told what came out of a changed packet is an oracle. Prints as `[key]`. The schedule is wiped when
/// dropped; what expanding the key left on the stack is not.
pub struct CipherKey {
    cipher: Cipher,
    keyed: Box<dyn Keyed>,
}

impl CipherKey {
    /// The key in `material`.
    #[must_use]
    pub fn new(material: &KeyMaterial<Cipher>) -> CipherKey {
        CipherKey { cipher: material.algorithm(), keyed: keyed(material) }
    }

    /// The cipher of this key.
    #[must_use]
    pub const fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// Encrypts `text` in place.
    ///
    /// In CBC mode `iv` must be unpredictable, as that of [`CipherKey::iv_for`] is (RFC 3602 section 3).
    ///
    /// # Errors
    /// [`WrongBlocks`] unless `iv` is [`Cipher::iv_len`] bytes and `text` a multiple of
    /// [`Cipher::block_len`]; `text` is then as it was.
    pub fn encrypt(&self, iv: &[u8], text: &mut [u8]) -> Result<(), WrongBlocks> {
        let wrong = self.wrong(iv, text);
        self.keyed.encrypt(iv, text).map_err(|Unfit| wrong)
    }

    /// Decrypts `text` in place.
    ///
    /// # Errors
    /// As [`CipherKey::encrypt`].
    pub fn decrypt(&self, iv: &[u8], text: &mut [u8]) -> Result<(), WrongBlocks> {
        let wrong = self.wrong(iv, text);
        self.keyed.decrypt(iv, text).map_err(|Unfit| wrong)
    }

    /// Writes the IV of packet `number`, which cannot be predicted without the key: the forward cipher applied
    /// to a nonce (NIST SP 800-38A appendix C, first method).
    ///
    /// The nonce is `seed`, then `number`; in a block of 8 bytes, one added to the other. Either way it is
    /// another for every number. `seed` is a random number that the caller draws once for each key it starts
    /// to send with.
    ///
    /// # Panics
    /// When `iv` is not [`Cipher::iv_len`] bytes long.
    pub fn iv_for(&self, number: u64, seed: u64, iv: &mut [u8]) {
        assert_eq!(iv.len(), self.cipher.iv_len(), "the IV of {}", self.cipher);
        match iv.split_last_chunk_mut() {
            Some(([], last)) => *last = number.wrapping_add(seed).to_be_bytes(),
            Some((first, last)) => {
                first.copy_from_slice(&seed.to_be_bytes());
                *last = number.to_be_bytes();
            }
            None => return,
        }
        // With an IV of zeros, CBC mode on one block is the cipher alone.
        let forward = self.encrypt(&[0; IV_MAX][..iv.len()], iv);
        debug_assert!(forward.is_ok(), "an IV is one block");
    }

    fn wrong(&self, iv: &[u8], text: &[u8]) -> WrongBlocks {
        WrongBlocks { cipher: self.cipher, iv: iv.len(), text: text.len() }
    }
}

impl fmt::Debug for CipherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// The key in `material`, expanded.
fn keyed(material: &KeyMaterial<Cipher>) -> Box<dyn Keyed> {
    match material.algorithm() {
        Cipher::Null => Box::new(Null),
        Cipher::Aes128Cbc => Box::new(AesCbc::new(&AES_128, material.expose())),
        Cipher::Aes192Cbc => Box::new(AesCbc::new(&AES_192, material.expose())),
        Cipher::Aes256Cbc => Box::new(AesCbc::new(&AES_256, material.expose())),
        #[cfg(feature = "danger-legacy")]
        Cipher::DesCbc => Box::new(des::single_cbc(&material.array())),
        #[cfg(feature = "danger-legacy")]
        Cipher::TripleDesCbc => Box::new(des::triple_cbc(&material.array())),
        #[cfg(feature = "danger-legacy")]
        Cipher::TwoKeyTripleDesCbc => Box::new(des::two_key_triple_cbc(&material.array())),
        #[cfg(feature = "danger-legacy")]
        Cipher::Rc5R12Cbc => Box::new(rc5::twelve_rounds_cbc(&material.array())),
        #[cfg(feature = "danger-legacy")]
        Cipher::Rc5R16Cbc => Box::new(rc5::sixteen_rounds_cbc(&material.array())),
        #[cfg(feature = "danger-legacy")]
        Cipher::Rc2_40Cbc => Box::new(rc2::cbc::<5>(&material.array())),
        #[cfg(feature = "danger-legacy")]
        Cipher::Rc2_128Cbc => Box::new(rc2::cbc::<16>(&material.array())),
        #[cfg(feature = "danger-legacy")]
        Cipher::Rc4_40 => Box::new(Rc4PerPacket::<5>(material.array())),
        #[cfg(feature = "danger-legacy")]
        Cipher::Rc4_128 => Box::new(Rc4PerPacket::<16>(material.array())),
        #[cfg(feature = "danger-legacy")]
        Cipher::IdeaCbc => Box::new(idea::cbc(&material.array())),
        #[cfg(feature = "danger-legacy")]
        Cipher::SaferSk128Cbc => Box::new(safer::cbc(&material.array())),
    }
}

/// RFC 2410: the identity.
struct Null;

impl Keyed for Null {
    fn encrypt(&self, iv: &[u8], _text: &mut [u8]) -> Result<(), Unfit> {
        if iv.is_empty() { Ok(()) } else { Err(Unfit) }
    }

    fn decrypt(&self, iv: &[u8], text: &mut [u8]) -> Result<(), Unfit> {
        self.encrypt(iv, text)
    }
}

#[cfg(test)]
mod tests;
