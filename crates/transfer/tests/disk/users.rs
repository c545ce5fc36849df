//! As an ordinary user, and as root.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use rustix::io::Errno;
use strait_testdata::skip::{Need, skip};
use strait_transfer::Attributes;
use strait_transfer::folder::{Folder, FolderError, FolderRules, Receiving};
use strait_transfer::source::{SkipReason, SourceError, Sources, WalkOptions};

use super::shared::{OwnFolder, again, child, content, is_root, open, path, plain, receive};

/// The user nobody of Debian, and a number that no user has.
const NOBODY: u32 = 65534;

/// What an ordinary user's process does.
fn as_user(folder: &Path) {
    let folder =
        Folder::open(&folder.into(), FolderRules { keep_owners: true, ..FolderRules::default() }).unwrap();
    let mut receiving = folder.receive([1; 16]).unwrap();
    // Files of any size and permission, in folders that are closed in the end.
    for mode in [0o000, 0o444, 0o755] {
        let name = format!("sub/{mode:o}");
        let mut partial = {
            receiving.make_folders(&path("sub")).unwrap();
            receiving.begin(path(&name), Some(5), [1; 8], true).unwrap()
        };
        partial.write_at(0, b"bytes").unwrap();
        partial.verify(5, blake3::hash(b"bytes").as_bytes()).unwrap();
        receiving.finish(0, partial, &Attributes { mode, owner: (u32::MAX, u32::MAX), ..plain() }).unwrap();
    }
    let owner = (u32::MAX, u32::MAX);
    receiving.finish_folder(1, path("sub"), Attributes { mode: 0o000, owner, ..plain() });
    let mut partial = receiving.begin(path("root's"), Some(0), [1; 8], true).unwrap();
    partial.verify(0, blake3::hash(b"").as_bytes()).unwrap();
    let refused = receiving.finish(2, partial, &Attributes { owner: (0, 0), ..plain() });
    assert_eq!(refused, Err(FolderError::System { doing: "set the owner", error: Errno::PERM }));
    assert!(receiving.complete().unwrap().iter().all(|it| it.result == Ok(())));
    // Again, where all is closed to its owner.
    let mut receiving = folder.receive([2; 16]).unwrap();
    assert_eq!(receiving.make_folder(&path("sub")), Ok(false));
    let mut partial = receiving.begin(path("sub/444"), Some(5), [1; 8], true).unwrap();
    partial.write_at(0, b"newer").unwrap();
    partial.verify(5, blake3::hash(b"newer").as_bytes()).unwrap();
    receiving.finish(0, partial, &Attributes { mode: 0o400, owner, ..plain() }).unwrap();
    assert_eq!(receiving.complete().unwrap()[0].result, Ok(()));
    assert_eq!(folder.look(&path("sub/444")).unwrap().unwrap().attributes.mode, 0o400);
}

/// A file that was whole, had its permissions and was killed before it had its name.
fn killed_before_its_name(folder: &Path) {
    let bytes = content(3, 3 << 20);
    let begin = |receiving: &mut Receiving| receiving.begin(path("closed-file"), Some(3 << 20), [1; 8], true);
    let mut receiving = open(folder).receive([5; 16]).unwrap();
    let mut partial = begin(&mut receiving).unwrap();
    partial.write_at(0, &bytes).unwrap();
    partial.suspend().unwrap();
    drop(receiving);
    for last in [false, true] {
        let mut receiving = open(folder).receive([5; 16]).unwrap();
        let mut partial = begin(&mut receiving).unwrap();
        assert_eq!(partial.missing(48), []);
        partial.verify(3 << 20, blake3::hash(&bytes).as_bytes()).unwrap();
        receiving.finish(0, partial, &Attributes { mode: 0o000, ..plain() }).unwrap();
        if last {
            assert_eq!(receiving.complete().unwrap()[0].result, Ok(()));
        }
    }
    assert_eq!(fs::metadata(folder.join("closed-file")).unwrap().permissions().mode() & 0o777, 0);
    fs::set_permissions(folder.join("closed-file"), Permissions::from_mode(0o600)).unwrap();
    assert_eq!(fs::read(folder.join("closed-file")).unwrap(), bytes);
}

