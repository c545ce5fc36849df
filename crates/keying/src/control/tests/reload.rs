use core::time::Duration;

use strait_ipsec::{Notice, PeerId};

use super::world::{ControlWorld, FAIR, address, peer};
use crate::{ControlEvent, HandshakeFailure, PayloadFormat, Refusal, Start, Where};

const SECOND: Duration = Duration::from_secs(1);

/// A hub (node 0) with two peers that began.
fn hub(seed: u64) -> ControlWorld {
    let mut world = ControlWorld::new(3, seed, FAIR);
    for other in 1..3 {
        world.add(0, peer(other, Where::Unknown, Start::OnTraffic));
        world.add(other.into(), peer(0, Where::Address(address(0)), Start::Eager));
    }
    assert!(world.run_until(5, |world| world.is_up(0, 1) && world.is_up(0, 2)));
    world.run(5 * SECOND);
    world
}

#[test]
fn a_removed_peer_is_refused_and_the_others_notice_nothing() {
    let mut world = hub(1);
    let other = world.nodes[0].outbound[&PeerId(2)].spi();
    world.ask(0, |control, now| control.remove_peer(PeerId(1), now));
    assert!(world.nodes[0].control.status(PeerId(1)).is_none());
    assert_eq!(world.nodes[0].inbound.len(), 1);
    let key = world.nodes[1].control.public();
    let spi = world.nodes[1].outbound[&PeerId(0)].spi();
    world.notice(1, Notice::Exhausted(PeerId(0), spi));
    world.run(10 * SECOND);
    let refused = |event: &ControlEvent| {
        matches!(event, ControlEvent::Failed { why: HandshakeFailure::RefusedThere { .. }, .. })
    };
    assert!(world.count(1, refused) >= 1, "{:?}", world.nodes[1].events);
    let stranger = |event: &ControlEvent| matches!(event, ControlEvent::Refused { why: Refusal::Stranger(k), .. } if *k == key);
    assert!(world.count(0, stranger) >= 1);
    assert_eq!(world.nodes[0].outbound[&PeerId(2)].spi(), other);
    assert!(world.packet(0, 2) && world.packet(2, 0));
    world.run(SECOND);
    assert_eq!(world.unknown, 0);
    // Added again, it is welcome again.
    world.add(0, peer(1, Where::Unknown, Start::OnTraffic));
    world.notice(1, Notice::Exhausted(PeerId(0), spi));
    assert!(world.run_until(70, |world| world.is_up(0, 1)));
    assert_eq!(world.nodes[0].outbound[&PeerId(2)].spi(), other);
}

#[test]
fn a_peer_removed_in_the_middle_of_a_handshake_leaves_nothing() {
    for steps in 0..60 {
        let mut world = ControlWorld::pair(2, FAIR, Start::Eager);
        world.run(Duration::from_millis(steps));
        let node = usize::try_from(steps % 2).unwrap();
        let other = PeerId(1 - u32::try_from(node).unwrap());
        world.ask(node, |control, now| control.remove_peer(other, now));
        assert!(world.nodes[node].inbound.is_empty() && world.nodes[node].outbound.is_empty());
        world.run(8 * SECOND);
        assert_eq!(world.nodes[node].control.connections(), 0, "closed, not left to time out");
        world.run(200 * SECOND);
        assert!(world.nodes[node].inbound.is_empty() && world.nodes[node].outbound.is_empty());
        assert_eq!(world.nodes[node].control.connections(), 0);
        assert_eq!(world.nodes[node].control.poll_timeout(), None);
    }
}

