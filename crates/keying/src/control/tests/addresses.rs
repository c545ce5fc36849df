//! Peers whose names have several addresses.

use core::time::Duration;
use std::net::SocketAddr;

use strait_ipsec::PeerId;
use strait_scheduler::{LinkRate, Rate};

use super::world::{ControlWorld, FAIR, Weather, address, key, peer};
use crate::{ControlEvent, HandshakeFailure, PeerState, Start, Where};

const SECOND: Duration = Duration::from_secs(1);
const NAME: &str = "site-b.example:51820";
/// A round trip of 400 ms.
const FAR: Weather = Weather { delay: (200, 200), lost: 0, twice: 0 };

/// An address that no node has.
fn dead(host: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, host], 51_820))
}

fn dead_v6() -> SocketAddr {
    "[2001:db8::66]:51820".parse().unwrap()
}

/// Node 0 finds node 1 by name, and `copies` more nodes have the key of node 1.
fn world(addresses: &[SocketAddr], copies: u8, weather: Weather, up: LinkRate) -> ControlWorld {
    let mut world = ControlWorld::with(2 + copies, 1, weather, |node, settings| {
        settings.up = up;
        settings.identity = key(node.min(1));
    });
    world.nodes[0].names.insert(NAME.to_owned(), Ok(addresses.to_vec()));
    for node in 1..usize::from(2 + copies) {
        world.add(node, peer(0, Where::Unknown, Start::OnTraffic));
    }
    world.add(0, peer(1, Where::Name(NAME.to_owned()), Start::Eager));
    world
}

/// The places at which handshakes began, and how many milliseconds after the first.
fn tried(world: &ControlWorld) -> Vec<(u128, SocketAddr)> {
    let began = |(at, event): &(_, ControlEvent)| match event {
        ControlEvent::HandshakeStarted { to, .. } => Some((*at, *to)),
        _ => None,
    };
    let began: Vec<_> = world.nodes[0].events.iter().filter_map(began).collect();
    began.iter().map(|(at, to)| (at.since(began[0].0).as_millis(), *to)).collect()
}

fn failures(world: &ControlWorld, node: usize) -> Vec<HandshakeFailure> {
    let failed = |(_, event): &(_, ControlEvent)| match event {
        ControlEvent::Failed { why, .. } => Some(why.clone()),
        _ => None,
    };
    world.nodes[node].events.iter().filter_map(failed).collect()
}

#[test]
fn a_dead_address_costs_a_quarter_of_a_second() {
    for (dead, living) in [(dead(66), address(1)), (dead_v6(), address(1))] {
        let mut world = world(&[dead, living], 0, FAIR, LinkRate::Unpaced);
        assert!(world.run_until(2, ControlWorld::both_up));
        assert_eq!(tried(&world), [(0, dead), (250, living)]);
        assert_eq!(world.nodes[0].endpoint(PeerId(1)), Some(living));
        world.assert_joined();
        let moved = world.count(0, |event| matches!(event, ControlEvent::Moved { .. }));
        assert_eq!((failures(&world, 0), moved), (vec![], 0));
        // Nothing more is sent to the dead address: not even that it was given up.
        world.run(60 * SECOND);
        let lens: Vec<_> = world.stray.iter().map(|bytes| bytes.len()).collect();
        assert_eq!(lens, [1_200; 2], "a ClientHello with a key share of ML-KEM");
        assert_eq!(world.nodes[0].control.connections(), 0);
    }
}

#[test]
fn the_first_address_is_alone_if_it_answers_in_time() {
    let mut world = world(&[address(1), dead(66), dead_v6()], 0, FAIR, LinkRate::Unpaced);
    assert!(world.run_until(2, ControlWorld::both_up));
    world.run(20 * SECOND);
    assert_eq!(tried(&world), [(0, address(1))]);
    assert!(world.stray.is_empty());
}

#[test]
fn the_last_of_eight_has_its_turn_within_two_seconds_and_a_ninth_has_none() {
    let mut addresses: Vec<SocketAddr> = (1..8).map(dead).collect();
    addresses.extend([address(1), dead(9)]);
    let mut world = world(&addresses, 0, FAIR, LinkRate::Unpaced);
    assert!(world.run_until(2, ControlWorld::both_up));
    let times: Vec<_> = tried(&world).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 250, 500, 750, 1000, 1250, 1500, 1750]);
    let mut dead_ones = world_of_the_dead(&addresses);
    dead_ones.run(10 * SECOND);
    assert_eq!(tried(&dead_ones).len(), 8);
}

/// The same where no node has any of the addresses.
fn world_of_the_dead(addresses: &[SocketAddr]) -> ControlWorld {
    let all: Vec<SocketAddr> =
        addresses.iter().map(|at| if *at == address(1) { dead(8) } else { *at }).collect();
    world(&all, 0, FAIR, LinkRate::Unpaced)
}

