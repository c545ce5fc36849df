use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::super::links::LinkTable;
use super::super::patterns::Patterns;
use super::super::*;
use crate::folder::WORKING_FOLDER;
use crate::path::Printable;
use crate::testing::{TestFolder, path};

fn walk_with(paths: &[PathBuf], options: WalkOptions) -> Vec<Result<SourceEntry, Skipped>> {
    let mut sources = Sources::default();
    for path in paths {
        sources.add_path(path).unwrap();
    }
    sources.walk(options).collect()
}

/// What a walk says, a line for each entry.
fn lines(paths: &[PathBuf], options: WalkOptions) -> Vec<String> {
    let line = |found: &Result<SourceEntry, Skipped>| match found {
        Ok(entry) => {
            let path = entry.path.as_ref().map_or_else(|| ".".to_owned(), ToString::to_string);
            match &entry.kind {
                SourceKind::File { size } => format!("{path} {size}"),
                SourceKind::Folder => format!("{path}/"),
                SourceKind::Symlink { target } => format!("{path} -> {}", Printable(target)),
                SourceKind::HardLink { to } => format!("{path} = {to}"),
            }
        }
        Err(skipped) => format!("{}: {}", Printable(&skipped.path), skipped.reason),
    };
    walk_with(paths, options).iter().map(line).collect()
}

fn plain_lines(paths: &[PathBuf]) -> Vec<String> {
    lines(paths, WalkOptions::default())
}

#[test]
fn a_folder_comes_before_what_is_in_it_and_that_before_what_is_beside_it() {
    let folder = TestFolder::new("order");
    fs::create_dir_all(folder.join("top/b/c")).unwrap();
    for (name, bytes) in [("top/a", 1), ("top/b/x", 2), ("top/b/c/y", 3), ("top/d", 4)] {
        fs::write(folder.join(name), vec![0; bytes]).unwrap();
    }
    let below = ["a 1", "b/", "b/c/", "b/c/y 3", "b/x 2", "d 4"];
    let named: Vec<_> =
        ["top/".to_owned()].into_iter().chain(below.map(|line| format!("top/{line}"))).collect();
    assert_eq!(plain_lines(&[folder.join("top")]), named);
    let all: Vec<_> = ["./"].into_iter().chain(below).collect();
    assert_eq!(plain_lines(&[folder.join("top/")]), all);
    assert_eq!(plain_lines(&[folder.join("top/.")]), all);
    assert_eq!(plain_lines(&[folder.join("top/b/x"), folder.join("top/d")]), ["x 2", "d 4"]);
    let mut sources = Sources::default();
    sources.add_path(&folder.join("top/d")).unwrap();
    assert_eq!(sources.add_path(&folder.join("d")), Err(SourceError::Vanished));
    fs::write(folder.join("d"), "").unwrap();
    assert_eq!(sources.add_path(&folder.join("d")), Err(SourceError::SameName));
}

#[test]
fn a_symlink_is_found_and_not_followed() {
    let folder = TestFolder::new("symlink");
    fs::create_dir_all(folder.join("top/real")).unwrap();
    symlink("/", folder.join("top/root")).unwrap();
    symlink("real", folder.join("top/link")).unwrap();
    symlink("none\n", folder.join("top/dangling")).unwrap();
    let expected = ["top/", "top/dangling -> none\\n", "top/link -> real", "top/real/", "top/root -> /"];
    assert_eq!(plain_lines(&[folder.join("top")]), expected);
    assert_eq!(plain_lines(&[folder.join("top/root")]), ["root -> /"]);
    let mut sources = Sources::default();
    sources.add_path(&folder.join("top")).unwrap();
    assert_eq!(sources.open_file(&path("top/root/etc/passwd")).err(), Some(SourceError::Symlink));
    assert_eq!(sources.open_file(&path("top/link")).err(), Some(SourceError::Symlink));
}

