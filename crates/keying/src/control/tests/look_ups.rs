//! Nodes that are no peers, and whose certificates are looked up.

use core::time::Duration;

use strait_ipsec::PeerId;

use super::misbehaviour::Rogue;
use super::world::{ControlWorld, FAIR, address, key, peer};
use crate::directory::LookUpEnd;
use crate::sessionless::key_name;
use crate::{ControlEvent, HandshakeFailure, Refusal, Start, Where};

const SECOND: Duration = Duration::from_secs(1);

/// Node 0 looks up whom it does not know; node 1 knows where it is.
fn world() -> ControlWorld {
    let mut world = ControlWorld::new(2, 1, FAIR);
    world.ask(0, |control, _| control.look_up_strangers());
    world.add(1, peer(0, Where::Address(address(0)), Start::Eager));
    world
}

fn refused_there(world: &ControlWorld) -> usize {
    world.count(1, |event| {
        let why = match event {
            ControlEvent::Failed { why, .. } => why,
            _ => return false,
        };
        matches!(why, HandshakeFailure::Closed(_) | HandshakeFailure::RefusedThere { .. })
    })
}

#[test]
fn a_handshake_waits_for_the_certificate_and_goes_on() {
    let mut world = world();
    world.run(SECOND / 2);
    let name = key_name(&key(1).public());
    assert_eq!(world.nodes[0].certificates, [name], "asked for once");
    assert!(!world.is_up(1, 0) && world.nodes[0].inbound.is_empty(), "no keys before it is a peer");
    world.add(0, peer(1, Where::Unknown, Start::OnTraffic));
    world.ask(0, |control, now| control.looked_up(name, LookUpEnd::Found, now));
    assert!(world.run_until(1, |world| world.is_up(1, 0)), "with the handshake that waited");
    assert_eq!(refused_there(&world), 0);
    assert!(world.packet(1, 0));
    world.run(SECOND);
    world.assert_joined();
    assert_eq!(world.nodes[0].certificates.len(), 1, "a peer is not looked up");
}

#[test]
fn a_handshake_without_a_certificate_is_refused_and_the_next_is_looked_up_again() {
    let mut world = world();
    let name = key_name(&key(1).public());
    world.run(SECOND / 2);
    world.ask(0, |control, now| control.looked_up(key_name(&key(0).public()), LookUpEnd::Found, now));
    world.run(SECOND / 2);
    assert_eq!(refused_there(&world), 0, "another name's answer is not for it");
    world.ask(0, |control, now| control.looked_up(name, LookUpEnd::NotFound, now));
    world.run(SECOND / 2);
    assert_eq!(refused_there(&world), 1);
    let refused = |event: &ControlEvent| matches!(event, ControlEvent::Refused { why: Refusal::Stranger(stranger), .. } if *stranger == key(1).public());
    assert_eq!(world.count(0, refused), 1);
    assert!(world.run_until(60, |world| world.nodes[0].certificates.len() > 1), "it tries again");
    assert_eq!(world.nodes[0].certificates[1], name);
}

#[test]
fn an_unlisted_node_is_looked_up_before_it_is_taken_as_one() {
    let mut world = world();
    world.ask(0, |control, now| control.take_unlisted(4, now));
    world.run(SECOND / 2);
    assert!(world.nodes[0].unlisted.is_empty());
    let name = key_name(&key(1).public());
    world.ask(0, |control, now| control.looked_up(name, LookUpEnd::NotFound, now));
    assert!(world.run_until(1, |world| world.is_up(1, 0)));
    assert_eq!(world.nodes[0].unlisted.len(), 1);
    world.ask(0, |control, now| control.take_unlisted(0, now));
    world.ask(1, |control, now| control.remove_peer(PeerId(0), now));
    world.add(1, peer(0, Where::Address(address(0)), Start::Eager));
    assert!(world.run_until(60, |world| world.nodes[0].certificates.len() > 1), "it is still looked up");
}

#[test]
fn handshakes_that_wait_are_bounded_for_each_source() {
    let mut world = ControlWorld::new(1, 1, FAIR);
    world.ask(0, |control, _| control.look_up_strangers());
    for node in 1..=6 {
        let mut rogue = Rogue::with_key(&world, node);
        assert!(rogue.channels.connect(address(0).into(), key(0).public(), world.now).is_ok());
        rogue.exchange(&mut world, SECOND / 10);
    }
    let full = |event: &ControlEvent| matches!(event, ControlEvent::Refused { why: Refusal::Full(_), .. });
    assert_eq!(world.nodes[0].certificates.len(), crate::channel::admission::MOST_FROM_ONE / 2);
    assert!(world.count(0, full) > 0);
    assert_eq!(world.nodes[0].control.peers().collect::<Vec<PeerId>>(), []);
}
