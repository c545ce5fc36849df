use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::OFlags;

use super::super::log::PieceLog;
use super::super::records::TransferRecord;
use super::super::work::WorkFolder;
use super::*;
use crate::beneath::Beneath;
use crate::folder::Offer;
use crate::pieces::{PIECE_LEN, PieceHasher, Subtree};
use crate::testing::write_missing;

const SIZE: usize = (40 << 20) + 12_345;

#[test]
fn a_suspended_file_goes_on_from_its_records() {
    let folder = TestFolder::new("suspended");
    let bytes = content(SIZE);
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    let mut partial = receiving.begin(path("file"), Some(SIZE as u64), [1; 8], true).unwrap();
    partial.write_at(0, &bytes[..(20 << 20) + 5]).unwrap();
    partial.suspend().unwrap();
    drop(receiving);
    assert_eq!(names(&folder), [""; 0]);

    let mut receiving = folder.open().receive([1; 16]).unwrap();
    let kept = receiving.kept(&path("file")).unwrap();
    assert_eq!((kept.size, kept.version), (Some(SIZE as u64), [1; 8]));
    let mut partial = receiving.begin(path("file"), Some(SIZE as u64), [1; 8], true).unwrap();
    assert_eq!(write_missing(&mut partial, &bytes), SIZE as u64 - (20 << 20));
    partial.verify(SIZE as u64, blake3::hash(&bytes).as_bytes()).unwrap();
    receiving.finish(0, partial, &plain()).unwrap();
    receiving.complete().unwrap();
    assert_eq!(fs::read(folder.join("file")).unwrap(), bytes);
}

#[test]
fn a_file_that_is_dropped_loses_at_most_what_was_not_recorded() {
    let folder = TestFolder::new("dropped");
    let bytes = content(SIZE);
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    let mut partial = receiving.begin(path("file"), Some(SIZE as u64), [1; 8], true).unwrap();
    for (at, part) in bytes.chunks(1 << 20).enumerate() {
        partial.write_at((at as u64) << 20, part).unwrap();
    }
    drop(partial);
    drop(receiving);
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    let mut partial = receiving.begin(path("file"), Some(SIZE as u64), [1; 8], true).unwrap();
    let again = write_missing(&mut partial, &bytes);
    assert!(
        again <= 25 << 20,
        "{again} bytes: two records were due, one may have been skipped while the disk was busy"
    );
    partial.verify(SIZE as u64, blake3::hash(&bytes).as_bytes()).unwrap();
    receiving.finish(0, partial, &plain()).unwrap();
    receiving.complete().unwrap();
    assert_eq!(fs::read(folder.join("file")).unwrap(), bytes);
}

/// Leaves the first two pieces of a file.
fn leave(folder: &TestFolder, bytes: &[u8]) {
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    let mut partial = receiving.begin(path("file"), Some(bytes.len() as u64), [1; 8], true).unwrap();
    partial.write_at(0, &bytes[..2 << 20]).unwrap();
    partial.suspend().unwrap();
}

/// The subtree of one piece of `bytes`.
fn piece(bytes: &[u8], number: u64) -> Subtree {
    let mut hasher = PieceHasher::new(number);
    hasher.update(&bytes[usize::try_from(number * PIECE_LEN).unwrap()..]);
    hasher.subtree().unwrap()
}

#[test]
fn for_another_state_of_the_source_pieces_are_what_is_on_the_disk() {
    for (size, version) in [(4 << 20, [2; 8]), (3 << 20, [1; 8]), (5 << 20, [2; 8]), (4 << 20, [0; 8])] {
        let folder = TestFolder::new("another");
        let mut bytes = content(4 << 20);
        leave(&folder, &bytes);
        let aside = folder.join(WORKING_FOLDER).join("01".repeat(16)).join("aside-0");
        OpenOptions::new().write(true).open(aside).unwrap().write_all_at(b"other", 100_000).unwrap();
        bytes[100_000..100_005].copy_from_slice(b"other");
        let mut receiving = folder.open().receive([1; 16]).unwrap();
        let offer = receiving.offer(&path("file"), Some(size), version).unwrap();
        let held = (0..32).map(|number| piece(&bytes, number)).collect();
        assert_eq!(offer, Offer { same_version: false, held });
    }
}

