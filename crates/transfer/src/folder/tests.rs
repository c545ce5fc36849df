mod attacks;
mod limits;
mod links;
mod metadata;
mod model;
mod resume;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use strait_testdata::skip::{Need, skip};

use super::*;
use crate::arrival::FolderOwner;
use crate::testing::{TestFolder, content, now, path, plain, send, written};

/// All names in a folder but the working folder's.
fn names(folder: &TestFolder) -> Vec<String> {
    let read = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = read.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != WORKING_FOLDER);
    names.sort_unstable();
    names
}

#[test]
fn a_file_has_its_name_only_when_it_is_whole_and_settled() {
    let folder = TestFolder::new("whole");
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    let bytes = content(3000);
    let mut partial = receiving.begin(path("a"), Some(3000), [1; 8], true).unwrap();
    partial.write_at(0, &bytes[..1000]).unwrap();
    assert_eq!(partial.verify(3000, blake3::hash(&bytes).as_bytes()), Err(FolderError::WrongSize));
    assert_eq!(names(&folder), [""; 0]);
    receiving.discard(partial).unwrap();
    let partial = written(&mut receiving, "a", &bytes);
    assert_eq!(names(&folder), [""; 0]);
    receiving.finish(7, partial, &plain()).unwrap();
    assert_eq!(receiving.commit().unwrap(), [Settled { tag: 7, result: Ok(()) }]);
    assert_eq!(fs::read(folder.join("a")).unwrap(), bytes);
    assert_eq!(receiving.complete().unwrap(), []);
    assert!(!folder.join(WORKING_FOLDER).exists(), "nothing is left behind");
}

#[test]
fn a_file_with_another_hash_does_not_replace_the_older_one() {
    let folder = TestFolder::new("wrong");
    send(&folder.open(), 1, "a", b"older");
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    let mut partial = receiving.begin(path("a"), Some(5), [1; 8], true).unwrap();
    partial.write_at(0, b"newer").unwrap();
    assert_eq!(partial.verify(5, blake3::hash(b"other").as_bytes()), Err(FolderError::WrongHash));
    assert_eq!(receiving.finish(0, partial, &plain()), Err(FolderError::WrongHash));
    assert_eq!(receiving.complete().unwrap(), []);
    assert_eq!(fs::read(folder.join("a")).unwrap(), b"older");
}