#[test]
fn all_dead_addresses_are_tried_in_each_attempt_and_fail_once_together() {
    let all = [dead(1), dead_v6(), dead(2)];
    let mut world = world(&all, 0, FAIR, LinkRate::Unpaced);
    world.run(10 * SECOND + SECOND / 2);
    assert_eq!(tried(&world), [(0, all[0]), (250, all[1]), (500, all[2])]);
    assert_eq!(failures(&world, 0), [HandshakeFailure::TimedOut]);
    world.run(600 * SECOND);
    assert!(tried(&world).len() > 3 && tried(&world).len().is_multiple_of(3), "{:?}", tried(&world));
    assert_eq!(world.nodes[0].control.status(PeerId(1)).unwrap().state, PeerState::Idle);
    assert_eq!(world.nodes[0].control.connections(), 0);
    assert_eq!(world.nodes[0].control.poll_timeout(), None);
}

#[test]
fn who_has_another_key_is_passed_at_once() {
    // Node 2 has a key of its own, and would take part in a handshake.
    let mut world = ControlWorld::new(3, 1, FAIR);
    world.nodes[0].names.insert(NAME.to_owned(), Ok(vec![address(2), address(1)]));
    for node in [1, 2] {
        world.add(node, peer(0, Where::Unknown, Start::OnTraffic));
    }
    world.add(0, peer(1, Where::Name(NAME.to_owned()), Start::Eager));
    assert!(world.run_until(2, ControlWorld::both_up));
    let tried = tried(&world);
    assert_eq!((tried.len(), tried[1].1), (2, address(1)));
    assert!(tried[1].0 < 250, "its answer ends the wait: {tried:?}");
    assert_eq!(world.nodes[0].endpoint(PeerId(1)), Some(address(1)));
}

#[test]
fn a_peer_that_proves_its_key_and_then_refuses_is_last_in_the_next_attempt() {
    let mut world = world(&[address(2), address(1)], 1, FAIR, LinkRate::Unpaced);
    world.ask(2, |control, now| control.remove_peer(PeerId(0), now));
    assert!(world.run_until(5, ControlWorld::both_up));
    let order: Vec<_> = tried(&world).into_iter().map(|(_, to)| to).collect();
    assert_eq!(order, [address(2), address(1)]);
    assert!(matches!(failures(&world, 0)[..], [HandshakeFailure::RefusedThere { .. }]));
}

#[test]
fn of_two_that_answer_late_one_is_joined_and_the_other_hears_so() {
    let mut world = world(&[address(1), address(2)], 1, FAR, LinkRate::Unpaced);
    assert!(world.run_until(3, ControlWorld::both_up));
    world.run(2 * SECOND);
    assert_eq!(tried(&world), [(0, address(1)), (250, address(2))]);
    assert_eq!((world.established(0), world.established(1), world.established(2)), (1, 1, 0));
    let sent = world.nodes[2].datagrams;
    world.run(30 * SECOND);
    assert_eq!(world.nodes[2].datagrams, sent, "it does not go on answering");
    assert!((0..3).all(|node| failures(&world, node).is_empty()));
    world.assert_joined();
}

#[test]
fn the_address_that_answered_stays_first() {
    let all = [dead(66), address(1)];
    let mut world = world(&all, 0, FAIR, LinkRate::Unpaced);
    assert!(world.run_until(2, ControlWorld::both_up));
    world.chat(10, 500);
    // It is silent for a while, and the name leads where it led before.
    world.nodes[1].cut = true;
    for _ in 0..60 {
        world.packet(0, 1);
        world.run(SECOND / 2);
        if world.nodes[0].lookups.len() > 1 {
            break;
        }
    }
    assert_eq!(tried(&world)[2].1, address(1));
    assert_eq!(world.nodes[0].endpoint(PeerId(1)), Some(address(1)), "no answer moves it");
    world.nodes[1].cut = false;
    world.chat(30, 500);
    assert_eq!(world.nodes[0].endpoint(PeerId(1)), Some(address(1)));
    assert_eq!(world.established(0), 2);
}

#[test]
fn a_peer_that_moves_to_another_of_its_addresses_is_found_there() {
    let elsewhere = dead(7);
    let mut world = world(&[address(1), elsewhere], 0, FAIR, LinkRate::Unpaced);
    assert!(world.run_until(2, ControlWorld::both_up));
    world.chat(10, 500);
    world.roam(1, elsewhere);
    for _ in 0..20 {
        world.packet(0, 1);
        world.run(SECOND);
    }
    assert_eq!(world.nodes[0].endpoint(PeerId(1)), Some(elsewhere));
    assert_eq!(failures(&world, 0), []);
    assert_eq!(world.established(0), 2);
}

#[test]
fn a_slow_link_is_left_to_the_first_handshake_for_as_long_as_its_flights_take() {
    let rate = LinkRate::Given(Rate::from_bits(64_000).unwrap());
    let mut slow = world(&[dead(66), address(1)], 0, FAIR, rate);
    assert!(slow.run_until(3, ControlWorld::both_up));
    // 250 ms, and two datagrams at 64 kbit/s out; nothing is given of the way back.
    assert_eq!(tried(&slow)[1].0, 250 + 2 * 1_248 * 8 / 64);
    let rate = LinkRate::Given(Rate::from_bits(1_200).unwrap());
    let mut slower = world(&[dead(66), address(1)], 0, FAIR, rate);
    assert!(slower.run_until(3, ControlWorld::both_up));
    assert_eq!(tried(&slower)[1].0, 2_000, "RFC 8305 has a maximum");
}
