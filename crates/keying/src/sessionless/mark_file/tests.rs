use proptest::prelude::*;

use super::*;

fn key(number: u8) -> PublicKey {
    PublicKey::from_bytes([number; 32])
}

const NODE: u8 = 7;

/// A disk and a node that writes to it.
struct Disk {
    file: Vec<u8>,
    table: MarkTable,
    journal: MarkJournal,
}

impl Disk {
    fn new() -> Disk {
        let table = MarkTable::new(key(NODE));
        let (journal, file) = MarkJournal::begin(&table);
        Disk { file, table, journal }
    }

    fn read(&self) -> Result<MarkTable, MarkFileError> {
        MarkTable::read(&self.file, key(NODE))
    }

    /// Of the bytes, `most` reach the disk.
    fn write(&mut self, marks: &BTreeMap<PublicKey, u64>, most: usize) {
        for (key, mark) in marks {
            self.table.raise(*key, *mark).unwrap();
        }
        match self.journal.append(marks) {
            Some(write) => {
                let at = usize::try_from(write.at).unwrap();
                let len = most.min(write.bytes.len());
                self.file[at..at + len].copy_from_slice(&write.bytes[..len]);
            }
            None => (self.journal, self.file) = MarkJournal::begin(&self.table),
        }
    }
}

fn one(number: u8, mark: u64) -> BTreeMap<PublicKey, u64> {
    BTreeMap::from([(key(number), mark)])
}

#[test]
fn what_was_written_is_read() {
    let mut disk = Disk::new();
    assert_eq!(disk.read(), Ok(MarkTable::new(key(NODE))));
    disk.write(&one(NODE, 100), usize::MAX);
    disk.write(&one(1, 200), usize::MAX);
    disk.write(&one(1, 150), usize::MAX);
    let table = disk.read().unwrap();
    assert_eq!((table.sender(), table.of(&key(1)), table.of(&key(2))), (100, 200, 0), "marks never fall");
    assert_eq!(table, disk.table);
    let error = MarkTable::read(&disk.file, key(8)).unwrap_err();
    assert_eq!(error, MarkFileError::OtherNode { found: key(NODE) });
}

#[test]
fn a_journal_that_is_full_is_begun_again_with_all_marks() {
    let mut disk = Disk::new();
    for mark in 1..1000 {
        let number = u8::try_from(mark % 5).unwrap();
        disk.write(&one(number, mark), usize::MAX);
        assert_eq!(disk.file.len(), BLOCK + JOURNAL_LEN);
    }
    assert_eq!(disk.read().unwrap(), disk.table);
    assert_eq!(disk.table.of(&key(4)), 999);
}

#[test]
fn all_marks_of_the_largest_table_fit_and_one_more_takes_the_place_of_an_outdated_one() {
    let name = |number: usize| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&(number as u64 + 1).to_be_bytes());
        PublicKey::from_bytes(bytes)
    };
    let marks: BTreeMap<_, _> = (0..MARKS_MAX).map(|number| (name(number), 1000 + number as u64)).collect();
    let mut disk = Disk::new();
    disk.write(&one(NODE, 5), usize::MAX);
    disk.write(&marks, usize::MAX);
    assert_eq!(disk.read().unwrap(), disk.table);
    let (_, file) = MarkJournal::begin(&disk.table);
    assert_eq!(file.len(), MARK_FILE_MAX);
    assert_eq!(MarkTable::read(&file, key(NODE)).unwrap(), disk.table);
    let mut table = disk.table;
    assert_eq!(table.raise(name(MARKS_MAX), 1000 + OUTDATED), Err(MarkFileError::Full));
    table.raise(name(5), u64::MAX).unwrap();
    table.raise(name(MARKS_MAX), 1001 + OUTDATED).unwrap();
    assert_eq!((table.of(&name(0)), table.of(&name(1)), table.sender()), (0, 1001, 5));
}

#[test]
fn a_file_that_is_cut_off_or_damaged_is_refused_with_what_to_do() {
    let mut disk = Disk::new();
    disk.write(&one(NODE, 100), usize::MAX);
    disk.write(&one(1, 200), usize::MAX);
    for len in [8, 47, 64, BLOCK, BLOCK + 100, 3 * BLOCK, disk.file.len() - 1] {
        let cut = &disk.file[..len];
        assert_eq!(MarkTable::read(cut, key(NODE)), Err(MarkFileError::Damaged), "{len} bytes");
    }
    for (text, error) in [("", MarkFileError::NotMarks), ("a letter", MarkFileError::NotMarks)] {
        assert_eq!(MarkTable::read(text.as_bytes(), key(NODE)), Err(error));
    }
    // In the table, and in the first entry, behind which another stands.
    for at in [20, 47, 50, BLOCK + 3, BLOCK + 15, BLOCK + 30, BLOCK + 60] {
        let mut file = disk.file.clone();
        file[at] ^= 0x40;
        assert_eq!(MarkTable::read(&file, key(NODE)), Err(MarkFileError::Damaged), "byte {at}");
    }
    let mut newer = disk.file.clone();
    newer[7] = 2;
    assert_eq!(MarkTable::read(&newer, key(NODE)), Err(MarkFileError::OtherVersion));
    assert!(MarkFileError::Damaged.to_string().contains("two epochs"));
}

proptest! {
    #[test]
    fn a_write_that_is_torn_loses_nothing_that_was_answered(
        writes in proptest::collection::vec((proptest::collection::btree_map(0..10_u8, 0..1000_u64, 1..8), 0..600_usize), 1..20),
    ) {
        let mut disk = Disk::new();
        let mut answered = MarkTable::new(key(NODE));
        for (marks, most) in writes {
            let marks: BTreeMap<_, _> = marks.into_iter().map(|(number, mark)| (key(number), mark)).collect();
            let whole = most > ENTRY_HEAD + marks.len() * RECORD + CHECK;
            disk.write(&marks, if whole { usize::MAX } else { most });
            let read = disk.read().unwrap();
            if whole {
                for (key, mark) in marks {
                    answered.raise(key, mark).unwrap();
                }
                prop_assert_eq!(&read, &answered);
            } else {
                for number in 0..10 {
                    prop_assert!(read.of(&key(number)) >= answered.of(&key(number)));
                }
                // A start, which begins a new file.
                answered = read.clone();
                disk.table = read;
                (disk.journal, disk.file) = MarkJournal::begin(&disk.table);
            }
        }
    }

    #[test]
    fn no_byte_of_the_table_can_change_unseen(at in 0..176_usize, mask in 1..=255_u8) {
        let mut table = MarkTable::new(key(NODE));
        for number in 1..3 {
            table.raise(key(number), u64::from(number)).unwrap();
        }
        table.raise(key(NODE), 9).unwrap();
        let (_, mut file) = MarkJournal::begin(&table);
        file[at] ^= mask;
        prop_assert!(MarkTable::read(&file, key(NODE)).is_err());
    }

    #[test]
    fn whatever_a_file_holds_it_is_read_or_refused(bytes: Vec<u8>, magic: bool, journal: bool) {
        let mut file = if magic { [&TABLE_MAGIC[..], &[VERSION]].concat() } else { Vec::new() };
        file.extend(bytes);
        if journal {
            file.resize(file.len().next_multiple_of(BLOCK) + JOURNAL_LEN, 0);
        }
        prop_assert!(MarkTable::read(&file, key(NODE)).is_err(), "a check was guessed");
    }
}
