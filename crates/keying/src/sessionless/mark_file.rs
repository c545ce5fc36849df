//! Marks as a file: a table that is whole, and behind it a journal of what was written since.
//!
//! ```text
//! table    magic, version u8 (8) | the node's key (32) | records u32 | zero u32 | record | .. | check (16) | zeros
//! entry    magic, version u8 (8) | number u64 | records u32 | zero u32 | record | .. | check (16) | zeros
//! record   key (32) | mark u64     ascending by key; the sender's mark has the key of the node itself
//! ```
//!
//! The table and each entry begin a block. So what is written never shares one with what was written before, and a write that is torn
//! leaves that as it was: the entry without a valid check was not answered. The check of the table is the first half of the SHA-256 of all
//! before it; that of an entry covers the table's check, too. The journal has its length from the start, so that a write
//! changes contents alone. When it is full, a new file takes the place of the old one.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{Context, SHA256};

use crate::PublicKey;

/// The largest block that disks write in one piece.
const BLOCK: usize = 4096;
/// Bytes of the journal: 256 entries of one block each, some minutes of them. All marks fit in it once.
const JOURNAL_LEN: usize = 256 * BLOCK;
/// Senders that have a mark: as many as a receiver knows at the same time.
pub const MARKS_MAX: usize = 16_384;
const TABLE_MAGIC: [u8; 7] = *b"straitM";
const ENTRY_MAGIC: [u8; 7] = *b"straitJ";
const VERSION: u8 = 1;
/// Bytes before the records.
const TABLE_HEAD: usize = 48;
const ENTRY_HEAD: usize = 24;
const RECORD: usize = 40;
const CHECK: usize = 16;
/// Most records: all senders, and the node.
const RECORDS_MAX: usize = MARKS_MAX + 1;
/// Bytes of a table with all records.
const TABLE_MAX: usize = (TABLE_HEAD + RECORDS_MAX * RECORD + CHECK).next_multiple_of(BLOCK);
/// Most bytes of a file.
pub const MARK_FILE_MAX: usize = TABLE_MAX + JOURNAL_LEN;
/// A mark that is this much below another, in microseconds, protects from nothing: a header is refused that is two epochs old, and an
/// epoch has 30 days at most.
const OUTDATED: u64 = 60 * 86_400 * 1_000_000;

const _: () = assert!(ENTRY_HEAD + RECORDS_MAX * RECORD + CHECK <= JOURNAL_LEN);

/// Why a file of marks cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MarkFileError {
    /// It is something else.
    #[error("it is not a file of marks; move it away")]
    NotMarks,
    /// A later version of this program wrote it.
    #[error("a newer version of this program wrote it; use that version")]
    OtherVersion,
    /// It is another node's.
    #[error("it has the marks of another node, {found}; each private key has its own file")]
    OtherNode {
        /// The key of that node.
        found: PublicKey,
    },
    /// It was cut off, or bytes of it are others than those that were written.
    #[error(
        "it is damaged, and with it is lost which packets were taken; if the clock is right, remove the file two epochs of the peers \
         (2 hours, unless configured) after the last run: until then, what was recorded could be replayed"
    )]
    Damaged,
    /// There are too many senders.
    #[error("it has the marks of {MARKS_MAX} senders, none of them outdated; no more are taken")]
    Full,
}

/// All marks of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkTable {
    node: PublicKey,
    marks: BTreeMap<PublicKey, u64>,
}

impl MarkTable {
    /// That of a node which has sent and received nothing.
    #[must_use]
    pub const fn new(node: PublicKey) -> MarkTable {
        MarkTable { node, marks: BTreeMap::new() }
    }

