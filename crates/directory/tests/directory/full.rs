use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;

use strait_keying::directory::Answer;
use strait_testdata::skip::{Need, skip};

use crate::place::{Directory, answer, certificate, find, folder, until};

/// In the process that this test starts: the folder of a directory, whose store has a disk of its own.
const MOUNTED: &str = "STRAIT_TEST_MOUNTED";

#[test]
fn a_full_disk_is_named_to_who_puts_something_and_is_over_when_there_is_room() {
    if let Some(dir) = std::env::var_os(MOUNTED).map(PathBuf::from) {
        return with_disk(&dir);
    }
    if !strait_node::privileges::is_root() && !skip(Need::Root, "may not mount") {
        return;
    }
    let dir = folder();
    // The configuration names the store with the name of the directory, below its own folder.
    let disk = dir.path().join("disk/disk");
    fs::create_dir_all(&disk).unwrap();
    let mount = format!("mount -t tmpfs -o size=8m none {} && exec \"$@\"", disk.display());
    let test = "full::a_full_disk_is_named_to_who_puts_something_and_is_over_when_there_is_room";
    let mut again = Command::new("unshare");
    again.args(["--mount", "sh", "-c", &mount, "sh"]).arg(std::env::current_exe().unwrap());
    assert!(again.args([test, "--exact"]).env(MOUNTED, dir.path()).status().unwrap().success());
}

fn with_disk(dir: &std::path::Path) {
    let mut directory = Directory::start(dir, "disk/d", "");
    let kept = certificate(1, 1);
    assert_eq!(directory.put(&kept), Ok(Answer::Stored));
    let filler = dir.join("disk/disk/filler");
    assert_eq!(fs::write(&filler, vec![0; 9 << 20]).unwrap_err().kind(), ErrorKind::StorageFull);
    // As many as fit into what the store has already.
    let refused =
        (2..5000).find_map(|number| directory.put(&certificate(number.into(), number)).err()).unwrap();
    assert!(refused.contains("No space left on device"), "{refused}");
    assert!(!refused.contains(dir.to_str().unwrap()), "{refused}");
    // Its supervisor starts it again.
    until("it ends", || directory.said().contains("has to be opened anew").then_some(()));
    directory.kill();
    fs::remove_file(&filler).unwrap();
    directory.run();
    assert_eq!(directory.ask(&find(1)), answer(&kept));
    assert_eq!(directory.put(&certificate(9000, 9000)), Ok(Answer::Stored));
}
