//! Packets (RFC 4253 section 6), in the clear until there are keys, then under AES-GCM (RFC 5647).

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::error::SshError;

/// Largest packet that is read: what OpenSSH's `PACKET_MAX_SIZE` allows. RFC 4253 section 6.1 asks for 35,000 bytes.
const PACKET_MAX: usize = 256 * 1024;
/// Bytes of a packet's length.
const LENGTH: usize = 4;
/// Bytes of the tag of AES-GCM.
const TAG: usize = 16;
/// Least padding (RFC 4253 section 6).
const PADDING_MIN: usize = 4;
/// What lengths are multiples of without a cipher, and with AES.
const CLEAR_BLOCK: usize = 8;
const AES_BLOCK: usize = 16;

/// A cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cipher {
    Aes128Gcm,
    Aes256Gcm,
}

impl Cipher {
    /// All, the cheapest first: the pipe is private.
    pub(crate) const ALL: [Cipher; 2] = [Cipher::Aes128Gcm, Cipher::Aes256Gcm];

    pub(crate) const fn name(self) -> &'static [u8] {
        match self {
            Cipher::Aes128Gcm => b"aes128-gcm@openssh.com",
            Cipher::Aes256Gcm => b"aes256-gcm@openssh.com",
        }
    }

    /// Bytes of its key.
    pub(crate) const fn key_length(self) -> usize {
        match self {
            Cipher::Aes128Gcm => 16,
            Cipher::Aes256Gcm => 32,
        }
    }
}

/// The key of one direction, whose nonce counts packets.
pub(crate) struct PacketKey {
    key: LessSafeKey,
    /// Four bytes that stay, eight that count (RFC 5647 section 7.1).
    nonce: [u8; NONCE_LEN],
}

impl PacketKey {
    pub(crate) fn new(cipher: Cipher, key: &[u8], iv: &[u8; NONCE_LEN]) -> Option<PacketKey> {
        let algorithm = match cipher {
            Cipher::Aes128Gcm => &AES_128_GCM,
            Cipher::Aes256Gcm => &AES_256_GCM,
        };
        let key = UnboundKey::new(algorithm, key.get(..cipher.key_length())?).ok()?;
        Some(PacketKey { key: LessSafeKey::new(key), nonce: *iv })
    }

    /// The nonce of this packet. It comes again after 2^64 packets, long after `ssh` asks for new keys.
    fn next_nonce(&mut self) -> Nonce {
        let nonce = Nonce::assume_unique_for_key(self.nonce);
        for byte in self.nonce[4..].iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
        nonce
    }
}

/// Makes packets.
#[derive(Default)]
pub(crate) struct Sealer(Option<PacketKey>);

impl Sealer {
    /// From the next packet on.
    pub(crate) fn set_key(&mut self, key: PacketKey) {
        self.0 = Some(key);
    }

    /// Appends the packet of `payload`.
    pub(crate) fn seal(&mut self, payload: &[u8], into: &mut Vec<u8>) -> Result<(), SshError> {
        // AES-GCM leaves the length outside of what is padded.
        let (block, outside) = if self.0.is_some() { (AES_BLOCK, 0) } else { (CLEAR_BLOCK, LENGTH) };
        let least = outside + 1 + payload.len() + PADDING_MIN;
        let padding = PADDING_MIN + least.next_multiple_of(block) - least;
        let length = 1 + payload.len() + padding;
        let start = into.len();
        into.reserve(LENGTH + length + TAG);
        into.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
        into.push(u8::try_from(padding).unwrap_or(u8::MAX));
        into.extend_from_slice(payload);
        // Zeros, as OpenSSH pads in the clear: under a cipher without feedback they tell no more than others would.
        into.resize(into.len() + padding, 0);
        let Some(key) = &mut self.0 else { return Ok(()) };
        let nonce = key.next_nonce();
        let (head, body) = into[start..].split_at_mut(LENGTH);
        let tag = key.key.seal_in_place_separate_tag(nonce, Aad::from(&*head), body);
        into.extend_from_slice(tag.map_err(|_| SshError::Protocol("it cannot be encrypted"))?.as_ref());
        Ok(())
    }
}

/// Takes packets apart.
#[derive(Default)]
pub(crate) struct Opener {
    key: Option<PacketKey>,
    /// What arrived, from `start` on.
    bytes: Vec<u8>,
    start: usize,
}

impl Opener {
    /// From the next packet on.
    pub(crate) fn set_key(&mut self, key: PacketKey) {
        self.key = Some(key);
    }

