//! Senders of packets that go no further hear of it.

use std::net::IpAddr;

use super::*;
use crate::Policies;

/// The node has 10.9.0.1 and fd09::1, the peer 10.1.0.0/16, 10.2.0.0/16, fd01::/16 and fd02::/16; nothing else is anywhere.
fn sender() -> Sender {
    let mut sender = Sender::new(STRAIT, 1500, None, Vec::new());
    let mut policies = Policies::new();
    for own in ["10.9.0.1", "10.9.0.255", "fd09::1"] {
        policies.add_local(own.parse().unwrap());
    }
    for site in ["10.1.0.0/16", "10.2.0.0/16", "fd01::/16", "fd02::/16"] {
        policies.allow(site.parse().unwrap(), PEER);
    }
    sender.order(Order::Policies(Arc::new(policies)));
    sender
}

/// A datagram from one address to another.
fn packet(from: &str, to: &str) -> Vec<u8> {
    let octets = |address: &str| match address.parse().unwrap() {
        IpAddr::V4(it) => it.octets().to_vec(),
        IpAddr::V6(it) => it.octets().to_vec(),
    };
    let version = if from.contains(':') { Version::V6 } else { Version::V4 };
    let mut packet = Shape::new(version, Protocol::UDP, vec![1; 20]).packet();
    let (at, both) = (if version == Version::V4 { 12 } else { 8 }, [octets(from), octets(to)].concat());
    packet[at..at + both.len()].copy_from_slice(&both);
    packet
}

/// The content of an answer: its addresses, type and code.
fn said(answer: &[u8]) -> (String, String, u8, u8) {
    let packet = Packet::parse(answer).unwrap();
    let [kind, code] = packet.payload()[..2] else { unreachable!() };
    (packet.src().to_string(), packet.dst().to_string(), kind, code)
}

#[test]
fn the_host_hears_of_what_no_peer_has() {
    for (from, to, (kind, code)) in [
        ("10.9.0.1", "192.0.2.7", (3, 0)),
        // A host that this node forwards for, as far as it knows.
        ("10.8.0.5", "192.0.2.7", (3, 0)),
        ("10.8.0.5", "10.1.0.1", (3, 13)),
        ("fd09::1", "2001:db8::7", (1, 0)),
        ("fd08::5", "fd01::1", (1, 1)),
    ] {
        let mut sender = sender();
        sender.send(&packet(from, to), &PLAIN);
        let answers: Vec<_> = sender.wire.host.iter().map(|answer| said(answer)).collect();
        // As of the destination: the host takes nothing from itself.
        assert_eq!(answers, [(to.to_owned(), from.to_owned(), kind, code)]);
        assert_eq!((sender.dropped(), sender.wire.datagrams.len()), (1, 0));
    }
}

#[test]
fn a_host_behind_a_peer_hears_through_the_tunnel() {
    for (from, to, own, (kind, code)) in [
        ("10.2.0.5", "192.0.2.7", "10.9.0.1", (3, 0)),
        ("10.2.0.5", "10.1.0.1", "10.9.0.1", (3, 13)),
        ("fd02::5", "fd01::1", "fd09::1", (1, 1)),
    ] {
        let mut sender = sender();
        sender.send(&packet(from, to), &PLAIN);
        sender.drain();
        let payloads = opened(&sender.wire, STRAIT).into_iter().map(|(_, payload, _)| payload);
        let answers: Vec<_> = payloads.map(|answer| said(&answer)).collect();
        assert_eq!(answers, [(own.to_owned(), from.to_owned(), kind, code)]);
        assert_eq!((sender.dropped(), sender.wire.host.len()), (1, 0));
    }
}

#[test]
fn what_came_from_a_peer_is_answered_as_the_receiver_orders() {
    let error = packet("10.9.0.1", "10.2.0.5");
    let mut sender = sender();
    sender.order(Order::Refuse(error.clone().into()));
    sender.drain();
    assert_eq!(opened(&sender.wire, STRAIT), [(Protocol::IPIP, error.clone(), Tos(0))]);
    sender.wire.datagrams.clear();
    sender.order(Order::Quiet(true));
    sender.order(Order::Refuse(error.into()));
    sender.send(&packet("10.2.0.5", "192.0.2.7"), &PLAIN);
    sender.drain();
    assert_eq!(sender.wire.datagrams.len(), 0, "nothing leaves unasked");
}

#[test]
fn a_flood_to_nowhere_gets_few_answers() {
    let mut sender = sender();
    for _ in 0..10_000 {
        sender.send(&packet("10.9.0.1", "192.0.2.7"), &PLAIN);
        sender.send(&packet("10.2.0.5", "192.0.2.7"), &PLAIN);
    }
    sender.drain();
    assert_eq!((sender.wire.host.len(), sender.wire.datagrams.len()), (50, 10));
    assert_eq!(sender.counters.drops.get(Reason::NoPeer), 20_000);
}

#[test]
fn errors_multicasts_and_broadcasts_are_not_answered() {
    let mut sender = sender();
    for to in ["224.0.0.251", "255.255.255.255", "10.9.0.255"] {
        sender.send(&packet("10.9.0.1", to), &PLAIN);
    }
    sender.send(&packet("fd09::1", "ff02::fb"), &PLAIN);
    let mut error = packet("10.2.0.5", "192.0.2.7");
    (error[9], error[20]) = (1, 3);
    sender.send(&error, &PLAIN);
    sender.drain();
    assert_eq!((sender.dropped(), sender.wire.host.len(), sender.wire.datagrams.len()), (5, 0, 0));
}
