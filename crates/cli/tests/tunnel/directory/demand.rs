//! Certificates that are looked up when a packet or a handshake needs them.

use serde_json::Value;

use super::*;

/// What nodes have in `[directory]`, beside the keying.
const ON_DEMAND: &str = "certificates = \"on demand\"\n";

impl Fleet {
    /// Starts a node that looks certificates up.
    fn start_on_demand(&mut self, which: usize, more: &str) {
        let server = self.servers[which].clone();
        self.start_with(which, &[server], &format!("{ON_DEMAND}{more}"));
    }

    /// Whether the first packet from one site to another is answered, however long that takes.
    fn first_answered(&self, from: usize, to: usize) -> bool {
        let (from, to) = (&self.sites[from].host, self.sites[to].inside().to_string());
        let ping = || Command::new("ping").args(["-c", "1", "-W", "20", &to]).stdout(Stdio::null()).status();
        from.run("ping", ping).unwrap().success()
    }

    fn is_fresh(&self, which: usize) -> bool {
        self.daemon(which).show().unwrap()["directory"]["is_fresh"] == true
    }

    /// How many look-ups of a node ended so.
    fn ended(&self, which: usize, end: &str) -> u64 {
        let report = self.daemon(which).show().unwrap();
        let ends = report["directory"]["look_ups"]["ends"].as_array().unwrap().clone();
        ends.iter().find(|one| one["end"] == end).unwrap()["count"].as_u64().unwrap()
    }

    /// A figure of one of its caches.
    fn cached(&self, which: usize, cache: &str, figure: &str) -> u64 {
        self.figure(which, cache, figure).as_u64().unwrap()
    }

    /// Returns true if misses of a cache took time.
    fn took(&self, which: usize, cache: &str) -> bool {
        self.figure(which, cache, "miss_seconds").as_f64().is_some_and(|seconds| seconds > 0.0)
    }

    fn figure(&self, which: usize, cache: &str, figure: &str) -> Value {
        let report = self.daemon(which).show().unwrap();
        let caches = report["directory"]["caches"].as_array().unwrap().clone();
        // The process that follows the directory has not said all of them at first.
        caches.iter().find(|one| one["cache"] == cache).map_or(Value::Null, |one| one[figure].clone())
    }

    fn drops(&self, which: usize, reason: &str) -> u64 {
        let report = self.daemon(which).show().unwrap();
        let drops = report["drops"].as_array().unwrap().clone();
        drops.iter().find(|drop| drop["reason"] == reason).unwrap()["packets"].as_u64().unwrap()
    }

    /// Sends a packet to an address without waiting for an answer.
    fn send_to(&self, from: usize, address: &str) -> bool {
        let ping =
            || Command::new("ping").args(["-c", "1", "-W", "1", address]).stdout(Stdio::null()).status();
        self.sites[from].host.run("ping", ping).unwrap().success()
    }
}

