//! No symlink that a sender has made leads out of the folder.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proptest::prelude::*;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::*;

/// A request of a sender.
#[derive(Clone, Debug)]
enum Wish {
    Folder(String),
    Symlink(String, String),
    HardLink(String, String),
}

/// Names between slashes: few, so that symlinks meet each other and folders. Of rules that are too weak, one case in a hundred tells.
fn names(all: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(all), 1..=most).prop_map(|names| names.join("/"))
}

fn wish() -> impl Strategy<Value = Wish> {
    let place = || names(&["a", "b"], 3);
    let target = || names(&["a", "b", "..", "..", "."], 5);
    prop_oneof![
        place().prop_map(Wish::Folder),
        (place(), target()).prop_map(|(at, target)| Wish::Symlink(at, target)),
        (place(), place()).prop_map(|(at, to)| Wish::HardLink(at, to)),
    ]
}

/// Asks for all; what is refused is refused.
fn grant(folder: &TestFolder, wishes: &[Wish]) {
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    for wish in wishes {
        let _ = match wish {
            Wish::Folder(at) => receiving.make_folders(&path(at)),
            Wish::Symlink(at, target) => receiving.symlink(0, path(at), target.as_bytes(), &plain()),
            Wish::HardLink(at, to) => receiving.hard_link(0, path(at), path(to)),
        };
    }
    receiving.complete().unwrap();
}

/// Symlinks below a folder, by their paths from there, that the kernel cannot follow without leaving it.
fn leading_out(folder: &TestFolder) -> Vec<Vec<u8>> {
    let root = fs::File::open(folder.path()).unwrap();
    let leads_out = |path: &Vec<u8>| {
        let opened = openat2(&root, &path[..], OFlags::PATH, Mode::empty(), ResolveFlags::BENEATH);
        opened.is_err_and(|error| error == Errno::XDEV)
    };
    let mut symlinks = Vec::new();
    find_symlinks(folder.path(), b"", &mut symlinks);
    symlinks.retain(leads_out);
    symlinks
}

fn find_symlinks(folder: &Path, above: &[u8], found: &mut Vec<Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = [above, entry.file_name().as_bytes()].concat();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => find_symlinks(&entry.path(), &[&path[..], b"/"].concat(), found),
            kind if kind.is_symlink() => found.push(path),
            _ => {}
        }
    }
}

proptest! {
    #[test]
    fn whatever_symlinks_are_sent_none_leads_out(wishes in proptest::collection::vec(wish(), 60..120)) {
        let folder = TestFolder::new("links");
        grant(&folder, &wishes);
        prop_assert_eq!(leading_out(&folder), Vec::<Vec<u8>>::new());
    }
}

#[test]
fn two_symlinks_that_stay_inside_by_their_words_do_not_lead_out_together() {
    let folder = TestFolder::new("links");
    let symlink = |at: &str, target: &str| Wish::Symlink(at.into(), target.into());
    // By its words the second names a/b: but the first leads to the top, and `..` from there leads out.
    let wishes = [Wish::Folder("a/b".into()), symlink("a/b/top", "../.."), symlink("way", "a/b/top/..")];
    grant(&folder, &wishes);
    assert!(folder.join("a/b/top").is_dir());
    assert!(folder.join("way").symlink_metadata().is_err());
}

#[test]
fn a_symlink_gets_no_name_higher_up_by_a_hard_link() {
    let folder = TestFolder::new("links");
    let symlink = Wish::Symlink("a/b/up".into(), "../../f".into());
    let link = |at: &str| Wish::HardLink(at.into(), "a/b/up".into());
    grant(&folder, &[Wish::Folder("a/b".into()), symlink, link("up"), link("a/up"), link("a/b/other")]);
    assert!(folder.join("a/b/other").symlink_metadata().is_ok());
    for higher in ["up", "a/up"] {
        assert!(folder.join(higher).symlink_metadata().is_err(), "{higher}");
    }
}
