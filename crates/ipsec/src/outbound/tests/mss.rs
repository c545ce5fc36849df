//! SYNs announce segments that fit the tunnel.

use std::net::SocketAddr;

use super::*;
use crate::{PeerSpec, outbound};

/// A SYN that announces this size.
fn syn(version: Version, size: u16) -> Shape {
    let [high, low] = size.to_be_bytes();
    let options = vec![1, 3, 3, 7, 2, 4, high, low];
    Shape { flags: 0x02, options, ..Shape::new(version, Protocol::TCP, Vec::new()) }
}

/// The packets that left.
fn sent(sender: &mut Sender) -> Vec<Vec<u8>> {
    sender.drain();
    let left = opened(&sender.wire, STRAIT).into_iter().map(|(_, payload, _)| payload);
    let left = left.filter(|payload| Packet::parse(payload).is_ok()).collect();
    sender.wire.datagrams.clear();
    left
}

#[test]
fn what_a_syn_announces_fits_path_and_interface() {
    // ESP around a packet, as in the test of packets that are too big: 54 bytes.
    for (path, interface, version, announced, left) in [
        (1500, 1420, Version::V4, 1460, 1380),
        (1500, 1420, Version::V6, 1440, 1360),
        (1400, 1420, Version::V4, 1460, 1306),
        (1400, 1420, Version::V6, 1440, 1286),
        (1400, 1420, Version::V4, 1300, 1300),
        // A Strait peer gets 1,280 bytes on every path.
        (1280, 1420, Version::V4, 1460, 1240),
        (1280, 1420, Version::V6, 1440, 1220),
    ] {
        let mut sender = Sender::new(STRAIT, path, None, Vec::new()).clamping(interface);
        let case = format!("{path} {interface} {version:?} {announced}");
        for flags in [0x02, 0x12, 0xc2] {
            let shape = Shape { flags, ..syn(version, announced) };
            let expected = Shape { flags, ..syn(version, left) }.packet();
            sender.send(&shape.packet(), &PLAIN);
            assert_eq!(sent(&mut sender), std::slice::from_ref(&expected), "{case}");
            // Its checksum left to the device, as of hosts that are namespaces or virtual machines.
            let (bytes, header) = shape.super_packet(1000);
            let header = vnet::Header { gso_type: vnet::GSO_NONE, gso_size: 0, ..header };
            sender.send(&bytes, &header);
            assert_eq!(sent(&mut sender), [expected], "{case}");
        }
        let later = Shape { flags: 0x10, ..syn(version, announced) }.packet();
        sender.send(&later, &PLAIN);
        assert_eq!(sent(&mut sender), [later], "not a SYN");
    }
}

#[test]
fn nothing_is_lowered_unless_the_policies_say_so() {
    let mut sender = Sender::new(STRAIT, 1400, None, Vec::new());
    let packet = syn(Version::V4, 1460).packet();
    sender.send(&packet, &PLAIN);
    assert_eq!(sent(&mut sender), [packet]);
}

#[test]
fn a_syn_that_waits_for_keys_announces_what_fits_every_path() {
    let mut sender = Sender::without_sa(1500, None, Vec::new()).clamping(1420);
    sender.send(&syn(Version::V4, 1460).packet(), &PLAIN);
    sender.order(Order::Install(Box::new(OutboundSa::new(&sa_spec(STRAIT)))));
    assert_eq!(sent(&mut sender), [syn(Version::V4, 1240).packet()]);
}

#[test]
fn standard_peers_get_no_less_than_their_path_takes() {
    for (version, left) in [(Version::V4, 1226 - 40), (Version::V6, 1280 - 60)] {
        let mut sender = Sender::new(Payloads::STANDARD, 1280, None, Vec::new()).clamping(1420);
        sender.send(&syn(version, 1400).packet(), &PLAIN);
        sender.drain();
        let [(_, payload, _)] = opened(&sender.wire, Payloads::STANDARD).try_into().unwrap();
        assert_eq!(payload, syn(version, left).packet());
    }
}

#[test]
fn a_syn_fits_what_is_known_of_the_path_now() {
    let mut sender = Sender::new(STRAIT, 1500, None, Vec::new()).clamping(1420);
    let spec = PeerSpec {
        id: PEER,
        allowed: Vec::new(),
        endpoint: Some(crate::sample::endpoint()),
        mtu: None,
        counters: Arc::clone(&sender.peer),
        caches: Arc::default(),
    };
    sender.order(Order::AddPeer(Box::new(spec)));
    sender.order(Order::Install(Box::new(OutboundSa::new(&sa_spec(STRAIT)))));
    let shown = |sender: &Sender| sender.peer.inner_mtu.load(Ordering::Relaxed);
    assert_eq!(shown(&sender), 1280);
    // The first probe is of what the interface takes; its answer ends the search.
    sender.send(&noise(9, 1000).packet(), &PLAIN);
    sender.drain();
    sender.peer.in_datagrams.add(1);
    sender.order(outbound::Order::ProbeAnswered(PEER, 1, 1500));
    assert_eq!(shown(&sender), 1446);
    sent(&mut sender);
    let all = syn(Version::V4, 1460).packet();
    sender.send(&all, &PLAIN);
    assert_eq!(sent(&mut sender), [syn(Version::V4, 1380).packet()]);
    // A move to another host says that all is to be found anew.
    sender.peer.endpoint.set("192.0.2.77:9".parse::<SocketAddr>().unwrap());
    sender.send(&all, &PLAIN);
    assert_eq!(sent(&mut sender), [syn(Version::V4, 1240).packet()]);
}
