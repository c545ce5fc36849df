//! The file with the marks of keys without sessions: whatever becomes of its bytes, no mark that was answered falls.

use std::collections::BTreeMap;

use strait_keying::PublicKey;
use strait_keying::sessionless::{MarkFileError, MarkJournal, MarkTable};

/// Most operations of one input.
const OPERATIONS: usize = 32;
/// The block of the first entry, behind a table of up to 100 marks.
const ENTRIES: usize = 4096;

/// The disk, and what was answered.
struct World {
    file: Vec<u8>,
    journal: MarkJournal,
    /// What the node has.
    table: MarkTable,
    answered: MarkTable,
    /// Entries that were written whole since the table was.
    entries: usize,
    /// Whether a byte is another, in what was answered.
    spoilt: bool,
}

/// A byte of settings, then a file, or operations of four bytes: what, and how much of it.
pub fn check(data: &[u8]) {
    let Some((settings, rest)) = data.split_first() else { return };
    if settings & 1 != 0 {
        return read(settings & 2 != 0, rest);
    }
    let table = MarkTable::new(key(0));
    let (journal, file) = MarkJournal::begin(&table);
    let mut world = World { file, journal, answered: table.clone(), table, entries: 0, spoilt: false };
    for &[what, which, high, low] in rest.as_chunks().0.iter().take(OPERATIONS) {
        let mark = u64::from(u16::from_be_bytes([high, low]));
        match what & 7 {
            0..=2 => world.write(&marks(what >> 3, which, mark), usize::MAX),
            // Torn: only some of the bytes reach the disk, and the node ends.
            3 | 4 => {
                world.write(&marks(what >> 3, which, mark), usize::from(which));
                world.restart();
            }
            5 => world.spoil(usize::from(which) << 8 | usize::from(high), low),
            _ => world.restart(),
        }
    }
    world.restart();
}

/// A file as it is, with a journal behind it or not.
fn read(whole: bool, file: &[u8]) {
    let mut file = file.to_vec();
    if whole {
        let (_, empty) = MarkJournal::begin(&MarkTable::new(key(0)));
        file.resize(file.len().next_multiple_of(ENTRIES) + empty.len() - ENTRIES, 0);
    }
    match MarkTable::read(&file, key(0)) {
        Ok(table) => {
            assert_eq!(table.node(), key(0));
            let (_, again) = MarkJournal::begin(&table);
            assert_eq!(MarkTable::read(&again, key(0)), Ok(table));
            let found = key(0);
            assert_eq!(MarkTable::read(&file, key(1)), Err(MarkFileError::OtherNode { found }));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

impl World {
    /// Writes an entry, or a new file where the journal is full; `most` bytes of it reach the disk.
    fn write(&mut self, marks: &BTreeMap<PublicKey, u64>, most: usize) {
        for (key, mark) in marks {
            self.table.raise(*key, *mark).expect("few senders");
        }
        let Some(write) = self.journal.append(marks) else { return self.begin() };
        let at = usize::try_from(write.at).expect("an offset in the file");
        let len = most.min(write.bytes.len());
        self.file[at..at + len].copy_from_slice(&write.bytes[..len]);
        // What was cut off may be zeros.
        if write.bytes[len..].iter().all(|byte| *byte == 0) {
            self.answered = self.table.clone();
            self.entries += 1;
        }
    }

    fn begin(&mut self) {
        (self.journal, self.file) = MarkJournal::begin(&self.table);
        (self.answered, self.entries, self.spoilt) = (self.table.clone(), 0, false);
    }

    /// A byte of the table, or of an entry behind which another stands, is another.
    fn spoil(&mut self, at: usize, mask: u8) {
        let records = (0..8).filter(|number| self.answered.of(&key(*number)) > 0).count();
        let table = at < 64 && self.entries == 0 && records == 0;
        let entry = (ENTRIES..ENTRIES * self.entries).contains(&at) && at % ENTRIES < 40;
        if mask != 0 && !self.spoilt && (table || entry) {
            self.file[at] ^= mask;
            self.spoilt = true;
        }
    }

    fn restart(&mut self) {
        match MarkTable::read(&self.file, key(0)) {
            Ok(table) => {
                assert!(!self.spoilt, "it was changed unseen");
                for number in 0..8 {
                    assert!(table.of(&key(number)) >= self.answered.of(&key(number)), "a mark fell");
                }
                self.table = table;
            }
            Err(error) => {
                assert!(self.spoilt, "{error}");
                // A person removed it.
                self.table = MarkTable::new(key(0));
            }
        }
        self.begin();
    }
}

/// As many marks as the lowest bits of `count` say.
fn marks(count: u8, first: u8, mark: u64) -> BTreeMap<PublicKey, u64> {
    (0..=count & 3).map(|more| (key(first.wrapping_add(more) & 7), mark + u64::from(more))).collect()
}

fn key(number: u8) -> PublicKey {
    PublicKey::from_bytes([number + 1; 32])
}
