use core::time::Duration;

use strait_ipsec::{Notice, PeerId};
use strait_wire::Spi;

use super::world::{ControlWorld, FAIR, Weather, address, peer};
use crate::{ControlEvent, Role, Start, Where};

const SECOND: Duration = Duration::from_secs(1);

/// Two nodes that know each other's place; the second begins `later` milliseconds after the first.
fn crossing(seed: u64, weather: Weather, later: u64) -> ControlWorld {
    let mut world = ControlWorld::new(2, seed, weather);
    world.add(0, peer(1, Where::Address(address(1)), Start::OnTraffic));
    world.add(1, peer(0, Where::Address(address(0)), Start::OnTraffic));
    world.packet(0, 1);
    world.run(Duration::from_millis(later));
    world.packet(1, 0);
    world
}

fn failures(world: &ControlWorld) -> usize {
    (0..2).map(|node| world.count(node, |event| matches!(event, ControlEvent::Failed { .. }))).sum()
}

#[test]
fn crossing_handshakes_leave_one_pair() {
    // A one-way delay of 10 ms and a handshake of three of them: every overlap there is.
    for later in 0..70 {
        let mut world = crossing(later, FAIR, later);
        assert!(world.run_until(10, ControlWorld::both_up), "{later} ms: {:?}", world.nodes[0].events);
        world.run(10 * SECOND);
        world.assert_joined();
        assert!((0..2).all(|node| world.started(node).len() <= 1), "{later} ms: neither begins twice");
        assert_eq!(
            failures(&world),
            0,
            "{later} ms: {:?} {:?}",
            world.nodes[0].events,
            world.nodes[1].events
        );
        for node in &world.nodes {
            assert_eq!(node.inbound.len(), 1, "{later} ms: nothing is left of the other handshake");
            assert_eq!(node.outbound.len(), 1);
            assert_eq!(node.control.connections(), 0);
        }
    }
}

#[test]
fn of_two_that_begin_at_the_same_moment_the_smaller_key_goes_first() {
    let mut world = crossing(7, FAIR, 0);
    assert!(world.run_until(10, ControlWorld::both_up));
    let smaller = usize::from(world.nodes[1].control.public() < world.nodes[0].control.public());
    for node in 0..2_usize {
        let status = world.nodes[node].control.status(PeerId(u32::try_from(1 - node).unwrap())).unwrap();
        let role = if node == smaller { Role::Initiator } else { Role::Responder };
        assert_eq!(status.association.unwrap().role, role);
        assert_eq!(status.failures, 0);
    }
}

#[test]
fn crossing_handshakes_on_uneven_and_lossy_links_leave_one_pair() {
    for seed in 0..150 {
        let lost = if seed % 3 == 0 { 150 } else { 0 };
        let mut world = crossing(seed, Weather { delay: (1, 60), lost, twice: 50 }, seed % 40);
        assert!(world.run_until(60, ControlWorld::both_up), "seed {seed}");
        world.weather = FAIR;
        world.run(15 * SECOND);
        // Packets on both make sure that both send with what the other has.
        world.chat(5, 100);
        assert_eq!(world.unknown, 0, "seed {seed}");
        world.assert_joined();
        if lost == 0 {
            assert_eq!(
                failures(&world),
                0,
                "seed {seed}: {:?} {:?}",
                world.nodes[0].events,
                world.nodes[1].events
            );
        }
        world.run(70 * SECOND);
        assert!(world.nodes.iter().all(|node| node.inbound.len() == 1), "seed {seed}");
    }
}

#[test]
fn blocked_attempt_does_not_delay_the_peers_handshake() {
    // Each node in turn has the wrong address of the other, so only the other's handshake can succeed.
    for lost in 0..2_u8 {
        let other = 1 - lost;
        let mut world = ControlWorld::new(2, 3, FAIR);
        let nowhere = "192.0.2.99:1".parse().unwrap();
        world.add(lost.into(), peer(other, Where::Address(nowhere), Start::OnTraffic));
        world.add(other.into(), peer(lost, Where::Address(address(lost)), Start::OnTraffic));
        world.packet(lost.into(), other.into());
        world.run(Duration::from_millis(500));
        world.packet(other.into(), lost.into());
        assert!(
            world.run_until(1, ControlWorld::both_up),
            "{lost}: {:?}",
            world.nodes[usize::from(lost)].events
        );
        world.assert_joined();
        assert_eq!(world.nodes[usize::from(lost)].endpoint(PeerId(other.into())), Some(address(other)));
    }
}

#[test]
fn the_node_that_yielded_tries_again_when_the_other_vanishes() {
    let mut world = crossing(5, FAIR, 0);
    assert!(world.run_until(1, |world| {
        (0..2).any(|node| world.count(node, |event| matches!(event, ControlEvent::Yielded { .. })) > 0)
    }));
    let yielded = usize::from(world.count(1, |event| matches!(event, ControlEvent::Yielded { .. })) > 0);
    let other = 1 - yielded;
    world.nodes[other].cut = true;
    world.run(30 * SECOND);
    world.nodes[other].cut = false;
    // The other sends nothing, so that later handshakes help nothing either.
    assert!((0..100).any(|_| {
        world.packet(yielded, u32::try_from(other).unwrap());
        world.run(SECOND);
        world.both_up()
    }));
    world.assert_joined();
}

#[test]
fn notices_from_before_the_new_keys_begin_no_second_handshake() {
    let mut world = crossing(8, FAIR, 30);
    assert!(world.run_until(1, ControlWorld::both_up));
    let started: Vec<_> = (0..2).map(|node| world.started(node).len()).collect();
    // Their packet threads said so before they were given the new associations.
    for (node, other) in [(0, 1_u8), (1, 0)] {
        world.notice(node, Notice::NeedsSa(PeerId(other.into())));
        world.notice(node, Notice::UnknownSpi(address(other).into(), Spi(0x0400_0001)));
    }
    world.run(SECOND);
    assert_eq!((0..2).map(|node| world.started(node).len()).collect::<Vec<_>>(), started);
    // What is said a second later is true: the other end may have lost the keys.
    world.notice(0, Notice::NeedsSa(PeerId(1)));
    assert_eq!(world.started(0).len(), started[0] + 1);
}

#[test]
fn two_eager_nodes_that_boot_together_connect() {
    let mut world = ControlWorld::new(2, 6, FAIR);
    world.add(0, peer(1, Where::Address(address(1)), Start::Eager));
    world.add(1, peer(0, Where::Address(address(0)), Start::Eager));
    assert!(world.run_until(1, ControlWorld::both_up));
    world.run(10 * SECOND);
    world.assert_joined();
    assert_eq!(failures(&world), 0);
    assert!(world.sent < 30, "{}", world.sent);
}
