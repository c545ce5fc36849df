//! The address of this host that the datagrams of handshakes leave with.

use core::time::Duration;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use strait_ipsec::outbound::Order;
use strait_ipsec::{Notice, PeerId, Place};
use strait_wire::Spi;
use strait_wire::tos::Ecn;

use super::world::{ControlNode, ControlWorld, FAIR, address, peer, settings};
use crate::{ATTEMPT_DELAY, Action, ControlEvent, HandshakeFailure, Start, Where};

const NAME: &str = "site-b.example:51820";

fn local() -> IpAddr {
    "203.0.113.3".parse().unwrap()
}

/// An address that no node has.
fn dead() -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 66], 51_820))
}

/// An address of a node's tunnel.
fn tunnel() -> IpAddr {
    "10.77.0.1".parse().unwrap()
}

/// The datagrams that a node sends now, and their places.
fn sent(node: &mut ControlNode) -> Vec<(Place, Box<[u8]>)> {
    let mut sent = Vec::new();
    while let Some(action) = node.control.poll_action() {
        if let Action::Out(Order::Transmit(_, to, bytes) | Order::Answer(_, to, bytes)) = action {
            sent.push((to, bytes));
        }
    }
    sent
}

#[test]
fn a_handshake_is_answered_with_the_address_that_was_asked() {
    let world = ControlWorld::new(1, 1, FAIR);
    let [mut asks, mut asked] = [0, 1].map(|number: u8| {
        ControlNode::new(settings(number, number.into(), world.base), address(number), world.now)
    });
    let mut far = peer(1, Where::Address(address(1)), Start::Eager);
    far.key = asked.control.public();
    let mut near = peer(0, Where::Unknown, Start::OnTraffic);
    near.key = asks.control.public();
    let counters = Arc::clone(&near.spec.counters);
    asks.control.add_peer(far, world.now);
    asked.control.add_peer(near, world.now);
    let mut answers = 0;
    for _ in 0..10 {
        for (_, bytes) in sent(&mut asks) {
            let from = Place { remote: address(0), local: Some(local()) };
            asked.control.datagram(from, Ecn::NotEct, &bytes, world.now);
        }
        for (to, bytes) in sent(&mut asked) {
            assert_eq!(to.local, Some(local()));
            answers += 1;
            asks.control.datagram(address(1), Ecn::NotEct, &bytes, world.now);
        }
    }
    assert!(answers >= 3, "{answers} answers");
    let place = Place { remote: address(0), local: Some(local()) };
    assert_eq!(counters.endpoint.place(), Some(place), "the tunnel goes on from there");
}

#[test]
fn every_other_attempt_leaves_with_what_the_routing_table_chooses() {
    let world = ControlWorld::new(1, 1, FAIR);
    let mut node = ControlNode::new(settings(0, 0, world.base), address(0), world.now);
    let config = peer(1, Where::Address(address(1)), Start::OnTraffic);
    let counters = Arc::clone(&config.spec.counters);
    node.control.add_peer(config, world.now);
    counters.endpoint.set(Place { remote: address(1), local: Some(local()) });
    let (mut now, mut sources) = (world.now, Vec::new());
    for _ in 0..60 {
        node.control.notice(Notice::NeedsSa(PeerId(1)), now);
        node.control.timeout(now);
        sources.extend(sent(&mut node).into_iter().map(|(to, _)| to.local));
        now += Duration::from_secs(1);
    }
    sources.dedup();
    assert_eq!(sources[..3], [Some(local()), None, Some(local())]);
}

#[test]
fn a_node_that_forgot_its_keys_begins_with_the_address_that_the_peer_sends_to() {
    let world = ControlWorld::new(1, 1, FAIR);
    let mut node = ControlNode::new(settings(0, 0, world.base), address(0), world.now);
    node.control.add_peer(peer(1, Where::Address(address(1)), Start::OnTraffic), world.now);
    let from = Place { remote: address(1), local: Some(local()) };
    node.control.notice(Notice::UnknownSpi(from, Spi(0x0500_0000)), world.now);
    let sources: Vec<_> = sent(&mut node).into_iter().map(|(to, _)| to).collect();
    assert!(!sources.is_empty() && sources.iter().all(|to| *to == from), "{sources:?}");
}

