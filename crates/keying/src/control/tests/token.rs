use core::time::Duration;
use std::net::SocketAddr;

use strait_ipsec::Reason;
use strait_ipsec::outbound::Order;

use super::world::{ControlNode, ControlWorld, FAIR, address, peer, settings};
use crate::{Action, PresharedToken, Start, Where};

const SECOND: Duration = Duration::from_secs(1);

/// Two nodes that are peers, of which those on the list have the token.
fn world(seed: u64, having: &[u8]) -> ControlWorld {
    let mut world = ControlWorld::with(2, seed, FAIR, |node, settings| {
        settings.token = having.contains(&node).then(|| PresharedToken::from_bytes(&[9; 32]));
    });
    world.introduce(Start::Eager);
    world
}

/// The first datagrams of a node that begins a handshake with node 1, with this token.
fn first_flight(world: &ControlWorld, number: u8, token: Option<u8>) -> Vec<Box<[u8]>> {
    let mut settings = settings(number, 4, world.base);
    settings.token = token.map(|byte| PresharedToken::from_bytes(&[byte; 32]));
    let mut stranger = ControlNode::new(settings, address(number), world.now);
    let mut config = peer(1, Where::Address(address(1)), Start::Eager);
    config.key = world.nodes[1].control.public();
    stranger.control.add_peer(config, world.now);
    let transmitted = |action| match action {
        Action::Out(Order::Transmit(_, _, bytes)) => Some(bytes),
        _ => None,
    };
    std::iter::from_fn(|| stranger.control.poll_action()).filter_map(transmitted).collect()
}

fn elsewhere(number: u8) -> SocketAddr {
    SocketAddr::from(([203, 0, 113, number], 4000))
}

#[test]
fn with_the_token_a_handshake_takes_as_long_as_without() {
    let took = |having: &[u8]| {
        let mut world = world(1, having);
        let began = world.now;
        assert!(world.run_until(5, ControlWorld::both_up), "{having:?}: {:?}", world.nodes[0].events);
        world.assert_joined();
        world.now - began
    };
    assert_eq!(took(&[0, 1]), took(&[]));
    // Who has the token reaches nodes that ask for none.
    assert_eq!(took(&[0]), took(&[]));
}

#[test]
fn a_node_with_a_token_does_not_answer_without_it() {
    let mut world = world(2, &[1]);
    world.run(5 * SECOND);
    assert!(!world.is_up(0, 1) && !world.is_up(1, 0), "not even a peer");
    let version = [&[0xc0, 0x1a, 0x2a, 0x3a, 0x5a, 8][..], &[7; 1194]].concat();
    let short = [&[0x40][..], &[7; 1199]].concat();
    // As many ids as this node gives its connections, of which a fourth happens to fit the rest as a valid header.
    let own_id = |number: u8| {
        [&[0xc0, 0, 0, 0, 1, 8][..], &[number; 8], &[8], &[6; 8], &[0, 0x44, 0x96], &[5; 1174]].concat()
    };
    let refused = |world: &ControlWorld| world.nodes[1].totals.drops.get(Reason::NoToken);
    let before = refused(&world);
    for number in 0..100 {
        world.forge(1, elsewhere(number), &own_id(number));
    }
    let refused = refused(&world) - before;
    assert!(refused > 5, "{refused} of 100 reached the end");
    let flights = [first_flight(&world, 9, None), first_flight(&world, 9, Some(8))].concat();
    for bytes in [version, short].iter().map(Vec::as_slice).chain(flights.iter().map(|one| &one[..])) {
        for number in 0..100 {
            world.forge(1, elsewhere(number), bytes);
        }
    }
    world.run(20 * SECOND);
    assert_eq!(world.nodes[1].datagrams, 0);
    assert_eq!(world.nodes[1].control.connections(), 0);
    assert!(world.nodes[1].totals.drops.get(Reason::NoToken) >= 500);
}

#[test]
fn a_recorded_first_flight_is_one_handshake_however_often_it_comes() {
    let mut world = world(3, &[0, 1]);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.run(20 * SECOND);
    let before = world.nodes[1].datagrams;
    let flight = first_flight(&world, 9, Some(9));
    for number in 0..200 {
        for bytes in &flight {
            world.forge(1, elsewhere(number), bytes);
        }
    }
    assert_eq!(world.nodes[1].control.connections(), 1);
    assert!(world.nodes[1].datagrams - before <= 3, "{}", world.nodes[1].datagrams - before);
}

#[test]
fn a_token_and_a_retry_get_on_together() {
    // Node 1 asks for no token, and is so busy with strangers that it wants addresses proved.
    let mut world = ControlWorld::with(2, 5, FAIR, |node, settings| {
        settings.token = (node == 0).then(|| PresharedToken::from_bytes(&[9; 32]));
    });
    for number in 0..20 {
        for bytes in first_flight(&world, 100 + number, None) {
            world.forge(1, elsewhere(number), &bytes);
        }
    }
    world.introduce(Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up), "{:?}", world.nodes[0].events);
    world.assert_joined();
}
