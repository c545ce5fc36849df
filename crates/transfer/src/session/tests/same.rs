//! Files whose content the receiver has under another name.

use std::fs;
use std::path::{Path, PathBuf};

use super::real::{Ended, Meeting, content_bytes, noise, whole, wire};
use super::snapshot::snapshot;
use crate::message::TransferOptions;
use crate::session::TransferError;
use crate::testing::TestFolder;

/// Pushes what is in a folder: bytes on the wire, and how it ended.
fn push_all(meeting: &Meeting, source: &TestFolder, options: TransferOptions) -> (u64, Ended) {
    let contents = PathBuf::from(format!("{}/", source.path().display()));
    let ended = meeting.push(&[contents], "", options);
    let events = std::mem::take(&mut *meeting.events.lock().unwrap());
    (events.iter().map(wire).sum(), ended)
}

fn delete() -> TransferOptions {
    TransferOptions { delete: true, ..TransferOptions::default() }
}

fn write(folder: &TestFolder, name: &str, content: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn rename(folder: &TestFolder, from: &str, to: &str) {
    let to = folder.join(to);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(folder.join(from), to).unwrap();
}

#[test]
fn a_renamed_file_costs_its_name_and_the_one_that_it_is_copied_from_stays() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    let content = noise(5_000_000, 1);
    write(&target, "d/old", &content);
    // Of the same length, and found first.
    write(&target, "d/a", &noise(5_000_000, 2));
    write(&source, "d/new", &content);
    let (wire, ended) = push_all(&Meeting::new(target.path(), i64::MAX), &source, TransferOptions::default());
    whole(ended);
    assert!(wire < 2000, "{wire}");
    for name in ["d/old", "d/new"] {
        assert!(fs::read(target.join(name)).unwrap() == content);
    }
    assert!(fs::read(target.join("d/a")).unwrap() == noise(5_000_000, 2));
}

#[test]
fn a_file_of_the_length_of_another_counts_once() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    write(&target, "d/a", &noise(5_000_000, 2));
    write(&source, "d/new", &noise(5_000_000, 1));
    let meeting = Meeting::new(target.path(), i64::MAX);
    let contents = PathBuf::from(format!("{}/", source.path().display()));
    whole(meeting.push(&[contents], "", TransferOptions::default()));
    assert_eq!(content_bytes(&meeting.events.lock().unwrap()), 5_000_000);
}

#[test]
fn with_delete_the_old_name_goes_after_the_copy_wherever_both_are() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    for (number, name) in
        ["beside", "first/down", "z-last/up", "whole/folder/one", "whole/folder/two"].iter().enumerate()
    {
        write(&source, name, &noise(300_000, number as u64));
    }
    let meeting = Meeting::new(target.path(), i64::MAX);
    whole(push_all(&meeting, &source, delete()).1);
    rename(&source, "beside", "another");
    rename(&source, "first/down", "z-last/down");
    rename(&source, "z-last/up", "first/up");
    rename(&source, "whole", "renamed");
    let (wire, ended) = push_all(&meeting, &source, delete());
    let tally = whole(ended);
    // Two files, `whole`, what is in it and the folder there, and the file at the top.
    assert_eq!(tally.removed, 7);
    assert!(wire < 6000, "{wire}");
    assert!(snapshot(target.path()) == snapshot(source.path()));
}

#[test]
fn an_interrupted_sync_removed_nothing() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    write(&source, "a/new", &noise(300_000, 1));
    write(&target, "a/old", &noise(300_000, 1));
    write(&source, "z", &noise(8_000_000, 2));
    let (_, cut) = push_all(&Meeting::new(target.path(), 2_000_000), &source, delete());
    assert!(matches!(cut, Err(TransferError::Interrupted(_))), "{cut:?}");
    assert!(target.join("a/old").exists());
    assert_eq!(whole(push_all(&Meeting::new(target.path(), i64::MAX), &source, delete()).1).removed, 1);
    assert!(snapshot(target.path()) == snapshot(source.path()));
}

#[test]
fn many_folders_with_names_to_remove_do_not_wait_for_the_end() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    // More than there are entries on their way at most.
    for number in 0..17_000 {
        fs::create_dir(source.join(&format!("{number}"))).unwrap();
    }
    for number in [0, 9_000, 16_999] {
        write(&target, &format!("{number}/gone"), b"x");
    }
    let tally = whole(push_all(&Meeting::new(target.path(), i64::MAX), &source, delete()).1);
    assert_eq!((tally.whole, tally.removed), (17_001, 3));
}

#[test]
fn equal_files_of_one_transfer_cost_one_of_them_in_both_directions_and_where_a_peer_may_only_write() {
    let (source, target, back) = (TestFolder::new("s"), TestFolder::new("t"), TestFolder::new("b"));
    let (large, small) = (noise(2_000_000, 1), noise(30_000, 2));
    for number in 0..40 {
        write(&source, &format!("d/large-{number}"), &large);
        write(&source, &format!("d/small-{number}"), &small);
    }
    write(&source, "other", &noise(2_000_000, 3));
    let mut meeting = Meeting::new(target.path(), i64::MAX);
    meeting.folders[0].read = false;
    let (wire, ended) = push_all(&meeting, &source, TransferOptions::default());
    whole(ended);
    assert!(snapshot(target.path()) == snapshot(source.path()));
    let once = 4_030_000..4_060_000;
    assert!(once.contains(&wire), "{wire}");
    let meeting = Meeting::new(target.path(), i64::MAX);
    whole(meeting.pull(&["d", "other"], back.path()));
    let wire: u64 = meeting.events.into_inner().unwrap().iter().map(super::real::wire).sum();
    assert!(snapshot(back.path()) == snapshot(source.path()));
    assert!(once.contains(&wire), "{wire}");
}

/// What the wire carries when a file of 300 kB comes to a folder that has it under another name.
fn cost(read: bool) -> u64 {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    write(&target, "secret", &noise(300_000, 1));
    write(&source, "guess", &noise(300_000, 1));
    let mut meeting = Meeting::new(target.path(), i64::MAX);
    meeting.folders[0].read = read;
    let (wire, ended) = push_all(&meeting, &source, TransferOptions::default());
    whole(ended);
    wire
}

#[test]
fn who_may_not_read_does_not_hear_that_a_content_is_there() {
    assert!(cost(true) < 2000);
    assert!(cost(false) > 300_000);
    // A server hears nothing of what its client has beside what it asked for.
    let (served, own) = (TestFolder::new("s"), TestFolder::new("o"));
    write(&served, "guess", &noise(300_000, 1));
    write(&own, "secret", &noise(300_000, 1));
    let meeting = Meeting::new(served.path(), i64::MAX);
    whole(meeting.pull(&["guess"], own.path()));
    let wire: u64 = meeting.events.into_inner().unwrap().iter().map(super::real::wire).sum();
    assert!(wire > 300_000, "{wire}");
}

#[test]
fn a_sparse_file_is_copied_with_its_holes() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    let sparse = |path: &Path| {
        let file = fs::File::create(path).unwrap();
        file.set_len(64 << 20).unwrap();
        file.write_all_at(&noise(50_000, 1), 20 << 20).unwrap();
    };
    sparse(&target.join("old"));
    sparse(&source.join("new"));
    let (wire, ended) = push_all(&Meeting::new(target.path(), i64::MAX), &source, TransferOptions::default());
    whole(ended);
    assert!(wire < 2000, "{wire}");
    assert!(fs::read(target.join("new")).unwrap() == fs::read(source.join("new")).unwrap());
    assert!(fs::metadata(target.join("new")).unwrap().blocks() * 512 < 1 << 20);
}
