//! SIGKILL at any moment: no name has a part of a file, and the transfer comes to its end.

use std::fs;
use std::path::Path;
use std::time::Duration;

use strait_transfer::folder::WORKING_FOLDER;

use super::shared::{OwnFolder, again, child, content, open, path, receive};

/// Files of a transfer: one that takes several records, and many that go in groups.
const SMALL: u64 = 300;
const LARGE: usize = (70 << 20) + 77;

fn small(number: u64) -> (String, Vec<u8>) {
    let len = usize::try_from(number * 7919 % 20_000).unwrap();
    (format!("small-{number}"), content(number, len))
}

/// The receiver: goes on with the transfer until it is complete.
fn transfer(folder: &Path) {
    let open = open(folder);
    let mut receiving = open.receive([9; 16]).unwrap();
    let is_there = |name: &str, len: usize| {
        let there = open.look(&path(name)).unwrap();
        there
            .is_some_and(|there| there.stamp.size == len as u64 && there.attributes.modified == 1_000_000_007)
    };
    for number in 0..SMALL {
        let (name, bytes) = small(number);
        if !is_there(&name, bytes.len()) {
            receive(&mut receiving, number, name, &bytes);
        }
        if number == SMALL / 2 && !is_there("large", LARGE) {
            receive(&mut receiving, SMALL, "large", &content(1 << 40, LARGE));
        }
        // In groups of another size each time.
        if number % 32 == u64::from(std::process::id()) % 32 {
            assert!(receiving.commit().unwrap().iter().all(|it| it.result == Ok(())));
        }
    }
    assert!(receiving.complete().unwrap().iter().all(|it| it.result == Ok(())));
}

/// Every name has all of its file or what was there before; how many have it.
fn check(folder: &Path, large: &[u8]) -> usize {
    let mut whole = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name == WORKING_FOLDER {
            continue;
        }
        let found = fs::read(entry.path()).unwrap();
        let is_whole = match name.strip_prefix("small-") {
            Some(number) => found == small(number.parse().unwrap()).1,
            None => found == large,
        };
        assert!(is_whole || found == b"older", "{name} has {} bytes of another content", found.len());
        whole += usize::from(is_whole);
    }
    whole
}

#[test]
fn killed_fifty_times_a_transfer_comes_whole_and_no_name_ever_has_a_part() {
    if let Some(folder) = child() {
        return transfer(&folder);
    }
    let folder = OwnFolder::in_memory("killed");
    for name in ["large", "small-0", "small-299"] {
        fs::write(folder.0.join(name), "older").unwrap();
    }
    let large = content(1 << 40, LARGE);
    let program = std::env::current_exe().unwrap();
    let test = "killed::killed_fifty_times_a_transfer_comes_whole_and_no_name_ever_has_a_part";
    let mut killed = 0;
    let mut last = 0;
    // Moments all over a run, which takes some tenths of a second; the last is left alone.
    for run in 0..400_u64 {
        let mut running = again(test, &program, &folder.0, &[]).spawn().unwrap();
        if killed < 50 {
            std::thread::sleep(Duration::from_millis(run * 37 % 101 + 2));
            running.kill().unwrap();
        }
        let ended = running.wait().unwrap();
        let whole = check(&folder.0, &large);
        assert!(whole >= last, "a file that was whole is not any more");
        last = whole;
        if ended.success() {
            assert_eq!(whole, usize::try_from(SMALL).unwrap() + 1);
            assert!(!folder.0.join(WORKING_FOLDER).exists(), "all that was aside is removed");
            if killed == 50 {
                return;
            }
            // It came to its end before it was killed often enough: once more from the beginning.
            fs::remove_dir_all(&folder.0).unwrap();
            fs::create_dir(&folder.0).unwrap();
            last = 0;
        } else {
            killed += 1;
            assert!(std::os::unix::process::ExitStatusExt::signal(&ended) == Some(9), "{ended}");
        }
    }
    panic!("not killed often enough: {killed}");
}
