//! Packets as ENskip makes them: a SKIP header with the wrapped packet key, AH, ESP, and inside a packet of TCP with a part of the file.
//!
//! Both ends keep one packet key, as ENskip's primary cache does: a header that is like the last one's costs a comparison.

mod layout;
mod packet_keys;

use strait_clock::Random;
use strait_crypto::{Cipher, ICV_LEN, IV_MAX, NonceCounter};

use super::algorithm::Combination;
use super::keys::{PACKET_KEY, WrappingKey};
use layout::{AH, HOUR, ICV, INNER, SPI, inner, next, payload_of, put_text, text_of};
pub(super) use layout::{HEADER, PACKET_MAX, PAYLOAD};
use packet_keys::{CryptKey, PacketKeys, rc4};

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
        self.header = layout::header(&self.settings, &key);
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
        if *header != layout::header(&self.settings, &key) {
            return Err(PacketError::Foreign);
        }
        self.wrapping.unwrap(&mut key)?;
        PacketKeys::new(&self.settings, &key)
    }
}

#[cfg(test)]
mod tests;
