use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::*;

#[test]
fn permissions_and_time_are_those_of_the_sender() {
    let folder = TestFolder::new("attributes");
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    for (tag, modified) in [(0, 1_700_000_000_123_456_789), (1, 0), (2, -1_500_000_000)] {
        let name = format!("f{tag}");
        let partial = written(&mut receiving, &name, b"content");
        receiving.finish(tag, partial, &Attributes { mode: 0o444, modified, ..plain() }).unwrap();
    }
    receiving.complete().unwrap();
    for (tag, modified) in [(0, 1_700_000_000_123_456_789_i64), (1, 0), (2, -1_500_000_000)] {
        let found = fs::metadata(folder.join(&format!("f{tag}"))).unwrap();
        assert_eq!(found.permissions().mode() & 0o7777, 0o444);
        assert_eq!(found.mtime() * 1_000_000_000 + found.mtime_nsec(), modified);
    }
}

/// A file system with whole seconds needs a disk of its own to be tried; this one keeps all.
#[test]
fn the_time_that_a_file_would_have_is_looked_up_without_a_trace() {
    let folder = TestFolder::new("kept-times");
    let receiving = folder.open().receive([1; 16]).unwrap();
    for modified in [1_700_000_000_123_456_789, 0, -1_500_000_000] {
        assert_eq!(receiving.time_kept(modified), Some(modified));
    }
    drop(receiving);
    assert_eq!(
        fs::read_dir(folder.join(""))
            .unwrap()
            .filter(|it| it.as_ref().unwrap().file_name() != WORKING_FOLDER)
            .count(),
        0
    );
}

#[test]
fn setuid_bits_are_dropped_unless_the_folder_allows_them() {
    for (keep_set_id, expected) in [(false, 0o755), (true, 0o4755)] {
        let folder = TestFolder::new("setuid");
        let open = folder.open_with(FolderRules { keep_set_id, ..FolderRules::default() });
        let mut receiving = open.receive([1; 16]).unwrap();
        let partial = written(&mut receiving, "program", b"#!");
        receiving.finish(0, partial, &Attributes { mode: 0o4755, ..plain() }).unwrap();
        receiving.complete().unwrap();
        let mode = fs::metadata(folder.join("program")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, expected);
    }
}

#[test]
fn a_folder_is_closed_to_others_until_its_content_is_there() {
    let folder = TestFolder::new("folders");
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    assert!(receiving.make_folder(&path("a")).unwrap());
    assert!(!receiving.make_folder(&path("a")).unwrap(), "it is there");
    receiving.make_folders(&path("a/b/c")).unwrap();
    assert_eq!(fs::metadata(folder.join("a")).unwrap().permissions().mode() & 0o777, 0o700);
    let partial = written(&mut receiving, "a/b/file", b"content");
    receiving.finish(0, partial, &plain()).unwrap();
    receiving.finish_folder(1, path("a/b"), Attributes { mode: 0o555, ..plain() });
    receiving.finish_folder(2, path("a"), Attributes { mode: 0o755, ..plain() });
    assert!(receiving.complete().unwrap().iter().all(|it| it.result == Ok(())));
    for (name, mode) in [("a", 0o755), ("a/b", 0o555), ("a/b/c", 0o700)] {
        let found = fs::metadata(folder.join(name)).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, mode, "{name}");
        if mode != 0o700 {
            assert_eq!(found.mtime() * 1_000_000_000 + found.mtime_nsec(), plain().modified, "{name}");
        }
    }
    // A transfer that comes again can write where the folder is closed to its owner.
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    assert!(!receiving.make_folder(&path("a/b")).unwrap());
    assert_eq!(fs::metadata(folder.join("a/b")).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn symlinks_are_made_as_they_are() {
    let folder = TestFolder::new("symlinks");
    fs::write(folder.join("replaced"), "older").unwrap();
    let any = FolderRules { symlinks: SymlinkRule::Any, ..FolderRules::default() };
    let mut receiving = folder.open_with(any).receive([1; 16]).unwrap();
    receiving.symlink(0, path("dangling"), b"../../nowhere\xff", &plain()).unwrap();
    receiving.symlink(1, path("replaced"), b"/etc/passwd", &plain()).unwrap();
    assert!(receiving.complete().unwrap().iter().all(|it| it.result == Ok(())));
    let target = fs::read_link(folder.join("dangling")).unwrap();
    assert_eq!(target.as_os_str().as_bytes(), b"../../nowhere\xff");
    assert_eq!(fs::read_link(folder.join("replaced")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!(fs::symlink_metadata(folder.join("dangling")).unwrap().mtime(), 1);
}

#[test]
fn hard_links_share_their_file_and_come_again_without_harm() {
    let folder = TestFolder::new("links");
    for _ in 0..2 {
        let mut receiving = folder.open().receive([1; 16]).unwrap();
        let partial = written(&mut receiving, "first", b"content");
        receiving.finish(0, partial, &plain()).unwrap();
        receiving.hard_link(1, path("second"), path("first")).unwrap();
        receiving.hard_link(2, path("second"), path("first")).unwrap();
        receiving.hard_link(3, path("third"), path("none")).unwrap();
        let results: Vec<_> = receiving.complete().unwrap().iter().map(|it| it.result).collect();
        assert_eq!(results, [Ok(()), Ok(()), Ok(()), Err(FolderError::NoFirstName)]);
    }
    let found = fs::metadata(folder.join("first")).unwrap();
    assert_eq!((found.nlink(), found.ino()), (2, fs::metadata(folder.join("second")).unwrap().ino()));
    assert_eq!(names(&folder), ["first", "second"]);
}

#[test]
fn names_are_any_bytes() {
    let folder = TestFolder::new("names");
    let strange: [&[u8]; 5] = [b"\xff\xfe", b"line\nbreak", b"\x1b[2J", b" ", &[b'x'; 255]];
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    for (tag, name) in strange.iter().enumerate() {
        let partial = written(&mut receiving, name, name);
        receiving.finish(tag as u64, partial, &plain()).unwrap();
    }
    assert!(receiving.complete().unwrap().iter().all(|it| it.result == Ok(())));
    for name in strange {
        assert_eq!(fs::read(folder.path().join(std::ffi::OsStr::from_bytes(name))).unwrap(), name);
    }
}

#[test]
fn only_extended_attributes_of_users_are_kept_and_only_if_asked() {
    let xattrs =
        vec![(b"user.color".to_vec(), b"red\0".to_vec()), (b"security.capability".to_vec(), b"all".to_vec())];
    for (keep_xattrs, expected) in [(false, vec![]), (true, vec![xattrs[0].clone()])] {
        let folder = TestFolder::below(&std::env::temp_dir(), "xattrs");
        let open = folder.open_with(FolderRules { keep_xattrs, ..FolderRules::default() });
        let mut receiving = open.receive([1; 16]).unwrap();
        let partial = written(&mut receiving, "file", b"content");
        receiving.finish(0, partial, &Attributes { xattrs: xattrs.clone(), ..plain() }).unwrap();
        receiving.complete().unwrap();
        let file = fs::File::open(folder.join("file")).unwrap();
        let mut list = [0; 1000];
        let len = rustix::fs::flistxattr(&file, &mut list[..]).unwrap();
        let found = list[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty());
        // A security module may add one of its own.
        let found: Vec<_> = found.filter(|name| *name != b"security.selinux").map(<[u8]>::to_vec).collect();
        assert_eq!(found, expected.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    }
}