fn a_fleet_on_demand(keying: &str) {
    if !can_run_alone() {
        return;
    }
    let mut fleet = Fleet::alone();
    (0..3).for_each(|which| fleet.sign(which));
    fleet.publish();
    (0..3).for_each(|which| fleet.start_on_demand(which, keying));
    eventually("all have a list", || (0..3).all(|which| fleet.is_fresh(which)));
    assert!((0..3).all(|which| fleet.peers(which).is_empty()), "no certificate is known");

    // Neither end knows the other: the first packet is answered all the same.
    assert!(fleet.first_answered(1, 0), "the first packet is answered\n{}", fleet.logs());
    assert_eq!((fleet.peers(1), fleet.peers(0)), (vec!["centre".to_owned()], vec!["site-a".to_owned()]));
    assert!(fleet.peers(2).is_empty(), "others hear nothing of it");
    assert_eq!((fleet.ended(1, "found"), fleet.drops(1, "no-peer")), (1, 0));
    // The other site does not reach where the centre is for this one, so that the centre begins.
    assert!(fleet.first_answered(0, 2), "the same with another\n{}", fleet.logs());

    // An address that none has is asked for once, and others' packets go on meanwhile.
    for _ in 0..3 {
        assert!(!fleet.send_to(1, "10.77.200.1"));
        assert!(fleet.pings(1, 0), "known peers go on");
    }
    assert_eq!(fleet.ended(1, "not_found"), 1, "the answer is kept");
    assert_eq!(fleet.cached(1, "unknown-names", "entries"), 1);
    eventually("its packets are dropped", || fleet.drops(1, "no-peer") >= 3);

    // Without a directory, what is on disk is found again by a node that starts anew.
    fleet.directory = None;
    fleet.daemons[1] = None;
    fleet.start_on_demand(1, keying);
    assert!(fleet.peers(1).is_empty());
    eventually(&format!("it is found on disk\n{}", fleet.logs()), || fleet.pings(1, 0));
    eventually("that is counted", || fleet.cached(1, "certificates", "hits") >= 1);
    let before = fleet.ended(0, "failed") + fleet.ended(0, "timed_out");
    fleet.send_to(0, "10.77.200.2");
    eventually("what is not on disk fails", || {
        fleet.ended(0, "failed") + fleet.ended(0, "timed_out") > before
    });
    assert!(fleet.pings(1, 0), "known peers go on");

    // A node that is revoked is a peer of none, and not looked up again.
    fleet.start_directory(ALONE);
    fleet.revoke(2);
    eventually("the revoked node is no peer", || !fleet.peers(0).contains(&"site-b".to_owned()));
    assert!(!fleet.pings(2, 0) && !fleet.pings(0, 2));
    assert!(fleet.pings(1, 0));
}

#[test]
fn certificates_are_looked_up_for_sessions() {
    a_fleet_on_demand("keying = \"session\"\n");
}

#[test]
fn certificates_are_looked_up_where_no_sessions_are_needed() {
    a_fleet_on_demand("keying = \"sessionless\"\n");
}

#[test]
fn a_pinned_peer_is_there_at_once_and_stays_and_others_make_room() {
    if !can_run_alone() {
        return;
    }
    let mut fleet = Fleet::alone();
    (0..3).for_each(|which| fleet.sign(which));
    fleet.publish();
    fleet.start_on_demand(1, "");
    fleet.start_on_demand(2, "");
    // By its name and by an address, one after the other.
    for (pin, is_asked) in [(fleet.sites[1].inside().to_string(), true), ("site-a".to_owned(), false)] {
        fleet.daemons[0] = None;
        fleet.start_on_demand(0, &format!("pin = [\"{pin}\"]\nmax_peers = 1\nmax_certificates = 2\n"));
        eventually("it is there without a packet", || fleet.peers(0) == ["site-a"]);
        // The second time it is on disk.
        eventually("the time that asking took is said", || fleet.took(0, "certificates") == is_asked);
    }
    eventually("there is a list", || fleet.is_fresh(2));
    assert!(!fleet.send_to(0, &fleet.sites[2].inside().to_string()), "there is no room beside it");
    assert_eq!((fleet.peers(0), fleet.cached(0, "peers", "pinned")), (vec!["site-a".to_owned()], 1));
    // Without the pin, each makes room for the other.
    fleet.daemons[0] = None;
    fleet.start_on_demand(0, "max_peers = 1\n");
    eventually("there is a list", || fleet.is_fresh(0));
    eventually("the first", || fleet.pings(0, 1));
    eventually("the second", || fleet.pings(0, 2));
    assert_eq!((fleet.peers(0), fleet.cached(0, "peers", "evicted")), (vec!["site-b".to_owned()], 1));
    eventually("both stay on disk", || fleet.cached(0, "certificates", "entries") == 2);
    assert!(fleet.took(0, "peers"), "each was looked up");
}
