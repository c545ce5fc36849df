//! Records as TLS 1.0 has them (RFC 2246 section 6.2): authenticated, then encrypted, or authenticated only.
//!
//! There is no handshake: it costs the same whatever follows, and in minutes of data it does not show.

use std::io::{self, Write};

use rc4::{Rc4, StreamCipher};
use strait_crypto::{ICV_MAX, Integrity, KeyMaterial, KeyedAlgorithm, MacKey};

use super::encrypt::{KEY, keyed_rc4};
use super::{Below, Layer, Sink};

/// Plaintext of a record at most (RFC 2246 section 6.2.1).
pub(in crate::broker) const RECORD: usize = 16 * 1024;
/// Bytes before it: type, version and length.
const HEAD: usize = 5;
/// Application data of TLS 1.0.
const KIND: [u8; 3] = [23, 3, 1];
/// Bits of RC4's key in `SSL_RSA_WITH_RC4_128_MD5`.
const RC4_BITS: usize = 128;

/// What records are protected with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::broker) enum RecordSuite {
    /// `SSL_RSA_WITH_RC4_128_MD5`.
    Rc4Md5,
    /// `TLS_RSA_WITH_NULL_SHA256`: a sound hash and no encryption.
    NullSha256,
}

/// The keys of one direction.
struct RecordKeys {
    rc4: Option<Rc4>,
    mac: MacKey,
    number: u64,
}

impl RecordKeys {
    fn new(suite: RecordSuite) -> io::Result<RecordKeys> {
        let (integrity, rc4) = match suite {
            RecordSuite::Rc4Md5 => (Integrity::HmacMd5_96, Some(keyed_rc4(RC4_BITS)?)),
            RecordSuite::NullSha256 => (Integrity::HmacSha256_128, None),
        };
        let material = KeyMaterial::new(integrity, &KEY[..integrity.key_material_len()]);
        Ok(RecordKeys { rc4, mac: MacKey::new(&material.map_err(io::Error::other)?), number: 0 })
    }

    fn mac_len(&self) -> usize {
        self.mac.integrity().icv_len()
    }

    /// Encrypts or decrypts: for RC4 it is the same.
    fn apply(&mut self, text: &mut [u8]) {
        if let Some(rc4) = &mut self.rc4 {
            rc4.apply_keystream(text);
        }
    }

    /// The next record's number, and its head with the length of the text.
    fn authenticated(&mut self, len: usize) -> ([u8; 8], [u8; HEAD]) {
        let number = self.number;
        self.number += 1;
        (number.to_be_bytes(), head(len))
    }
}

/// A head with this length; no record's is above two bytes.
fn head(len: usize) -> [u8; HEAD] {
    let [high, low] = (len as u16).to_be_bytes();
    let [kind, major, minor] = KIND;
    [kind, major, minor, high, low]
}

/// The sender's end.
pub(in crate::broker) struct RecordLayer {
    below: Below,
    keys: RecordKeys,
    held: Vec<u8>,
}

impl RecordLayer {
    pub(in crate::broker) fn new(below: Below, suite: RecordSuite) -> io::Result<RecordLayer> {
        let held = Vec::with_capacity(RECORD + ICV_MAX);
        Ok(RecordLayer { below, keys: RecordKeys::new(suite)?, held })
    }

    fn record(&mut self) -> io::Result<()> {
        let mut mac = [0; ICV_MAX];
        let mac = &mut mac[..self.keys.mac_len()];
        let (number, authenticated) = self.keys.authenticated(self.held.len());
        self.keys.mac.sign(&[&number, &authenticated, &self.held], mac);
        self.held.extend_from_slice(mac);
        self.keys.apply(&mut self.held);
        self.below.write_all(&head(self.held.len()))?;
        self.below.write_all(&self.held)?;
        self.held.clear();
        Ok(())
    }
}

impl Write for RecordLayer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(RECORD - self.held.len());
        self.held.extend_from_slice(&bytes[..taken]);
        if self.held.len() == RECORD {
            self.record()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Layer for RecordLayer {
    fn finish(mut self: Box<Self>) -> io::Result<Sink> {
        if !self.held.is_empty() {
            self.record()?;
        }
        self.below.finish()
    }
}

/// The receiver's end: what was in the records comes out below.
pub(in crate::broker) struct OpeningLayer {
    below: Below,
    keys: RecordKeys,
    /// The record that comes, from its head on.
    held: Vec<u8>,
}

impl OpeningLayer {
    pub(in crate::broker) fn new(below: Below, suite: RecordSuite) -> io::Result<OpeningLayer> {
        let held = Vec::with_capacity(HEAD + RECORD + ICV_MAX);
        Ok(OpeningLayer { below, keys: RecordKeys::new(suite)?, held })
    }

    /// Bytes of the record that comes, as far as it is known.
    fn wanted(&self) -> io::Result<usize> {
        let Some((_, [high, low])) = self.held.get(..HEAD).and_then(|head| head.split_last_chunk()) else {
            return Ok(HEAD);
        };
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let allowed = self.keys.mac_len()..=RECORD + self.keys.mac_len();
        if allowed.contains(&len) { Ok(HEAD + len) } else { Err(forged()) }
    }

    fn open(&mut self) -> io::Result<()> {
        let text = &mut self.held[HEAD..];
        self.keys.apply(text);
        let (text, mac) = text.split_at(text.len() - self.keys.mac.integrity().icv_len());
        let (number, authenticated) = self.keys.authenticated(text.len());
        self.keys.mac.verify(&[&number, &authenticated, text], mac).map_err(|_| forged())?;
        self.below.write_all(text)?;
        self.held.clear();
        Ok(())
    }
}

fn forged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a record was changed on its way")
}

impl Write for OpeningLayer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.wanted()? - self.held.len());
        self.held.extend_from_slice(&bytes[..taken]);
        if self.held.len() > HEAD && self.held.len() == self.wanted()? {
            self.open()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Layer for OpeningLayer {
    fn finish(self: Box<Self>) -> io::Result<Sink> {
        if self.held.is_empty() { self.below.finish() } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}
