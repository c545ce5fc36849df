use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::message::{EntryKind, EntryMessage};
use crate::outbox::{PathBytes, TransferLimits};
use crate::scratch::ScratchFolder;
use crate::session::{Content, Origin};
use crate::source::patterns::Patterns;

fn node() -> PrivateKey {
    PrivateKey::generate(&[1; 32])
}

fn counting() -> impl FnMut() -> [u8; 32] + Send {
    let mut count = 0_u8;
    move || {
        count += 1;
        [count; 32]
    }
}

fn order() -> TransferOrder {
    TransferOrder {
        peer: PrivateKey::generate(&[2; 32]).public(),
        name: "b".to_owned(),
        folder: "inbox".to_owned(),
        below: PathBytes::default(),
        paths: Vec::new(),
        patterns: Vec::new(),
        xattrs: false,
        spooled: true,
    }
}

#[test]
fn a_copy_holds_what_the_files_were_and_only_this_node_reads_it() {
    let scratch = ScratchFolder::new();
    let source = scratch.folder("source");
    let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at >> 5) as u8).collect();
    std::fs::write(source.join("a"), &bytes).unwrap();
    std::fs::write(source.join("b"), "second").unwrap();
    let spool = SpoolFolder::open(&scratch.path().join("outbox")).unwrap();
    let id = TransferId::from_bytes([5; 16]);
    let mut gathered = GatheredSource::gather([source.as_path()], Patterns::default()).unwrap();
    spool.copy(id, &mut gathered, (&order(), u64::MAX), &node(), counting()).unwrap();
    std::fs::remove_dir_all(&source).unwrap();
    let mut copy = spool.read(id, &node()).unwrap();
    assert_eq!(copy.entries().len(), 3);
    let mut text = String::new();
    copy.open(b"source/b").unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "second");
    let mut again = Vec::new();
    copy.open(b"source/a").unwrap().read_to_end(&mut again).unwrap();
    assert!(again == bytes);
    assert!(spool.read(id, &PrivateKey::generate(&[2; 32])).is_err());
    assert!(spool.read(TransferId::from_bytes([6; 16]), &node()).is_err());
    let folder = scratch.path().join("outbox/spool");
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    for file in std::fs::read_dir(&folder).unwrap() {
        assert_eq!(file.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn copies_without_a_transfer_and_of_transfers_that_are_over_are_removed() {
    let scratch = ScratchFolder::new();
    let file = scratch.path().join("f");
    std::fs::write(&file, "x").unwrap();
    let folder = scratch.path().join("outbox");
    let mut outbox = Outbox::open(FolderDisk::open(&folder).unwrap(), &node(), Box::new(counting())).unwrap();
    let spool = SpoolFolder::open(&folder).unwrap();
    let ids: Vec<_> = (0..3).map(|_| outbox.new_id()).collect();
    for id in &ids {
        let mut gathered = GatheredSource::gather([file.as_path()], Patterns::default()).unwrap();
        spool.copy(*id, &mut gathered, (&order(), u64::MAX), &node(), counting()).unwrap();
    }
    // The third was copied, and then the process was killed before it was accepted.
    for id in &ids[..2] {
        outbox.accept(*id, order(), TransferLimits::default(), 5).unwrap();
    }
    outbox.cancel(ids[0], 6).unwrap();
    let held = spool.hold().unwrap();
    spool.tidy(&outbox).unwrap();
    assert!(spool.read(ids[2], &node()).is_ok(), "another process may be about to accept it");
    drop(held);
    spool.tidy(&outbox).unwrap();
    let left = ids.iter().map(|id| spool.read(*id, &node()).is_ok());
    assert_eq!(left.collect::<Vec<_>>(), [false, true, false]);
}

/// What a session reads of a file of the copy, from the end to the beginning.
fn backwards(origin: &mut SpooledOrigin, entry: &EntryMessage, step: usize) -> Vec<u8> {
    let mut content = origin.open(entry).unwrap();
    let size = usize::try_from(content.state().unwrap().size.unwrap()).unwrap();
    let mut bytes = vec![0; size];
    for begin in (0..size).step_by(step).collect::<Vec<_>>().into_iter().rev() {
        let end = (begin + step).min(size);
        let mut at = begin;
        while at < end {
            at += content.read_at(at as u64, &mut bytes[at..end]).unwrap();
        }
    }
    bytes
}

#[test]
fn a_session_reads_a_copy_from_any_place_and_finds_folders_before_what_is_beside_them() {
    let scratch = ScratchFolder::new();
    let source = scratch.folder("source");
    std::fs::create_dir(source.join("a")).unwrap();
    let long: Vec<u8> = (0..2_500_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    std::fs::write(source.join("a-"), &long).unwrap();
    std::fs::hard_link(source.join("a-"), source.join("a/linked")).unwrap();
    std::fs::write(source.join("a/short"), "short").unwrap();
    std::fs::write(source.join("empty"), "").unwrap();
    let spool = SpoolFolder::open(&scratch.path().join("outbox")).unwrap();
    let id = TransferId::from_bytes([5; 16]);
    let mut gathered = GatheredSource::gather([source.as_path()], Patterns::default()).unwrap();
    spool.copy(id, &mut gathered, (&order(), u64::MAX), &node(), counting()).unwrap();
    let mut origin = SpooledOrigin::new(spool.read(id, &node()).unwrap());
    let entries: Vec<EntryMessage> =
        std::iter::from_fn(|| origin.next_entry()).map(|entry| entry.unwrap()).collect();
    let names: Vec<_> = entries.iter().map(|entry| String::from_utf8_lossy(&entry.path)).collect();
    assert_eq!(
        names,
        ["source", "source/a", "source/a/linked", "source/a/short", "source/a-", "source/empty"]
    );
    // The name that comes first has the content.
    assert_eq!(entries[2].kind, EntryKind::File { size: Some(2_500_000) });
    assert_eq!(entries[4].kind, EntryKind::HardLink { to: b"source/a/linked".to_vec() });
    assert!(entries[2].version != [0; 8] && entries[3].version == [0; 8]);
    assert!(backwards(&mut origin, &entries[2], 300_000) == long);
    assert_eq!(backwards(&mut origin, &entries[3], 2), b"short");
    assert_eq!(backwards(&mut origin, &entries[5], 2), b"");
}

/// Bytes that do not compress.
fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

#[test]
fn a_copy_that_was_changed_or_cut_off_is_noticed() {
    let scratch = ScratchFolder::new();
    let file = scratch.path().join("f");
    std::fs::write(&file, noise(200_000)).unwrap();
    let spool = SpoolFolder::open(&scratch.path().join("outbox")).unwrap();
    let id = TransferId::from_bytes([5; 16]);
    let mut gathered = GatheredSource::gather([file.as_path()], Patterns::default()).unwrap();
    spool.copy(id, &mut gathered, (&order(), u64::MAX), &node(), counting()).unwrap();
    let contents = scratch.path().join(format!("outbox/spool/{id}.contents.age"));
    let whole = std::fs::read(&contents).unwrap();
    let read = || {
        let mut copy = spool.read(id, &node()).map_err(io::Error::other)?;
        io::copy(&mut copy.open(b"f")?, &mut io::sink())
    };
    assert_eq!(read().unwrap(), 200_000);
    assert!(whole.len() > 140_000, "it has several chunks");
    for cut in [1, 16, 5_000, 65_552, whole.len() - 300] {
        std::fs::write(&contents, &whole[..whole.len() - cut]).unwrap();
        assert!(read().is_err(), "{cut}");
    }
    for at in [whole.len() - 1, whole.len() / 2, 400] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        std::fs::write(&contents, changed).unwrap();
        assert!(read().is_err(), "{at}");
    }
}

#[test]
fn a_copy_for_which_there_is_no_room_leaves_nothing() {
    let scratch = ScratchFolder::new();
    let file = scratch.path().join("f");
    std::fs::write(&file, noise(300_000)).unwrap();
    let spool = SpoolFolder::open(&scratch.path().join("outbox")).unwrap();
    let disk = statvfs(scratch.path()).unwrap();
    assert!(spool.room().unwrap() <= disk.f_bavail * disk.f_frsize);
    for room in [100, 200_000, 300_100] {
        let mut gathered = GatheredSource::gather([file.as_path()], Patterns::default()).unwrap();
        let id = TransferId::from_bytes([5; 16]);
        let full = spool.copy(id, &mut gathered, (&order(), room), &node(), counting()).unwrap_err();
        assert!(full.to_string().contains("too little of the disk free"), "{full}");
        let left = std::fs::read_dir(scratch.path().join("outbox/spool")).unwrap().count();
        assert_eq!(left, 0, "{room}");
    }
}
