//! Quotas, rights that are taken away, and disks that are full or read-only.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use strait_testbed::{DaemonProcess, program_with_mounts};

use super::{Scene, allowed_with_broker, files};
use crate::files::noise;
use crate::pair::{eventually, program};

#[test]
fn a_quota_that_is_reached_in_the_middle_of_a_put_refuses_it_whole() {
    if !allowed_with_broker() {
        return;
    }
    let mut scene = Scene::idle();
    scene.start_broker("quota_sender = \"8MiB\"", "");
    scene.start_sender();
    fs::write(scene.source().join("large"), noise(12_000_000, 1)).unwrap();
    fs::write(scene.source().join("small"), noise(1_000_000, 2)).unwrap();
    let said = scene.bad(scene.put(&["large"]));
    assert!(said.contains("quota") || said.contains("room"), "{said}");
    assert!(scene.letters().is_empty());
    scene.good(scene.put(&["small"]));
    scene.start_receiver();
    assert_eq!(scene.listed().len(), 1);
    scene.good(scene.fetch());
    assert_eq!(files(&scene.here()).len(), 1);
}

#[test]
fn a_sender_hears_which_limit_it_met_and_what_to_do() {
    if !allowed_with_broker() {
        return;
    }
    let mut scene = Scene::idle();
    scene.start_broker("letters_sender = 1", "");
    scene.start_sender();
    for name in ["one", "two"] {
        fs::write(scene.source().join(name), name).unwrap();
    }
    scene.good(scene.put(&["one"]));
    let said = scene.bad(scene.put(&["two"]));
    assert!(said.contains("letters") && said.contains("the limit is 1"), "{said}");
    assert!(said.contains("strait rm --sent"), "{said}");
    scene.start_receiver();
    scene.good(scene.fetch());
    scene.good(scene.put(&["two"]));
}

#[test]
fn a_receiver_that_was_removed_gets_nothing_and_nothing_more_is_taken_for_it() {
    if !allowed_with_broker() {
        return;
    }
    let mut scene = Scene::new();
    scene.start_sender();
    fs::write(scene.source().join("file"), "for who is then removed").unwrap();
    scene.good(scene.put(&["file"]));
    let access = "[[broker.access]]\npeer = \"site-a\"\nput = true\nfetch = true\n";
    scene.post.configure_broker(&scene.store(), access).unwrap();
    scene.broker.as_ref().unwrap().reload().unwrap();
    scene.start_receiver();
    let said = scene.bad(scene.fetch());
    assert!(said.contains("allow") || said.contains("right") || said.contains("may"), "{said}");
    assert!(files(&scene.here()).is_empty());
    let refused = scene.bad(scene.put(&["file"]));
    assert!(refused.contains("site-c") || refused.contains("receiver"), "{refused}");
}

/// Starts the broker of a scene with a disk of its own mounted at `place`, and more lines in its configuration.
fn start_on_a_disk(scene: &mut Scene, place: &Path, options: &str, lines: &str) {
    fs::create_dir(place).unwrap();
    let wrapper = scene.dir.path().join("strait-with-a-disk");
    let mount = format!("mount -t tmpfs -o {options} none '{}'", place.display());
    program_with_mounts(program(), &wrapper, &mount).unwrap();
    let config = scene.post.configure_broker(lines, "").unwrap();
    let (host, folder) = (&scene.post.hosts.b, scene.post.broker.folder().join("run"));
    scene.broker = Some(DaemonProcess::start_broker(host, &wrapper, &config, &folder).unwrap());
}

#[test]
fn a_full_disk_acknowledges_nothing_and_goes_on_when_there_is_room() {
    if !allowed_with_broker() {
        return;
    }
    let mut scene = Scene::idle();
    let store = scene.post.broker.folder().join("store");
    // A disk of 24 MiB, which is there for the broker alone. (A [`strait_testbed::SmallDisk`] has no path of its own.)
    let lines = scene.store();
    start_on_a_disk(&mut scene, &store, "size=24m,mode=700", &lines);
    let pid = scene.broker.as_ref().unwrap().pid();
    let disk = PathBuf::from(format!("/proc/{pid}/root{}", store.display()));
    scene.start_sender();
    fs::write(scene.source().join("file"), noise(9_000_000, 1)).unwrap();
    let filler = disk.join("filler");
    let full = fs::write(&filler, vec![0; 25 << 20]).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    let said = scene.bad(scene.put(&["file"]));
    assert!(said.contains("room") || said.contains("full") || said.contains("space"), "{said}");
    assert!(files(&disk.join("inbox")).is_empty());
    fs::remove_file(&filler).unwrap();
    scene.good(scene.put(&["file"]));
    scene.start_receiver();
    scene.good(scene.fetch());
    assert!(fs::read(scene.source().join("file")).unwrap() == fs::read(scene.here().join("file")).unwrap());
}

#[test]
fn a_store_that_cannot_be_written_is_named_to_the_sender_without_its_place() {
    if !allowed_with_broker() {
        return;
    }
    let mut scene = Scene::idle();
    // A disk with the store and the spool, so that pieces become objects by their name. The audit log, which stays open, is elsewhere.
    let disk = scene.post.broker.folder().join("disk");
    let place = disk.to_str().unwrap();
    let lines = format!("store = \"{place}/store\"\nspool = \"{place}/spool\"\naudit = \"{place}.audit\"\n");
    start_on_a_disk(&mut scene, &disk, "mode=700", &lines);
    let broker = scene.broker.as_ref().unwrap();
    let (pid, log) = (broker.pid().to_string(), broker.log());
    scene.start_sender();
    let files = [("small", 1000), ("large", 9_000_000)];
    files.iter().for_each(|(name, length)| fs::write(scene.source().join(name), noise(*length, 1)).unwrap());
    let remount = |options: &str| {
        // A file that is just being written delays it.
        eventually("the disk is mounted otherwise", || {
            let arguments = ["--target", &pid, "--mount", "mount", "-o", options, place];
            Command::new("nsenter").args(arguments).output().unwrap().status.success()
        });
    };
    remount("remount,ro");
    for (name, _) in files {
        let before = fs::read_to_string(&log).unwrap().len();
        let said = scene.bad(scene.put(&[name]));
        assert!(said.contains("the broker's store fails: Read-only file system"), "{name}: {said}");
        assert!(!said.contains(place), "{said}");
        let logged = fs::read_to_string(&log).unwrap().split_off(before);
        let is_whole = |line: &str| line.contains(place) && line.contains("Read-only file system");
        assert!(logged.lines().any(is_whole), "{name}: {logged}");
    }
    remount("remount,rw");
    files.iter().for_each(|(name, _)| drop(scene.good(scene.put(&[name]))));
    scene.start_receiver();
    scene.good(scene.fetch());
    for (name, _) in files {
        assert!(fs::read(scene.source().join(name)).unwrap() == fs::read(scene.here().join(name)).unwrap());
    }
}
