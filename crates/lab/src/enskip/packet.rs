//! Packets as ENskip makes them: a SKIP header with the wrapped packet key, AH, ESP, and inside a packet of TCP with a part of the file.
//!
//! Both ends keep one packet key, as ENskip's primary cache does: a header that is like the last one's costs a comparison.

use rc4::{KeyInit, Rc4, StreamCipher};
use strait_clock::Random;
use strait_crypto::{
    Cipher, CipherKey, ICV_LEN, IV_MAX, Integrity, Key, KeyMaterial, MacKey, NonceCounter, Suite,
};

use super::algorithm::{Combination, Crypt};
use super::keys::{self, PACKET_KEY, WrappingKey};

/// Bytes of the file in a packet: with 3DES and MD5 it then fills the 1,500 bytes of an Ethernet frame, its outer IP header
/// included.
pub(super) const PAYLOAD: usize = 1342;
/// Bytes of the longest packet without the outer IP header.
pub(super) const PACKET_MAX: usize = 1480;
/// Headers of IP and TCP inside.
const INNER: usize = 40;
/// A SKIP header: 4 bytes of version, NSIDs and next header, the hour, 4 of algorithms, the wrapped key, and two key IDs of NSID 8, the
/// MD5 of a public key, which the paper's hosts had.
pub(super) const HEADER: usize = 4 + 4 + 4 + PACKET_KEY + 2 * 16;
/// An AH header with 96 bits (RFC 4302 section 2); RFC 1826's with MD5's 128 bits is as long.
const AH: usize = 12 + ICV;
const ICV: usize = 12;
/// SPI of ESP and AH under SKIP.
const SPI: [u8; 4] = 1_u32.to_be_bytes();
/// IP protocols: IP in IP, ESP, AH.
const IPIP: u8 = 4;
const ESP: u8 = 50;
const AUTHENTICATED: u8 = 51;
/// The hour since 1995 that all packets are of: no measurement takes longer than one.
const HOUR: u32 = 20_000;
/// Packets of a packet key where nothing else is said: 1 MB at most. The paper does not say how many.
pub(super) const PACKETS_A_KEY: u32 = 700;

/// Why a packet cannot be made or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PacketError {
    #[error("the algorithm takes no key of this length")]
    NoKey,
    #[error("the packet is shorter than its headers, or not in whole blocks")]
    Short,
    #[error("the packet is of other hosts, another hour or other algorithms")]
    Foreign,
    #[error("the packet is not authentic")]
    Forged,
    #[error("the text is not what the cipher takes")]
    Text,
}

/// What both ends have agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct SkipSettings {
    pub(super) combination: Combination,
    /// What wraps packet keys.
    pub(super) kij: Cipher,
    /// Bits of RC2's and RC4's key before it is expanded to 128.
    pub(super) bits: usize,
    /// Packets of a packet key.
    pub(super) packets_a_key: u32,
}

impl SkipSettings {
    /// As in the paper's table: three-key 3DES as Kij algorithm.
    pub(super) const fn of(combination: Combination) -> SkipSettings {
        SkipSettings { combination, kij: Cipher::TripleDesCbc, bits: 128, packets_a_key: PACKETS_A_KEY }
    }
}

/// The keys that follow from a packet key.
struct PacketKeys {
    crypt: CryptKey,
    mac: Option<MacKey>,
}

enum CryptKey {
    Null,
    Blocks(CipherKey),
    Rc4([u8; 16]),
    Suite(Key),
}

