use std::fs::{self, File};
use std::os::unix::fs::symlink;

use super::*;
use crate::scratch::ScratchFolder;

fn names(gathered: &GatheredSource) -> Vec<String> {
    gathered.entries().iter().map(|entry| String::from_utf8_lossy(&entry.path).into_owned()).collect()
}

#[test]
fn a_folder_is_gathered_with_all_that_is_in_it_in_order() {
    let scratch = ScratchFolder::new();
    let top = scratch.folder("top");
    fs::create_dir_all(top.join("b/c")).unwrap();
    fs::write(top.join("b/c/x"), "12345").unwrap();
    fs::write(top.join("b-"), "1").unwrap();
    fs::hard_link(top.join("b/c/x"), top.join("y")).unwrap();
    symlink("nowhere", top.join("z")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        top.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let gathered = GatheredSource::gather([top.as_path()], Patterns::default()).unwrap();
    assert_eq!(names(&gathered), ["top", "top/b", "top/b-", "top/b/c", "top/b/c/x", "top/y", "top/z"]);
    assert_eq!(gathered.left_out(), [b"top/pipe".to_vec()]);
    let kinds: Vec<_> = gathered.entries().into_iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds[4], SealedKind::File { size: 5, root: [0; 32] });
    assert_eq!(kinds[5], SealedKind::HardLink { to: b"top/b/c/x".to_vec() });
    assert_eq!(kinds[6], SealedKind::Symlink { target: b"nowhere".to_vec() });
}

#[test]
fn two_of_one_name_and_a_path_without_name_are_refused() {
    let scratch = ScratchFolder::new();
    let (a, b) = (scratch.folder("a/x"), scratch.folder("b/x"));
    let gather = |paths: &[&Path]| GatheredSource::gather(paths.iter().copied(), Patterns::default());
    let twice = gather(&[&a, &b]).unwrap_err();
    assert!(twice.to_string().contains("two of the paths end in the same name"), "{twice}");
    assert!(gather(&[Path::new("/")]).is_err());
    let missing = gather(&[&scratch.path().join("missing")]).unwrap_err();
    assert!(missing.to_string().contains("missing"), "{missing}");
}

#[test]
fn a_file_that_changed_after_it_was_listed_or_while_it_is_read_is_noticed() {
    let scratch = ScratchFolder::new();
    let path = scratch.path().join("a");
    fs::write(&path, "12345").unwrap();
    let mut gathered = GatheredSource::gather([path.as_path()], Patterns::default()).unwrap();
    let entry = gathered.entries().remove(0);
    let mut text = String::new();
    gathered.open(b"a").unwrap().read_to_string(&mut text).unwrap();
    assert!(gathered.unchanged(&entry).unwrap() && text == "12345");
    // The same size and, set back, the same time: the time of the change itself cannot be set.
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(&path, "54321").unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
    assert!(!gathered.unchanged(&entry).unwrap());
    assert!(gathered.open(b"a").is_err());
}

#[test]
fn patterns_and_a_slash_count_as_they_do_over_the_network() {
    let scratch = ScratchFolder::new();
    let top = scratch.folder("top");
    for name in ["a", "a.o", "deep"] {
        fs::write(top.join(name), "x").unwrap();
    }
    let mut patterns = Patterns::default();
    patterns.push(false, b"*.o").unwrap();
    let gathered = GatheredSource::gather([top.join("").as_path()], patterns).unwrap();
    assert_eq!(names(&gathered), ["a", "deep"]);
    let other = scratch.folder("other");
    fs::write(other.join("a"), "y").unwrap();
    let both = [top.join(""), other.join("")];
    let both = GatheredSource::gather(both.iter().map(|path| path.as_path()), Patterns::default());
    assert!(both.unwrap_err().to_string().contains("two of the name a"));
}