#[test]
fn a_group_of_many_files_settles_in_order() {
    let folder = TestFolder::new("group");
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    for tag in 0..100 {
        let partial = written(&mut receiving, format!("f{tag}"), &content(tag));
        receiving.finish(tag as u64, partial, &plain()).unwrap();
    }
    let settled = receiving.complete().unwrap();
    assert_eq!(settled.iter().map(|it| it.tag).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    for tag in 0..100 {
        assert_eq!(fs::read(folder.join(&format!("f{tag}"))).unwrap(), content(tag));
    }
}

#[test]
fn one_entry_that_fails_does_not_keep_others_from_their_names() {
    let folder = TestFolder::new("fails");
    fs::create_dir(folder.join("taken")).unwrap();
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    for (tag, name) in ["before", "taken", "none/below", "behind"].into_iter().enumerate() {
        let partial = written(&mut receiving, name, b"content");
        receiving.finish(tag as u64, partial, &plain()).unwrap();
    }
    let settled = receiving.complete().unwrap();
    let results: Vec<_> = settled.iter().map(|it| it.result).collect();
    assert_eq!(results, [Ok(()), Err(FolderError::InTheWay), Err(FolderError::Missing), Ok(())]);
    assert_eq!(names(&folder), ["before", "behind", "taken"]);
}

#[test]
fn of_two_transfers_to_one_name_the_one_that_is_whole_last_has_it() {
    let folder = TestFolder::new("two");
    let mut first = folder.open().receive([1; 16]).unwrap();
    let mut second = folder.open().receive([2; 16]).unwrap();
    let (a, b) = (content(3 << 20), vec![7; 3 << 20]);
    let whole_last = written(&mut first, "name", &a);
    let whole_first = written(&mut second, "name", &b);
    second.finish(0, whole_first, &plain()).unwrap();
    second.complete().unwrap();
    assert_eq!(fs::read(folder.join("name")).unwrap(), b);
    first.finish(0, whole_last, &plain()).unwrap();
    first.complete().unwrap();
    assert_eq!(fs::read(folder.join("name")).unwrap(), a);
}

#[test]
fn a_transfer_that_another_run_works_on_is_refused() {
    let folder = TestFolder::new("busy");
    let receiving = folder.open().receive([1; 16]).unwrap();
    assert_eq!(folder.open().receive([1; 16]).err(), Some(FolderError::Busy));
    drop(receiving);
    folder.open().receive([1; 16]).unwrap();
}

#[test]
fn an_open_file_does_not_keep_the_transfer_from_ending() {
    let folder = TestFolder::new("open");
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    let mut partial = receiving.begin(path("a"), Some(64 << 20), [1; 8], true).unwrap();
    partial.write_at(0, &content(1 << 20)).unwrap();
    drop(receiving);
    partial.write_at(1 << 20, &content(1 << 20)).unwrap();
    assert_eq!(partial.suspend(), Err(FolderError::Busy));
}

#[test]
fn a_file_of_unknown_length_ends_where_its_sender_says() {
    let folder = TestFolder::new("unknown");
    let bytes = content((2 << 20) + 5);
    for len in [0, 1, 1 << 20, (1 << 20) + 1, 2 << 20, (2 << 20) + 5] {
        let mut receiving = folder.open().receive([1; 16]).unwrap();
        let mut partial = receiving.begin(path("stdin"), None, [0; 8], false).unwrap();
        for (at, part) in bytes[..len].chunks(300_001).enumerate() {
            partial.write_at(at as u64 * 300_001, part).unwrap();
        }
        partial.verify(len as u64, blake3::hash(&bytes[..len]).as_bytes()).unwrap();
        receiving.finish(0, partial, &plain()).unwrap();
        assert_eq!(receiving.complete().unwrap()[0].result, Ok(()));
        assert_eq!(fs::read(folder.join("stdin")).unwrap(), &bytes[..len]);
    }
}

#[test]
fn a_hole_takes_no_room_and_counts_as_zeros() {
    let folder = TestFolder::new("hole");
    let mut bytes = content(8 << 20);
    bytes[1_500_000..7_000_000].fill(0);
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    let mut partial = receiving.begin(path("sparse"), Some(8 << 20), [1; 8], true).unwrap();
    partial.write_at(0, &bytes[..1_500_000]).unwrap();
    partial.hole(1_500_000, 5_500_000).unwrap();
    partial.write_at(7_000_000, &bytes[7_000_000..]).unwrap();
    partial.verify(8 << 20, blake3::hash(&bytes).as_bytes()).unwrap();
    receiving.finish(0, partial, &plain()).unwrap();
    receiving.complete().unwrap();
    assert_eq!(fs::read(folder.join("sparse")).unwrap(), bytes);
    let on_disk = fs::metadata(folder.join("sparse")).unwrap().blocks() * 512;
    assert!(on_disk < 4 << 20, "{on_disk} bytes");
}

#[test]
fn a_file_that_ends_in_a_hole_has_its_length() {
    let folder = TestFolder::new("tail");
    for size in [Some(3 << 20), None] {
        let mut receiving = folder.open().receive([1; 16]).unwrap();
        let mut partial = receiving.begin(path("tail"), size, [1; 8], true).unwrap();
        partial.hole(0, 3 << 20).unwrap();
        partial.verify(3 << 20, blake3::hash(&vec![0; 3 << 20]).as_bytes()).unwrap();
        receiving.finish(0, partial, &plain()).unwrap();
        receiving.complete().unwrap();
        assert_eq!(fs::read(folder.join("tail")).unwrap(), vec![0; 3 << 20]);
    }
}

#[test]
fn bytes_out_of_order_are_refused() {
    let folder = TestFolder::new("order");
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    let piece = content(1 << 20);
    let mut partial = receiving.begin(path("a"), Some(4 << 20), [1; 8], true).unwrap();
    partial.write_at(2 << 20, &piece).unwrap();
    let refused = [
        ("in the middle of a piece", 5, 10, FolderError::OutOfOrder),
        ("again", 2 << 20, 10, FolderError::OutOfOrder),
        ("into what is there", 1 << 20, (1 << 20) + 1, FolderError::OutOfOrder),
        ("beyond the end", 3 << 20, (1 << 20) + 1, FolderError::WrongSize),
        ("far beyond", u64::MAX - 3, 10, FolderError::WrongSize),
    ];
    let bytes = content(2 << 20);
    for (what, offset, len, error) in refused {
        assert_eq!(partial.write_at(offset, &bytes[..len]), Err(error), "{what}");
        assert_eq!(partial.hole(offset, len as u64), Err(error), "a hole {what}");
    }
    partial.write_at(0, &piece[..10]).unwrap();
    assert_eq!(
        partial.write_at(1 << 20, &piece),
        Err(FolderError::OutOfOrder),
        "the piece before is not complete"
    );
    assert_eq!(partial.verify(4 << 20, &[0; 32]), Err(FolderError::WrongSize), "pieces are missing");
}

#[test]
fn names_that_the_sender_has_not_are_removed() {
    let folder = TestFolder::new("prune");
    for name in ["keep", "gone", "tree/a/b"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    fs::write(folder.join("tree/a/file"), "").unwrap();
    std::os::unix::fs::symlink("/", folder.join("tree/root")).unwrap();
    let receiving = folder.open().receive([1; 16]).unwrap();
    let pruned = |dry_run| {
        let mut removed = Vec::new();
        let mut hear = |pruned: Pruned<'_>| {
            let Pruned::Removed(path) = pruned else { panic!("{pruned:?}") };
            removed.push(String::from_utf8(path.to_vec()).unwrap());
        };
        folder.open().prune(None, dry_run, &|name| name == b"keep", &mut hear).unwrap();
        removed.sort_unstable();
        removed
    };
    let all = ["gone", "tree", "tree/a", "tree/a/b", "tree/a/file", "tree/root"];
    assert_eq!(pruned(true), all);
    assert_eq!(names(&folder), ["gone", "keep", "tree"]);
    assert_eq!(pruned(false), all);
    assert_eq!(names(&folder), ["keep"]);
    receiving.complete().unwrap();
}

#[test]
fn read_only_folders_are_removed_and_what_stays_keeps_no_other_name() {
    let folder = TestFolder::new("prune-read-only");
    for name in ["a", "closed/below", "z", "of-another"] {
        fs::create_dir_all(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("file"), "").unwrap();
    }
    for (name, mode) in [("closed/below", 0o555), ("closed", 0o100)] {
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let prune = || {
        let (mut removed, mut stay) = (Vec::new(), Vec::new());
        let mut hear = |pruned: Pruned<'_>| match pruned {
            Pruned::Removed(path) => removed.push(path.to_vec()),
            Pruned::Stays(path, error) => stay.push((path.to_vec(), error)),
        };
        folder.open().prune(None, false, &|_| false, &mut hear).unwrap();
        (removed.len(), stay)
    };
    if !(rustix::process::geteuid().is_root() || skip(Need::Root, "only root can become another")) {
        return;
    }
    // As a user who owns all but the files of one folder, which another user keeps from being written.
    let (owner, other) = (FolderOwner::Other { user: 4321, group: 4321 }, 4322);
    for name in ["", "a", "closed", "closed/below", "z"] {
        chown(folder.join(name), Some(4321), Some(4321)).unwrap();
    }
    chown(folder.join("of-another"), Some(other), Some(other)).unwrap();
    let (removed, stay) = owner.run(prune).unwrap();
    let denied = FolderError::System { doing: "remove a name", error: rustix::io::Errno::ACCESS };
    assert_eq!((removed, stay), (7, vec![(b"of-another/file".to_vec(), denied)]));
    assert_eq!(names(&folder), ["of-another"]);
}

#[test]
fn a_folder_that_stays_keeps_its_permissions() {
    if !(rustix::process::geteuid().is_root() || skip(Need::Root, "only root can become another")) {
        return;
    }
    let folder = TestFolder::new("prune-stays");
    fs::create_dir_all(folder.join("closed/of-another")).unwrap();
    fs::write(folder.join("closed/of-another/file"), "").unwrap();
    for (name, user) in [("", 4321), ("closed", 4321), ("closed/of-another", 4322)] {
        chown(folder.join(name), Some(user), Some(user)).unwrap();
    }
    fs::set_permissions(folder.join("closed"), fs::Permissions::from_mode(0o555)).unwrap();
    let owner = FolderOwner::Other { user: 4321, group: 4321 };
    let paths = owner.run(|| {
        let mut stay = Vec::new();
        let mut hear = |pruned: Pruned<'_>| {
            let Pruned::Stays(path, _) = pruned else { panic!("{pruned:?}") };
            stay.push(path.to_vec());
        };
        folder.open().prune(None, false, &|_| false, &mut hear).unwrap();
        stay
    });
    assert_eq!(paths.unwrap(), [b"closed/of-another/file"]);
    let mode = fs::metadata(folder.join("closed")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o555);
}