impl PacketKeys {
    fn new(settings: &SkipSettings, key: &[u8; PACKET_KEY]) -> Result<PacketKeys, PacketError> {
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
fn rc4(key: &[u8; 16], number: &[u8], text: &mut [u8]) -> Result<(), PacketError> {
    let key = keys::hashed(&[key, number]);
    let mut stream = Rc4::new_from_slice(&key).map_err(|_| PacketError::NoKey)?;
    stream.try_apply_keystream(text).map_err(|_| PacketError::Text)
}

/// The sending host.
pub(super) struct SkipSender {
    settings: SkipSettings,
    wrapping: WrappingKey,
    random: Random,
    header: [u8; HEADER],
    keys: Option<PacketKeys>,
    nonces: NonceCounter,
    left: u32,
    number: u64,
    seed: u64,
}

impl SkipSender {
    /// A host that has sent nothing. Packet keys follow from `random`.
    pub(super) fn new(settings: SkipSettings, mut random: Random) -> Result<SkipSender, PacketError> {
        Ok(SkipSender {
            settings,
            wrapping: WrappingKey::new(settings.kij, HOUR)?,
            header: [0; HEADER],
            keys: None,
            nonces: NonceCounter::new(),
            left: 0,
            number: 0,
            seed: random.next_u64(),
            random,
        })
    }

    /// Makes `packet` of a part of the file, [`PAYLOAD`] bytes at most.
    pub(super) fn seal(&mut self, payload: &[u8], packet: &mut Vec<u8>) -> Result<(), PacketError> {
        packet.clear();
        self.number += 1;
        let inner = inner(self.number, payload.len());
        if self.settings.combination.is_plain() {
            packet.extend_from_slice(&inner);
            packet.extend_from_slice(payload);
            return Ok(());
        }
        if self.left == 0 {
            self.renew()?;
        }
        self.left -= 1;
        let Some(PacketKeys { crypt, mac }) = &self.keys else { return Err(PacketError::NoKey) };
        packet.extend_from_slice(&self.header);
        if mac.is_some() {
            packet.extend_from_slice(&[next(&self.settings), (AH / 4 - 2) as u8, 0, 0]);
            packet.extend_from_slice(&SPI);
            packet.extend_from_slice(&(self.number as u32).to_be_bytes());
            packet.extend_from_slice(&[0; ICV]);
        }
        let parts = [&inner[..], payload];
        match crypt {
            CryptKey::Null => parts.iter().for_each(|part| packet.extend_from_slice(part)),
            CryptKey::Blocks(key) => {
                let block = key.cipher().block_len();
                let mut iv = [0; IV_MAX];
                let iv = &mut iv[..key.cipher().iv_len()];
                key.iv_for(self.number, self.seed, iv);
                let start = put_text(packet, iv, parts, block);
                key.encrypt(iv, &mut packet[start..]).map_err(|_| PacketError::Text)?;
            }
            CryptKey::Rc4(key) => {
                let number = self.number.to_be_bytes();
                let start = put_text(packet, &number, parts, 4);
                rc4(key, &number, &mut packet[start..])?;
            }
            CryptKey::Suite(key) => {
                let nonce = self.nonces.next().map_err(|_| PacketError::NoKey)?;
                let start = put_text(packet, &nonce.value().to_be_bytes(), parts, 4);
                let (head, text) = packet.split_at_mut(start);
                let icv = key.seal(nonce, head, text).map_err(|_| PacketError::Text)?;
                packet.extend_from_slice(&icv);
            }
        }
        if let Some(mac) = mac {
            let (before, rest) = packet.split_at_mut(HEADER + AH - ICV);
            let (icv, after) = rest.split_at_mut(ICV);
            mac.sign(&[before, after], icv);
        }
        Ok(())
    }

    /// Takes a new packet key, and writes the header that carries it.
    fn renew(&mut self) -> Result<(), PacketError> {
        let words = [self.random.next_u64(), self.random.next_u64()];
        let mut key = [0; PACKET_KEY];
        key.as_chunks_mut().0.iter_mut().zip(words).for_each(|(half, word)| *half = word.to_be_bytes());
        self.keys = Some(PacketKeys::new(&self.settings, &key)?);
        self.wrapping.wrap(&mut key)?;
        self.header = header(&self.settings, &key);
        self.nonces = NonceCounter::new();
        self.left = self.settings.packets_a_key.max(1);
        Ok(())
    }
}

/// The receiving host.
pub(super) struct SkipReceiver {
    settings: SkipSettings,
    wrapping: WrappingKey,
    /// The last header, and the keys that it gave.
    cached: Option<([u8; HEADER], PacketKeys)>,
}

impl SkipReceiver {
    /// A host that has received nothing.
    pub(super) fn new(settings: SkipSettings) -> Result<SkipReceiver, PacketError> {
        let wrapping = WrappingKey::new(settings.kij, HOUR)?;
        Ok(SkipReceiver { settings, wrapping, cached: None })
    }

    /// The part of the file in a packet, which is decrypted in place.
    pub(super) fn open<'a>(&mut self, packet: &'a mut [u8]) -> Result<&'a [u8], PacketError> {
        if self.settings.combination.is_plain() {
            return packet.get(INNER..).ok_or(PacketError::Short);
        }
        let header: &[u8; HEADER] = packet.first_chunk().ok_or(PacketError::Short)?;
        if self.cached.as_ref().is_none_or(|(last, _)| last != header) {
            self.cached = Some((*header, self.learnt(header)?));
        }
        let Some((_, PacketKeys { crypt, mac })) = &self.cached else { return Err(PacketError::NoKey) };
        let mut start = HEADER;
        if let Some(mac) = mac {
            let (before, rest) = packet.split_at_checked(HEADER + AH - ICV).ok_or(PacketError::Short)?;
            let (icv, after) = rest.split_at_checked(ICV).ok_or(PacketError::Short)?;
            mac.verify(&[before, after], icv).map_err(|_| PacketError::Forged)?;
            start += AH;
        }
        match crypt {
            CryptKey::Null => packet.get(start + INNER..).ok_or(PacketError::Short),
            CryptKey::Blocks(key) => {
                let iv_len = key.cipher().iv_len();
                let (iv, text) = text_of(packet, start, iv_len)?;
                key.decrypt(iv, text).map_err(|_| PacketError::Short)?;
                payload_of(text)
            }
            CryptKey::Rc4(key) => {
                let (number, text) = text_of(packet, start, 8)?;
                rc4(key, number, text)?;
                payload_of(text)
            }
            CryptKey::Suite(key) => {
                let start = start + SPI.len() + 8;
                let (head, text) = packet.split_at_mut_checked(start).ok_or(PacketError::Short)?;
                let iv = head.last_chunk().ok_or(PacketError::Short)?;
                if text.len() < ICV_LEN {
                    return Err(PacketError::Short);
                }
                let iv = u64::from_be_bytes(*iv);
                payload_of(key.open(iv, head, text).map_err(|_| PacketError::Forged)?)
            }
        }
    }