#[test]
fn pieces_that_come_again_take_the_place_of_those_of_an_earlier_run_also_after_a_kill() {
    let folder = TestFolder::new("mixed");
    let mut bytes = content((4 << 20) + 99);
    leave(&folder, &bytes);
    bytes.truncate((3 << 20) + 55);
    bytes[5 << 16..(5 << 16) + 7].fill(1);
    let size = bytes.len() as u64;
    {
        // The sixth piece is written in part, then the process is killed.
        let mut receiving = folder.open().receive([1; 16]).unwrap();
        let mut partial = receiving.begin(path("file"), Some(size), [2; 8], true).unwrap();
        assert!(partial.missing(49).into_iter().flatten().eq(32..49));
        partial.write_at(5 << 16, &bytes[5 << 16..(5 << 16) + 1000]).unwrap();
    }
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    for version in [[2; 8], [1; 8]] {
        let offer = receiving.offer(&path("file"), Some(size), version).unwrap();
        assert!(!offer.same_version, "{version:?}: bytes of two states");
        let other: Vec<u64> =
            offer.held.iter().filter(|it| **it != piece(&bytes, it.first())).map(Subtree::first).collect();
        assert_eq!(other, [5]);
    }
    let mut partial = receiving.begin(path("file"), Some(size), [2; 8], true).unwrap();
    partial.write_at(5 << 16, &bytes[5 << 16..6 << 16]).unwrap();
    assert_eq!(write_missing(&mut partial, &bytes), size - (2 << 20));
    partial.verify(size, blake3::hash(&bytes).as_bytes()).unwrap();
    receiving.finish(0, partial, &plain()).unwrap();
    receiving.complete().unwrap();
    assert_eq!(fs::read(folder.join("file")).unwrap(), bytes);
}

#[test]
fn a_large_file_is_offered_in_as_many_subtrees_as_a_message_has() {
    let folder = TestFolder::new("large");
    let size = (2 << 30) + 5;
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    let mut partial = receiving.begin(path("file"), Some(size), [1; 8], true).unwrap();
    partial.hole(0, 1 << 30).unwrap();
    partial.write_at(1 << 30, &content(1 << 20)).unwrap();
    partial.suspend().unwrap();
    drop(receiving);
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    let offer = receiving.offer(&path("file"), Some(size), [2; 8]).unwrap();
    assert_eq!((offer.held.len(), offer.held[0].level()), (2050, 3));
}

#[test]
fn a_file_aside_that_is_not_there_or_too_short_is_not_gone_on_with() {
    for remove in [true, false] {
        let folder = TestFolder::new("vanished");
        let mut receiving = folder.open().receive([1; 16]).unwrap();
        let mut partial = receiving.begin(path("stdin"), None, [1; 8], true).unwrap();
        partial.write_at(0, &content(3 << 20)).unwrap();
        partial.suspend().unwrap();
        drop(receiving);
        let aside = folder.join(WORKING_FOLDER).join("01".repeat(16)).join("aside-0");
        match remove {
            true => fs::remove_file(aside).unwrap(),
            false => OpenOptions::new().write(true).open(aside).unwrap().set_len(1 << 20).unwrap(),
        }
        assert!(folder.open().receive([1; 16]).unwrap().kept(&path("stdin")).is_none());
    }
}

#[test]
fn bytes_that_were_written_and_not_recorded_do_not_show_through_a_hole() {
    let folder = TestFolder::new("stale");
    let mut bytes = content(6 << 20);
    bytes[2 << 20..4 << 20].fill(0);
    leave(&folder, &bytes);
    let aside = folder.join(WORKING_FOLDER).join("01".repeat(16)).join("aside-0");
    OpenOptions::new().write(true).open(aside).unwrap().write_all_at(&content(3 << 20), 2 << 20).unwrap();

    let mut receiving = folder.open().receive([1; 16]).unwrap();
    let mut partial = receiving.begin(path("file"), Some(bytes.len() as u64), [1; 8], true).unwrap();
    assert!(partial.missing(96).into_iter().flatten().eq(32..96));
    partial.hole(2 << 20, 2 << 20).unwrap();
    write_missing(&mut partial, &bytes);
    partial.verify(bytes.len() as u64, blake3::hash(&bytes).as_bytes()).unwrap();
    receiving.finish(0, partial, &plain()).unwrap();
    receiving.complete().unwrap();
    assert_eq!(fs::read(folder.join("file")).unwrap(), bytes);
}

fn log(folder: &TestFolder) -> PieceLog {
    let beneath = Beneath::open(&folder.path().into()).unwrap();
    PieceLog::open(Arc::new(WorkFolder::open(&beneath, [1; 16]).unwrap())).unwrap()
}

fn begin(slot: u32) -> TransferRecord {
    TransferRecord::Begin { slot, size: Some(1 << 40), version: [2; 8], path: path(format!("f{slot}")) }
}

