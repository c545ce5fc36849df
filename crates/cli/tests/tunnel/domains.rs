//! What is compressed together, seen by scapy and zlib: never traffic of two trust domains, nor any without a rule.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use strait_scheduler::Rate;
use strait_testbed::outside::has_scapy;
use strait_testbed::{Extra, LinkSpec, TwoHosts};

use crate::capture::Capture;
use crate::outside::open;
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

/// The port that an inner UDP packet over IPv4 goes to; none for what else there is.
fn port(packet: &[u8]) -> Option<u16> {
    (packet[9] == 17).then(|| u16::from_be_bytes([packet[22], packet[23]]))
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
        let ports: BTreeSet<u16> = payload.packets.iter().filter_map(|packet| port(packet)).collect();
        match payload.kind.as_str() {
            "block" => {
                assert_eq!(ports.len(), 1, "a block with packets to {ports:?}");
                assert!(!ports.contains(&PORTS[2]), "a block with what no rule names");
                let many = if payload.packets.len() > 1 { "many" } else { "one" };
                seen.extend(ports.into_iter().map(|port| (many, port)));
            }
            // What is not compressed may share a bundle, whose length says nothing about what is in it.
            "bundle" | "packet" => seen.extend(ports.into_iter().map(|port| ("plain", port))),
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
        let text = format!("round {round}: {}", "what belongs to one owner only; ".repeat(8));
        for target in sockets.iter().map(|socket| socket.local_addr().unwrap()) {
            (0..ROW).for_each(|_| assert_eq!(sender.send_to(text.as_bytes(), target).unwrap(), text.len()));
        }
    }
    eventually("the queue is empty", || pair.peer(0)["queue"]["bytes"] == 0);
    // Behind all that was sent.
    pair.tcp(1, Family::V4, 1000);
}