#[test]
fn devices_fifos_and_sockets_are_named_and_left_out() {
    let folder = TestFolder::new("devices");
    fs::write(folder.join("file"), "").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.join("fifo"), rustix::fs::Mode::RWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
    let skipped = "devices, FIFOs and sockets are not sent";
    let expected =
        ["./".to_owned(), format!("fifo: {skipped}"), "file 0".to_owned(), format!("socket: {skipped}")];
    assert_eq!(plain_lines(&[folder.join("")]), expected);
    assert_eq!(plain_lines(&[PathBuf::from("/dev/null")]), [format!("null: {skipped}")]);
    let mut sources = Sources::default();
    sources.add_path(&folder.join("")).unwrap();
    assert_eq!(sources.open_file(&path("fifo")).err(), Some(SourceError::NotSent));
    assert_eq!(sources.open_file(&path("socket")).err(), Some(SourceError::NotSent));
}

#[test]
fn later_names_of_a_file_are_links_to_its_first() {
    let folder = TestFolder::new("links");
    fs::create_dir(folder.join("sub")).unwrap();
    fs::write(folder.join("a"), "content").unwrap();
    for name in ["b", "sub/c"] {
        fs::hard_link(folder.join("a"), folder.join(name)).unwrap();
    }
    fs::write(folder.join("d"), "content").unwrap();
    assert_eq!(plain_lines(&[folder.join("")]), ["./", "a 7", "b = a", "d 7", "sub/", "sub/c = a"]);
    // A name outside of what is sent does not count.
    assert_eq!(plain_lines(&[folder.join("sub")]), ["sub/", "sub/c 7"]);
}

#[test]
fn the_table_of_links_is_bounded_and_forgets_files_whose_names_were_all_met() {
    let mut table = LinkTable::default();
    let stamp = |inode| Stamp { device: 1, inode, size: 0, modified: 0, changed: 0 };
    let name = path([&[b'x'; 200][..], b"/first"].concat());
    let mut known = 0;
    for inode in 0..100_000 {
        assert_eq!(table.meet(&stamp(inode), 3, &name), None);
        known += usize::from(table.meet(&stamp(inode), 3, &path("second")).is_some());
    }
    assert!((50_000..70_000).contains(&known), "{known} of 300 bytes in 16 MiB");
    for inode in 0..50_000 {
        assert_eq!(table.meet(&stamp(inode), 3, &path("third")).as_ref(), Some(&name));
    }
    assert_eq!(table.meet(&stamp(1_000_000), 2, &name), None);
    assert!(table.meet(&stamp(1_000_000), 2, &path("second")).is_some(), "there is room again");
}

