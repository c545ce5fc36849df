//! The keys of packets: those that follow from one packet key.

use rc4::{KeyInit, Rc4, StreamCipher};
use strait_crypto::{Cipher, CipherKey, Integrity, Key, KeyMaterial, MacKey, Suite};

use super::{PacketError, SkipSettings};
use crate::enskip::algorithm::Crypt;
use crate::enskip::keys::{self, PACKET_KEY};

/// The keys that follow from a packet key.
pub(super) struct PacketKeys {
    pub(super) crypt: CryptKey,
    pub(super) mac: Option<MacKey>,
}

pub(super) enum CryptKey {
    Null,
    Blocks(CipherKey),
    Rc4([u8; 16]),
    Suite(Key),
}

impl PacketKeys {
    pub(super) fn new(settings: &SkipSettings, key: &[u8; PACKET_KEY]) -> Result<PacketKeys, PacketError> {
        let derived = keys::encrypting(key, settings.combination.number());
        let short = |len: usize| match settings.bits / 8 {
            bytes if bytes < len => keys::expanded(&derived[..bytes]).to_vec(),
            _ => derived[..len].to_vec(),
        };
        let crypt = match settings.combination.crypt {
            Crypt::Null => CryptKey::Null,
            Crypt::Blocks(cipher @ Cipher::Rc2_128Cbc) => {
                CryptKey::Blocks(keys::cipher_key(cipher, &short(16))?)
            }
            Crypt::Blocks(cipher) => {
                CryptKey::Blocks(keys::cipher_key(cipher, &derived[..cipher.key_len()])?)
            }
            Crypt::Rc4 => CryptKey::Rc4(short(16).try_into().map_err(|_| PacketError::NoKey)?),
            Crypt::Suite(suite) => CryptKey::Suite(suite_key(suite, &derived)?),
        };
        let mac = settings.combination.md5.then(|| {
            let material = KeyMaterial::new(Integrity::HmacMd5_96, &keys::authenticating(key));
            material.map(|material| MacKey::new(&material)).map_err(|_| PacketError::NoKey)
        });
        Ok(PacketKeys { crypt, mac: mac.transpose()? })
    }
}

fn suite_key(suite: Suite, derived: &[u8]) -> Result<Key, PacketError> {
    let material = KeyMaterial::new(suite, &derived[..suite.key_material_len()]);
    material.map(|material| Key::new(&material)).map_err(|_| PacketError::NoKey)
}

/// RC4 over one packet: each has a key of its own, from the packet key and the number that goes with it.
pub(super) fn rc4(key: &[u8; 16], number: &[u8], text: &mut [u8]) -> Result<(), PacketError> {
    let key = keys::hashed(&[key, number]);
    let mut stream = Rc4::new_from_slice(&key).map_err(|_| PacketError::NoKey)?;
    stream.try_apply_keystream(text).map_err(|_| PacketError::Text)
}
