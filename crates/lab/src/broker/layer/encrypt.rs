//! Layers that encrypt what is stored.

use std::io::{self, Write};

use aws_lc_rs::cipher::{AES_128, AES_192, AES_256, EncryptingKey, UnboundCipherKey};
use rc4::{KeyInit, Rc4, StreamCipher};
use strait_crypto::{Key, KeyMaterial, NonceCounter, Suite};

use super::super::pipeline::CHUNK;
use super::super::table_aes::{BLOCK, TableAes};
use super::record::RECORD;
use super::{Below, Layer, Sink};

/// A key for measuring, of which as much is taken as a cipher wants; not a secret.
pub(in crate::broker) const KEY: [u8; 36] = *b"a key of a table, which hides nothin";

/// How AES is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::broker) enum AesBy {
    /// With the processor's instructions, where it has them, by aws-lc.
    Instructions,
    /// By tables, as Java had it in 2011.
    Tables,
}

/// RC4, one key stream to the end.
pub(in crate::broker) struct Rc4Layer {
    below: Below,
    rc4: Rc4,
    out: Vec<u8>,
}

impl Rc4Layer {
    /// With a key of so many bits.
    pub(in crate::broker) fn new(below: Below, bits: usize) -> io::Result<Rc4Layer> {
        Ok(Rc4Layer { below, rc4: keyed_rc4(bits)?, out: Vec::with_capacity(CHUNK) })
    }
}

/// RC4 with a key of so many bits.
pub(super) fn keyed_rc4(bits: usize) -> io::Result<Rc4> {
    Rc4::new_from_slice(&KEY[..bits / 8]).map_err(io::Error::other)
}

impl Write for Rc4Layer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK);
        self.out.clear();
        self.out.extend_from_slice(&bytes[..taken]);
        self.rc4.apply_keystream(&mut self.out);
        self.below.write_all(&self.out)?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Layer for Rc4Layer {
    fn finish(self: Box<Self>) -> io::Result<Sink> {
        self.below.finish()
    }
}

enum AesKey {
    Library(Box<EncryptingKey>),
    Tables(Box<TableAes>),
}

/// AES block by block, the end filled as PKCS #7 says (RFC 5652 section 6.3): `AES/ECB/PKCS5Padding`.
pub(in crate::broker) struct AesLayer {
    below: Below,
    key: AesKey,
    held: Vec<u8>,
}

impl AesLayer {
    /// With a key of 128, 192 or 256 bits.
    pub(in crate::broker) fn new(below: Below, bits: usize, by: AesBy) -> io::Result<AesLayer> {
        let key = &KEY[..bits / 8];
        let algorithm = match bits {
            192 => &AES_192,
            256 => &AES_256,
            _ => &AES_128,
        };
        let key = match by {
            AesBy::Instructions => {
                let unbound = UnboundCipherKey::new(algorithm, key).map_err(io::Error::other)?;
                AesKey::Library(Box::new(EncryptingKey::ecb(unbound).map_err(io::Error::other)?))
            }
            AesBy::Tables => AesKey::Tables(Box::new(TableAes::new(key).ok_or(io::ErrorKind::InvalidInput)?)),
        };
        Ok(AesLayer { below, key, held: Vec::with_capacity(CHUNK) })
    }

    fn blocks(&mut self) -> io::Result<()> {
        match &self.key {
            AesKey::Library(key) => {
                key.encrypt(&mut self.held).map_err(io::Error::other)?;
            }
            AesKey::Tables(key) => key.encrypt(&mut self.held),
        }
        self.below.write_all(&self.held)?;
        self.held.clear();
        Ok(())
    }
}

impl Write for AesLayer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK - self.held.len());
        self.held.extend_from_slice(&bytes[..taken]);
        if self.held.len() == CHUNK {
            self.blocks()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Layer for AesLayer {
    fn finish(mut self: Box<Self>) -> io::Result<Sink> {
        let filled = BLOCK - self.held.len() % BLOCK;
        self.held.resize(self.held.len() + filled, filled as u8);
        self.blocks()?;
        self.below.finish()
    }
}

/// Records of 16 KiB, each sealed by a suite of today.
pub(in crate::broker) struct SuiteLayer {
    below: Below,
    key: Key,
    nonces: NonceCounter,
    held: Vec<u8>,
}

impl SuiteLayer {
    pub(in crate::broker) fn new(below: Below, suite: Suite) -> io::Result<SuiteLayer> {
        let material = KeyMaterial::new(suite, &KEY[..suite.key_material_len()]);
        let key = Key::new(&material.map_err(io::Error::other)?);
        Ok(SuiteLayer { below, key, nonces: NonceCounter::new(), held: Vec::with_capacity(RECORD) })
    }

    fn seal(&mut self) -> io::Result<()> {
        let nonce = self.nonces.next().map_err(io::Error::other)?;
        let number = nonce.value().to_be_bytes();
        let tag = self.key.seal(nonce, &number, &mut self.held).map_err(io::Error::other)?;
        self.below.write_all(&self.held)?;
        self.below.write_all(&tag)?;
        self.held.clear();
        Ok(())
    }
}

impl Write for SuiteLayer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(RECORD - self.held.len());
        self.held.extend_from_slice(&bytes[..taken]);
        if self.held.len() == RECORD {
            self.seal()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Layer for SuiteLayer {
    fn finish(mut self: Box<Self>) -> io::Result<Sink> {
        if !self.held.is_empty() {
            self.seal()?;
        }
        self.below.finish()
    }
}