    /// Reads the file of `node`, with its journal.
    ///
    /// # Errors
    /// [`MarkFileError`].
    pub fn read(file: &[u8], node: PublicKey) -> Result<MarkTable, MarkFileError> {
        if !file.starts_with(&TABLE_MAGIC) {
            return Err(MarkFileError::NotMarks);
        }
        if file.get(TABLE_MAGIC.len()).is_some_and(|version| *version > VERSION) {
            return Err(MarkFileError::OtherVersion);
        }
        let (records, check, len) =
            section(file, TABLE_HEAD, TABLE_MAGIC, &[]).ok_or(MarkFileError::Damaged)?;
        let found = file.get(8..40).and_then(|key| key.try_into().ok()).map(PublicKey::from_bytes);
        let found = found.ok_or(MarkFileError::Damaged)?;
        let mut table = MarkTable { node: found, marks: BTreeMap::new() };
        table.take(records)?;
        let journal = file.get(len..).filter(|journal| journal.len() == JOURNAL_LEN);
        let (mut rest, mut number) = (journal.ok_or(MarkFileError::Damaged)?, 0);
        while let Some((records, len)) = entry(rest, &check, number) {
            table.take(records)?;
            rest = rest.get(len..).unwrap_or_default();
            number += 1;
        }
        // Entries are written one after another: one behind another that cannot be read means that this was whole once.
        let is_later = |at: usize| number_of(rest.get(at..).unwrap_or_default(), &check) > Some(number);
        if (0..rest.len()).step_by(BLOCK).any(is_later) {
            return Err(MarkFileError::Damaged);
        }
        if found == node { Ok(table) } else { Err(MarkFileError::OtherNode { found }) }
    }

    /// Whose marks they are.
    #[must_use]
    pub const fn node(&self) -> PublicKey {
        self.node
    }

    /// The sender's mark: no number above it was ever sent. 0 for none.
    #[must_use]
    pub fn sender(&self) -> u64 {
        self.of(&self.node)
    }

    /// The receiver's mark for a sender: no number of it above that was ever delivered. 0 for none.
    #[must_use]
    pub fn of(&self, key: &PublicKey) -> u64 {
        self.marks.get(key).copied().unwrap_or(0)
    }

    /// Raises the mark of a sender, or, by the node's own key, the sender's mark; a mark never falls.
    ///
    /// # Errors
    /// [`MarkFileError::Full`] for one more sender than there may be, when the mark of none is outdated.
    pub fn raise(&mut self, key: PublicKey, mark: u64) -> Result<(), MarkFileError> {
        let others = self.marks.len() - usize::from(self.marks.contains_key(&self.node));
        if key != self.node && others >= MARKS_MAX && !self.marks.contains_key(&key) {
            let others = self.marks.iter().filter(|(other, _)| **other != self.node);
            let oldest = others.min_by_key(|(_, mark)| **mark).map(|(key, mark)| (*key, *mark));
            let (oldest, of_oldest) = oldest.ok_or(MarkFileError::Full)?;
            if of_oldest.saturating_add(OUTDATED) >= mark {
                return Err(MarkFileError::Full);
            }
            self.marks.remove(&oldest);
        }
        let known = self.marks.entry(key).or_insert(0);
        *known = mark.max(*known);
        Ok(())
    }

    fn take(&mut self, records: &[u8]) -> Result<(), MarkFileError> {
        let mut before = None;
        for record in records.as_chunks::<RECORD>().0 {
            let (key, mark) = record.split_first_chunk::<32>().ok_or(MarkFileError::Damaged)?;
            let key = PublicKey::from_bytes(*key);
            if before.is_some_and(|before| before >= key) {
                return Err(MarkFileError::Damaged);
            }
            before = Some(key);
            self.raise(key, u64::from_be_bytes(mark.try_into().map_err(|_| MarkFileError::Damaged)?))
                .map_err(|_| MarkFileError::Damaged)?;
        }
        Ok(())
    }
}

/// Bytes for a place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the marks are not safe before this is on disk"]
pub struct MarkWrite {
    /// Where in the file they go.
    pub at: u64,
    /// What is written there.
    pub bytes: Vec<u8>,
}

