use proptest::prelude::*;

use super::*;
use crate::scratch::ScratchFolder;
use crate::sealed::frames::FrameLevel;

fn node(number: u8) -> PrivateKey {
    PrivateKey::generate(&[number; 32])
}

fn object(number: u8) -> JournaledObject {
    JournaledObject {
        place: [number; 16],
        state: [2; 16],
        sealing: [3; 16],
        seed: UploadSeed(Zeroizing::new([number; 32])),
        id: TransferId::from_bytes([number; 16]),
        serial: 7,
        made: -1,
        expires: i64::MAX,
        stage: UploadStage::Open,
        frames: 0,
        packed: 0,
        ending: None,
    }
}

fn frame(number: u32) -> JournalFrame {
    let level = if number.is_multiple_of(3) { FrameLevel::Stored } else { FrameLevel::Zstd(-3) };
    JournalFrame { plain_len: 1 + number, packed_len: 10 + number, level, plain: [9; 32], packed: [8; 16] }
}

fn open(folder: &Path) -> (UploadJournal, JournalMemory) {
    UploadJournal::open(folder, "00ff", &node(1)).unwrap()
}

fn frames(memory: &JournalMemory, object: u32) -> Vec<JournalFrame> {
    let mut frames = memory.frames(object);
    std::iter::from_fn(|| frames.next_frame().unwrap()).collect()
}

/// Two objects, the second open; returns the lengths of the file behind each record.
fn write(folder: &Path) -> Vec<u64> {
    let (mut journal, _) = open(folder);
    let mut lens = Vec::new();
    for step in 0..8_u32 {
        match step {
            0 => journal.begin(0, &object(10), [1; 32]),
            1 => journal.frame(0, frame(0)),
            2 => journal.begin(1, &object(11), [2; 32]),
            3 => journal.frame(1, frame(1)),
            4 => journal.end(0, Ending { packed: 10, padded: 30 }),
            5 => journal.frame(1, frame(2)),
            6 => journal.stored(0),
            _ => journal.frame(1, frame(3)),
        }
        journal.sync().unwrap();
        lens.push(journal.file.metadata().unwrap().len());
    }
    lens
}

#[test]
fn what_was_written_is_there_in_another_process() {
    let scratch = ScratchFolder::new();
    write(scratch.path());
    let (journal, memory) = open(scratch.path());
    let [first, second] = &memory.objects[..] else { panic!() };
    let stored = (UploadStage::Stored, 1, Some(Ending { packed: 10, padded: 30 }));
    assert_eq!((first.stage, first.frames, first.ending), stored);
    assert_eq!((second.stage, second.frames, second.packed), (UploadStage::Open, 3, 36));
    assert_eq!((second.id, second.serial, second.made), (object(11).id, 7, -1));
    assert_eq!((second.expires, *second.seed.0), (i64::MAX, [11; 32]));
    assert_eq!((second.place, second.state, second.sealing), ([11; 16], [2; 16], [3; 16]));
    assert_eq!(frames(&memory, 0), [frame(0)]);
    assert_eq!(frames(&memory, 1), [1, 2, 3].map(frame));
    assert_eq!(memory.unfinished(), 1);
    // Another process cannot have it now, and then it is gone.
    let error = UploadJournal::open(scratch.path(), "00ff", &node(1)).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    journal.remove().unwrap();
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn a_torn_tail_is_cut_at_every_byte_and_writing_goes_on_there() {
    let scratch = ScratchFolder::new();
    let lens = write(scratch.path());
    let path = scratch.path().join("00ff.upload");
    let whole = fs::read(&path).unwrap();
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let records = lens.iter().take_while(|end| **end <= len as u64).count();
        let (mut journal, memory) = open(scratch.path());
        let expected = [0, 1, 1, 2, 2, 2, 2, 2, 2][records];
        assert_eq!(memory.objects.len(), expected, "{len}");
        journal.begin(u32::try_from(expected).unwrap(), &object(12), [5; 32]);
        journal.sync().unwrap();
        drop((journal, memory));
        let (_journal, memory) = open(scratch.path());
        assert_eq!(memory.objects.last().unwrap().id, object(12).id, "{len}");
    }
}

#[test]
fn a_byte_that_changed_ends_the_journal_before_it() {
    let scratch = ScratchFolder::new();
    let lens = write(scratch.path());
    let path = scratch.path().join("00ff.upload");
    let whole = fs::read(&path).unwrap();
    for at in MAGIC.len()..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&path, &changed).unwrap();
        let (journal, _memory) = open(scratch.path());
        let kept = lens.iter().take_while(|end| **end <= at as u64).last().copied();
        assert_eq!(journal.end, kept.unwrap_or(MAGIC.len() as u64), "{at}");
    }
    let other = |node: &PrivateKey, name: &str| {
        fs::write(scratch.path().join(format!("{name}.upload")), &whole).unwrap();
        UploadJournal::open(scratch.path(), name, node).unwrap().1.objects.len()
    };
    assert_eq!(other(&node(2), "00ff"), 0, "another node");
    assert_eq!(other(&node(1), "00fe"), 0, "another command");
    assert_eq!(other(&node(1), "00ff"), 2);
    fs::write(&path, b"something else than that").unwrap();
    let error = UploadJournal::open(scratch.path(), "00ff", &node(1)).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn what_the_disk_has_tells_no_seed_and_no_stranger_reads_it() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = ScratchFolder::new();
    let folder = scratch.path().join("a/b");
    write(&folder);
    let path = folder.join("00ff.upload");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let bytes = fs::read(&path).unwrap();
    assert!(!bytes.windows(8).any(|window| window == [10; 8] || window == [11; 8]));
}

#[test]
fn forgotten_journals_are_removed_and_others_stay() {
    let scratch = ScratchFolder::new();
    write(scratch.path());
    fs::write(scratch.path().join("x"), "").unwrap();
    let now = fs::metadata(scratch.path().join("x")).unwrap().modified().unwrap();
    UploadJournal::tidy(scratch.path(), now);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2);
    UploadJournal::tidy(scratch.path(), now + FORGOTTEN + Duration::from_secs(60));
    assert!(scratch.path().join("x").exists() && !scratch.path().join("00ff.upload").exists());
}

proptest! {
    #[test]
    fn any_record_is_read_as_it_was_written(object: u32, kind in 0..5, sealed: [u8; 32], numbers: [u32; 2]) {
        let sealed = sealed.to_vec();
        let ending = Ending { packed: numbers[0].into(), padded: u64::MAX - u64::from(numbers[1]) };
        let record = match kind {
            0 => JournalRecord::Begin { object, sealed },
            1 => JournalRecord::Frame { object, frame: frame(numbers[0] % 1000) },
            2 => JournalRecord::End { object, ending },
            3 => JournalRecord::Stored { object },
            _ => JournalRecord::Dropped { object },
        };
        let mut bytes = Vec::new();
        record.emit(&mut bytes);
        prop_assert_eq!(JournalRecord::parse(bytes[0], &bytes[3..]), Some(record));
    }

    #[test]
    fn any_file_is_read_without_harm(bytes: Vec<u8>) {
        let scratch = ScratchFolder::new();
        fs::write(scratch.path().join("00ff.upload"), [&MAGIC[..], &bytes].concat()).unwrap();
        prop_assert_eq!(open(scratch.path()).1.objects.len(), 0);
    }
}
