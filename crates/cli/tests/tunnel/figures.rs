//! What `show` says is what an onlooker counts.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use strait_scheduler::Rate;
use strait_testbed::{Extra, LinkSpec, Transfer, TwoHosts, sample};

use crate::pair::{PATIENCE, Pair, allowed};

/// Ethernet header, which a link counts and a node does not.
const ETHERNET: u64 = 14;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Bytes that the system has counted on the first site's tunnel interface, both ways.
fn on_the_interface(pair: &Pair) -> u64 {
    let output = pair.hosts.a.command("ip").args(["-s", "-j", "link", "show", "strait0"]).output().unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let counted = &shown[0]["stats64"];
    number(&counted["rx"]["bytes"]) + number(&counted["tx"]["bytes"])
}

/// Bytes of IP packets on the link, both ways.
fn on_the_link(pair: &Pair) -> u64 {
    let traffic = pair.hosts.link.traffic().unwrap();
    traffic.bytes() - ETHERNET * (traffic.there.packets + traffic.back.packets)
}

/// Whether two figures differ by at most `percent` of the second.
fn near(figure: u64, truth: u64, percent: u64) -> bool {
    figure.abs_diff(truth) * 100 <= truth * percent
}

/// Waits until nothing crosses the link: what is on its way is counted at one end only.
fn settle(pair: &Pair) {
    let end = Instant::now() + PATIENCE;
    let mut before = on_the_link(pair);
    loop {
        thread::sleep(Duration::from_secs(1));
        let now = on_the_link(pair);
        if now == before || Instant::now() > end {
            return;
        }
        before = now;
    }
}

#[test]
fn what_show_says_is_what_crossed() {
    if !allowed() {
        return;
    }
    let spec = LinkSpec::thin(Rate::from_bits(4_000_000).unwrap());
    let sections = "[link]\nup = \"3.98Mbit\"\ndown = \"3.98Mbit\"\noverhead = 14\n\
        [[compress]]\nfrom = \"10.77.0.0/24\"\nto = \"10.77.0.0/24\"\ndomain = \"test\"\ncodec = \"zstd-3\"\n";
    let pair = Pair::idle(TwoHosts::direct(spec).unwrap());
    let before = on_the_link(&pair);
    let pair = pair.and_up(Extra { sections, ..Extra::default() });
    let content: Arc<[u8]> = sample::generate(5)[0].bytes[..600_000].into();
    let (from, to) = (&pair.hosts.a, &pair.hosts.b);
    let address = pair.sites[1].inside().into();
    let transfer = Transfer { from, to, address, name: "test", content: &content, patience: PATIENCE };
    transfer.run(&mut |_| {}).unwrap_or_else(|error| panic!("{error}\n{}", pair.logs()));

    settle(&pair);
    let (report, link, interface) =
        (pair.daemon(0).show().unwrap(), on_the_link(&pair) - before, on_the_interface(&pair));
    let (sent, received) = (&report["peers"][0]["sent"], &report["peers"][0]["received"]);
    let wire = number(&sent["wire_bytes"]) + number(&received["wire_bytes"]);
    let wire = wire + number(&report["control"]["wire_bytes"]);
    assert!(near(wire, link, 2), "{wire} bytes shown, {link} on the link: {report:#}");
    let inner = number(&sent["bytes"]) + number(&received["bytes"]);
    // The system counts one header for a packet that is cut later.
    assert!(near(inner, interface, 5), "{inner} bytes shown, {interface} on the interface: {report:#}");
    assert!(inner > 600_000, "{report:#}");

    // The other end received what this one sent, and the other way round.
    let other = pair.peer(1);
    for (here, there) in [("sent", "received"), ("received", "sent")] {
        for figure in ["packets", "bytes", "datagrams", "wire_bytes"] {
            let (here, there) = (number(&report["peers"][0][here][figure]), number(&other[there][figure]));
            assert!(near(here, there, 2), "{figure}: {here} here, {there} there");
        }
    }
    let rule = &report["rules"][0];
    assert!(near(number(&rule["matched_bytes"]), number(&sent["bytes"]), 2), "{report:#}");
    assert!(number(&rule["output_bytes"]) <= number(&sent["wire_bytes"]), "{report:#}");
}
