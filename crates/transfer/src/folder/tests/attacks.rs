use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::path::PathError;

/// A permitted folder, and one beside it that must stay as it is.
fn two_folders(name: &str) -> (TestFolder, TestFolder) {
    let outside = TestFolder::new(&format!("{name}-outside"));
    fs::write(outside.join("file"), "theirs").unwrap();
    (TestFolder::new(name), outside)
}

fn is_untouched(outside: &TestFolder) -> bool {
    let names: Vec<_> =
        fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names == ["file"] && fs::read(outside.join("file")).unwrap() == b"theirs"
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let long = [b'a'; 256];
    let names: [(&[u8], PathError); 7] = [
        (b"../file", PathError::Dots),
        (b"a/../../file", PathError::Dots),
        (b"/etc/passwd", PathError::EmptyName),
        (b"", PathError::EmptyName),
        (b"a//b", PathError::EmptyName),
        (b"a\0b", PathError::Zero),
        (&long, PathError::TooLong),
    ];
    for (name, error) in names {
        assert_eq!(EntryPath::new(name), Err(error));
    }
}

#[test]
fn a_peer_cannot_write_to_the_working_folder() {
    let folder = TestFolder::new("reserved");
    let mut receiving = folder.open().receive([1; 16]).unwrap();
    for name in
        [".strait-partial", ".strait-partial/x", ".strait-partial/01010101010101010101010101010101/records"]
    {
        let reserved = Some(FolderError::Reserved);
        assert_eq!(receiving.begin(path(name), Some(1), [0; 8], true).err(), reserved);
        assert_eq!(receiving.make_folder(&path(name)).err(), reserved);
        assert_eq!(receiving.symlink(0, path(name), b"x", &plain()).err(), reserved);
        assert_eq!(receiving.hard_link(0, path("x"), path(name)).err(), reserved);
        assert_eq!(receiving.hard_link(0, path(name), path("x")).err(), reserved);
        assert_eq!(folder.open().read(&path(name)).err(), reserved);
    }
}

#[test]
fn a_symlink_in_the_path_is_not_followed() {
    let (folder, outside) = two_folders("symlink");
    symlink(outside.path(), folder.join("out")).unwrap();
    symlink(outside.join("file"), folder.join("name")).unwrap();
    symlink("/proc/self/root", folder.join("magic")).unwrap();
    let open = folder.open();
    for name in ["out/file", "out/new", "magic/tmp", "name/x"] {
        let mut receiving = open.receive([1; 16]).unwrap();
        let partial = written(&mut receiving, name, b"ours");
        receiving.finish(0, partial, &plain()).unwrap();
        receiving.symlink(1, path(name), b"x", &plain()).unwrap();
        receiving.hard_link(2, path("link"), path(name)).unwrap();
        receiving.finish_folder(3, path(name), plain());
        assert_eq!(receiving.make_folder(&path(name)).err(), Some(FolderError::Symlink));
        for settled in receiving.complete().unwrap() {
            assert_eq!(settled.result, Err(FolderError::Symlink), "{name}, {}", settled.tag);
        }
        assert_eq!(open.look(&path(name)), Err(FolderError::Symlink));
        assert_eq!(open.read(&path(name)).err(), Some(FolderError::Symlink));
    }
    let mut receiving = open.receive([1; 16]).unwrap();
    assert_eq!(receiving.make_folder(&path("out")).err(), Some(FolderError::InTheWay));
    receiving.finish_folder(0, path("out"), Attributes { mode: 0, ..plain() });
    assert_eq!(receiving.commit().unwrap()[0].result, Err(FolderError::Symlink));
    assert_eq!(open.prune(Some(&path("out")), false, &|_| false, &mut |_| ()), Err(FolderError::Symlink));
    // A symlink that has the name itself is replaced.
    let partial = written(&mut receiving, "name", b"ours");
    receiving.finish(1, partial, &plain()).unwrap();
    assert_eq!(receiving.complete().unwrap()[0].result, Ok(()));
    assert_eq!(fs::read(folder.join("name")).unwrap(), b"ours");
    assert!(is_untouched(&outside));
}

#[test]
fn a_working_folder_that_is_a_symlink_is_refused() {
    let (folder, outside) = two_folders("working");
    symlink(outside.path(), folder.join(WORKING_FOLDER)).unwrap();
    assert_eq!(folder.open().receive([1; 16]).err(), Some(FolderError::Symlink));
    assert_eq!(folder.open().collect(&[1; 16], now()).err(), Some(FolderError::Symlink));
    assert!(is_untouched(&outside));
}

/// What can come of an entry below a folder that is exchanged for a symlink all the time.
fn is_expected(result: Result<(), FolderError>) -> bool {
    use FolderError::{InTheWay, Missing, NoFirstName, Symlink};
    matches!(result, Ok(()) | Err(Symlink | Missing | NoFirstName | InTheWay))
}

#[test]
fn a_folder_that_is_exchanged_for_a_symlink_leads_nowhere() {
    let (folder, outside) = two_folders("race");
    fs::create_dir(folder.join("sub")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            symlink(outside.path(), folder.join("link")).unwrap();
            while !stop.load(Ordering::Relaxed) {
                // At every moment, `sub` is the folder, the symlink or nothing.
                let _ = fs::rename(folder.join("sub"), folder.join("aside"));
                let _ = fs::rename(folder.join("link"), folder.join("sub"));
                let _ = fs::rename(folder.join("sub"), folder.join("link"));
                let _ = fs::rename(folder.join("aside"), folder.join("sub"));
            }
        });
        let open = folder.open();
        let mut results = Vec::new();
        let is_enough =
            |results: &[Result<(), _>]| results.contains(&Ok(())) && results.iter().any(Result::is_err);
        for round in 0..2000 {
            if round >= 60 && is_enough(&results) {
                break;
            }
            let mut receiving = open.receive([1; 16]).unwrap();
            for tag in 0..20 {
                let partial = written(&mut receiving, format!("sub/f{tag}"), b"ours");
                receiving.finish(tag, partial, &plain()).unwrap();
                receiving.symlink(100 + tag, path(format!("sub/s{tag}")), b"x", &plain()).unwrap();
                receiving.hard_link(200 + tag, path(format!("sub/l{tag}")), path("sub/f0")).unwrap();
                results.push(receiving.make_folder(&path(format!("sub/d{tag}"))).map(|_| ()));
                results.push(open.read(&path("sub/file")).map(|_| panic!("read from outside")));
            }
            receiving.finish_folder(300, path("sub"), Attributes { mode: 0o777, ..plain() });
            results.extend(receiving.complete().unwrap().iter().map(|it| it.result));
        }
        stop.store(true, Ordering::Relaxed);
        for result in &results {
            assert!(is_expected(*result), "{result:?}");
        }
        assert!(is_enough(&results), "nothing arrived, or nothing was exchanged in time");
    });
    assert!(is_untouched(&outside));
}

#[test]
fn a_device_or_fifo_is_not_read_and_does_not_block() {
    let folder = TestFolder::new("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.join("fifo"), rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(folder.open().read(&path("fifo")).err(), Some(FolderError::InTheWay));
    let there = folder.open().look(&path("fifo")).unwrap().unwrap();
    assert!(!there.is_file && !there.is_folder);
}
