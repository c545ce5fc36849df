//! What a tunnel saves is kept across restarts and crashes, and is what the interfaces of the kernel count.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use strait_testbed::{Extra, LinkSpec, TwoHosts};

use crate::pair::{Family, Pair, allowed, fast};

/// Until a daemon has written its file: a minute, and time for busy processors.
const WRITTEN: Duration = Duration::from_secs(90);
/// What an Ethernet frame has around an IP packet on the interface's counters.
const FRAME: u64 = 14;

/// The folder of what outlives the first site's daemon.
fn folder(pair: &Pair) -> PathBuf {
    pair.daemon(0).log().with_file_name("state")
}

/// What `strait saved` says.
fn saved(folder: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
    let output = command.args(["saved", "--json"]).args(arguments).env("STRAIT_STATE_DIR", folder).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Packets that are sent before a look at how many left.
const ROUND: u64 = 1000;

/// Sends packets that compress well until so many have left: where a busy processor lets the queue grow old, some of it is dropped.
fn send(pair: &Pair, packets: u64) {
    let (from, to) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
    let target = to.local_addr().unwrap();
    let sent = || pair.peer(0)["sent"]["packets"].as_u64().unwrap();
    let (mut now, end) = (sent(), sent() + packets);
    while now < end {
        for number in now..end.min(now + ROUND) {
            let text = format!("{number}: the sensor in room {} says that all is well\n", number % 7);
            from.send_to(&text.repeat(20).as_bytes()[..800], target).unwrap();
            thread::sleep(Duration::from_micros(500));
        }
        // All of them left, or no more do.
        let (goal, mut looks) = (end.min(now + ROUND), 0);
        while now < goal && looks < 10 {
            thread::sleep(Duration::from_millis(100));
            let before = std::mem::replace(&mut now, sent());
            looks = if now > before { 0 } else { looks + 1 };
        }
    }
}

/// IP bytes that left and came by the interface to the other site, as the kernel counts them. It counts the headers of a super-packet once, so
/// the link has to be without offloads.
pub(crate) fn interface_bytes(pair: &Pair) -> u64 {
    let show = pair.hosts.a.command("ip").args(["-json", "-statistics", "link"]).output().unwrap();
    let links: Value = serde_json::from_slice(&show.stdout).unwrap();
    let outer = pair.peer(0)["outer_interface"].as_str().unwrap().to_owned();
    let link = links.as_array().unwrap().iter().find(|link| link["ifname"] == outer).unwrap();
    let of = |way: &str, what: &str| link["stats64"][way][what].as_u64().unwrap();
    ["tx", "rx"].map(|way| of(way, "bytes") - FRAME * of(way, "packets")).iter().sum()
}

#[test]
fn figures_outlast_restarts_and_a_kill_and_are_those_of_the_interface() {
    if !allowed() {
        return;
    }
    const RULE: &str = "[[compress]]\nfrom = \"0.0.0.0/0\"\nto = \"0.0.0.0/0\"\ndomain = \"sensors\"\n[link]\nup = \"5Mbit\"\nprice = \"8/GB\"\n";
    let extra = Extra { sections: RULE, ..Extra::default() };
    let mut pair = Pair::up(TwoHosts::direct(LinkSpec { rate: None, ..fast() }).unwrap(), extra);
    let folder = folder(&pair);
    // So many that what neighbours find out about each other, which is not the tunnel's (2 KB of some 800), is little beside them.
    send(&pair, 16_000);
    let (shown, counted) = (pair.peer(0)["sent"].clone(), interface_bytes(&pair));
    pair.stop(0);
    let first = saved(&folder, &["--price", "8/GB"]);
    let total = |report: &Value, what: &str| report["total"][what].as_u64().unwrap();
    let [bytes, wire] = ["sent_bytes", "sent_wire_bytes"].map(|what| total(&first, what));
    // What left while the daemon ended is not in what it showed before.
    let near = |one: u64, other: u64| one.abs_diff(other) * 200 <= other;
    assert!(near(bytes, shown["bytes"].as_u64().unwrap()), "{first:#}\n{shown:#}");
    let both_ways = wire + total(&first, "received_wire_bytes");
    assert!(near(both_ways, counted), "{both_ways} kept, {counted} by the interface");
    assert!(bytes > 3 * wire && first["total"]["saved_price"].as_f64().unwrap() > 0.0, "{first:#}");
    assert_eq!(first["lines"][0]["name"], "site-b");
    // The configuration file has the same price.
    let config = pair.sites[0].folder().join("strait.toml");
    assert_eq!(saved(&folder, &[config.to_str().unwrap()])["total"], first["total"]);
    assert_eq!(saved(&folder, &["strait0"])["total"]["saved_price"], Value::Null);
    let services = saved(&folder, &["--by", "service"]);
    // Both ports are ones that the system handed out.
    assert_eq!(services["lines"][0]["name"], "other services", "{services:#}");
    let of_services = ["sent_bytes", "sent_wire_bytes"].map(|what| total(&services, what));
    assert!(near(of_services[0], bytes), "{services:#}\n{first:#}");
    // What keeps the tunnel up is of no service.
    assert!(of_services[1].abs_diff(wire) * 20 <= wire, "{services:#}\n{first:#}");
    let classes = saved(&folder, &["--by", "class"]);
    assert_eq!(classes["lines"][0]["name"], "normal", "{classes:#}");
    assert_eq!(["sent_bytes", "sent_wire_bytes"].map(|what| total(&classes, what)), of_services);
    for step in ["second", "minute", "hour"] {
        let link = saved(&folder, &["--link", "--step", step]);
        let periods = link["peers"][0]["periods"].as_array().unwrap();
        let packets: u64 = periods.iter().map(|period| period["sent_packets"].as_u64().unwrap()).sum();
        assert!(near(packets, shown["packets"].as_u64().unwrap()), "{link:#}\n{shown:#}");
        // 16,000 packets, half a millisecond apart.
        assert!(step != "second" || periods.len() >= 8, "{link:#}");
    }
    let rules = saved(&folder, &["strait0", "--by", "rule"]);
    assert_eq!(rules["lines"][0]["name"], "0.0.0.0/0 to 0.0.0.0/0 (sensors)", "{rules:#}");
    assert_eq!(saved(&folder, &["--by", "day", "--since", "1h"])["by"], "day");
    pair.start(0, extra);
    pair.wait_for_session();
    send(&pair, 4_000);
    let done = SystemTime::now();
    let file = folder.join("strait0.saved");
    let end = done + WRITTEN;
    while file.metadata().unwrap().modified().unwrap() < done {
        assert!(SystemTime::now() < end, "not written within {WRITTEN:?}");
        thread::sleep(Duration::from_millis(200));
    }
    pair.daemon(0).signal(9).unwrap();
    let both = total(&saved(&folder, &[]), "sent_bytes");
    assert!(near(both, bytes + bytes / 4), "{both} after a kill, {bytes} before");
}

#[test]
fn without_figures_and_with_a_file_of_another_kind_it_says_what_to_do() {
    let folder = strait_testbed::Workdir::create().unwrap();
    let said = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
        let output = command.arg("saved").env("STRAIT_STATE_DIR", folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said().contains("once a tunnel runs"), "{}", said());
    std::fs::write(folder.path().join("strait0.saved"), b"something else").unwrap();
    assert!(said().contains("move it away"), "{}", said());
    std::fs::write(folder.path().join("strait1.saved"), b"").unwrap();
    assert!(said().contains("strait0, strait1"), "{}", said());
}