    /// Takes bytes, cut anywhere.
    pub(crate) fn received(&mut self, bytes: &[u8]) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
        } else {
            self.bytes.drain(..self.start);
        }
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The line that comes before all packets, without its end; none while it is not complete.
    pub(crate) fn line(&mut self, max: usize) -> Result<Option<Vec<u8>>, SshError> {
        let waiting = &self.bytes[self.start..];
        let Some(end) = waiting.iter().take(max).position(|byte| *byte == b'\n') else {
            return if waiting.len() < max { Ok(None) } else { Err(SshError::NotSsh) };
        };
        let line = waiting[..end].strip_suffix(b"\r").unwrap_or(&waiting[..end]).to_vec();
        self.start += end + 1;
        Ok(Some(line))
    }

    /// The payload of the next packet; none while it is not complete.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, SshError> {
        let waiting = &mut self.bytes[self.start..];
        let Some((head, rest)) = waiting.split_at_mut_checked(LENGTH) else { return Ok(None) };
        let length = head.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        let (block, outside, tag) =
            if self.key.is_some() { (AES_BLOCK, 0, TAG) } else { (CLEAR_BLOCK, LENGTH, 0) };
        if !(1 + PADDING_MIN..=PACKET_MAX).contains(&length) || !(outside + length).is_multiple_of(block) {
            return Err(SshError::Protocol("its length is wrong"));
        }
        let Some(body) = rest.get_mut(..length + tag) else { return Ok(None) };
        if let Some(key) = &mut self.key {
            let nonce = key.next_nonce();
            key.key.open_in_place(nonce, Aad::from(&*head), body).map_err(|_| SshError::Forged)?;
        }
        let padding = usize::from(body[0]);
        if padding < PADDING_MIN || padding + 1 > length {
            return Err(SshError::Protocol("its padding is wrong"));
        }
        let payload = body[1..length - padding].to_vec();
        self.start += LENGTH + length + tag;
        Ok(Some(payload))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(cipher: Cipher) -> PacketKey {
        PacketKey::new(cipher, &[7; 32], &[0xff; NONCE_LEN]).unwrap()
    }

    proptest! {
        #[test]
        fn packets_come_through_however_they_are_cut(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 1..8),
            cut in 1..40_usize,
            cipher in prop::option::of(prop::sample::select(&Cipher::ALL)),
        ) {
            let (mut sealer, mut opener) = (Sealer::default(), Opener::default());
            if let Some(cipher) = cipher {
                sealer.set_key(key(cipher));
                opener.set_key(key(cipher));
            }
            let mut wire = Vec::new();
            for payload in &payloads {
                sealer.seal(payload, &mut wire).unwrap();
            }
            let mut opened = Vec::new();
            for part in wire.chunks(cut) {
                opener.received(part);
                while let Some(payload) = opener.next().unwrap() {
                    opened.push(payload);
                }
            }
            prop_assert_eq!(opened, payloads);
        }

        #[test]
        fn a_changed_bit_is_found(at in 0..48_usize, bit in 0..8_u32) {
            let mut wire = Vec::new();
            let (mut sealer, mut opener) = (Sealer::default(), Opener::default());
            sealer.set_key(key(Cipher::Aes128Gcm));
            opener.set_key(key(Cipher::Aes128Gcm));
            sealer.seal(b"some words of a person", &mut wire).unwrap();
            let at = at % wire.len();
            wire[at] ^= 1_u8 << bit;
            opener.received(&wire);
            prop_assert!(!matches!(opener.next(), Ok(Some(_))));
        }

        #[test]
        fn nothing_that_arrives_panics(bytes: Vec<u8>) {
            let mut opener = Opener::default();
            opener.received(&bytes);
            while let Ok(Some(_)) = opener.next() {}
        }
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_before_anything_is_waited_for() {
        for length in [0_u32, 4, 13, 0xffff_ffff, 256 * 1024 + 4] {
            let mut opener = Opener::default();
            opener.received(&length.to_be_bytes());
            assert_eq!(opener.next(), Err(SshError::Protocol("its length is wrong")), "{length}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_given_up() {
        let mut opener = Opener::default();
        opener.received(b"SSH-2.0-x");
        assert_eq!(opener.line(16), Ok(None));
        opener.received(b"\r\nrest");
        assert_eq!(opener.line(16).unwrap().unwrap(), b"SSH-2.0-x");
        opener.received(&[b'a'; 20]);
        assert_eq!(opener.line(16), Err(SshError::NotSsh));
    }
}
