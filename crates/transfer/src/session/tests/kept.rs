//! Versions that go against a copy of the one before.

use std::fs;
use std::path::{Path, PathBuf};

use super::real::{Ended, Meeting, Moving, hello, noise, whole, wire};
use super::snapshot::snapshot;
use crate::delta::KeepSent;
use crate::message::{Asked, TransferOptions};
use crate::session::*;
use crate::source::Sources;
use crate::testing::TestFolder;

/// Text of some megabytes, and the same with another word in one line of a hundred.
fn two_texts() -> [Vec<u8>; 2] {
    let random = noise(1_400_000, 7);
    let line = |number: usize, bytes: &[u8], word: &str| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{number}: {hex} {word}\n")
    };
    [false, true].map(|newer| {
        let lines = random.chunks(32).enumerate();
        let text = lines.map(|(number, bytes)| {
            line(number, bytes, if newer && number % 100 == 50 { "changed" } else { "as before" })
        });
        text.collect::<String>().into_bytes()
    })
}

fn copies(store: &TestFolder, budget: u64, seed: u8) -> SentCopies {
    let store = KeepSent::open_own(store.path(), budget, [seed; 32]).unwrap();
    SentCopies::new(store, &[b"peer", b"inbox", b""], [seed; 32])
}

/// Pushes a path with a store: bytes on the wire, how it ended, and why something was not kept.
fn push_keeping(meeting: &Meeting, path: &Path, copies: SentCopies) -> (u64, Ended, Option<String>) {
    let mut sources = Sources::default();
    sources.add_path(path).unwrap();
    let mut origin = DiskOrigin::new(sources, patterns(&[]).unwrap(), false).keeping(Some(copies));
    let (folder, place) = (b"inbox".to_vec(), Vec::new());
    let asked = Asked::Push { folder, place, options: TransferOptions::default() };
    let ended = meeting.run(|ends, watch| push(ends, hello(asked), &mut origin, watch)).0;
    let trouble = origin.copies().and_then(|copies| copies.trouble().map(ToString::to_string));
    let events = std::mem::take(&mut *meeting.events.lock().unwrap());
    (events.iter().map(wire).sum(), ended, trouble)
}

/// A file of `content` in the source folder, with a time of its own.
fn put(source: &TestFolder, content: &[u8], second: u64) -> PathBuf {
    let path = source.join("f");
    fs::write(&path, content).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(second);
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    path
}

#[test]
fn a_version_goes_against_the_copy_of_the_one_before_and_is_kept_in_its_place() {
    let (source, target, store) = (TestFolder::new("s"), TestFolder::new("t"), TestFolder::new("k"));
    let [old, new] = two_texts();
    let meeting = Meeting::new(target.path(), i64::MAX);
    let (first, ended, _) = push_keeping(&meeting, &put(&source, &old, 1), copies(&store, 1 << 30, 1));
    whole(ended);
    let (second, ended, trouble) = push_keeping(&meeting, &put(&source, &new, 2), copies(&store, 1 << 30, 2));
    whole(ended);
    assert_eq!(trouble, None);
    assert!(fs::read(target.join("f")).unwrap() == new);
    let (third, ended, _) = push_keeping(&meeting, &put(&source, &old, 3), copies(&store, 1 << 30, 3));
    whole(ended);
    assert!(fs::read(target.join("f")).unwrap() == old);
    // The same by ids.
    fs::write(target.join("f"), &old).unwrap();
    let plain = Meeting::new(target.path(), i64::MAX);
    whole(plain.push(&[put(&source, &new, 4)], "", TransferOptions::default()));
    let plain: u64 = plain.events.into_inner().unwrap().iter().map(wire).sum();
    // 437 lines changed; by ids each costs a fine chunk, compressed, and the ids of a coarse one.
    assert!(second < 30_000 && third < 30_000, "{first} {second} {third} {plain}");
    assert!(second * 4 < plain, "{first} {second} {third} {plain}");
}

#[test]
fn a_receiver_that_has_another_file_gets_it_by_ids_and_one_that_has_none_whole() {
    let (source, target, store) = (TestFolder::new("s"), TestFolder::new("t"), TestFolder::new("k"));
    let [old, new] = two_texts();
    let meeting = Meeting::new(target.path(), i64::MAX);
    whole(push_keeping(&meeting, &put(&source, &old, 1), copies(&store, 1 << 30, 1)).1);
    // Of the same length, so that only its hash tells.
    let mut other = old.clone();
    other[1_000_000] ^= 1;
    fs::write(target.join("f"), &other).unwrap();
    let (wire, ended, _) = push_keeping(&meeting, &put(&source, &new, 2), copies(&store, 1 << 30, 2));
    whole(ended);
    assert!(fs::read(target.join("f")).unwrap() == new);
    assert!(wire < new.len() as u64 / 4, "{wire}");
    fs::remove_file(target.join("f")).unwrap();
    whole(push_keeping(&meeting, &put(&source, &old, 3), copies(&store, 1 << 30, 3)).1);
    assert!(fs::read(target.join("f")).unwrap() == old);
}

