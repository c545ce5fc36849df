//! A process that accepts transfers and carries them is killed at random moments: nothing that it acknowledged is lost, and no
//! file is ever half under its name.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use strait_clock::Random;
use strait_keying::{PrivateKey, PublicKey};
use strait_transfer::TransferId;
use strait_transfer::arrival::{ArrivalPermission, ArrivalPlace};
use strait_transfer::carry::StickVisit;
use strait_transfer::outbox::{
    FolderDisk, Outbox, PathBytes, QueuedState, RandomBytes, TransferLimits, TransferOrder,
};

/// Names the folder to the process that will be killed.
const FOLDER: &str = "STRAIT_KILLED_FOLDER";
/// Times that it is killed.
const KILLS: u64 = 12;
const NOW: i64 = 1_700_000_000;

fn node(seed: u8) -> PrivateKey {
    PrivateKey::generate(&[seed; 32])
}

/// The system's own randomness: a process that comes again must not draw the same keys.
fn random() -> RandomBytes {
    Box::new(|| {
        let mut bytes = [0; 32];
        let mut file = fs::File::open("/dev/urandom").unwrap();
        std::io::Read::read_exact(&mut file, &mut bytes).unwrap();
        bytes
    })
}

fn outbox(folder: &Path, seed: u8) -> Outbox<FolderDisk> {
    let disk = FolderDisk::open(&folder.join(format!("outbox-{seed}"))).unwrap();
    Outbox::open(disk, &node(seed), random()).unwrap()
}

/// What a file of this name holds: 60 kB that do not compress.
fn content(name: &str) -> Vec<u8> {
    let mut bytes = vec![0; 60_000];
    blake3::Hasher::new().update(name.as_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Node `seed` visits the stick; what comes goes into the inbox.
fn visit(folder: &Path, seed: u8) {
    let peers: BTreeMap<PublicKey, String> = [(node(3 - seed).public(), "peer".to_owned())].into();
    let inbox = folder.join("inbox");
    let permit = |_: &_| ArrivalPermission::Take(ArrivalPlace::open_to_all(inbox.clone()));
    let key = node(seed);
    let mut carrier = StickVisit { node: &key, peers: &peers, permit: &permit, random: random(), now: NOW };
    carrier.run(&folder.join("stick"), &mut outbox(folder, seed)).unwrap();
}

fn accept(folder: &Path, name: &str) -> TransferId {
    let source = folder.join("source").join(name);
    fs::write(&source, content(name)).unwrap();
    let order = TransferOrder {
        peer: node(2).public(),
        name: "b".to_owned(),
        folder: "inbox".to_owned(),
        below: PathBytes::default(),
        paths: vec![PathBytes::of(&source)],
        patterns: Vec::new(),
        xattrs: false,
        spooled: false,
    };
    let mut outbox = outbox(folder, 1);
    let id = outbox.new_id();
    outbox.accept(id, order, TransferLimits::default(), NOW).unwrap();
    id
}

#[test]
#[ignore = "runs without end; the test below starts it and kills it"]
fn accepts_and_carries_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let first = fs::read_dir(folder.join("source")).unwrap().count();
    for number in first.. {
        let name = format!("file-{number}");
        let id = accept(&folder, &name);
        // Acknowledged: from here on it must not be lost.
        let mut out = std::io::stdout().lock();
        writeln!(out, "accepted {id} {name}").unwrap();
        out.flush().unwrap();
        drop(out);
        if number % 3 == 0 {
            visit(&folder, 1);
            visit(&folder, 2);
        }
    }
}

/// Runs it for a while and kills it; returns what it acknowledged.
fn run_and_kill(folder: &Path, millis: u64) -> Vec<(TransferId, String)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "accepts_and_carries_until_it_is_killed"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut seen = Vec::new();
    let mut note = |line: String| {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["accepted", id, name] = words[..] {
            seen.push((id.parse().unwrap(), name.to_owned()));
        }
    };
    // Once it works, at a random moment.
    if let Some(line) = lines.by_ref().find(|line| line.starts_with("accepted")) {
        note(line);
    }
    std::thread::sleep(Duration::from_millis(millis));
    child.kill().unwrap();
    child.wait().unwrap();
    lines.for_each(note);
    seen
}

/// Every file under its final name is whole.
fn check_inbox(folder: &Path) -> BTreeSet<String> {
    let names =
        fs::read_dir(folder.join("inbox")).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let named: BTreeSet<String> = names.filter(|name| !name.starts_with(".strait-")).collect();
    for name in &named {
        assert!(fs::read(folder.join("inbox").join(name)).unwrap() == content(name), "{name} is not whole");
    }
    named
}

#[test]
fn a_process_that_is_killed_loses_nothing_that_it_acknowledged_and_delivers_it_whole() {
    let folder = std::env::temp_dir().join(format!("strait-killed-{}", std::process::id()));
    for name in ["source", "inbox", "stick"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    let mut chance = Random::new(u64::from(std::process::id()));
    let mut accepted = BTreeMap::new();
    for _ in 0..KILLS {
        accepted.extend(run_and_kill(&folder, chance.below(250)));
        check_inbox(&folder);
        let outbox = outbox(&folder, 1);
        assert!(outbox.damaged().is_empty(), "{:?}", outbox.damaged());
        for id in accepted.keys() {
            outbox.get(*id).unwrap();
        }
    }
    assert!(accepted.len() as u64 >= KILLS, "it worked each time");
    // Undisturbed: the stick goes to the receiver and comes back.
    for seed in [1, 2, 1] {
        visit(&folder, seed);
    }
    let arrived = check_inbox(&folder);
    let outbox = outbox(&folder, 1);
    for (id, name) in &accepted {
        assert!(arrived.contains(name), "{name}");
        let state = &outbox.get(*id).unwrap().state;
        assert!(matches!(state, QueuedState::Delivered { failed: 0, .. }), "{name}: {state:?}");
    }
    assert_eq!(fs::read_dir(folder.join("stick/strait")).unwrap().count(), 0, "nothing is left on the stick");
    fs::remove_dir_all(&folder).unwrap();
}
