//! Two processes with one key, as commands of a user without a daemon are.

use core::time::Duration;

use strait_ipsec::{Notice, PeerId};

use super::world::{ControlWorld, FAIR, address, key, peer};
use crate::{ControlEvent, PeerState, Start, Where};

const SECOND: Duration = Duration::from_secs(1);

/// Node 1, and nodes 0 and 2 with the key that it knows; the second begins `later` milliseconds after the first.
fn beside(seed: u64, later: u64) -> ControlWorld {
    let mut world = ControlWorld::with(3, seed, FAIR, |node, settings| {
        if node == 2 {
            settings.identity = key(0);
        }
    });
    world.add(1, peer(0, Where::Unknown, Start::OnTraffic));
    world.add(0, peer(1, Where::Address(address(1)), Start::Eager));
    world.run(Duration::from_millis(later));
    world.add(2, peer(1, Where::Address(address(1)), Start::Eager));
    world
}

#[test]
fn handshakes_of_two_processes_at_once_end_well() {
    // A one-way delay of 10 ms and a handshake of three of them: every overlap there is.
    for later in 0..70 {
        let mut world = beside(later, later);
        world.run(SECOND / 2);
        assert!([0, 2].iter().all(|node| world.is_up(*node, 1)), "{later} ms");
        let failed = |event: &ControlEvent| matches!(event, ControlEvent::Failed { .. });
        assert_eq!([0, 1, 2].map(|node| world.count(node, failed)), [0; 3], "{later} ms");
    }
}

#[test]
fn a_process_that_ends_takes_no_session_of_another_with_it() {
    let mut world = beside(1, 1000);
    let first = |world: &ControlWorld| {
        let status = world.nodes[1].control.status(PeerId(0)).unwrap();
        status.association.unwrap().inbound.spi
    };
    let spi = first(&world);
    world.run(SECOND);
    assert_ne!(first(&world), spi);
    world.notice(1, Notice::Stopped(PeerId(0), spi));
    assert!(world.is_up(1, 0));
    world.goodbye(1, 0);
    assert_eq!(world.nodes[1].control.status(PeerId(0)).unwrap().state, PeerState::Down);
}