#[test]
fn a_file_that_did_not_change_is_announced_without_its_version() {
    let (source, target, store) = (TestFolder::new("s"), TestFolder::new("t"), TestFolder::new("k"));
    let [old, _] = two_texts();
    let meeting = Meeting::new(target.path(), i64::MAX);
    let path = put(&source, &old, 1);
    whole(push_keeping(&meeting, &path, copies(&store, 1 << 30, 1)).1);
    let (with, ended, _) = push_keeping(&meeting, &path, copies(&store, 1 << 30, 2));
    whole(ended);
    whole(meeting.push(&[path], "", TransferOptions::default()));
    let without: u64 = meeting.events.into_inner().unwrap().iter().map(wire).sum();
    assert!(with < without + 30, "{with} {without}");
}

#[test]
fn a_peer_that_may_only_write_does_not_hear_that_its_guess_is_right() {
    let (source, target, store) = (TestFolder::new("s"), TestFolder::new("t"), TestFolder::new("k"));
    let old = noise(300_000, 1);
    let mut meeting = Meeting::new(target.path(), i64::MAX);
    meeting.folders[0].read = false;
    whole(push_keeping(&meeting, &put(&source, &old, 1), copies(&store, 1 << 30, 1)).1);
    let newer = [&old[..], b"more"].concat();
    let (wire, ended, _) = push_keeping(&meeting, &put(&source, &newer, 2), copies(&store, 1 << 30, 2));
    whole(ended);
    assert!(wire >= newer.len() as u64, "{wire}");
}

#[test]
fn a_store_that_cannot_be_written_or_is_damaged_costs_bytes_and_nothing_else() {
    let (source, target, store) = (TestFolder::new("s"), TestFolder::new("t"), TestFolder::new("k"));
    let [old, new] = two_texts();
    let meeting = Meeting::new(target.path(), i64::MAX);
    whole(push_keeping(&meeting, &put(&source, &old, 1), copies(&store, 1 << 30, 1)).1);
    // Each part of the copy is damaged, but not its end: it is found only when it is used.
    let kept = fs::read_dir(store.path()).unwrap().map(|entry| entry.unwrap().path());
    let kept = kept.filter(|path| path.extension().is_none()).collect::<Vec<_>>();
    let [kept] = &kept[..] else { panic!("{kept:?}") };
    let mut bytes = fs::read(kept).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(kept, &bytes).unwrap();
    let (_, ended, trouble) = push_keeping(&meeting, &put(&source, &new, 2), copies(&store, 1 << 30, 2));
    whole(ended);
    assert_eq!(trouble, None);
    assert!(fs::read(target.join("f")).unwrap() == new);
    // Its folder is gone when something is to be kept.
    let copies = copies(&store, 1 << 30, 3);
    fs::remove_dir_all(store.path()).unwrap();
    let (_, ended, trouble) = push_keeping(&meeting, &put(&source, &old, 3), copies);
    whole(ended);
    assert!(trouble.is_some());
    assert!(fs::read(target.join("f")).unwrap() == old);
}

#[test]
fn what_is_larger_than_the_budget_is_not_kept() {
    let (source, target, store) = (TestFolder::new("s"), TestFolder::new("t"), TestFolder::new("k"));
    let meeting = Meeting::new(target.path(), i64::MAX);
    whole(push_keeping(&meeting, &put(&source, &noise(300_000, 1), 1), copies(&store, 200_000, 1)).1);
    assert!(snapshot(store.path()).keys().all(|name| name.starts_with(b"store.")));
}

#[test]
fn a_server_keeps_what_a_peer_got_and_a_receiver_that_loses_it_meanwhile_gets_the_whole() {
    let (source, target, store) = (TestFolder::new("s"), TestFolder::new("t"), TestFolder::new("k"));
    let [old, new] = two_texts();
    let served = |seed: u8| {
        let mut meeting = Meeting::new(source.path(), i64::MAX);
        let (folder, peer) = (store.path().to_owned(), b"peer".to_vec());
        let copies = ServedCopies { folder, budget: 1 << 30, peer, random: [seed; 32] };
        meeting.folders[0].copies = Some(copies);
        meeting
    };
    put(&source, &old, 1);
    whole(served(1).pull(&["f"], target.path()));
    put(&source, &new, 2);
    let meeting = served(2);
    whole(meeting.pull(&["f"], target.path()));
    let bytes: u64 = meeting.events.into_inner().unwrap().iter().map(wire).sum();
    assert!(bytes < 30_000, "{bytes}");
    assert!(fs::read(target.join("f")).unwrap() == new);
    // It says that it has the version, and then has not: what the patch refers to changes when the file is begun.
    put(&source, &old, 3);
    let folder = target.open();
    let destination = DiskDestination::open(folder, None, [7; 16], patterns(&[]).unwrap(), false).unwrap();
    let meeting = served(3);
    let options = TransferOptions::default();
    let asked = Asked::Pull { folder: b"inbox".to_vec(), paths: vec![b"f".to_vec()], options };
    let destination = Moving(destination, target.join("f"), 1_000_000);
    whole(meeting.run(|ends, watch| pull(ends, hello(asked), destination, None, watch)).0);
    assert!(fs::read(target.join("f")).unwrap() == old);
}
