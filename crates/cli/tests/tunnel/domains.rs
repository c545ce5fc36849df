//! What is compressed together, seen by scapy and zlib: never traffic of two trust domains, nor any without a rule.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use strait_scheduler::Rate;
use strait_testbed::outside::has_scapy;
use strait_testbed::{Extra, LinkSpec, TwoHosts};

use crate::capture::Capture;
use crate::outside::{contains, open};
use crate::pair::{Family, Pair, allowed, eventually};

/// Two domains by port, and a port that no rule names.
const PORTS: [u16; 3] = [7001, 7002, 7003];
const RULES: &str = "[link]\nup = \"1.98Mbit\"\ndown = \"1.98Mbit\"\noverhead = 14\n\
    [[compress]]\nfrom = \"10.77.0.0/24\"\nto = \"10.77.0.0/24\"\nprotocol = \"udp\"\nports = [7001]\n\
    domain = \"one\"\ncodec = \"deflate-6\"\n\
    [[compress]]\nfrom = \"10.77.0.0/24\"\nto = \"10.77.0.0/24\"\nprotocol = \"udp\"\nports = [7002]\n\
    domain = \"two\"\ncodec = \"deflate-6\"\n";
/// Datagrams are sent faster than the link takes them, so that they wait together: so many times, so many in a row
/// to each port.
const ROUNDS: usize = 30;
const ROW: usize = 4;

/// What is written in the datagrams to each port, and nowhere else.
const WORDS: [&str; 3] = ["what belongs to one; ", "what another has; ", "what has no owner; "];

/// The ports whose words are in some bytes, wherever they are.
fn ports(bytes: &[u8]) -> impl Iterator<Item = u16> {
    PORTS.into_iter().zip(WORDS).filter(|(_, words)| contains(bytes, words)).map(|(port, _)| port)
}

/// How many datagrams' texts begin in some bytes.
fn texts(bytes: &[u8]) -> usize {
    bytes.windows(6).filter(|window| window == b"round ").count()
}

#[test]
fn blocks_never_mix_domains() {
    if !allowed() || !has_scapy() {
        return;
    }
    let hosts = TwoHosts::direct(LinkSpec::thin(Rate::from_bits(2_000_000).unwrap())).unwrap();
    let pair = Pair::idle(hosts);
    let capture = Capture::start(&pair.hosts, &pair.dir.path().join("link.pcap"));
    let node = "danger_export_keys = \"esp-keys\"";
    let pair = pair.and_up(Extra { node, sections: RULES, ..Extra::default() });
    send(&pair);
    let opened = open(&pair, &capture.stop());

    let mut seen = BTreeSet::new();
    for payload in &opened {
        let ports: BTreeSet<u16> = payload.packets.iter().flat_map(|bytes| ports(bytes)).collect();
        match payload.kind.as_str() {
            "block" | "coded block" => {
                assert!(ports.len() <= 1, "a block with packets to {ports:?}");
                assert!(!ports.contains(&PORTS[2]), "a block with what no rule names");
                let texts: usize = payload.packets.iter().map(|bytes| texts(bytes)).sum();
                let many = if texts > 1 { "many" } else { "one" };
                seen.extend(ports.into_iter().map(|port| (many, port)));
            }
            // What is not compressed may share a bundle, whose length says nothing about what is in it.
            "bundle" | "packet" | "coded" => seen.extend(ports.into_iter().map(|port| ("plain", port))),
            _ => {}
        }
    }
    let expected = [("many", PORTS[0]), ("many", PORTS[1]), ("plain", PORTS[2])];
    let lack: Vec<_> = expected.into_iter().filter(|it| !seen.contains(it)).collect();
    assert!(lack.is_empty(), "{lack:?} are not among {seen:?}");
}

/// Sends datagrams to all ports in turn, and waits until none waits any more.
fn send(pair: &Pair) {
    let sockets = PORTS.map(|port| {
        let address = SocketAddr::new(pair.inside(1, Family::V4), port);
        pair.hosts.b.run("bind", || std::net::UdpSocket::bind(address)).unwrap()
    });
    let sender = pair.socket(0, Family::V4);
    for round in 0..ROUNDS {
        for (target, words) in sockets.iter().map(|socket| socket.local_addr().unwrap()).zip(WORDS) {
            let text = format!("round {round}: {}", words.repeat(12));
            (0..ROW).for_each(|_| assert_eq!(sender.send_to(text.as_bytes(), target).unwrap(), text.len()));
        }
    }
    eventually("the queue is empty", || pair.peer(0)["queue"]["bytes"] == 0);
    // Behind all that was sent.
    pair.tcp(1, Family::V4, 1000);
}
