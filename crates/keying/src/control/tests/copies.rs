//! A node on a machine that is restored from a snapshot, or cloned: two copies of it begin with the same state.

use core::time::Duration;

use strait_clock::{Stopwatch, Time};
use strait_ipsec::{Notice, PeerId, ReturnPath, outbound};
use strait_wire::Spi;

use super::world::{ControlWorld, FAIR, address, base, key, peer, settings};
use crate::sessionless::{EpochLength, NodeKeys, ReceiverSettings, WallTime};
use crate::{
    Action, Control, MarkOwner, SaDirection, SessionlessSettings, SessionlessTerms, Start, WallClock, Where,
};

const SECOND: Duration = Duration::from_secs(1);
/// The system's randomness of a copy.
const FRESH: [[u8; 32]; 2] = [[101; 32], [102; 32]];

/// The SPIs that node 0 receives with: the keys of a handshake depend on them, and on QUIC's ids from the same seed.
fn inbound_spis(world: &ControlWorld) -> Vec<Spi> {
    world.nodes[0].inbound.keys().copied().collect()
}

#[test]
fn all_keys_are_forgotten_at_once_and_peers_have_others_a_moment_later() {
    let mut world = ControlWorld::pair(1, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.chat(1, 100);
    let (before, known) = (inbound_spis(&world), world.nodes[0].keys.len());
    let sent = world.sent;
    world.ask(0, |control, now| control.renew(&FRESH[0], now));
    assert!(world.nodes[0].inbound.is_empty() && world.nodes[0].outbound.is_empty());
    assert_eq!(world.nodes[0].control.connections(), 1, "a new handshake");
    assert_eq!(world.sent, sent + 2, "its first flight, and nothing under earlier keys");
    assert!(world.run_until(1, |world| world.is_up(0, 1)), "{:?}", world.nodes[0].events);
    world.run(5 * SECOND);
    world.assert_joined();
    let after = inbound_spis(&world);
    assert!(before.iter().all(|spi| !after.contains(spi)));
    let (old, new) = world.nodes[0].keys.split_at(known);
    assert!(!new.is_empty());
    assert!(new.iter().all(|new| old.iter().all(|old| old.material != new.material)));
    world.chat(1, 100);
    assert!(world.run_until(1, ControlWorld::both_up));
}

#[test]
fn copies_draw_the_same_numbers_until_they_are_told_and_others_from_then_on() {
    for told in [false, true] {
        let drawn = FRESH.map(|fresh| {
            let mut world = ControlWorld::pair(2, FAIR, Start::OnTraffic);
            if told {
                world.ask(0, |control, now| control.renew(&fresh, now));
            }
            world.packet(0, 1);
            assert!(world.run_until(5, ControlWorld::both_up));
            inbound_spis(&world)
        });
        assert_eq!(drawn[0] == drawn[1], !told);
    }
}

#[test]
fn a_copy_in_the_middle_of_a_handshake_begins_it_anew() {
    for steps in 0..60 {
        let mut world = ControlWorld::pair(3, FAIR, Start::Eager);
        world.run(Duration::from_millis(steps));
        let node = usize::try_from(steps % 2).unwrap();
        world.ask(node, |control, now| control.renew(&FRESH[0], now));
        assert!(world.nodes[node].inbound.is_empty() && world.nodes[node].outbound.is_empty());
        world.chat(30, 500);
        world.run(SECOND);
        assert!(world.both_up(), "{steps}: {:?}", world.nodes[0].events);
        world.assert_joined();
    }
}

#[test]
fn node_that_had_no_keys_sends_nothing_when_it_is_copied() {
    let mut world = ControlWorld::pair(4, FAIR, Start::OnTraffic);
    world.ask(0, |control, now| control.renew(&FRESH[0], now));
    world.run(60 * SECOND);
    assert_eq!(world.sent, 0);
}

/// A node with one peer that it has no session with, at noon.
fn sessionless() -> Control {
    let now = Time::from_millis(1000);
    let mut control = Control::new(settings(0, 1, base()), now).unwrap();
    control.begin_sessionless(SessionlessSettings {
        keys: NodeKeys::new(key(0), None),
        clock: WallClock::new(|| WallTime(990_000_000_000_000)),
        mark: 0,
        receiver: ReceiverSettings::default(),
        stopwatch: Stopwatch::NONE,
        seed: [7; 32].into(),
    });
    let terms = SessionlessTerms {
        path: ReturnPath::Answers,
        epoch: EpochLength::default(),
        pinned: false,
        card: None,
        mark: 0,
    };
    control.add_sessionless(peer(1, Where::Address(address(1)), Start::OnTraffic), terms, now);
    control
}

/// Does what is wanted; the packet keys that were begun, and the SPIs that were withdrawn.
fn begun(control: &mut Control) -> (Vec<(Spi, Vec<u8>)>, Vec<Spi>) {
    let (mut keys, mut withdrawn) = (Vec::new(), Vec::new());
    while let Some(action) = control.poll_action() {
        match action {
            Action::PersistMark(owner, mark) => {
                assert_eq!(owner, MarkOwner::Own);
                control.mark_persisted(owner, mark, Time::from_millis(1000));
            }
            Action::DangerKey(key) if key.direction == SaDirection::Out => {
                keys.push((key.spi, key.material.expose().to_vec()));
            }
            Action::Out(outbound::Order::Withdraw(_, spi)) => withdrawn.push(spi),
            _ => {}
        }
    }
    (keys, withdrawn)
}

#[test]
fn without_a_session_a_copy_begins_a_packet_key_of_its_own_at_once() {
    let now = Time::from_millis(1000);
    let mut copies = [sessionless(), sessionless()];
    let before = copies.each_mut().map(|copy| {
        copy.notice(Notice::NeedsSa(PeerId(1)), now);
        begun(copy).0
    });
    assert!(before[0].len() == 1 && before[0] == before[1], "{before:?}");
    let mut fresh = FRESH.iter();
    let after = copies.each_mut().map(|copy| {
        copy.renew(fresh.next().unwrap(), now);
        let (keys, withdrawn) = begun(copy);
        assert_eq!(withdrawn, [before[0][0].0]);
        keys
    });
    let all = [&before[0][..], &after[0], &after[1]].concat();
    assert_eq!(all.len(), 3);
    for (at, (spi, key)) in all.iter().enumerate() {
        assert!(all[..at].iter().all(|(other, with)| other != spi && with != key));
    }
}
