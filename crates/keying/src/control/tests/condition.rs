//! What changes between handshakes is said, a few times, and believed within bounds.

use core::time::Duration;

use strait_clock::Time;
use strait_ipsec::{Notice, PeerId, ReportWish};
use strait_scheduler::{LinkRate, Pace, Rate};
use strait_wire::condition::Condition;

use super::world::{ControlWorld, FAIR};
use crate::Start;

const SECOND: Duration = Duration::from_secs(1);

/// Two nodes with a pair of associations.
fn up(seed: u64) -> ControlWorld {
    let mut world = ControlWorld::new(2, seed, FAIR);
    world.introduce(Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world
}

/// What one node told the other's sender of it, last.
fn load(world: &ControlWorld, node: usize) -> f64 {
    let other = PeerId(u32::try_from(1 - node).unwrap());
    world.nodes[node].ends.get(&other).map_or(1.0, |ends| ends.there.expand[3])
}

#[test]
fn another_rate_in_paces_the_peer() {
    let mut world = up(1);
    let told = |world: &ControlWorld| world.nodes[0].paces.get(&PeerId(1)).copied().unwrap_or_default();
    assert_eq!(told(&world), Pace::None);
    let (slow, fast) = (Rate::from_bits(3_000_000).unwrap(), Rate::from_bits(7_000_000).unwrap());
    for (down, pace) in [
        (LinkRate::Given(slow), Pace::At(slow)),
        (LinkRate::Auto, Pace::Estimated { at_most: None }),
        (LinkRate::Given(fast), Pace::At(fast)),
        (LinkRate::Unpaced, Pace::None),
    ] {
        world.ask(1, |control, now| control.set_link(LinkRate::Unpaced, down, now));
        world.run(5 * SECOND);
        assert_eq!(told(&world), pace);
    }
    let reports = world.nodes[1].reports.len();
    world.run(60 * SECOND);
    assert_eq!(world.nodes[1].reports.len(), reports, "said often enough");
}

#[test]
fn peer_that_estimates_its_rate_is_sent_reports_often() {
    let mut world = up(4);
    let wish = |world: &ControlWorld| world.nodes[0].wishes.get(&PeerId(1)).copied().unwrap_or_default();
    assert_eq!(wish(&world), ReportWish::Changes);
    let given = LinkRate::from(Rate::from_bits(3_000_000));
    for (theirs, mine, wanted) in [
        (LinkRate::Auto, LinkRate::Unpaced, ReportWish::Often),
        (given, LinkRate::Unpaced, ReportWish::Changes),
        (given, LinkRate::Auto, ReportWish::Often),
        (LinkRate::Unpaced, given, ReportWish::Changes),
    ] {
        world.ask(1, |control, now| control.set_link(theirs, LinkRate::Unpaced, now));
        world.ask(0, |control, now| control.set_link(LinkRate::Unpaced, mine, now));
        world.run(5 * SECOND);
        assert_eq!(wish(&world), wanted, "out {theirs:?}, in {mine:?}");
    }
    // The next handshake says the same.
    world.ask(1, |control, now| control.set_link(LinkRate::Auto, LinkRate::Unpaced, now));
    let spi = world.nodes[0].outbound[&PeerId(1)].spi();
    world.notice(0, Notice::Exhausted(PeerId(1), spi));
    world.run(10 * SECOND);
    assert_eq!(wish(&world), ReportWish::Often);
}

#[test]
fn load_is_reported_and_reported_again_after_handshake() {
    let mut world = up(2);
    assert_eq!(load(&world, 0), 1.0);
    world.notice(1, Notice::Slower(6.0));
    world.run(5 * SECOND);
    assert_eq!(load(&world, 0), 6.0);
    // New keys, for which the other end says what it does at its best.
    let spi = world.nodes[0].outbound[&PeerId(1)].spi();
    world.notice(0, Notice::Exhausted(PeerId(1), spi));
    world.run(10 * SECOND);
    assert_ne!(world.nodes[0].outbound[&PeerId(1)].spi(), spi, "there are new ones");
    assert_eq!(load(&world, 0), 6.0);
    world.notice(1, Notice::Slower(1.0));
    world.run(5 * SECOND);
    assert_eq!(load(&world, 0), 1.0);
}

#[test]
fn absurd_conditions_are_clamped_or_ignored() {
    let mut world = up(3);
    world.ask(1, |control, now: Time| {
        control.set_link(LinkRate::Unpaced, Rate::from_bits(2_000_000).into(), now);
    });
    world.run(5 * SECOND);
    let paced = world.nodes[0].paces[&PeerId(1)];
    for (load_said, down) in [(u16::MAX, 1), (0, u64::MAX - 1), (0, 499)] {
        world.notice(0, Notice::Reported(PeerId(1), Condition { load: load_said, down, estimates: None }));
        assert_eq!(world.nodes[0].paces[&PeerId(1)], paced, "{down} is no rate");
    }
    world.notice(
        0,
        Notice::Reported(PeerId(1), Condition { load: u16::MAX, down: 2_000_000, estimates: None }),
    );
    assert_eq!(load(&world, 0), 64.0);
    world.notice(0, Notice::Reported(PeerId(1), Condition { load: 0, down: 2_000_000, estimates: None }));
    assert_eq!(load(&world, 0), 1.0 / 64.0);
    // Of a peer that is not configured.
    world.notice(0, Notice::Reported(PeerId(77), Condition { load: 1, down: 0, estimates: None }));
    for times in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
        world.notice(0, Notice::Slower(times));
    }
}
