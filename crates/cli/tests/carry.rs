//! `strait carry`, `outbox` and `keys ssh` as a user runs them: two nodes, a stick between them, no daemon, no root.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use strait_keying::PrivateKey;
use strait_testbed::Workdir;
use strait_transfer::TransferId;
use strait_transfer::outbox::{FolderDisk, Outbox, PathBytes, TransferLimits, TransferOrder};

fn strait(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
    command.current_dir(folder).args(arguments).env("STRAIT_STATE_DIR", folder.join("state"));
    command.output().unwrap()
}

/// Standard output of a command that has to end well.
fn said(folder: &Path, arguments: &[&str]) -> String {
    let output = strait(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A node's folder with its key and a configuration that names the other.
struct Site(PathBuf);

impl Site {
    fn new(root: &Path, name: &str) -> Site {
        let folder = root.join(name);
        std::fs::create_dir(&folder).unwrap();
        said(&folder, &["keygen", "--out", "node.key"]);
        Site(folder)
    }

    fn public(&self) -> String {
        said(&self.0, &["pubkey", "node.key"]).trim().to_owned()
    }

    fn names(&self, other: &Site, name: &str) {
        let text = format!(
            "[node]\nprivate_key_file = \"node.key\"\naddress = [\"10.77.0.1/24\"]\n\n[link]\nup = \"2Mbit\"\n\n\
             [[peer]]\nname = \"{name}\"\npublic_key = \"{}\"\nallowed_ips = [\"10.77.0.2/32\"]\n",
            other.public()
        );
        std::fs::write(self.0.join("node.toml"), text).unwrap();
    }

    /// Leaves a file in the outbox, as a `send` to a peer that is away does.
    fn send(&self, to: &Site, file: &Path) -> TransferId {
        let key: PrivateKey = std::fs::read_to_string(self.0.join("node.key")).unwrap().parse().unwrap();
        let disk = FolderDisk::open(&self.0.join("outbox")).unwrap();
        let mut seed = u8::try_from(file.as_os_str().len() % 200).unwrap();
        let random = move || {
            seed += 1;
            [seed; 32]
        };
        let mut outbox = Outbox::open(disk, &key, Box::new(random)).unwrap();
        let order = TransferOrder {
            peer: to.public().parse().unwrap(),
            name: "b".to_owned(),
            folder: "inbox".to_owned(),
            below: PathBytes::default(),
            paths: vec![PathBytes::of(file)],
            patterns: Vec::new(),
            xattrs: false,
            spooled: false,
        };
        let id = outbox.new_id();
        outbox.accept(id, order, TransferLimits::default(), 1_700_000_000).unwrap();
        id
    }
}

/// Two sites that know each other, and an empty stick.
fn two_sites() -> (Workdir, [Site; 2], PathBuf) {
    let dir = Workdir::create().unwrap();
    let [a, b] = ["a", "b"].map(|name| Site::new(dir.path(), name));
    a.names(&b, "site-b");
    b.names(&a, "site-a");
    let stick = dir.path().join("stick");
    std::fs::create_dir(&stick).unwrap();
    (dir, [a, b], stick)
}

#[test]
fn a_stick_carries_a_file_there_and_its_receipt_back() {
    let (dir, [a, b], stick) = two_sites();
    std::fs::create_dir(b.0.join("in")).unwrap();
    let file = dir.path().join("report.txt");
    std::fs::write(&file, "figures\n".repeat(1_000)).unwrap();
    let id = a.send(&b, &file);
    let there = stick.to_str().unwrap();

    let list = said(&a.0, &["outbox", "node.toml", "--outbox", "outbox"]);
    assert!(list.contains("waiting") && list.contains("report.txt") && list.contains("inbox"), "{list}");
    let text = said(&a.0, &["carry", there, "node.toml", "--outbox", "outbox"]);
    assert!(text.contains(&format!("{id}  written")), "{text}");

    // Without a folder for it nothing is taken, and the exit code says so.
    let left = strait(&b.0, &["carry", there, "node.toml"]);
    assert_eq!(left.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&left.stdout).contains("--into"), "{left:?}");
    let text = said(&b.0, &["carry", there, "node.toml", "--into", "in"]);
    assert!(text.contains("received from site-a: 1 entry, 8.00 kB"), "{text}");
    assert_eq!(std::fs::read(b.0.join("in/report.txt")).unwrap(), std::fs::read(&file).unwrap());

    let json = said(&a.0, &["carry", there, "node.toml", "--outbox", "outbox", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["delivered"][0]["transfer"], id.to_string());
    assert_eq!(json["delivered"][0]["outcome"], "whole");
    assert_eq!(said(&a.0, &["outbox", "node.toml", "--outbox", "outbox"]), "nothing waits\n");
    let all = said(&a.0, &["outbox", "node.toml", "--outbox", "outbox", "--all", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    assert_eq!(all[0]["state"], "delivered");
    assert_eq!(std::fs::read_dir(stick.join("strait")).unwrap().count(), 0);
}

#[test]
fn what_did_not_arrive_whole_is_named_at_both_ends_of_a_stick_and_in_their_exit_codes() {
    let (dir, [a, b], stick) = two_sites();
    let inbox = b.0.join("in");
    std::fs::create_dir(&inbox).unwrap();
    let tree = dir.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join("file"), "x").unwrap();
    // The receiver's rule is to make no symlink that leads out.
    std::os::unix::fs::symlink("/etc", tree.join("link")).unwrap();
    a.send(&b, &tree);
    let there = stick.to_str().unwrap();
    let at_a = ["carry", there, "node.toml", "--outbox", "outbox"];
    let at_b = ["carry", there, "node.toml", "--into", "in"];
    said(&a.0, &at_a);
    // What may pass: nothing is consumed.
    std::os::unix::fs::symlink(dir.path(), inbox.join("tree")).unwrap();
    let left = strait(&b.0, &at_b);
    assert_eq!(left.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&left.stdout).contains("tree/file ("), "{left:?}");
    said(&a.0, &at_a);
    std::fs::remove_file(inbox.join("tree")).unwrap();
    for (site, arguments) in [(&b, &at_b), (&a, &at_a)] {
        let partly = strait(&site.0, arguments);
        assert_eq!(partly.status.code(), Some(1), "{partly:?}");
        let text = String::from_utf8_lossy(&partly.stdout);
        assert!(text.contains("1 entry failed: tree/link (the symlink leads out"), "{text}");
    }
    assert!(inbox.join("tree/file").exists());
}

#[test]
fn what_waits_is_put_elsewhere_and_cancelled_by_its_number() {
    let dir = Workdir::create().unwrap();
    let (a, b) = (Site::new(dir.path(), "a"), Site::new(dir.path(), "b"));
    a.names(&b, "site-b");
    let files = ["x", "yy"].map(|name| dir.path().join(name));
    let [first, second] = files.map(|file| {
        std::fs::write(&file, "x").unwrap();
        a.send(&b, &file).to_string()
    });
    let order = || {
        let json = said(&a.0, &["outbox", "node.toml", "--outbox", "outbox", "--json"]);
        let json: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
        json.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(order(), [first.clone(), second.clone()]);
    said(&a.0, &["outbox", "node.toml", "--outbox", "outbox", "--first", &second]);
    assert_eq!(order(), [second.clone(), first.clone()]);
    said(&a.0, &["outbox", "node.toml", "--outbox", "outbox", "--cancel", &second]);
    assert_eq!(order(), [first]);
    let again = strait(&a.0, &["outbox", "node.toml", "--outbox", "outbox", "--cancel", &second]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("is cancelled"), "{again:?}");
}

#[test]
fn a_nodes_key_goes_to_openssh_and_its_public_half_into_a_configuration() {
    let dir = Workdir::create().unwrap();
    let a = Site::new(dir.path(), "a");
    said(&a.0, &["keys", "ssh", "export", "node.key", "--out", "id_ed25519"]);
    assert_eq!(said(&a.0, &["keys", "ssh", "import", "id_ed25519.pub"]).trim(), a.public());
    let line = said(&a.0, &["keys", "ssh", "public", &a.public()]);
    assert!(std::fs::read_to_string(a.0.join("id_ed25519.pub")).unwrap().starts_with(line.trim()));
}
