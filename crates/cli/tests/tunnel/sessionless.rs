//! Keys that need no session: no handshake, no state to lose, nothing said while idle, nothing delivered twice.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use strait_keying::PublicKey;
use strait_keying::sessionless::{MarkJournal, MarkTable};
use strait_testbed::{
    DaemonProcess, Extra, FrameDirection, FrameFate, Namespace, Networks, PORT, Relay, Site, TwoHosts,
    WireLink, Workdir,
};

use crate::frame::{HEADERS, is_udp};
use crate::pair::{Family, Pair, allowed, echoes, eventually, fast, program};

/// What both files say of the other end.
pub(crate) const KEYING: Extra<'_> =
    Extra { peer: "keying = \"sessionless\"", node: "", link: "", sections: "", networks: Networks::Hidden };

/// What crossed the wire, each frame with its direction.
pub(crate) type Captured = Arc<Mutex<Vec<(FrameDirection, Vec<u8>)>>>;

/// A pair without daemons, whose datagrams are kept; those that `pass` refuses are lost.
pub(crate) fn tapped(
    pass: impl Fn(FrameDirection, &[u8]) -> bool + Send + 'static,
) -> (Pair, Relay, Captured) {
    let captured = Captured::default();
    let keep = Arc::clone(&captured);
    let (hosts, relay) = Relay::between(fast(), move |direction, frame| {
        if is_udp(frame) {
            keep.lock().unwrap().push((direction, frame.to_vec()));
        }
        if !is_udp(frame) || pass(direction, frame) { FrameFate::Pass } else { FrameFate::Lose }
    })
    .unwrap();
    (Pair::idle(hosts), relay, captured)
}

/// The first bytes of the datagrams that crossed.
pub(crate) fn kinds(captured: &Captured) -> Vec<u8> {
    captured.lock().unwrap().iter().filter_map(|(_, frame)| frame.get(HEADERS).copied()).collect()
}

/// `count` pings of the second site by the first; how many were answered.
pub(crate) fn ping(pair: &Pair, count: usize) -> usize {
    echoes(&pair.hosts.a, count, &[&pair.inside(1, Family::V4).to_string()]).0
}

pub(crate) fn output_of(command: &mut Command) -> String {
    String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
}

pub(crate) fn refusals(pair: &Pair, which: usize, reason: &str) -> u64 {
    let report = pair.daemon(which).show().unwrap();
    let all = report["sessionless"]["refusals"].as_array().unwrap();
    all.iter().find(|refusal| refusal["reason"] == reason).unwrap()["datagrams"].as_u64().unwrap()
}

pub(crate) fn sessionless(pair: &Pair, which: usize) -> Value {
    pair.peer(which)["sessionless"].clone()
}

#[test]
fn the_first_ping_is_answered_and_no_handshake_is_made() {
    if !allowed() {
        return;
    }
    let (mut pair, _relay, captured) = tapped(|_, _| true);
    pair.start(0, KEYING);
    pair.start(1, KEYING);
    assert_eq!(ping(&pair, 1), 1, "{}", pair.logs());
    assert_eq!(ping(&pair, 5), 5, "{}", pair.logs());
    pair.tcp(1, Family::V4, 500_000);
    pair.tcp(0, Family::V6, 500_000);
    let kinds = kinds(&captured);
    assert_eq!(kinds.first(), Some(&0x11), "a header in front of the first packet");
    assert!(kinds.iter().all(|kind| (0x04..0x20).contains(kind)), "no handshake");
    assert!(kinds.iter().any(|kind| *kind < 0x10), "no header once the key is acknowledged");
    for which in [0, 1] {
        assert_eq!(pair.peer(which)["keys"], "sessionless");
        assert_eq!(sessionless(&pair, which)["acknowledged"], true, "{}", pair.logs());
    }
    // A stream needs a session: nothing is waited for.
    let send = pair.daemon(0).command(&["send", "/etc/hostname", "site-b"]).output().unwrap();
    let refused = String::from_utf8_lossy(&send.stderr);
    assert!(send.status.code() == Some(1) && refused.contains("session"), "{send:?}");
    let text = output_of(&mut pair.daemon(0).command(&["show"]));
    assert!(text.contains("packet keys") && text.contains("caches of keys without sessions"), "{text}");
    assert!(text.contains("misses took"), "{text}");
    for which in [0, 1] {
        let costs = miss_costs(&pair, which);
        let are_measured = costs[..3].iter().all(|cost| cost.is_some_and(|cost| cost > 0.0));
        assert!(are_measured && costs[3].is_none(), "{costs:?}");
    }
}

