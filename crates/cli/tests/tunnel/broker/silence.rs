//! A broker that hangs while something is put there.

use std::fs;

use super::{Scene, allowed_with_broker};
use crate::files::noise;
use crate::pair::eventually;
use crate::silence::{RunningCommand, StoppedProcesses};

#[test]
fn a_command_at_a_broker_that_hangs_says_so_and_goes_on() {
    if !allowed_with_broker() {
        return;
    }
    let mut scene = Scene::new();
    scene.start_sender();
    for (name, seed) in [("f", 5), ("g", 6)] {
        fs::write(scene.source().join(name), noise(8_000_000, seed)).unwrap();
    }
    let before = scene.post.hosts.link.traffic().unwrap();
    let put = |name: &str, more: &[&str]| {
        let arguments = [&["put", name, "site-b", "--to", "site-c", "--max-rate", "8Mbit"], more].concat();
        let mut command = scene.sender.as_ref().unwrap().command(&arguments);
        command.current_dir(scene.source());
        RunningCommand::begin(command, scene.dir.path(), name)
    };
    let (mut plain, mut json) = (put("f", &[]), put("g", &["--json"]));
    let moved = || scene.post.hosts.link.traffic().unwrap().since(before).bytes();
    eventually("both move", || moved() > 2_000_000);
    let stopped = StoppedProcesses::service(scene.broker.as_ref().unwrap().pid(), "strait-broker");
    let mut list = scene.sender.as_ref().unwrap().command(&["ls", "site-b:", "--sent"]);
    list.current_dir(scene.source());
    let mut list = RunningCommand::begin(list, scene.dir.path(), "list");
    for command in [&plain, &list] {
        eventually("it is said", || command.errors().contains("nothing from site-b for "));
    }
    let is_silent = |event: &serde_json::Value| event["event"] == "silent" && event["peer"] == "site-b";
    eventually("there is an event", || json.events().iter().any(is_silent));
    drop(stopped);
    for command in [&mut plain, &mut json, &mut list] {
        command.end();
    }
    plain.assert_said_once("site-b", true);
    list.assert_said_once("site-b", false);
    assert!(json.events().iter().any(|event| event["event"] == "heard"));
    assert_eq!(scene.letters().len(), 2);
    scene.start_receiver();
    scene.good(scene.fetch());
    for name in ["f", "g"] {
        assert!(fs::read(scene.source().join(name)).unwrap() == fs::read(scene.here().join(name)).unwrap());
    }
}

#[test]
fn a_put_and_a_fetch_that_a_signal_stops_say_how_to_go_on() {
    if !allowed_with_broker() {
        return;
    }
    let mut scene = Scene::new();
    scene.start_sender();
    scene.start_receiver();
    let content = noise(8_000_000, 7);
    fs::write(scene.source().join("f"), &content).unwrap();
    let (sender, receiver) = (scene.sender.as_ref().unwrap(), scene.receiver.as_ref().unwrap());
    let put = ["put", "f", "site-b", "--to", "site-c", "--max-rate", "8Mbit"];
    let fetch = ["fetch", "site-b", "--into", ".", "--max-rate", "8Mbit"];
    let links = [&scene.post.hosts.link, &scene.post.link];
    for (link, (daemon, arguments, folder)) in
        links.into_iter().zip([(sender, &put[..], scene.source()), (receiver, &fetch[..], scene.here())])
    {
        let before = link.traffic().unwrap();
        let mut slow = daemon.command(arguments);
        slow.current_dir(&folder);
        let mut slow = RunningCommand::begin(slow, scene.dir.path(), arguments[0]);
        let moved = || link.traffic().unwrap().since(before).bytes();
        eventually("it moves", || moved() > 2_000_000);
        assert_eq!(slow.interrupt(), Some(3), "{}", slow.errors());
        for words in ["stopped", "run the same command again: it goes on where it stopped"] {
            assert!(slow.errors().contains(words), "{}", slow.errors());
        }
        let again = daemon.command(&arguments[..arguments.len() - 2]).current_dir(&folder).output();
        scene.good(again.unwrap());
    }
    assert!(fs::read(scene.here().join("f")).unwrap() == content);
}
