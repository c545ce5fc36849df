//! The records of a journal: a kind, a length (two bytes), a body, and the first bytes of a keyed BLAKE3 over all of that and the
//! check of the record before. Numbers are in network order.

use zeroize::Zeroizing;

use super::{JournaledObject, UploadSeed, UploadStage};
use crate::TransferId;
use crate::outbox::vault::Vault;
use crate::sealed::frames::FrameLevel;

/// Bytes of a check: a record that is accepted by chance is met once in 2^128.
pub(super) const CHECK: usize = 16;
/// Bytes before a body.
pub(super) const HEAD: usize = 3;
/// Bytes of a body at most; the longest begins an object.
pub(super) const BODY_MAX: usize = 256;
/// Bytes of what is encrypted at the beginning of an object.
const BEGIN: usize = 3 * 16 + 32 + 16 + 3 * 8;

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalFrame {
    /// Bytes before and after compression.
    pub(crate) plain_len: u32,
    pub(crate) packed_len: u32,
    pub(crate) level: FrameLevel,
    /// Keyed BLAKE3 of the bytes before and after.
    pub(crate) plain: [u8; 32],
    pub(crate) packed: [u8; 16],
}

/// Where contents end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Bytes of all frames.
    pub(crate) packed: u64,
    /// The same with the padding.
    pub(crate) padded: u64,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JournalRecord {
    /// An object begins; the encrypted part of it.
    Begin { object: u32, sealed: Vec<u8> },
    /// The next frame of it.
    Frame { object: u32, frame: JournalFrame },
    /// Its contents end.
    End { object: u32, ending: Ending },
    /// The broker has it.
    Stored { object: u32 },
    /// It is given up.
    Dropped { object: u32 },
}

/// The check of the record before.
pub(super) struct Check {
    key: Zeroizing<[u8; 32]>,
    last: [u8; CHECK],
}

impl Check {
    pub(super) fn new(key: &[u8; 32]) -> Check {
        Check { key: Zeroizing::new(*key), last: [0; CHECK] }
    }

    /// That of the next record.
    pub(super) fn next(&mut self, record: &[u8]) -> [u8; CHECK] {
        self.last = self.of(record);
        self.last
    }

    /// Whether a record is the next; then it counts.
    pub(super) fn accepts(&mut self, record: &[u8], check: &[u8]) -> bool {
        let is = self.of(record);
        let same = is == check;
        if same {
            self.last = is;
        }
        same
    }

    fn of(&self, record: &[u8]) -> [u8; CHECK] {
        let hash = blake3::Hasher::new_keyed(&self.key).update(&self.last).update(record).finalize();
        *hash.as_bytes().first_chunk().unwrap_or(&[0; CHECK])
    }
}

impl JournalRecord {
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let mut body = Vec::with_capacity(BODY_MAX);
        let (kind, object) = match self {
            JournalRecord::Begin { object, .. } => (1, object),
            JournalRecord::Frame { object, .. } => (2, object),
            JournalRecord::End { object, .. } => (3, object),
            JournalRecord::Stored { object } => (4, object),
            JournalRecord::Dropped { object } => (5, object),
        };
        body.extend(object.to_be_bytes());
        match self {
            JournalRecord::Begin { sealed, .. } => body.extend(sealed),
            JournalRecord::Frame { frame, .. } => {
                body.extend(frame.plain_len.to_be_bytes());
                body.extend(frame.packed_len.to_be_bytes());
                body.push(frame.level.to_byte());
                body.extend(frame.plain);
                body.extend(frame.packed);
            }
            JournalRecord::End { ending, .. } => {
                body.extend(ending.packed.to_be_bytes());
                body.extend(ending.padded.to_be_bytes());
            }
            JournalRecord::Stored { .. } | JournalRecord::Dropped { .. } => {}
        }
        out.push(kind);
        out.extend(u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes());
        out.extend(body);
    }

    /// Reads what [`JournalRecord::emit`] wrote behind its head.
    pub(super) fn parse(kind: u8, body: &[u8]) -> Option<JournalRecord> {
        let (object, rest) = body.split_first_chunk()?;
        let object = u32::from_be_bytes(*object);
        let mut fields = Fields(rest);
        let record = match kind {
            1 => JournalRecord::Begin { object, sealed: std::mem::take(&mut fields.0).to_vec() },
            2 => {
                let frame = JournalFrame {
                    plain_len: u32::from_be_bytes(fields.next()?),
                    packed_len: u32::from_be_bytes(fields.next()?),
                    level: FrameLevel::of_byte(u8::from_be_bytes(fields.next()?)),
                    plain: fields.next()?,
                    packed: fields.next()?,
                };
                JournalRecord::Frame { object, frame }
            }
            3 => {
                let [packed, padded] = [fields.next()?, fields.next()?].map(u64::from_be_bytes);
                JournalRecord::End { object, ending: Ending { packed, padded } }
            }
            4 => JournalRecord::Stored { object },
            5 => JournalRecord::Dropped { object },
            _ => return None,
        };
        fields.0.is_empty().then_some(record)
    }
}

/// What is left to read.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn next<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }
}

/// What is encrypted of the beginning of an object.
pub(super) fn sealed_begin(
    number: u32,
    object: &JournaledObject,
    vault: &Vault,
    salt: [u8; 32],
) -> Option<Vec<u8>> {
    let mut plain = Zeroizing::new(Vec::with_capacity(BEGIN));
    plain.extend([object.place, object.state, object.sealing].as_flattened());
    plain.extend(*object.seed.0);
    plain.extend(object.id.as_bytes());
    plain.extend(object.serial.to_be_bytes());
    plain.extend(object.made.to_be_bytes());
    plain.extend(object.expires.to_be_bytes());
    vault.seal(&vault_name(number), &plain, salt)
}

/// The object that begins with [`sealed_begin`].
pub(super) fn begun(number: u32, sealed: &[u8], vault: &Vault) -> Option<JournaledObject> {
    let plain = Zeroizing::new(vault.open(&vault_name(number), sealed)?);
    let mut fields = Fields(&plain);
    let object = JournaledObject {
        place: fields.next()?,
        state: fields.next()?,
        sealing: fields.next()?,
        seed: UploadSeed(Zeroizing::new(fields.next()?)),
        id: TransferId::from_bytes(fields.next()?),
        serial: u64::from_be_bytes(fields.next()?),
        made: i64::from_be_bytes(fields.next()?),
        expires: i64::from_be_bytes(fields.next()?),
        stage: UploadStage::Open,
        frames: 0,
        packed: 0,
        ending: None,
    };
    fields.0.is_empty().then_some(object)
}

fn vault_name(number: u32) -> String {
    format!("upload {number}")
}
