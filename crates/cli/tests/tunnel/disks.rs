//! Disks that are full: the tunnel goes on, says what it could not write, and writes again when there is room.

use std::fs;
use std::os::unix::fs::symlink;

use strait_testbed::{Extra, SmallDisk, TwoHosts};

use crate::pair::{Family, Pair, allowed, fast};

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
    let log = fs::read_to_string(pair.daemon(0).log()).unwrap();
    let missing = pair.daemon(0).show().unwrap()["node"]["lost_log_lines"]
        .as_u64()
        .unwrap_or_else(|| panic!("{} {log}", log.len()));
    assert!((1..=LINES as u64).contains(&missing), "{missing}");
    disk.empty().unwrap();
    say_something(&pair);
    assert_eq!(lost(), missing);
    let log = fs::read_to_string(pair.daemon(0).log()).unwrap();
    assert!(log.lines().any(|line| line == format!("WARN {missing} lines of this log are lost, since its disk was full")), "{log}");
    assert!(log.ends_with("configuration reloaded: no changes\n"), "{log}");
    let whole = log.lines().filter(|line| line.contains("configuration reloaded: no changes")).count();
    assert_eq!(whole as u64, LINES as u64 + 1 - missing, "{log}");
}
