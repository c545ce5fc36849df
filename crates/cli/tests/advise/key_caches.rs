//! Caches of keys, for the hosts of captures that are written here.

use std::fs;
use std::path::Path;

use serde_json::Value;
use strait_node::config::{Config, DirectorySection, PinnedPeer};
use strait_testbed::Workdir;

use crate::captures::{HERE, advise, file, json, log, text};
use crate::write::{packet, pcap};

/// The packets of a hub and so many hosts, each once in a round, and of one host more.
fn hub(hosts: usize, rounds: usize) -> Vec<u8> {
    let host = |number: usize| [10, 2, (number / 250) as u8, (number % 250) as u8];
    let from = |host: [u8; 4]| packet(host, HERE, 514, b"a reading of a meter, as it comes each minute");
    let round =
        || (0..hosts).flat_map(|number| [from(host(number)), packet(HERE, host(number), 514, b"yes")]);
    let all = (0..rounds).flat_map(|_| round().chain([from([10, 3, 0, 1])]));
    pcap(&all.collect::<Vec<_>>())
}

/// Reads the `[directory]` of an advice as a node reads its configuration.
fn directory(toml: &str) -> DirectorySection {
    let key = "xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=";
    let rest =
        format!("authority = \"{key}\"\nservers = [\"192.0.2.1:7707\"]\nallowed_ips = [\"10.0.0.0/8\"]\n");
    let node = "[node]\nprivate_key_file = \"k\"\naddress = \"10.1.0.1\"\npeers = \"directory\"\n";
    let config = Config::parse(&format!("{node}{toml}{rest}"), Path::new("hub.toml"));
    config.unwrap().directory.unwrap()
}

#[test]
fn a_hub_whose_hosts_do_not_fit_is_told_how_large_its_caches_are_to_be() {
    let dir = Workdir::create().unwrap();
    let (capture, page) = (file(&dir, "hub.pcap", &hub(1_200, 2)), dir.path().join("page.html"));
    let words = text(&advise(&[&capture], &["--html", page.to_str().unwrap()]));
    assert_eq!(words.lines().filter(|line| line.chars().count() > 80).collect::<Vec<_>>(), [""; 0]);
    let advice = &json(&[&capture], &[])["key_caches"];
    let tier = |at: usize, figure: &str| advice["tiers"][at][figure].clone();
    assert_eq!((tier(1, "today"), tier(1, "enough")), (1_000.into(), 1_201.into()), "{advice}");
    assert_eq!((&advice["tiers"][1]["misses"]["today"], &advice["peers"]), (&1_201.into(), &1_201.into()));
    assert_eq!((tier(2, "today"), &advice["tiers"][2]["misses"]["today"]), (12_000.into(), &0.into()));
    assert!(words.contains("room for 1000") && words.contains("198 ms"), "{words}");
    let toml = advice["toml"].as_str().unwrap();
    let read = directory(toml);
    assert_eq!((read.max_peers, read.max_certificates, read.pin.len()), (1_201, 1_201, 0));
    assert!(words.contains(toml), "{words}");
    assert!(fs::read_to_string(&page).unwrap().contains("max_peers = 1201\n"));
}

#[test]
fn a_hub_whose_hosts_fit_gets_one_sentence_and_details_for_those_who_ask() {
    let dir = Workdir::create().unwrap();
    // Each host once, and one again and again.
    let packets: Vec<_> = (0..200_u8)
        .flat_map(|number| {
            let again = packet([10, 3, 0, 1], HERE, 53, b"a name");
            let once = packet([10, 2, 0, number], HERE, 514, b"a reading of a meter");
            if number % 20 == 19 { vec![once, again] } else { vec![once] }
        })
        .collect();
    let capture = file(&dir, "hub.pcap", &pcap(&packets));
    let words = text(&advise(&[&capture], &[]));
    let expected = "the default sizes hold all 201 peers";
    assert!(words.contains(expected) && !words.contains("[directory]"), "{words}");
    let words = text(&advise(&[&capture], &["--detail"]));
    assert!(words.contains("To pin, as others would push them out: 10.3.0.1 (9 returns)."), "{words}");
    let read = directory(&words[words.find("[directory]").unwrap()..]);
    let address = PinnedPeer::Address([10, 3, 0, 1].into());
    assert_eq!((read.max_peers, read.max_certificates, read.pin), (2, 2, vec![address]));
    assert_eq!(json(&[&file(&dir, "log.pcap", &log())], &[])["key_caches"], Value::Null);
}
