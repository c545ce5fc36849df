//! A path on which handshakes pass and ESP does not.

use core::time::Duration;

use strait_clock::Time;
use strait_ipsec::PeerId;

use super::world::{ControlWorld, FAIR};
use crate::Start;

/// A world where nothing of ESP arrives from the beginning.
fn half_dead(seed: u64) -> ControlWorld {
    let mut world = ControlWorld::pair(seed, FAIR, Start::Eager);
    world.no_esp = true;
    assert!(world.run_until(5, ControlWorld::both_up));
    world
}

/// The times at which handshakes were begun, by either end.
fn begun(world: &ControlWorld) -> Vec<Time> {
    let mut begun = [world.started(0), world.started(1)].concat();
    begun.sort_unstable();
    // Both ends may begin at once.
    begun.dedup_by(|later, earlier| later.since(*earlier) < Duration::from_secs(5));
    begun
}

fn heard(world: &ControlWorld, node: usize) -> Option<Time> {
    let with = PeerId(u32::try_from(1 - node).unwrap());
    world.nodes[node].control.status(with)?.association?.inbound.last
}

#[test]
fn handshakes_that_help_nothing_are_a_minute_apart_in_the_end() {
    for seed in 0..10 {
        let mut world = half_dead(seed);
        world.chat(600, 250);
        let begun = begun(&world);
        // After 16, 30 and then 60 s: without pauses that grow there would be 38.
        assert!((10..=14).contains(&begun.len()), "{seed}: {begun:?}");
        let pauses: Vec<_> = begun.windows(2).map(|pair| pair[1].since(pair[0]).as_secs()).collect();
        assert!((15..=18).contains(&pauses[0]) && (29..=33).contains(&pauses[1]), "{seed}: {pauses:?}");
        assert!(pauses[2..].iter().all(|pause| (59..=64).contains(pause)), "{seed}: {pauses:?}");

        // ESP passes again: the keys are there.
        world.no_esp = false;
        let now = world.now;
        world.chat(2, 250);
        assert!(heard(&world, 0) > Some(now) && heard(&world, 1) > Some(now), "{seed}");
        if seed % 2 == 0 {
            let before = world.started(0).len() + world.started(1).len();
            world.chat(60, 250);
            assert_eq!(world.started(0).len() + world.started(1).len(), before, "{seed}");
        }

        // It ends once more, and nothing is left of the pauses before.
        world.no_esp = true;
        let end = world.now;
        world.chat(25, 250);
        let soon = begun_after(&world, end);
        assert!(soon.is_some_and(|at| at.since(end) < Duration::from_secs(18)), "{seed}: {soon:?}");
    }
}

fn begun_after(world: &ControlWorld, time: Time) -> Option<Time> {
    begun(world).into_iter().find(|at| *at > time)
}

#[test]
fn other_network_ends_the_pause() {
    let mut world = half_dead(1);
    world.chat(300, 250);
    let last = begun(&world).pop().unwrap();
    while world.now < last + Duration::from_secs(20) {
        world.chat(1, 250);
    }
    let changed = world.now;
    (0..2).for_each(|node| world.ask(node, |control, now| control.outside_changed(now)));
    world.chat(3, 250);
    assert!(begun_after(&world, changed).is_some(), "{:?}", begun(&world));
}

/// Keys that are renewed for keepalives alone, which nothing answers.
#[test]
fn keys_that_were_renewed_without_packets_delay_no_later_handshake() {
    let mut world = ControlWorld::pair(2, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.chat(2, 250);
    let before = begun(&world).len();
    for _ in 0..3 {
        world.ask(0, |control, now| control.seek(PeerId(1), now));
        world.run_until(20, |_| false);
    }
    assert!(begun(&world).len() > before, "no keys were renewed");
    world.no_esp = true;
    let end = world.now;
    world.chat(25, 250);
    let soon = begun_after(&world, end);
    assert!(soon.is_some_and(|at| at.since(end) < Duration::from_secs(18)), "{soon:?}");
}
