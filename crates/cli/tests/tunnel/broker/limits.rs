//! Quotas, rights that are taken away, and a disk that is full.

use std::fs;

use strait_testbed::SmallDisk;

use super::{Scene, allowed_with_broker, files};
use crate::files::noise;

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
    assert!(files(&scene.objects().join("inbox")).is_empty());
    scene.good(scene.put(&["small"]));
    scene.start_receiver();
    assert_eq!(scene.listed().len(), 1);
    scene.good(scene.fetch());
    assert_eq!(files(&scene.here()).len(), 1);
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

#[test]
fn a_full_disk_acknowledges_nothing_and_goes_on_when_there_is_room() {
    if !allowed_with_broker() {
        return;
    }
    let disk = SmallDisk::create(24 << 20).unwrap();
    let mut scene = Scene::idle();
    let store = scene.post.broker.folder().join("store");
    std::os::unix::fs::symlink(disk.path(), &store).unwrap();
    scene.start_broker("", "");
    scene.start_sender();
    fs::write(scene.source().join("file"), noise(9_000_000, 1)).unwrap();
    disk.fill().unwrap();
    let said = scene.bad(scene.put(&["file"]));
    assert!(said.contains("room") || said.contains("full") || said.contains("space"), "{said}");
    assert!(files(&store.join("inbox")).is_empty());
    disk.empty().unwrap();
    scene.good(scene.put(&["file"]));
    scene.start_receiver();
    scene.good(scene.fetch());
    assert!(fs::read(scene.source().join("file")).unwrap() == fs::read(scene.here().join("file")).unwrap());
}
