//! Attempts that failed for want of a network or a resolver, and the change that brings it.

use core::time::Duration;

use strait_ipsec::PeerId;

use super::world::{ControlWorld, FAIR, address, peer};
use crate::{Start, Where};

const SECOND: Duration = Duration::from_secs(1);
const NAME: &str = "site-b.example:51820";

/// Node 0 finds node 1 by name, but not yet.
fn named() -> ControlWorld {
    let mut world = ControlWorld::new(2, 1, FAIR);
    world.add(1, peer(0, Where::Unknown, Start::OnTraffic));
    world.add(0, peer(1, Where::Name(NAME.to_owned()), Start::Eager));
    world
}

fn failures(world: &ControlWorld) -> u32 {
    world.nodes[0].control.status(PeerId(1)).unwrap().failures
}

#[test]
fn a_change_outside_ends_the_pause_and_what_follows_is_short_again() {
    let mut world = named();
    world.nodes[0].names.insert(NAME.to_owned(), Err("no resolver".to_owned()));
    world.ask(0, |control, now| control.look_up_again(PeerId(1), now));
    assert!(world.run_until(60, |world| failures(world) == 6));
    let looked_up = world.nodes[0].lookups.len();
    world.ask(0, crate::Control::outside_changed);
    assert_eq!(world.nodes[0].lookups.len(), looked_up + 1, "at once, and it fails again");
    assert_eq!(failures(&world), 2);
    assert!(world.run_until(3, |world| world.nodes[0].lookups.len() == looked_up + 2), "a pause of 2 s");
    world.nodes[0].names.insert(NAME.to_owned(), Ok(vec![address(1)]));
    world.ask(0, crate::Control::outside_changed);
    assert!(world.run_until(1, ControlWorld::both_up));
    // It is nothing to a peer that there is a session with.
    let sent = world.sent;
    world.ask(0, crate::Control::outside_changed);
    assert_eq!(world.sent, sent);
}

#[test]
fn a_name_whose_look_up_was_given_up_is_looked_up_again() {
    let mut world = named();
    world.run(4 * SECOND);
    assert_eq!(world.nodes[0].lookups.len(), 1);
    world.nodes[0].names.insert(NAME.to_owned(), Ok(vec![address(1)]));
    world.ask(0, crate::Control::outside_changed);
    world.ask(0, |control, now| control.route_changed(PeerId(1), now));
    assert_eq!(world.nodes[0].lookups.len(), 1, "an answer may still come");
    world.ask(0, |control, now| control.look_up_again(PeerId(1), now));
    assert!(world.run_until(1, ControlWorld::both_up));
    // Nothing is waited for any more.
    world.ask(0, |control, now| control.look_up_again(PeerId(1), now));
    assert_eq!(world.nodes[0].lookups.len(), 2);
}

#[test]
fn a_handshake_that_has_no_way_begins_anew_with_one_and_other_changes_leave_it_alone() {
    let mut world = ControlWorld::new(2, 1, FAIR);
    world.nodes[0].cut = true;
    world.introduce(Start::Eager);
    world.run(4 * SECOND);
    world.nodes[0].cut = false;
    world.ask(0, crate::Control::outside_changed);
    assert_eq!(world.started(0).len(), 1);
    assert!(!world.run_until(1, ControlWorld::both_up), "QUIC waits for longer and longer");
    world.ask(0, |control, now| control.route_changed(PeerId(1), now));
    assert_eq!(world.started(0).len(), 2);
    assert!(world.run_until(1, ControlWorld::both_up));
}