/// Where the next entry goes.
#[derive(Debug)]
pub struct MarkJournal {
    check: [u8; CHECK],
    number: u64,
    at: usize,
    end: usize,
}

impl MarkJournal {
    /// A new file with this table and an empty journal.
    #[must_use]
    pub fn begin(table: &MarkTable) -> (MarkJournal, Vec<u8>) {
        let head = [TABLE_MAGIC.as_slice(), &[VERSION], table.node.as_bytes()].concat();
        let (mut bytes, check) = finish(head, &table.marks, &[]);
        let at = bytes.len();
        let end = at + JOURNAL_LEN;
        bytes.resize(end, 0);
        (MarkJournal { check, number: 0, at, end }, bytes)
    }

    /// An entry with these marks; nothing when the journal has no room for it, and a new file is to be begun.
    pub fn append(&mut self, marks: &BTreeMap<PublicKey, u64>) -> Option<MarkWrite> {
        let head = [ENTRY_MAGIC.as_slice(), &[VERSION], &self.number.to_be_bytes()].concat();
        let (bytes, _) = finish(head, marks, &self.check);
        let next = self.at + bytes.len();
        if next > self.end {
            return None;
        }
        let write = MarkWrite { at: self.at as u64, bytes };
        (self.at, self.number) = (next, self.number + 1);
        Some(write)
    }
}

/// A section that begins with `bytes`, and its check; `before` is what the check covers beside it.
fn finish(mut bytes: Vec<u8>, marks: &BTreeMap<PublicKey, u64>, before: &[u8]) -> (Vec<u8>, [u8; CHECK]) {
    // As many as a table has, at most.
    bytes.extend_from_slice(&u32::try_from(marks.len()).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    for (key, mark) in marks {
        bytes.extend_from_slice(key.as_bytes());
        bytes.extend_from_slice(&mark.to_be_bytes());
    }
    let check = check(before, &bytes);
    bytes.extend_from_slice(&check);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    (bytes, check)
}

/// The records of a section that begins `bytes`, its check, and its length in whole blocks.
fn section<'a>(
    bytes: &'a [u8],
    head: usize,
    magic: [u8; 7],
    before: &[u8],
) -> Option<(&'a [u8], [u8; CHECK], usize)> {
    if bytes.get(..magic.len())? != magic || *bytes.get(magic.len())? != VERSION {
        return None;
    }
    let count = bytes.get(head - 8..head - 4)?.try_into().ok().map(u32::from_be_bytes)?;
    let count = usize::try_from(count).ok().filter(|count| *count <= RECORDS_MAX)?;
    let end = head + count * RECORD;
    let expected = check(before, bytes.get(..end)?);
    let found = bytes.get(end..end + CHECK)?;
    let len = (end + CHECK).next_multiple_of(BLOCK);
    (found == expected && bytes.len() >= len).then_some((bytes.get(head..end)?, expected, len))
}

/// The records of the entry with this number, and its length.
fn entry<'a>(bytes: &'a [u8], table: &[u8; CHECK], number: u64) -> Option<(&'a [u8], usize)> {
    let (records, _, len) = section(bytes, ENTRY_HEAD, ENTRY_MAGIC, table)?;
    (bytes.get(8..16)? == number.to_be_bytes()).then_some((records, len))
}

/// The number of the entry that begins here.
fn number_of(bytes: &[u8], table: &[u8; CHECK]) -> Option<u64> {
    section(bytes, ENTRY_HEAD, ENTRY_MAGIC, table)?;
    bytes.get(8..16)?.try_into().ok().map(u64::from_be_bytes)
}

fn check(before: &[u8], bytes: &[u8]) -> [u8; CHECK] {
    let mut context = Context::new(&SHA256);
    context.update(before);
    context.update(bytes);
    let mut check = [0; CHECK];
    check.iter_mut().zip(context.finish().as_ref()).for_each(|(to, from)| *to = *from);
    check
}

#[cfg(test)]
mod tests;