/// Seconds of misses in the caches of packet keys, Kijn, Kij and senders.
fn miss_costs(pair: &Pair, which: usize) -> [Option<f64>; 4] {
    let report = pair.daemon(which).show().unwrap();
    let caches = report["sessionless"]["caches"].as_array().unwrap();
    ["packet-keys", "epoch-keys", "secrets", "senders"].map(|name| {
        let cache = caches.iter().find(|cache| cache["cache"] == name).unwrap();
        cache["miss_seconds"].as_f64()
    })
}

/// Sends all that has crossed to the second site once more: after restarts replay windows are new, and marks refuse it.
pub(crate) fn nothing_is_delivered_again(pair: &Pair, relay: &Relay, captured: &Captured) {
    // The last acknowledgements of the connections that have ended are under way until nothing crosses any more.
    let mut crossed = 0;
    eventually("nothing crosses any more", || {
        std::thread::sleep(Duration::from_secs(1));
        let before = std::mem::replace(&mut crossed, captured.lock().unwrap().len());
        before == crossed
    });
    let receiver = pair.socket(1, Family::V4);
    let all: Vec<_> = captured.lock().unwrap().clone();
    let before = pair.peer(1)["received"]["packets"].as_u64().unwrap();
    let there = all.iter().filter(|(direction, _)| *direction == FrameDirection::There);
    let of_kind = |kind: u8| there.clone().filter(|(_, frame)| frame.get(HEADERS) == Some(&kind)).count();
    let refused = || {
        let inside = ["replayed", "too-old", "unknown-spi", "forged", "header-over-budget"]
            .map(|reason| pair.drops(1, reason));
        inside.iter().sum::<u64>() + refusals(pair, 1, "below_mark")
    };
    let refused_before = refused();
    for (_, frame) in there.clone() {
        relay.inject(FrameDirection::There, frame);
    }
    assert!(of_kind(0x11) > 3, "headers");
    // Key packets hold no packet: they are not refused where their secret is known.
    let repeated = (there.clone().count() - of_kind(0x12)) as u64;
    eventually("what is repeated is refused", || refused() - refused_before >= repeated);
    receiver.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(receiver.recv(&mut [0; 100]).is_err());
    let delivered = pair.peer(1)["received"]["packets"].as_u64().unwrap() - before;
    // A connection whose end was lost with a daemon repeats it, after longer and longer pauses.
    let new = captured.lock().unwrap()[all.len()..].to_vec();
    let new = new.iter().filter(|(direction, _)| *direction == FrameDirection::There).count() as u64;
    assert!(delivered <= new, "of what was sent once more, {delivered} were delivered; {new} were new");
}

#[test]
fn either_daemon_may_be_killed_and_traffic_goes_on() {
    if !allowed() {
        return;
    }
    let (mut pair, relay, captured) = tapped(|_, _| true);
    pair.start(0, KEYING);
    pair.start(1, KEYING);
    for which in [1, 0, 1] {
        pair.tcp(which, Family::V4, 100_000);
        pair.kill(which);
        pair.start(which, KEYING);
        pair.tcp(1 - which, Family::V4, 100_000);
        pair.tcp(which, Family::V6, 100_000);
    }
    assert!(kinds(&captured).iter().all(|kind| (0x04..0x20).contains(kind)), "no handshake");
    nothing_is_delivered_again(&pair, &relay, &captured);
    pair.tcp(1, Family::V4, 100_000);
}

