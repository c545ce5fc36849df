//! The records of a copy: compressed, then sealed.

use std::io;

use strait_compress::{Codec, Codecs, Method};
use strait_crypto::{ICV_LEN, Key, KeyMaterial, NonceCounter, Suite};
use zeroize::Zeroizing;

use super::SALT;

/// Bytes of a piece before it is compressed: what is read at least to read one byte.
pub(super) const PIECE: usize = 256 << 10;
/// Bytes of the last record: size, time and root.
pub(super) const LAST: usize = 8 + 8 + 32;
/// Bytes of a record's length.
pub(super) const LENGTH: usize = 3;
/// Bytes of a sealed record at most.
pub(super) const SEALED_MAX: usize = 1 + PIECE + ICV_LEN;

/// The key of one copy.
fn key(secret: &[u8; 32], salt: &[u8; SALT]) -> io::Result<Key> {
    let mut hasher =
        blake3::Hasher::new_derive_key("strait 2026-11 files: contents of kept copies, version 1");
    hasher.update(secret).update(salt);
    let mut material = Zeroizing::new([0; strait_crypto::MAX_KEY_MATERIAL]);
    hasher.finalize_xof().fill(&mut *material);
    let material = KeyMaterial::new(Suite::Aes256Gcm, &*material).map_err(io::Error::other)?;
    Ok(Key::new(&material))
}

/// The associated data of a record.
fn associated(number: u64, last: bool) -> [u8; 9] {
    let mut data = [u8::from(last); 9];
    data[..8].copy_from_slice(&number.to_le_bytes());
    data
}

/// Makes records.
#[derive(Debug)]
pub(super) struct RecordSealer {
    key: Key,
    nonces: NonceCounter,
    codecs: Codecs,
}

impl RecordSealer {
    pub(super) fn new(secret: &[u8; 32], salt: &[u8; SALT]) -> io::Result<RecordSealer> {
        Ok(RecordSealer { key: key(secret, salt)?, nonces: NonceCounter::new(), codecs: Codecs::new() })
    }

    /// The record of a piece of at most [`PIECE`] bytes.
    pub(super) fn piece(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        let mut record = vec![0; LENGTH + 1 + piece.len()];
        let room = &mut record[LENGTH + 1..];
        let short = room.len() - 1;
        let made = self.codecs.compress(Method::ZSTD, piece, &mut room[..short]);
        match made {
            Some(len) => {
                record[LENGTH] = 1;
                record.truncate(LENGTH + 1 + len);
            }
            None => room.copy_from_slice(piece),
        }
        self.seal(record, false)
    }

    /// The last record.
    pub(super) fn last(&mut self, size: u64, modified: i64, root: &[u8; 32]) -> io::Result<Vec<u8>> {
        let mut record = vec![0; LENGTH];
        record.extend_from_slice(&size.to_le_bytes());
        record.extend_from_slice(&modified.to_le_bytes());
        record.extend_from_slice(root);
        self.seal(record, true)
    }

    fn seal(&mut self, mut record: Vec<u8>, last: bool) -> io::Result<Vec<u8>> {
        let nonce = self.nonces.next().map_err(io::Error::other)?;
        let data = associated(nonce.value() - 1, last);
        let icv = self.key.seal(nonce, &data, &mut record[LENGTH..]).map_err(io::Error::other)?;
        record.extend_from_slice(&icv);
        // At most `SEALED_MAX`, which has 19 bits.
        let [_, high, middle, low] = ((record.len() - LENGTH) as u32).to_be_bytes();
        record[..LENGTH].copy_from_slice(&[high, middle, low]);
        Ok(record)
    }
}

/// Opens records.
#[derive(Debug)]
pub(super) struct RecordOpener {
    key: Key,
    codecs: Codecs,
}

impl RecordOpener {
    pub(super) fn new(secret: &[u8; 32], salt: &[u8; SALT]) -> io::Result<RecordOpener> {
        Ok(RecordOpener { key: key(secret, salt)?, codecs: Codecs::new() })
    }

    /// The piece in a sealed record, into `piece`.
    pub(super) fn piece(&mut self, number: u64, sealed: &mut [u8], piece: &mut Vec<u8>) -> io::Result<()> {
        let opened = self.key.open(number + 1, &associated(number, false), sealed).map_err(|_| damaged())?;
        let (flag, bytes) = opened.split_first().ok_or_else(damaged)?;
        piece.resize(PIECE, 0);
        let codec = if *flag == 0 { Codec::None } else { Codec::Zstd };
        let len = self.codecs.expand(codec, bytes, piece).map_err(|_| damaged())?;
        piece.truncate(len);
        Ok(())
    }

    /// Size, time of modification and root.
    pub(super) fn last(&self, number: u64, sealed: &mut [u8]) -> io::Result<(u64, i64, [u8; 32])> {
        let opened = self.key.open(number + 1, &associated(number, true), sealed).map_err(|_| damaged())?;
        let (size, rest) = opened.split_first_chunk().ok_or_else(damaged)?;
        let (modified, root) = rest.split_first_chunk().ok_or_else(damaged)?;
        let root = *root.first_chunk().ok_or_else(damaged)?;
        Ok((u64::from_le_bytes(*size), i64::from_le_bytes(*modified), root))
    }
}

/// It is no copy, or not as it was written.
pub(super) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a kept copy is damaged")
}
