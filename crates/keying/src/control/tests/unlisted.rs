//! Nodes that the configuration does not list, where it takes such.

use core::time::Duration;

use strait_ipsec::PeerId;

use super::misbehaviour::Rogue;
use super::world::{ControlWorld, FAIR, address, key, peer};
use crate::{Control, ControlEvent, HandshakeFailure, Refusal, Start, Where};

const SECOND: Duration = Duration::from_secs(1);

/// Node 0 takes `most` nodes that it does not list; `others` know where it is.
fn world(others: u8, most: usize) -> ControlWorld {
    let mut world = ControlWorld::new(others + 1, 1, FAIR);
    world.ask(0, |control, now| control.take_unlisted(most, now));
    for node in 1..=others {
        world.add(node.into(), peer(0, Where::Address(address(0)), Start::Eager));
    }
    world
}

fn refused_as_full(world: &ControlWorld) -> usize {
    world.count(0, |event| matches!(event, ControlEvent::Refused { why: Refusal::Full(_), .. }))
}

#[test]
fn a_node_that_is_not_listed_has_a_session_without_addresses() {
    let mut world = world(1, 4);
    assert!(world.run_until(5, |world| world.is_up(1, 0)));
    let [id] = world.nodes[0].unlisted[..] else { panic!("{:?}", world.nodes[0].unlisted) };
    world.run(SECOND);
    let status = world.nodes[0].control.status(id).unwrap();
    assert_eq!((status.name, status.endpoint), (key(1).public().to_string(), Some(address(1))));
    assert!(world.packet(1, 0));
    world.run(SECOND);
    assert!(world.is_up(0, id.0), "its first packet confirms");
    // Another handshake of the same node is the same peer's.
    world.ask(1, |control, now| control.remove_peer(PeerId(0), now));
    world.add(1, peer(0, Where::Address(address(0)), Start::Eager));
    assert!(world.run_until(5, |world| world.is_up(1, 0)));
    assert_eq!(world.nodes[0].unlisted, [id]);
}

#[test]
fn one_that_is_removed_comes_back_as_another() {
    let mut world = world(1, 4);
    assert!(world.run_until(5, |world| world.is_up(1, 0)));
    let first = world.nodes[0].unlisted[0];
    world.ask(0, |control, now| control.remove_peer(first, now));
    assert_eq!(world.nodes[0].control.peers().count(), 0);
    assert!(world.nodes[0].inbound.is_empty());
    world.ask(1, |control, now| control.remove_peer(PeerId(0), now));
    world.add(1, peer(0, Where::Address(address(0)), Start::Eager));
    assert!(world.run_until(5, |world| world.is_up(1, 0)));
    let [_, second] = world.nodes[0].unlisted[..] else { panic!("{:?}", world.nodes[0].unlisted) };
    assert_ne!(first, second);
}

#[test]
fn there_is_room_for_so_many_and_a_quarter_of_it_for_one_network() {
    let mut world = world(6, 4);
    world.run(5 * SECOND);
    assert_eq!(world.nodes[0].unlisted.len(), 4);
    assert!(refused_as_full(&world) > 0);
    let full = |event: &ControlEvent| match event {
        ControlEvent::Failed { why: HandshakeFailure::Closed(why), .. } => why.contains("no room"),
        _ => false,
    };
    assert_eq!((1..7).filter(|node| world.count(*node, full) > 0).count(), 2);
    // All at the address of the first.
    let mut world = self::world(0, 8);
    for node in 1..4 {
        let mut rogue = Rogue::with_key(&world, node);
        assert!(rogue.channels.connect(address(0).into(), key(0).public(), world.now).is_ok());
        rogue.exchange(&mut world, SECOND);
    }
    assert_eq!((world.nodes[0].unlisted.len(), refused_as_full(&world)), (2, 1));
}

#[test]
fn a_peer_that_is_added_is_one_and_none_is_left_where_none_are_taken() {
    let mut world = world(2, 8);
    assert!(world.run_until(5, |world| world.is_up(1, 0) && world.is_up(2, 0)));
    let by_key = |control: &Control, node: u8| {
        let name = key(node).public().to_string();
        control.peers().filter(|id| control.status(*id).unwrap().name == name).collect::<Vec<_>>()
    };
    let was = by_key(&world.nodes[0].control, 1);
    assert_eq!(was.len(), 1);
    world.add(0, peer(1, Where::Unknown, Start::OnTraffic));
    assert!(by_key(&world.nodes[0].control, 1).is_empty(), "it has another name now");
    world.ask(0, |control, now| control.take_unlisted(0, now));
    assert_eq!(world.nodes[0].control.peers().collect::<Vec<_>>(), [PeerId(1)]);
    let refused = |event: &ControlEvent| {
        matches!(event, ControlEvent::Failed { why: HandshakeFailure::RefusedThere { .. }, .. })
    };
    world.ask(2, |control, now| control.remove_peer(PeerId(0), now));
    world.add(2, peer(0, Where::Address(address(0)), Start::Eager));
    world.run(5 * SECOND);
    assert!(world.count(2, refused) > 0);
}
