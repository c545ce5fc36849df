//! Two brokers that serve one bucket.

use std::fs;
use std::net::SocketAddr;
use std::thread;

use strait_testbed::{DaemonProcess, Extra, KnownPeer, PORT, Site};

use super::{Scene, allowed_with_broker, bucket_lines, files};
use crate::files::noise;
use crate::pair::{PATIENCE, program};

/// A second broker on the host of the first, with a key, a port and a spool of its own.
struct Second {
    daemon: DaemonProcess,
    site: Site,
}

impl Second {
    fn start(scene: &Scene) -> Second {
        let host = scene.post.hosts.b.renamed("site-d");
        let outside = SocketAddr::new(scene.post.broker.outside.ip(), PORT + 1);
        let site = Site::create(program(), &host, 4, outside, scene.dir.path()).unwrap();
        let sections = format!(
            "[broker]\n{}[[broker.access]]\npeer = \"*\"\nput = true\nfetch = true\n",
            bucket_lines(scene.bucket.as_ref().unwrap(), site.folder())
        );
        let known = |site| KnownPeer { site, at: None, more: "" };
        let peers = [known(&scene.post.sender), known(&scene.post.receiver)];
        let text =
            site.configuration_without_tunnel(&peers, Extra { sections: &sections, ..Extra::default() });
        let config = site.folder().join("strait.toml");
        fs::write(&config, text).unwrap();
        Second { daemon: site.start_broker(&config, "run").unwrap(), site }
    }
}

/// The section of a peer that is the second broker, at an address of its host.
fn second_peer(second: &Second, at: SocketAddr) -> String {
    format!(
        "[[peer]]\nname = \"site-d\"\npublic_key = \"{}\"\nendpoint = \"{}\"\nbroker = true\n",
        second.site.public_key(),
        SocketAddr::new(at.ip(), PORT + 1)
    )
}

/// Adds a peer to the configuration of a daemon that runs.
fn introduce(daemon: &DaemonProcess, site: &Site, peer: &str) {
    let config = site.folder().join("strait.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text + "\n" + peer).unwrap();
    daemon.reload().unwrap();
    daemon.wait_for_session("site-d", PATIENCE).unwrap();
}

#[test]
fn what_one_broker_stored_another_gives_and_a_killed_one_loses_nothing() {
    if !allowed_with_broker() {
        return;
    }
    let mut scene = Scene::with_bucket();
    let second = Second::start(&scene);
    scene.start_sender();
    scene.start_receiver();
    let (sender, receiver) = (scene.sender.as_ref().unwrap(), scene.receiver.as_ref().unwrap());
    introduce(sender, &scene.post.sender, &second_peer(&second, scene.post.broker.outside));
    introduce(receiver, &scene.post.receiver, &second_peer(&second, scene.post.broker_for_receiver()));
    fs::write(scene.source().join("one"), noise(7_000_000, 1)).unwrap();
    fs::write(scene.source().join("two"), noise(7_000_000, 2)).unwrap();
    // Both at once, each by way of another broker.
    thread::scope(|scope| {
        let by = |name: &'static str, broker: &'static str| {
            let scene = &scene;
            scope.spawn(move || scene.at_sender(&["put", name, broker, "--to", "site-c"]))
        };
        for put in [by("one", "site-b"), by("two", "site-d")] {
            scene.good(put.join().unwrap());
        }
    });
    scene.kill_broker();
    assert_eq!(scene.letters().len(), 2);
    // The one that is left knows of both.
    scene.good(scene.at_receiver(&["fetch", "site-d", "--into", "."]));
    for name in ["one", "two"] {
        let [there, here] = [scene.source().join(name), scene.here().join(name)];
        assert!(fs::read(there).unwrap() == fs::read(here).unwrap(), "{name}");
    }
    assert!(scene.letters().is_empty());
    drop(second.daemon);
}

#[test]
fn two_that_fetch_one_object_from_two_brokers_have_it_once() {
    if !allowed_with_broker() {
        return;
    }
    let mut scene = Scene::with_bucket();
    let second = Second::start(&scene);
    scene.start_sender();
    fs::write(scene.source().join("file"), noise(7_000_000, 1)).unwrap();
    scene.good(scene.put(&["file"]));
    scene.start_receiver();
    let receiver = scene.receiver.as_ref().unwrap();
    introduce(receiver, &scene.post.receiver, &second_peer(&second, scene.post.broker_for_receiver()));
    thread::scope(|scope| {
        let from = |broker: &'static str| {
            let scene = &scene;
            scope.spawn(move || scene.at_receiver(&["fetch", broker, "--into", "."]))
        };
        let ended = [from("site-b"), from("site-d")].map(|one| one.join().unwrap());
        let good = ended.iter().filter(|output| output.status.success()).count();
        assert!(good >= 1, "{ended:?}\n{}", scene.logs());
    });
    assert_eq!(files(&scene.here()), [scene.here().join("file")]);
    assert!(fs::read(scene.source().join("file")).unwrap() == fs::read(scene.here().join("file")).unwrap());
    scene.good(scene.at_receiver(&["fetch", "site-d", "--into", "."]));
    assert!(scene.listed().is_empty());
}
