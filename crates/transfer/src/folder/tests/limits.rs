use std::fs;
use std::time::Duration;

use super::*;

#[test]
fn a_folder_takes_no_more_bytes_than_its_limit() {
    let folder = TestFolder::new("bytes");
    fs::write(folder.join("older"), content(100_000)).unwrap();
    let open = folder.open_with(FolderRules { max_bytes: Some(200_000), ..FolderRules::default() });
    let mut receiving = open.receive([1; 16]).unwrap();
    let partial = written(&mut receiving, "fits", &content(50_000));
    receiving.finish(0, partial, &plain()).unwrap();
    let mut partial = receiving.begin(path("large"), Some(150_000), [1; 8], true).unwrap();
    assert_eq!(partial.write_at(0, &content(150_000)), Err(FolderError::MaxBytes));
    receiving.discard(partial).unwrap();
    // What is replaced makes room.
    let partial = written(&mut receiving, "older", &content(30_000));
    receiving.finish(0, partial, &plain()).unwrap();
    receiving.commit().unwrap();
    let partial = written(&mut receiving, "now it fits", &content(90_000));
    receiving.finish(0, partial, &plain()).unwrap();
    receiving.complete().unwrap();
    assert_eq!(names(&folder), ["fits", "now it fits", "older"]);
}

#[test]
fn a_folder_takes_no_more_names_than_its_limit() {
    let folder = TestFolder::new("entries");
    fs::create_dir_all(folder.join("a/b")).unwrap();
    let open = folder.open_with(FolderRules { max_entries: Some(8), ..FolderRules::default() });
    let mut receiving = open.receive([1; 16]).unwrap();
    // Two folders are there, and the working folder, that of the transfer.
    receiving.make_folder(&path("c")).unwrap();
    receiving.symlink(0, path("d"), b"x", &plain()).unwrap();
    let partial = written(&mut receiving, "e", b"");
    receiving.finish(0, partial, &plain()).unwrap();
    receiving.hard_link(0, path("f"), path("e")).unwrap();
    let full = Some(FolderError::MaxEntries);
    assert_eq!(receiving.begin(path("g"), Some(1), [1; 8], true).err(), full);
    assert_eq!(receiving.make_folder(&path("g")).err(), full);
    assert_eq!(receiving.symlink(0, path("g"), b"x", &plain()).err(), full);
    assert_eq!(receiving.hard_link(0, path("g"), path("e")).err(), full);
    receiving.complete().unwrap();
    assert_eq!(names(&folder), ["a", "c", "d", "e", "f"]);
}

/// Leaves an unfinished file of two pieces.
fn leave(folder: &TestFolder, transfer: u8) {
    let mut receiving = folder.open().receive([transfer; 16]).unwrap();
    let mut partial = receiving.begin(path("file"), Some(4 << 20), [1; 8], true).unwrap();
    partial.write_at(0, &content(2 << 20)).unwrap();
    partial.suspend().unwrap();
}

fn is_kept(folder: &TestFolder, transfer: u8) -> bool {
    folder.open().receive([transfer; 16]).unwrap().kept(&path("file")).is_some()
}

#[test]
fn unfinished_files_are_removed_after_a_time_unless_they_are_being_written() {
    let folder = TestFolder::new("age");
    leave(&folder, 1);
    leave(&folder, 2);
    let now = now();
    let day = Duration::from_secs(86_400);
    leave(&folder, 3);
    let collect = |after| folder.open().collect(&[3; 16], after - day).unwrap();
    assert_eq!(collect(now), 0);
    let working = folder.open().receive([2; 16]).unwrap();
    assert_eq!(collect(now + 2 * day), 1);
    drop(working);
    assert_eq!([1, 2, 3].map(|transfer| is_kept(&folder, transfer)), [false, true, true]);
    fs::remove_dir_all(folder.join(WORKING_FOLDER)).unwrap();
    assert_eq!(collect(now + 2 * day), 0);
}

#[test]
fn a_file_whose_bytes_did_not_reach_the_disk_does_not_get_its_name() {
    let folder = TestFolder::new("lost");
    let open = folder.open();
    let work = Arc::new(work::WorkFolder::open(&open.beneath, [1; 16]).unwrap());
    let usage = Arc::new(usage::Usage::new(&open.beneath, &open.rules).unwrap());
    let place = group::Place { beneath: Arc::clone(&open.beneath), work, rules: open.rules, usage };
    let mut whole = group::WholeGroup::default();
    for slot in 0..3 {
        place.work.file(&group::aside_name(slot), group::ASIDE, "make a file").unwrap();
        let what = group::WholeKind::File { slot, recorded: true, state: None, file: None };
        whole.push(group::WholeEntry { tag: slot.into(), path: path(format!("f{slot}")), what }, 0);
    }
    let error = FolderError::System { doing: "make a file durable", error: rustix::io::Errno::IO };
    let (settled, done) = place.commit(whole, &[(1, error)].into());
    assert_eq!(settled.iter().map(|it| it.result).collect::<Vec<_>>(), [Ok(()), Err(error), Ok(())]);
    assert_eq!(done, [0, 2].map(|slot| records::TransferRecord::Dropped { slot }));
    assert_eq!(names(&folder), ["f0", "f2"]);
}
