//! Refusals of the kernel that pass: datagrams go the slow way, or are lost, only as long as that lasts.

use strait_testbed::{BorrowedSocket, Extra, PORT, TwoHosts};

use crate::host::{ip, log};
use crate::pair::{Family, Pair, allowed, eventually, fast};

/// Enough for many trains.
const FILE: usize = 1_000_000;

/// The number of trains that a site's system refused.
fn refused(pair: &Pair, which: usize) -> u64 {
    pair.daemon(which).show().unwrap()["offload"]["refused_trains"].as_u64().unwrap()
}

/// The warnings of a site about its system.
fn warnings(pair: &Pair, which: usize) -> String {
    pair.daemon(which).show().unwrap()["node"]["warnings"].to_string()
}

/// Calls by which a host has sent UDP over IPv4: one a train.
fn calls(pair: &Pair) -> u64 {
    let output = pair.hosts.a.command("cat").arg("/proc/net/snmp").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let at = lines.next().unwrap().split(' ').position(|name| name == "OutDatagrams").unwrap();
    lines.next().unwrap().split(' ').nth(at).unwrap().parse().unwrap()
}

/// Moves a file, and returns true if its datagrams left in trains.
fn in_trains(pair: &Pair) -> bool {
    let datagrams = || pair.peer(0)["sent"]["datagrams"].as_u64().unwrap();
    let before = (datagrams(), calls(pair));
    pair.tcp(1, Family::V4, FILE);
    // What leaves between two looks counts for less than half of it.
    2 * (datagrams() - before.0) > 3 * (calls(pair) - before.1)
}

#[test]
fn trains_that_the_system_refuses_go_one_by_one_until_it_takes_them_again() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    assert!(in_trains(&pair), "{}", pair.logs());
    assert_eq!((refused(&pair, 0), warnings(&pair, 0).as_str()), (0, "[]"));
    let socket = BorrowedSocket::of(pair.daemon(0).pid(), PORT).unwrap();
    socket.refuse_trains(true).unwrap();
    assert!(!in_trains(&pair), "{}", pair.logs());
    eventually("the system is tried again", || {
        pair.tcp(1, Family::V4, FILE / 10);
        refused(&pair, 0) >= 3 && warnings(&pair, 0).contains("one by one")
    });
    assert_eq!(pair.drops(0, "network-refused"), 0, "{}", pair.logs());
    assert_eq!(pair.drops(1, "replayed"), 0, "none is sent twice");
    let lines = log(&pair, 0).matches("one by one").count() as u64;
    assert!((1..refused(&pair, 0)).contains(&lines), "{}", log(&pair, 0));
    socket.refuse_trains(false).unwrap();
    eventually("the system takes trains again", || in_trains(&pair));
    assert_eq!(warnings(&pair, 0), "[]");
    assert_eq!(refused(&pair, 1), 0);
}

#[test]
fn a_route_that_drops_all_for_a_while_says_nothing_of_trains() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    assert!(in_trains(&pair), "{}", pair.logs());
    // The kernel refuses with EINVAL what is to go by a blackhole, and with EACCES what is prohibited (ip-route(8)).
    for action in ["blackhole", "prohibit"] {
        let port = PORT.to_string();
        let outer = ["priority", "1", "ipproto", "udp", "dport", &port, action];
        let rule = |what| ip(&pair.hosts.a, &[&["rule", what], &outer[..]].concat());
        let before = pair.drops(0, "network-refused");
        let socket = pair.socket(0, Family::V4);
        rule("add");
        eventually("datagrams are refused", || {
            for _ in 0..100 {
                socket.send_to(&[7; 1200], (pair.inside(1, Family::V4), 9)).unwrap();
            }
            pair.drops(0, "network-refused") >= before + 500
        });
        // None is under way when the route is back: one of a train that was refused would pass alone.
        let mut last = 0;
        eventually("nothing is under way", || {
            let drops = pair.drops(0, "network-refused");
            core::mem::replace(&mut last, drops) == drops
        });
        rule("del");
        pair.tcp(1, Family::V4, FILE);
    }
    assert!(in_trains(&pair), "{}", pair.logs());
    assert_eq!((refused(&pair, 0), warnings(&pair, 0).as_str()), (0, "[]"));
    let lines = log(&pair, 0).matches("network-refused").count();
    assert!((1..=2).contains(&lines), "{}", log(&pair, 0));
}
