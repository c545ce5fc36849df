//! Sender and receiver are never there at once, and the broker is killed between them.

use std::fs;

use super::{Scene, allowed_with_broker, files};
use crate::files::{same, tree};
use crate::pair::eventually;

#[test]
fn what_is_put_is_fetched_by_who_was_not_there_from_a_broker_that_was_killed() {
    if !allowed_with_broker() {
        return;
    }
    let mut scene = Scene::new();
    scene.start_sender();
    tree(&scene.source().join("tree"));
    fs::write(scene.source().join("noise"), crate::files::noise(7_000_000, 4)).unwrap();
    let said = scene.good(scene.put(&["tree", "noise"]));
    println!("{said}");
    scene.stop_sender();
    scene.restart_broker();
    scene.start_receiver();
    assert_eq!(scene.listed().len(), 1);
    scene.good(scene.fetch());
    same(&scene.source().join("tree"), &scene.here().join("tree"));
    assert!(fs::read(scene.source().join("noise")).unwrap() == fs::read(scene.here().join("noise")).unwrap());
    // The receiver has it: the broker needs it no more.
    assert!(scene.listed().is_empty());
    let contents = scene.objects().join("contents");
    eventually("the bytes go with the last letter", || files(&contents).is_empty());
    scene.good(scene.fetch());
}

#[test]
fn what_is_sent_by_way_of_a_broker_arrives_once_and_its_receipt_comes_back() {
    if !allowed_with_broker() {
        return;
    }
    let via = "via = \"site-b\"";
    let mut scene = Scene::new();
    scene.start_sender_with(via);
    fs::write(scene.source().join("letter"), "what a sender writes\n".repeat(50_000)).unwrap();
    let sent = scene.at_sender(&["send", "letter", "site-c"]);
    assert_eq!(sent.status.code(), Some(4), "{}", String::from_utf8_lossy(&sent.stderr));
    let config = scene.post.sender.folder().join("strait.toml");
    let config = config.to_str().unwrap();
    let states = |scene: &Scene, all: &[&str]| -> Vec<String> {
        let said = scene.good(scene.at_sender(&[&["outbox", config, "--json"], all].concat()));
        let listed: Vec<serde_json::Value> = serde_json::from_str(&said).unwrap();
        listed.iter().map(|one| one["state"].as_str().unwrap().to_owned()).collect()
    };
    let run = |scene: &Scene| {
        let mut command = scene.sender.as_ref().unwrap().command(&["outbox", config, "--run"]);
        crate::files::Ending(command.spawn().unwrap())
    };
    let delivery = run(&scene);
    eventually("it is at the broker", || states(&scene, &[]) == ["at broker"]);
    drop(delivery);
    assert_eq!(scene.letters().len(), 1);
    scene.stop_sender();
    scene.restart_broker();

    scene.start_receiver();
    scene.good(scene.fetch_into_folders());
    assert!(
        fs::read(scene.inbox().join("letter")).unwrap() == fs::read(scene.source().join("letter")).unwrap()
    );
    scene.stop_receiver();
    scene.restart_broker();

    scene.start_sender_with(via);
    let _delivery = run(&scene);
    eventually("the receipt came", || states(&scene, &[]).is_empty());
    assert_eq!(states(&scene, &["--all"]), ["delivered"]);
    let left = |part| files(&scene.objects().join(part)).len();
    eventually("nothing is left at the broker", || left("inbox") + left("contents") == 0);
}