#[test]
fn another_endpoint_is_used_at_once_and_costs_no_association() {
    let mut world = ControlWorld::pair(3, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.run(5 * SECOND);
    let spi = world.nodes[0].outbound[&PeerId(1)].spi();
    let elsewhere = "198.51.100.3:7000".parse().unwrap();
    world.roam(1, elsewhere);
    let mut config = peer(1, Where::Address(elsewhere), Start::Eager);
    config.keepalive = Some(10 * SECOND);
    world.ask(0, |control, now| control.update_peer(config, now));
    assert_eq!(world.nodes[0].endpoint(PeerId(1)), Some(elsewhere));
    assert!(world.packet(0, 1));
    world.run(25 * SECOND);
    assert_eq!(world.nodes[0].outbound[&PeerId(1)].spi(), spi);
    assert_eq!(world.nodes[0].signs.len(), 2);
    assert_eq!(world.established(0), 1);
}

#[test]
fn address_configured_during_a_look_up_is_used_at_once() {
    let mut world = ControlWorld::new(2, 6, FAIR);
    world.add(1, peer(0, Where::Unknown, Start::OnTraffic));
    world.add(0, peer(1, Where::Name("old.example:1".to_owned()), Start::Eager));
    world.run(SECOND);
    assert_eq!(world.nodes[0].lookups.len(), 1, "the resolver has not answered");
    let config = peer(1, Where::Address(address(1)), Start::Eager);
    world.ask(0, |control, now| control.update_peer(config, now));
    assert!(world.run_until(1, ControlWorld::both_up), "{:?}", world.nodes[0].events);
    let elsewhere = "198.51.100.7:4000".parse().unwrap();
    world.ask(0, |control, now| control.resolved(PeerId(1), "old.example:1", Ok(vec![elsewhere]), now));
    assert_eq!(world.nodes[0].endpoint(PeerId(1)), Some(address(1)), "the answer comes too late");
}

#[test]
fn mended_endpoint_is_tried_at_once_whatever_failed_before() {
    for seconds in [3, 33] {
        let mut world = ControlWorld::new(2, 9, FAIR);
        world.add(1, peer(0, Where::Unknown, Start::OnTraffic));
        world.add(0, peer(1, Where::Address("192.0.2.77:1".parse().unwrap()), Start::Eager));
        world.run(seconds * SECOND);
        let config = peer(1, Where::Address(address(1)), Start::Eager);
        world.ask(0, |control, now| control.update_peer(config, now));
        let status = world.nodes[0].control.status(PeerId(1)).unwrap();
        assert_eq!((status.failures, status.last_failure), (0, None));
        assert!(world.run_until(1, ControlWorld::both_up), "{:?}", world.nodes[0].events);
    }
}

#[test]
fn answer_for_a_former_name_is_ignored() {
    let mut world = ControlWorld::new(2, 8, FAIR);
    let (old, new) = ("old.example:1", "new.example:1");
    world.add(1, peer(0, Where::Unknown, Start::OnTraffic));
    world.add(0, peer(1, Where::Name(old.to_owned()), Start::Eager));
    world.run(SECOND);
    let config = peer(1, Where::Name(new.to_owned()), Start::Eager);
    world.ask(0, |control, now| control.update_peer(config, now));
    let names: Vec<&str> = world.nodes[0].lookups.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, [old, new], "the resolver has answered neither");
    let elsewhere = "198.51.100.7:4000".parse().unwrap();
    world.ask(0, |control, now| control.resolved(PeerId(1), old, Ok(vec![elsewhere]), now));
    assert_eq!(world.nodes[0].endpoint(PeerId(1)), None);
    world.ask(0, |control, now| control.resolved(PeerId(1), old, Err("no such name".to_owned()), now));
    world.ask(0, |control, now| control.resolved(PeerId(1), new, Ok(vec![address(1)]), now));
    assert!(world.run_until(1, ControlWorld::both_up), "{:?}", world.nodes[0].events);
}

#[test]
fn another_key_makes_another_peer() {
    let mut world = hub(4);
    let mut config = peer(1, Where::Unknown, Start::OnTraffic);
    config.key = super::world::key(9).public();
    world.ask(0, |control, now| control.update_peer(config, now));
    assert!(!world.is_up(0, 1));
    assert_eq!(world.nodes[0].inbound.len(), 1);
    assert!(world.is_up(0, 2));
    // A key that belongs to a peer already takes that peer's place.
    let mut config = peer(7, Where::Unknown, Start::OnTraffic);
    config.key = world.nodes[2].control.public();
    world.add(0, config);
    assert!(world.nodes[0].control.status(PeerId(2)).is_none());
    assert!(world.nodes[0].inbound.is_empty());
    assert_eq!(world.nodes[0].control.peers().collect::<Vec<_>>(), [PeerId(1), PeerId(7)]);
}

#[test]
fn changed_format_is_offered_with_the_next_handshake() {
    let mut world = ControlWorld::pair(5, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    let mut config = peer(1, Where::Address(address(1)), Start::Eager);
    config.format = PayloadFormat::Standard;
    world.ask(0, |control, now| control.update_peer(config, now));
    let spi = world.nodes[0].outbound[&PeerId(1)].spi();
    world.notice(0, Notice::Exhausted(PeerId(1), spi));
    world.run(SECOND);
    let pair = world.nodes[1].control.status(PeerId(0)).unwrap().association.unwrap();
    assert_eq!(pair.payloads, strait_ipsec::Payloads::STANDARD);
}
