//! Daily keys by way of a directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use super::{Fleet, can_run_alone};
use crate::pair::eventually;

const REQUIRED: &str = "keying = \"sessionless\"\ndaily_keys = \"require\"\n";
const PREFERRED: &str = "keying = \"sessionless\"\ndaily_keys = \"prefer\"\n";

impl Fleet {
    fn certified(more: [&str; 3]) -> Fleet {
        let mut fleet = Fleet::alone();
        (0..3).for_each(|which| fleet.sign(which));
        fleet.publish();
        for (which, more) in more.into_iter().enumerate() {
            fleet.start_daily(which, more);
        }
        fleet
    }

    fn start_daily(&mut self, which: usize, more: &str) {
        let server = self.servers[which].clone();
        self.start_with(which, &[server], more);
    }

    /// What a node shows of a peer's keys.
    fn keys_with(&self, which: usize, peer: usize) -> Value {
        let report = self.daemon(which).show().unwrap();
        let name = self.sites[peer].name();
        let mut peers = report["peers"].as_array().unwrap().iter();
        peers.find(|peer| peer["name"] == name).map(|peer| peer["sessionless"].clone()).unwrap_or_default()
    }

    fn refused(&self, which: usize, reason: &str) -> u64 {
        let report = self.daemon(which).show().unwrap();
        let refusals = report["sessionless"]["refusals"].as_array().unwrap();
        refusals.iter().find(|one| one["reason"] == reason).unwrap()["datagrams"].as_u64().unwrap()
    }

    fn reach(&self, from: usize, to: usize) {
        eventually(&format!("{from} reaches {to}\n{}", self.logs()), || self.pings(from, to));
    }

    /// The file of a node's secrets.
    fn daily_file(&self, which: usize) -> PathBuf {
        let entries = fs::read_dir(self.sites[which].folder().join("run/state")).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        paths.find(|path| path.extension().is_some_and(|end| end == "daily")).unwrap()
    }
}

#[test]
fn traffic_goes_under_daily_keys_and_goes_on_without_the_directory() {
    if !can_run_alone() {
        return;
    }
    let mut fleet = Fleet::certified([REQUIRED, REQUIRED, PREFERRED]);
    // Sites know the way to the centre when they have heard it.
    for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0)] {
        fleet.reach(from, to);
        let keys = fleet.keys_with(from, to);
        let (day, until) = (keys["daily_key"].as_str(), keys["daily_keys_until"].as_str());
        assert!(day.is_some() && day < until, "{keys:#}");
    }
    let report = fleet.daemon(0).show().unwrap();
    let daily = &report["directory"]["daily_keys"];
    assert_eq!(
        (&daily["policy"], &daily["published"], &daily["peers"]),
        (&"require".into(), &1.into(), &2.into())
    );
    let shown = fleet.daemon(0).command(&["show"]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("daily key of ") && shown.contains("published at 1 server"), "{shown}");
    let file = fleet.daily_file(1);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let before = fs::read(&file).unwrap();
    assert!(before.iter().any(|byte| *byte != 0));

    // Without a directory those that are known go on, also after a start: with the same secrets, and keys of others from the disk.
    fleet.directory = None;
    fleet.reach(0, 1);
    fleet.daemons[1] = None;
    fleet.start_daily(1, REQUIRED);
    fleet.reach(1, 0);
    fleet.reach(0, 1);
    assert_eq!(fs::read(&file).unwrap(), before);
    assert!(fleet.keys_with(1, 0)["daily_key"].is_string());
}

#[test]
fn who_requires_daily_keys_takes_nothing_without_and_who_prefers_them_does() {
    if !can_run_alone() {
        return;
    }
    let mut fleet = Fleet::certified([REQUIRED, "keying = \"sessionless\"\n", PREFERRED]);
    fleet.reach(0, 2);
    assert!(!fleet.pings(1, 0) && !fleet.pings(0, 1));
    assert!(fleet.refused(0, "no_daily_key") >= 1);
    let keys = fleet.keys_with(0, 1);
    assert!(keys["refused"].as_str().is_some_and(|why| why.contains("daily keys are required")), "{keys:#}");
    fleet.daemons[0] = None;
    fleet.start_daily(0, PREFERRED);
    fleet.reach(0, 1);
    fleet.reach(1, 0);
    assert!(fleet.keys_with(0, 1)["daily_key"].is_null());
    fleet.reach(0, 2);
    assert!(fleet.keys_with(0, 2)["daily_key"].is_string());
}

#[test]
fn daily_keys_are_looked_up_with_the_certificate() {
    if !can_run_alone() {
        return;
    }
    let more = format!("{REQUIRED}certificates = \"on demand\"\n");
    let mut fleet = Fleet::certified([&more; 3]);
    let published =
        |which: usize| fleet.daemon(which).show().unwrap()["directory"]["daily_keys"]["published"] == 1;
    eventually("all have published theirs", || (0..3).all(published));
    assert!(fleet.peers(0).is_empty());
    fleet.reach(1, 0);
    for (from, to) in [(0, 1), (1, 0)] {
        let keys = fleet.keys_with(from, to);
        assert!(keys["daily_key"].is_string(), "{keys:#}");
    }
    fleet.directory = None;
    fleet.reach(0, 1);
}
