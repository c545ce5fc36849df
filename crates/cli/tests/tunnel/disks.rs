//! Disks that are full: the tunnel goes on, says what it could not write, and writes again when there is room.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use serde_json::Value;
use strait_testbed::{Extra, SmallDisk, TwoHosts};

use crate::manual::case::PLAIN;
use crate::pair::{Family, Pair, allowed, eventually, fast, has};

/// Room for the files of a daemon, and for little more.
const ROOM: u32 = 128 << 10;
/// More lines than the rest of a page holds, which a full disk still takes.
const LINES: usize = 80;

/// A site whose log is on a small disk.
fn with_log_on(disk: &SmallDisk) -> Pair {
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let run = pair.sites[0].folder().join("run");
    fs::create_dir(&run).unwrap();
    symlink(disk.path().join("daemon.log"), run.join("daemon.log")).unwrap();
    pair
}

/// Has the daemon of the first site write a line to its log.
fn say_something(pair: &Pair) {
    assert!(pair.daemon(0).reload().unwrap().contains("reloaded"));
}

#[test]
fn a_full_disk_under_the_log_costs_lines_and_not_the_daemon() {
    if !allowed() {
        return;
    }
    let disk = SmallDisk::create(ROOM).unwrap();
    let pair = with_log_on(&disk).and_up(Extra::default());
    disk.fill().unwrap();
    (0..LINES).for_each(|_| say_something(&pair));
    pair.tcp(1, Family::V4, 50_000);
    let lost = || pair.daemon(0).show().unwrap()["node"]["lost_log_lines"].as_u64().unwrap();
    let missing = lost();
    assert!((1..=LINES as u64).contains(&missing), "{missing}");
    disk.empty().unwrap();
    say_something(&pair);
    assert_eq!(lost(), missing);
    let log = fs::read_to_string(pair.daemon(0).log()).unwrap();
    let note = format!("WARN {missing} lines of this log are lost, since it could not be written");
    assert!(log.lines().any(|line| line == note), "{log}");
    assert!(log.ends_with("configuration reloaded: no changes\n"), "{log}");
    let whole = log.lines().filter(|line| line.contains("configuration reloaded: no changes")).count();
    assert_eq!(whole as u64, LINES as u64 + 1 - missing, "{log}");
}

#[test]
fn a_full_disk_under_the_exported_keys_costs_keys_and_not_the_tunnel() {
    if !allowed() {
        return;
    }
    let disk = SmallDisk::create(ROOM).unwrap();
    let keys = disk.path().join("keys");
    // So much that the first key does not fit into the page that it begins in.
    let before = "{}\n".repeat(4_090 / 3);
    fs::write(&keys, &before).unwrap();
    fs::set_permissions(&keys, Permissions::from_mode(0o600)).unwrap();
    disk.fill().unwrap();
    let node = format!("danger_export_keys = \"{}\"", keys.display());
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    pair.start(0, Extra { node: &node, ..Extra::default() });
    pair.start(1, Extra::default());
    pair.wait_for_session();
    pair.tcp(1, Family::V4, 50_000);
    let warnings = |pair: &Pair| pair.daemon(0).show().unwrap()["node"]["warnings"].to_string();
    let said = warnings(&pair);
    assert!(said.contains("the keys of all traffic") && said.contains("could not be written"), "{said}");
    assert_eq!(fs::read_to_string(&keys).unwrap(), before, "a part of a key");
    disk.empty().unwrap();
    assert!(pair.daemons[1].take().unwrap().stop().unwrap().success());
    pair.start(1, Extra::default());
    pair.wait_for_session();
    eventually("new keys are written", || fs::read_to_string(&keys).unwrap().len() > before.len());
    let said = warnings(&pair);
    assert!(!said.contains("could not be written"), "{said}");
    let text = fs::read_to_string(&keys).unwrap();
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
    let log = fs::read_to_string(pair.daemon(0).log()).unwrap();
    assert_eq!(log.matches("cannot write keys to").count(), 1, "{log}");
}

/// Leaves the newer record of a counter file, and a hole where the next goes: disks that copy on write, and files
/// from a backup, need room there.
fn make_a_hole(counter: &Path) {
    let bytes = fs::read(counter).unwrap();
    let age = |at: usize| u64::from_be_bytes(bytes[at + 40..at + 48].try_into().unwrap());
    let newer = if age(0) > age(4096) { 0 } else { 4096 };
    fs::remove_file(counter).unwrap();
    let file = File::options().write(true).create_new(true).mode(0o600).open(counter).unwrap();
    file.set_len(8192).unwrap();
    file.write_all_at(&bytes[newer..newer + 64], newer as u64).unwrap();
}

#[test]
fn a_full_disk_under_the_counter_starts_nothing_that_could_repeat_a_number() {
    if !allowed() || !has("ping") {
        return;
    }
    let disk = SmallDisk::create(ROOM).unwrap();
    let counter = disk.path().join("manual.counter");
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let file = PLAIN.write(&pair, 0);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("manual.counter", counter.to_str().unwrap())).unwrap();
    PLAIN.start(&mut pair, 1);
    let start =
        |pair: &mut Pair| pair.sites[0].start(&file, "run").map(|daemon| pair.daemons[0] = Some(daemon));
    let stop = |pair: &mut Pair| assert!(pair.daemons[0].take().unwrap().stop().unwrap().success());
    let last = |pair: &Pair| pair.peer(0)["manual"]["last_sequence_number"].as_u64().unwrap();

    disk.fill().unwrap();
    let said = start(&mut pair).unwrap_err().to_string();
    assert!(said.contains("cannot make the counter file") && said.contains("No space left"), "{said}");
    assert!(!counter.exists());
    disk.empty().unwrap();
    start(&mut pair).unwrap();
    PLAIN.exchange(&pair, 50_000);
    let first = last(&pair);
    stop(&mut pair);
    // A file that is there needs no more room.
    disk.fill().unwrap();
    start(&mut pair).unwrap();
    // Packets of TCP may have followed the last look.
    assert!((first..first + 1_000_000).contains(&last(&pair)), "an orderly end costs no number");
    PLAIN.exchange(&pair, 50_000);
    pair.kill(0);
    disk.empty().unwrap();
    make_a_hole(&counter);
    disk.fill().unwrap();
    let said = start(&mut pair).unwrap_err().to_string();
    assert!(said.contains("cannot write the counter file") && said.contains("No space left"), "{said}");
    disk.empty().unwrap();
    start(&mut pair).unwrap();
    assert!(last(&pair) >= first + 1_000_000, "all that was reserved counts as used");
    PLAIN.exchange(&pair, 50_000);
    assert_eq!(pair.drops(1, "replayed") + pair.drops(1, "too-old"), 0, "{}", PLAIN.evidence(&pair));
}