    /// The keys in a header that is new.
    fn learnt(&self, header: &[u8; HEADER]) -> Result<PacketKeys, PacketError> {
        let mut key = [0; PACKET_KEY];
        key.copy_from_slice(&header[12..12 + PACKET_KEY]);
        if *header != self::header(&self.settings, &key) {
            return Err(PacketError::Foreign);
        }
        self.wrapping.unwrap(&mut key)?;
        PacketKeys::new(&self.settings, &key)
    }
}

/// What follows AH, or the SKIP header where there is none.
const fn next(settings: &SkipSettings) -> u8 {
    match settings.combination.crypt {
        Crypt::Null => IPIP,
        Crypt::Blocks(_) | Crypt::Rc4 | Crypt::Suite(_) => ESP,
    }
}

/// The header with a wrapped key.
fn header(settings: &SkipSettings, wrapped: &[u8; PACKET_KEY]) -> [u8; HEADER] {
    let follows = if settings.combination.md5 { AUTHENTICATED } else { next(settings) };
    let kij = keys::KIJ_ALGORITHMS.iter().position(|(_, cipher)| *cipher == settings.kij);
    let mac = u8::from(settings.combination.md5);
    let mut header = [0; HEADER];
    // Version 1, NSID 8 at both ends.
    header[..4].copy_from_slice(&[0x10, 8, 8, follows]);
    header[4..8].copy_from_slice(&HOUR.to_be_bytes());
    header[8..12].copy_from_slice(&[
        kij.map_or(0, |place| place as u8 + 1),
        settings.combination.number(),
        mac,
        0,
    ]);
    header[12..12 + PACKET_KEY].copy_from_slice(wrapped);
    header[12 + PACKET_KEY..].copy_from_slice(b"the sender's ID.the receiver's I");
    header
}

/// Headers of IP and TCP: lengths and numbers are right, checksums are not looked at.
fn inner(number: u64, payload: usize) -> [u8; INNER] {
    let mut inner = [0; INNER];
    inner[0] = 0x45;
    inner[2..4].copy_from_slice(&((INNER + payload) as u16).to_be_bytes());
    inner[4..6].copy_from_slice(&(number as u16).to_be_bytes());
    (inner[8], inner[9]) = (64, 6);
    inner[24..28].copy_from_slice(&(number as u32).to_be_bytes());
    inner[32] = 0x50;
    inner
}

/// Appends an SPI, an IV and text in whole blocks, padded as ESP pads (RFC 4303 section 2.4); gives where the text begins.
fn put_text(packet: &mut Vec<u8>, iv: &[u8], parts: [&[u8]; 2], block: usize) -> usize {
    packet.extend_from_slice(&SPI);
    packet.extend_from_slice(iv);
    let start = packet.len();
    parts.iter().for_each(|part| packet.extend_from_slice(part));
    let padding = (block - (packet.len() - start + 2) % block) % block;
    packet.extend((1..=padding).map(|byte| byte as u8));
    packet.extend_from_slice(&[padding as u8, IPIP]);
    start
}

/// The IV and the text of what [`put_text`] appended at `start`.
fn text_of(packet: &mut [u8], start: usize, iv: usize) -> Result<(&[u8], &mut [u8]), PacketError> {
    let esp = packet.get_mut(start + SPI.len()..).ok_or(PacketError::Short)?;
    let (iv, text) = esp.split_at_mut_checked(iv).ok_or(PacketError::Short)?;
    Ok((iv, text))
}

/// What is between the inner headers and the padding.
fn payload_of(text: &[u8]) -> Result<&[u8], PacketError> {
    let (padding, _) = text
        .split_last_chunk::<2>()
        .map(|(_, [padding, next])| (*padding, *next))
        .ok_or(PacketError::Short)?;
    let end = text.len().checked_sub(2 + usize::from(padding)).ok_or(PacketError::Short)?;
    text.get(INNER..end).ok_or(PacketError::Short)
}

#[cfg(test)]
mod tests;