/// What it cannot read is named, the rest is found.
fn walk_as_user(folder: &Path) {
    fs::create_dir(folder.join("closed")).unwrap();
    fs::write(folder.join("unreadable"), "x").unwrap();
    fs::write(folder.join("zz"), "x").unwrap();
    for name in ["closed", "unreadable"] {
        fs::set_permissions(folder.join(name), Permissions::from_mode(0o000)).unwrap();
    }
    let mut sources = Sources::default();
    sources.add_path(&folder.join("")).unwrap();
    let found: Vec<_> = sources.walk(WalkOptions::default()).collect();
    let skipped: Vec<_> = found.iter().filter_map(|it| it.as_ref().err()).collect();
    assert_eq!(skipped.len(), 1, "{skipped:?}");
    assert_eq!(
        (&skipped[0].path[..], skipped[0].reason),
        (&b"closed"[..], SkipReason::Unreadable(Errno::ACCESS))
    );
    assert!(found.iter().flatten().any(|entry| entry.path == Some(path("zz"))));
    let refused = sources.open_file(&path("unreadable")).err();
    assert_eq!(refused, Some(SourceError::Unreadable(Errno::ACCESS)));
    fs::set_permissions(folder.join("closed"), Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn an_ordinary_user_receives_and_sends_without_rights() {
    if let Some(folder) = child() {
        as_user(&folder);
        fs::set_permissions(folder.join("sub"), Permissions::from_mode(0o700)).unwrap();
        killed_before_its_name(&folder);
        return walk_as_user(&folder);
    }
    let folder = OwnFolder::in_memory("user");
    let test = "users::an_ordinary_user_receives_and_sends_without_rights";
    let program = std::env::current_exe().unwrap();
    let ended = if is_root() {
        // Where another user may read it.
        let programs = OwnFolder::new(&std::env::temp_dir(), "program");
        let copy = programs.0.join("disk");
        fs::copy(program, &copy).unwrap();
        chown(&folder.0, Some(NOBODY), Some(NOBODY)).unwrap();
        let before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"];
        again(test, &copy, &folder.0, &before).status().unwrap()
    } else {
        again(test, &program, &folder.0, &[]).status().unwrap()
    };
    assert!(ended.success());
}

#[test]
fn root_keeps_owners_where_the_folder_says_so() {
    if !is_root() && !skip(Need::Root, "may not give a file away") {
        return;
    }
    let folder = OwnFolder::in_memory("owners");
    for (keep_owners, expected) in [(true, NOBODY), (false, 0)] {
        let rules = FolderRules { keep_owners, keep_set_id: true, ..FolderRules::default() };
        let mut receiving =
            Folder::open(&folder.0.as_path().into(), rules).unwrap().receive([1; 16]).unwrap();
        let attributes = Attributes { mode: 0o6755, owner: (NOBODY, NOBODY), ..plain() };
        let mut partial = receiving.begin(path("file"), Some(0), [1; 8], true).unwrap();
        partial.verify(0, blake3::hash(b"").as_bytes()).unwrap();
        receiving.finish(0, partial, &attributes).unwrap();
        receiving.symlink(1, path("link"), b"nowhere", &attributes).unwrap();
        receiving.make_folder(&path("folder")).unwrap();
        receiving.finish_folder(2, path("folder"), attributes.clone());
        assert!(receiving.complete().unwrap().iter().all(|it| it.result == Ok(())));
        for name in ["file", "link", "folder"] {
            let found = fs::symlink_metadata(folder.0.join(name)).unwrap();
            let expected = if name == "folder" { NOBODY } else { expected };
            assert_eq!((found.uid(), found.gid()), (expected, expected), "{name}");
        }
        let mode = fs::metadata(folder.0.join("file")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o6755, "the owner's change takes no bits away");
    }
}

#[test]
fn a_working_folder_of_another_user_is_refused() {
    if !is_root() && !skip(Need::Root, "may not give a folder away") {
        return;
    }
    let folder = OwnFolder::in_memory("foreign");
    let working = folder.0.join(strait_transfer::folder::WORKING_FOLDER);
    fs::create_dir(&working).unwrap();
    chown(&working, Some(NOBODY), Some(NOBODY)).unwrap();
    assert_eq!(open(&folder.0).receive([1; 16]).err(), Some(FolderError::NotOurs));
    assert_eq!(fs::read_dir(&working).unwrap().count(), 0);
    fs::remove_dir(&working).unwrap();
    let mut receiving = open(&folder.0).receive([1; 16]).unwrap();
    receive(&mut receiving, 0, "file", &content(1, 10));
    receiving.complete().unwrap();
}