#[test]
fn every_name_of_a_large_folder_is_found_once() {
    let folder = TestFolder::new("large");
    let count = 20_000;
    for number in 0..count {
        fs::write(folder.join(&format!("f{number}")), "").unwrap();
    }
    let mut found: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for entry in walk_with(&[folder.join("")], WalkOptions::default()).into_iter().flatten() {
        *found.entry(entry.path.map_or_else(Vec::new, |path| path.as_bytes().to_vec())).or_default() += 1;
    }
    assert_eq!(found.len(), count + 1);
    assert!(found.values().all(|times| *times == 1));
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_found() {
    let folder = TestFolder::new("deep");
    let mut deep = folder.join("deep");
    let names = vec!["x"; 600].join("/");
    fs::create_dir_all(deep.join(&names)).unwrap();
    fs::write(folder.join("file"), "").unwrap();
    let found = plain_lines(&[folder.join("")]);
    assert_eq!(found.len(), 2 + 511 + 1);
    assert!(found[512].ends_with(": it is more than 512 folders deep"), "{}", found[512]);
    assert_eq!(found[513], "file 0");
    deep.push("x");
    let mut sources = Sources::default();
    sources.add_path(&deep).unwrap();
    let mut walk = sources.walk(WalkOptions::default());
    assert!(walk.next().unwrap().is_ok());
    fs::remove_dir_all(&deep).unwrap();
    // The names that were open are empty now; nothing is invented.
    assert!(walk.all(|found| found.is_err()));
}

#[test]
fn unfinished_files_are_not_sent() {
    let folder = TestFolder::new("unfinished");
    fs::create_dir_all(folder.join(WORKING_FOLDER).join("x")).unwrap();
    fs::write(folder.join("file"), "").unwrap();
    assert_eq!(plain_lines(&[folder.join("")]), ["./", "file 0"]);
}

#[test]
fn an_excluded_folder_is_not_looked_into() {
    let folder = TestFolder::new("excluded");
    for name in ["target/debug", "src/target", "keep"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    for name in ["target/debug/a.o", "src/b.o", "src/b.rs", "keep/c.o"] {
        fs::write(folder.join(name), "").unwrap();
    }
    let mut patterns = Patterns::default();
    for (include, pattern) in [(true, "keep/*.o"), (false, "*.o"), (false, "/target/")] {
        patterns.push(include, pattern.as_bytes()).unwrap();
    }
    let found = lines(&[folder.join("")], WalkOptions { patterns, xattrs: false });
    assert_eq!(found, ["./", "keep/", "keep/c.o 0", "src/", "src/b.rs 0", "src/target/"]);
}

#[test]
fn attributes_are_read() {
    let folder = TestFolder::below(&std::env::temp_dir(), "xattrs");
    fs::write(folder.join("file"), "").unwrap();
    fs::set_permissions(folder.join("file"), fs::Permissions::from_mode(0o4751)).unwrap();
    let file = fs::File::options().write(true).open(folder.join("file")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_nanos(1_234_567_890_123_456_789))
        .unwrap();
    for name in ["user.b", "user.a"] {
        rustix::fs::fsetxattr(&file, name, name.as_bytes(), rustix::fs::XattrFlags::empty()).unwrap();
    }
    for xattrs in [false, true] {
        let options = WalkOptions { xattrs, ..WalkOptions::default() };
        let found = walk_with(&[folder.join("file")], options).remove(0).unwrap();
        assert_eq!((found.attributes.mode, found.attributes.modified), (0o4751, 1_234_567_890_123_456_789));
        let expected = [(b"user.a".to_vec(), b"user.a".to_vec()), (b"user.b".to_vec(), b"user.b".to_vec())];
        assert_eq!(found.attributes.xattrs, if xattrs { &expected[..] } else { &[] });
    }
}

#[test]
fn names_are_any_bytes() {
    let folder = TestFolder::new("bytes");
    let names: [&[u8]; 4] = [b"\n", b"\x1b]0;title\x07", b"a b", b"\xff"];
    for name in names {
        fs::write(folder.path().join(std::ffi::OsStr::from_bytes(name)), "").unwrap();
    }
    let found = walk_with(&[folder.join("")], WalkOptions::default());
    let found: Vec<_> = found.into_iter().filter_map(|entry| entry.unwrap().path).collect();
    assert_eq!(found, names.map(path));
}

#[test]
fn a_peer_reads_below_its_folder_alone() {
    let folder = TestFolder::new("below");
    fs::create_dir_all(folder.join("shared/sub")).unwrap();
    fs::write(folder.join("shared/sub/file"), "x").unwrap();
    symlink("..", folder.join("shared/up")).unwrap();
    let shared = Folder::open(&folder.join("shared").into(), crate::folder::FolderRules::default()).unwrap();
    let mut sources = Sources::default();
    for (name, content) in [("up", true), ("up/shared", false), ("up/shared/sub", true)] {
        assert_eq!(
            sources.add_in_folder(&shared, Some(&path(name)), content),
            Err(SourceError::Symlink),
            "{name}"
        );
    }
    sources.add_in_folder(&shared, Some(&path("sub/file")), false).unwrap();
    sources.add_in_folder(&shared, Some(&path("sub")), true).unwrap();
    sources.add_in_folder(&shared, None, true).unwrap();
    let found: Vec<_> = sources.walk(WalkOptions::default()).map(|entry| entry.unwrap().path).collect();
    let expected = ["file", "", "file", "", "sub", "sub/file", "up"];
    assert_eq!(found, expected.map(|name| EntryPath::new(name).ok()));
    assert_eq!(sources.open_file(&path("sub/file")).unwrap().opened().size, 1);
    assert_eq!(sources.open_file(&path("sub/none")).err(), Some(SourceError::Vanished));
}