#[test]
fn a_link_that_carries_nothing_back_carries_datagrams() {
    if !allowed() {
        return;
    }
    let (mut pair, _relay, captured) = tapped(|direction, _| direction == FrameDirection::There);
    let one_way = Extra { peer: "keying = \"sessionless\"\none_way = true", ..KEYING };
    pair.start(0, one_way);
    pair.start(1, one_way);
    let (sender, receiver) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
    let send_all = || {
        for number in 0..50_u8 {
            let bytes = vec![number; if number % 2 == 0 { 100 } else { 1400 }];
            sender.send_to(&bytes, receiver.local_addr().unwrap()).unwrap();
            let mut buffer = [0; 1500];
            assert_eq!(receiver.recv(&mut buffer).unwrap(), bytes.len(), "{}", pair.logs());
            assert_eq!(buffer[0], number);
        }
    };
    send_all();
    let frames = captured.lock().unwrap().clone();
    let there = frames.iter().filter(|(direction, _)| *direction == FrameDirection::There);
    assert!(there.map(|(_, frame)| frame[HEADERS]).all(|kind| kind == 0x11), "a header in every datagram");
    assert!(!frames.iter().any(|(direction, _)| *direction == FrameDirection::Back), "nothing is said back");
}

#[test]
fn an_idle_pair_says_nothing() {
    if !allowed() {
        return;
    }
    let (mut pair, _relay, captured) = tapped(|_, _| true);
    pair.start(0, KEYING);
    pair.start(1, KEYING);
    pair.tcp(1, Family::V4, 100_000);
    // What is under way has arrived, and reports of it have been sent.
    std::thread::sleep(Duration::from_secs(5));
    let before = kinds(&captured).len();
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(kinds(&captured).len() - before, 0, "{:?}", &kinds(&captured)[before..]);
    assert_eq!(ping(&pair, 1), 1, "{}", pair.logs());
}

#[test]
fn a_node_has_peers_of_both_kinds_on_one_port() {
    if !allowed() {
        return;
    }
    let [centre, a, b] = ["hub", "site-a", "site-b"].map(|name| Namespace::create(name).unwrap());
    let links =
        [WireLink::join(&a, &centre, 1, fast()).unwrap(), WireLink::join(&b, &centre, 2, fast()).unwrap()];
    let dir = Workdir::create().unwrap();
    let site = |host, number, address: IpAddr| {
        Site::create(program(), host, number, SocketAddr::new(address, PORT), dir.path()).unwrap()
    };
    let sites = [site(&a, 1, links[0].a.v4.into()), site(&b, 2, links[1].a.v4.into())];
    let hub = site(&centre, 9, links[0].b.v4.into());
    // The second is without a session.
    let text = hub.configuration(&[&sites[0], &sites[1]], Extra::default());
    let text = text.replace("name = \"site-b\"\n", "name = \"site-b\"\nkeying = \"sessionless\"\n");
    let config = hub.folder().join("strait.toml");
    std::fs::write(&config, text).unwrap();
    let hub_daemon = hub.start(&config, "run").unwrap();
    let daemons = [(0, Extra::default()), (1, KEYING)].map(|(which, extra)| {
        let mut peer = hub.clone();
        peer.outside = SocketAddr::new(links[which].b.v4.into(), PORT);
        let config = sites[which].configure("strait", &[&peer], extra).unwrap();
        sites[which].start(&config, "run").unwrap()
    });
    let logs = || [&hub_daemon, &daemons[0], &daemons[1]].map(DaemonProcess::last_words).join("\n----\n");
    for site in &sites {
        let (answered, said) = echoes(&hub.host, 3, &[&site.inside().to_string()]);
        assert_eq!(answered, 3, "{}\n{said}\n{}", site.name(), logs());
    }
    let report = hub_daemon.show().unwrap();
    let keys: Vec<_> = report["peers"].as_array().unwrap().iter().map(|peer| peer["keys"].clone()).collect();
    assert_eq!(keys, ["session", "sessionless"]);
}