#[test]
fn an_address_of_a_name_has_no_source_until_it_answers() {
    let world = ControlWorld::new(1, 1, FAIR);
    let [mut asks, mut asked] = [0, 1].map(|number: u8| {
        ControlNode::new(settings(number, number.into(), world.base), address(number), world.now)
    });
    let far = peer(1, Where::Name(NAME.to_owned()), Start::Eager);
    let counters = Arc::clone(&far.spec.counters);
    asks.control.add_peer(far, world.now);
    asked.control.add_peer(peer(0, Where::Unknown, Start::OnTraffic), world.now);
    asks.control.resolved(PeerId(1), NAME, Ok(vec![dead(), address(1)]), world.now);
    let first: Vec<Place> = sent(&mut asks).into_iter().map(|(to, _)| to).collect();
    assert!(!first.is_empty() && first.iter().all(|to| *to == dead().into()), "{first:?}");
    let now = world.now + ATTEMPT_DELAY;
    asks.control.timeout(now);
    let place = Place { remote: address(1), local: Some(local()) };
    let mut sources = Vec::new();
    for _ in 0..10 {
        for (to, bytes) in sent(&mut asks) {
            assert_eq!(to.remote, address(1), "the other is not tried any more");
            sources.push(to.local);
            asked.control.datagram(address(0), Ecn::NotEct, &bytes, now);
        }
        for (_, bytes) in sent(&mut asked) {
            asks.control.datagram(place, Ecn::NotEct, &bytes, now);
        }
    }
    sources.dedup();
    assert_eq!(sources, [None, Some(local())]);
    assert_eq!(counters.endpoint.place(), Some(place), "the tunnel goes on from there");
}

/// The places where a node's handshakes began, and the reasons why they failed.
fn story(node: &ControlNode) -> (Vec<SocketAddr>, Vec<HandshakeFailure>) {
    let (mut begun, mut failed) = (Vec::new(), Vec::new());
    for (_, event) in &node.events {
        match event {
            ControlEvent::HandshakeStarted { to, .. } => begun.push(*to),
            ControlEvent::Failed { why, .. } => failed.push(why.clone()),
            _ => {}
        }
    }
    (begun, failed)
}

#[test]
fn an_address_that_nothing_can_leave_to_gives_way_to_the_next() {
    let mut world = ControlWorld::new(2, 1, FAIR);
    world.nodes[0].names.insert(NAME.to_owned(), Ok(vec![dead(), address(1)]));
    world.add(1, peer(0, Where::Unknown, Start::OnTraffic));
    world.add(0, peer(1, Where::Name(NAME.to_owned()), Start::Eager));
    world.ask(0, |control, now| control.no_source(PeerId(1), dead(), tunnel(), now));
    assert_eq!(story(&world.nodes[0]), (vec![dead(), address(1)], vec![]), "it does not wait");
    assert!(world.run_until(2, ControlWorld::both_up));
    assert_eq!(world.nodes[0].endpoint(PeerId(1)), Some(address(1)));
    assert_eq!(story(&world.nodes[0]).1, []);
}

#[test]
fn an_attempt_that_nothing_can_leave_for_fails_at_once() {
    let mut world = ControlWorld::new(2, 1, FAIR);
    world.introduce(Start::Eager);
    world.ask(0, |control, now| control.no_source(PeerId(1), dead(), tunnel(), now));
    assert_eq!(story(&world.nodes[0]), (vec![address(1)], vec![]), "no handshake is there");
    world.ask(0, |control, now| control.no_source(PeerId(1), address(1), tunnel(), now));
    let failure = HandshakeFailure::NoSource { tunnel: tunnel() };
    assert_eq!(story(&world.nodes[0]), (vec![address(1)], vec![failure]));
    // The first flight had left, and its answer changes nothing; the next attempt has a source.
    assert!(world.run_until(5, ControlWorld::both_up));
    assert_eq!(story(&world.nodes[0]).0, [address(1); 2]);
}
