//! One record of a counter file.
//!
//! ```text
//!  0  magic, the last byte of which is the version     8
//!  8  SPI out                                          4
//! 12  zero                                             4
//! 16  fingerprint of the keys                         16
//! 32  last number reserved                             8
//! 40  age: how many records were written before        8
//! 48  first half of the SHA-256 of all this           16
//! ```

use aws_lc_rs::digest::{SHA256, digest};
use strait_wire::Spi;

use super::super::identity::{FINGERPRINT_LEN, Fingerprint};
use super::{BLOCK, CounterError, Identity, SLACK};

/// Bytes of a record.
pub(super) const RECORD_LEN: usize = 64;
/// Where the check begins.
const CHECK_AT: usize = 48;
const MAGIC: [u8; 7] = *b"straitN";
const VERSION: u8 = 1;

/// What was written at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) identity: Identity,
    /// No number up to and with this may be used again.
    pub(super) reserved: u64,
    /// Tells the newer record from the older.
    pub(super) age: u64,
}

/// One of the two places for records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordSlot {
    First,
    Second,
}

impl RecordSlot {
    /// Where the first record of all goes, once turned.
    pub(super) const FIRST: RecordSlot = RecordSlot::First;

    pub(super) const fn other(self) -> RecordSlot {
        match self {
            RecordSlot::First => RecordSlot::Second,
            RecordSlot::Second => RecordSlot::First,
        }
    }

    pub(super) const fn offset(self) -> u64 {
        match self {
            RecordSlot::First => 0,
            RecordSlot::Second => BLOCK as u64,
        }
    }
}

/// What one place holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotContent {
    /// Nothing was ever written there.
    Blank,
    Sound(Record),
    /// The write was torn, or the disk forgot.
    Damaged,
}

impl Record {
    pub(super) fn bytes(&self) -> [u8; RECORD_LEN] {
        let mut bytes = [0; RECORD_LEN];
        let fields: [(usize, &[u8]); 6] = [
            (0, &MAGIC),
            (7, &[VERSION]),
            (8, &self.identity.spi.0.to_be_bytes()),
            (16, &self.identity.fingerprint.0),
            (32, &self.reserved.to_be_bytes()),
            (40, &self.age.to_be_bytes()),
        ];
        for (at, field) in fields {
            bytes[at..at + field.len()].copy_from_slice(field);
        }
        let check = check(&bytes);
        bytes[CHECK_AT..].copy_from_slice(&check);
        bytes
    }

    fn read(bytes: &[u8; RECORD_LEN]) -> SlotContent {
        if *bytes == [0; RECORD_LEN] {
            return SlotContent::Blank;
        }
        if bytes[CHECK_AT..] != check(bytes) || bytes[..MAGIC.len()] != MAGIC || bytes[7] != VERSION {
            return SlotContent::Damaged;
        }
        let mut fingerprint = [0; FINGERPRINT_LEN];
        fingerprint.copy_from_slice(&bytes[16..32]);
        let long = |at: usize| {
            let mut long = [0; 8];
            long.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(long)
        };
        let spi = Spi(u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]));
        let identity = Identity { spi, fingerprint: Fingerprint(fingerprint) };
        SlotContent::Sound(Record { identity, reserved: long(32), age: long(40) })
    }
}

fn check(bytes: &[u8; RECORD_LEN]) -> [u8; RECORD_LEN - CHECK_AT] {
    let mut check = [0; RECORD_LEN - CHECK_AT];
    let digest = digest(&SHA256, &bytes[..CHECK_AT]);
    check.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
    check
}

/// The newest record of `file`, its place, and the last number that may have been used.
pub(super) fn newest(file: &[u8]) -> Result<(Record, RecordSlot, u64), CounterError> {
    let at = |slot: RecordSlot| {
        let offset = if slot == RecordSlot::First { 0 } else { BLOCK };
        file.get(offset..offset + RECORD_LEN).and_then(|bytes| bytes.try_into().ok())
    };
    let (Some(first), Some(second)) = (at(RecordSlot::First), at(RecordSlot::Second)) else {
        return Err(CounterError::NotACounter);
    };
    match (Record::read(first), Record::read(second)) {
        (SlotContent::Sound(a), SlotContent::Sound(b)) if a.age > b.age => {
            Ok((a, RecordSlot::First, a.reserved))
        }
        (SlotContent::Sound(_), SlotContent::Sound(b)) => Ok((b, RecordSlot::Second, b.reserved)),
        // The first write of all leaves the second place as it was.
        (SlotContent::Sound(a), SlotContent::Blank) if a.age == 1 => Ok((a, RecordSlot::First, a.reserved)),
        // The other may have been the newer, and in use: one write reserves no more than the slack.
        (SlotContent::Sound(one), _) => Ok((one, RecordSlot::First, one.reserved.saturating_add(SLACK))),
        (_, SlotContent::Sound(one)) => Ok((one, RecordSlot::Second, one.reserved.saturating_add(SLACK))),
        _ => Err(unsound(first)),
    }
}

/// Why neither record can be read, as the first one shows.
fn unsound(first: &[u8; RECORD_LEN]) -> CounterError {
    match first {
        [magic @ .., _] if !magic.starts_with(&MAGIC) => CounterError::NotACounter,
        _ if first[7] > VERSION => CounterError::OtherVersion,
        _ => CounterError::Damaged,
    }
}