#[test]
fn a_clock_below_the_mark_does_not_send_and_says_so() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    pair.start(0, KEYING);
    pair.start(1, KEYING);
    assert_eq!(ping(&pair, 1), 1, "{}", pair.logs());
    pair.kill(0);
    // As if this node had sent an hour from now.
    let folder = pair.sites[0].folder().join("run/state");
    let is_marks = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "marks");
    let path = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).find(is_marks).unwrap();
    let key: PublicKey = pair.sites[0].public_key().parse().unwrap();
    let mut table = MarkTable::read(&std::fs::read(&path).unwrap(), key).unwrap();
    table.raise(key, table.sender() + 3_600_000_000).unwrap();
    std::fs::write(&path, MarkJournal::begin(&table).1).unwrap();
    pair.start(0, KEYING);
    assert_eq!(ping(&pair, 1), 0);
    let why = sessionless(&pair, 0)["refused"].as_str().unwrap_or_default().to_owned();
    assert!(why.contains("clock") && why.contains("behind"), "{why}");
    eventually("the log says so", || pair.daemon(0).last_words().contains("this node's clock is"));
    let text = output_of(&mut pair.daemon(0).command(&["show"]));
    assert!(text.contains("nothing is sent: this node's clock is"), "{text}");
}

#[test]
fn keying_changes_by_a_reload_without_a_lost_packet() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    let ways = [0, 1].map(|from| (pair.socket(from, Family::V4), pair.socket(1 - from, Family::V4)));
    let done = AtomicBool::new(false);
    let counts = std::thread::scope(|scope| {
        let running = ways.each_ref().map(|(sender, receiver)| {
            let target = receiver.local_addr().unwrap();
            let done = &done;
            let sending = scope.spawn(move || {
                let mut sent = 0_u32;
                while !done.load(Ordering::Relaxed) {
                    sender.send_to(&sent.to_be_bytes(), target).unwrap();
                    sent += 1;
                    std::thread::sleep(Duration::from_millis(3));
                }
                sent
            });
            let receiving = scope.spawn(move || {
                receiver.set_read_timeout(Some(Duration::from_millis(800))).unwrap();
                let mut received = 0_u32;
                while receiver.recv(&mut [0; 10]).is_ok() || !done.load(Ordering::Relaxed) {
                    received += 1;
                }
                received
            });
            (sending, receiving)
        });
        for (extra, order) in [(KEYING, [0, 1]), (Extra::default(), [1, 0])] {
            for which in order {
                let (site, peer) = (&pair.sites[which], &pair.sites[1 - which]);
                site.configure("strait", &[peer], extra).unwrap();
                pair.daemon(which).reload().unwrap();
                // The other does not know of it yet.
                std::thread::sleep(Duration::from_millis(500));
            }
            let changed = |which| {
                let peer = pair.peer(which);
                match peer["keys"].as_str() {
                    Some("sessionless") => peer["sessionless"]["has_session"] == false,
                    _ => peer["association"].is_object(),
                }
            };
            eventually("both have changed", || changed(0) && changed(1));
            std::thread::sleep(Duration::from_millis(500));
        }
        done.store(true, Ordering::Relaxed);
        running.map(|(sending, receiving)| (sending.join().unwrap(), receiving.join().unwrap()))
    });
    let drops = || {
        let reports = [0, 1].map(|which| pair.daemon(which).show().unwrap());
        reports.map(|report| {
            let all = report["drops"].as_array().unwrap().clone();
            all.into_iter().filter(|drop| drop["packets"] != 0).collect::<Vec<_>>()
        })
    };
    for (sent, received) in counts {
        assert_eq!(sent, received, "{:?}\n{}", drops(), pair.logs());
    }
}