fn held(slot: u32, piece: u64) -> TransferRecord {
    TransferRecord::Held { slot, subtree: Subtree::new(piece, 0, [3; 32]).unwrap() }
}

#[test]
fn records_are_read_up_to_where_they_were_cut() {
    let folder = TestFolder::new("cut");
    let records =
        [begin(0), held(0, 5), begin(1), held(1, 9), TransferRecord::Dropped { slot: 0 }, held(1, 3)];
    log(&folder).append(&records).unwrap();
    let file = folder.join(WORKING_FOLDER).join("01".repeat(16)).join("records");
    let bytes = fs::read(&file).unwrap();
    let whole = log(&folder).files().cloned().collect::<Vec<_>>();
    assert_eq!(whole.len(), 1);
    assert!(whole[0].pieces.has(3) && whole[0].pieces.has(9) && !whole[0].pieces.has(5));
    for end in 0..bytes.len() {
        fs::write(&file, &bytes[..end]).unwrap();
        let cut = log(&folder).files().cloned().collect::<Vec<_>>();
        assert_ne!(cut, whole, "{end}");
        // What is appended to it is read again.
        log(&folder).append(&[begin(7), held(7, 1)]).unwrap();
        let next = log(&folder).files().cloned().collect::<Vec<_>>();
        assert_eq!(next.len(), cut.len() + 1, "{end}");
    }
    for at in 0..bytes.len() {
        let mut other = bytes.clone();
        other[at] ^= 0x10;
        fs::write(&file, &other).unwrap();
        assert_ne!(log(&folder).files().cloned().collect::<Vec<_>>(), whole, "{at}");
    }
}

#[test]
fn records_of_another_transfer_are_not_read() {
    let folder = TestFolder::new("other");
    log(&folder).append(&[begin(0), held(0, 5)]).unwrap();
    let working = folder.join(WORKING_FOLDER);
    fs::create_dir(working.join("02".repeat(16))).unwrap();
    fs::copy(working.join("01".repeat(16)).join("records"), working.join("02".repeat(16)).join("records"))
        .unwrap();
    let beneath = Beneath::open(&folder.path().into()).unwrap();
    let other = PieceLog::open(Arc::new(WorkFolder::open(&beneath, [2; 16]).unwrap())).unwrap();
    assert_eq!(other.files().count(), 0);
}

#[test]
fn records_do_not_grow_with_what_was_recorded_but_with_what_is_known() {
    let folder = TestFolder::new("grow");
    let mut log = log(&folder);
    log.append(&[begin(0)]).unwrap();
    for portion in 0..100 {
        let pieces: Vec<_> = (0..1000).map(|piece| held(0, portion * 1000 + piece)).collect();
        log.append(&pieces).unwrap();
    }
    let file = folder.join(WORKING_FOLDER).join("01".repeat(16)).join("records");
    let len = fs::metadata(&file).unwrap().len();
    assert!(len < 2 << 20, "{len} bytes");
    let kept = log.files().cloned().collect::<Vec<_>>();
    drop(log);
    let again = self::log(&folder);
    assert_eq!(again.files().cloned().collect::<Vec<_>>(), kept);
    assert_eq!(kept[0].pieces.gaps(100_000).next(), None);
}

#[test]
fn a_peer_that_leaves_gaps_or_many_files_does_not_fill_the_records() {
    let folder = TestFolder::new("many");
    let mut log = log(&folder);
    for slot in 0..5000 {
        log.append(&[begin(slot), held(slot, 0)]).unwrap();
    }
    assert_eq!(log.files().count(), 4096);
    let gaps: Vec<_> = (1..70_000).map(|piece| held(0, 2 * piece)).collect();
    log.append(&gaps).unwrap();
    assert_eq!(log.files().map(|file| file.pieces.len()).sum::<usize>(), 1 << 16);
}

#[test]
fn the_lock_is_that_of_the_folder_that_is_there() {
    let folder = TestFolder::new("lock");
    let beneath = Beneath::open(&folder.path().into()).unwrap();
    let work = WorkFolder::open(&beneath, [1; 16]).unwrap();
    work.file("x", OFlags::CREATE | OFlags::RDWR, "make a file").unwrap();
    work.remove_all().unwrap();
    let again = WorkFolder::open(&beneath, [1; 16]).unwrap();
    again.file("x", OFlags::CREATE | OFlags::RDWR, "make a file").unwrap();
    assert!(matches!(WorkFolder::open(&beneath, [1; 16]), Err(FolderError::Busy)));
}
