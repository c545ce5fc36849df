use core::time::Duration;
use std::net::SocketAddr;

use strait_clock::Time;
use strait_ipsec::{Notice, PeerId};
use strait_wire::Spi;

use super::world::{ControlNode, ControlWorld, FAIR, Weather, address, peer, settings};
use crate::{ControlEvent, Lifetime, PeerState, Role, Start, Where};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: u64 = 3600;

fn established(world: &ControlWorld, node: usize) -> Vec<(Time, Role)> {
    let events = world.nodes[node].events.iter();
    events
        .filter_map(|(at, event)| match event {
            ControlEvent::Established { role, .. } => Some((*at, *role)),
            _ => None,
        })
        .collect()
}

#[test]
fn an_idle_tunnel_sends_nothing_at_all() {
    let mut world = ControlWorld::pair(1, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.chat(10, 100);
    world.run(30 * SECOND);
    let sent = world.sent;
    world.run(12 * HOUR as u32 * SECOND);
    assert_eq!(world.sent, sent, "hours of silence");
    for (node, other) in [(0, 1), (1, 0)] {
        assert_eq!(world.count(node, |e| matches!(e, ControlEvent::Expired { .. })), 1);
        assert!(world.nodes[node].inbound.is_empty() && world.nodes[node].outbound.is_empty());
        assert_eq!(world.nodes[node].control.poll_timeout(), None, "nor does it wake up");
        assert!(!world.is_up(node, other));
    }
    assert!(!world.packet(1, 0), "either end wakes it, the one that never knew an address too");
    assert!(world.run_until(1, ControlWorld::both_up));
}

#[test]
fn a_pair_in_use_is_replaced_in_time_by_its_initiator() {
    for seed in 0..5 {
        let mut world = ControlWorld::pair(seed, FAIR, Start::Eager);
        assert!(world.run_until(5, ControlWorld::both_up));
        world.chat(4 * HOUR, 5_000);
        world.run(30 * SECOND);
        world.assert_joined();
        let times = established(&world, 0);
        assert!((4..=5).contains(&times.len()), "{times:?}");
        assert!(times.iter().all(|(_, role)| *role == Role::Initiator));
        for pair in times.windows(2) {
            let gap = (pair[1].0 - pair[0].0).as_secs();
            assert!((3240..=3965).contains(&gap), "{gap}");
        }
        assert_eq!(world.unknown, 0, "no packet was lost for want of an association");
        assert!(world.nodes.iter().all(|node| node.most_inbound <= 4));
        assert_eq!(world.count(0, |e| matches!(e, ControlEvent::Expired { .. })), 0);
        world.run(70 * SECOND);
        assert!(world.nodes.iter().all(|node| node.inbound.len() == 1), "old ones have faded");
    }
}

#[test]
fn rekeying_under_loss_and_reordering_loses_no_packet_to_unknown_keys() {
    for seed in 0..10 {
        let mut world =
            ControlWorld::with(2, seed, Weather { delay: (5, 200), lost: 100, twice: 20 }, |_, settings| {
                settings.lifetime.soft = Lifetime::SHORTEST;
            });
        world.introduce(Start::Eager);
        assert!(world.run_until(60, ControlWorld::both_up));
        world.chat(20 * 60, 200);
        let rekeyed = world.established(0);
        assert!((14..=24).contains(&rekeyed), "seed {seed}: {rekeyed}");
        assert_eq!(world.unknown, 0, "seed {seed}");
        assert!(world.nodes.iter().all(|node| node.most_inbound <= 4), "seed {seed}");
        assert_eq!(world.count(0, |e| matches!(e, ControlEvent::Expired { .. })), 0, "seed {seed}");
    }
}

#[test]
fn responder_rekeys_when_initiator_does_not() {
    // The initiator believes in a longer life than the responder.
    let mut world = ControlWorld::with(2, 2, FAIR, |node, settings| {
        settings.lifetime.soft = Duration::from_secs(if node == 0 { 36_000 } else { 600 });
    });
    world.introduce(Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    let up = world.now;
    world.chat(1000, 1000);
    let times = established(&world, 1);
    assert_eq!(times.iter().map(|(_, role)| *role).collect::<Vec<_>>(), [Role::Responder, Role::Initiator]);
    let waited = (times[1].0 - up).as_secs();
    assert!((720..=785).contains(&waited), "{waited}: 10 % later than the initiator's latest");
    world.assert_joined();
}

#[test]
fn a_pair_is_replaced_when_it_has_carried_enough() {
    for (node, other) in [(0, 1), (1, 0)] {
        for bytes in [true, false] {
            let mut world = ControlWorld::with(2, 3, FAIR, |_, settings| {
                let (most, none) = (1_000_000, u64::MAX);
                settings.lifetime.bytes = if bytes { most } else { none };
                settings.lifetime.packets = if bytes { none } else { most };
            });
            world.introduce(Start::Eager);
            assert!(world.run_until(5, ControlWorld::both_up));
            let usage = world.nodes[node].outbound[&PeerId(other)].usage();
            usage.note(10, 999_000, world.now);
            usage.note(990_000, 10, world.now);
            world.run(5 * SECOND);
            assert_eq!(world.established(0), 1, "not yet");
            usage.note(20_000, 20_000, world.now);
            world.run(5 * SECOND);
            assert_eq!(world.established(0), 2 - node, "the initiator now, the responder 10 % later");
            usage.note(100_000, 100_000, world.now);
            world.run(5 * SECOND);
            assert_eq!(world.established(0), 2, "{node} {bytes}: {:?}", world.nodes[0].events);
            assert_eq!(established(&world, node)[1].1, Role::Initiator);
            world.assert_joined();
        }
    }
}

#[test]
fn an_exhausted_association_is_replaced_at_once() {
    let mut world = ControlWorld::pair(4, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.run(5 * SECOND);
    let spi = world.nodes[0].outbound[&PeerId(1)].spi();
    world.notice(0, Notice::Exhausted(PeerId(1), Spi(spi.0 ^ 1)));
    world.run(5 * SECOND);
    assert_eq!(world.established(0), 1, "it is not the one in use");
    world.notice(0, Notice::Exhausted(PeerId(1), spi));
    world.run(SECOND);
    assert_eq!(world.established(0), 2);
    world.assert_joined();
}

#[test]
fn idle_pair_expires_without_replacement() {
    let mut world = ControlWorld::pair(5, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.chat(3000, 1000);
    world.run(Duration::from_secs(HOUR));
    assert_eq!(world.established(0), 1);
    assert_eq!(world.count(0, |e| matches!(e, ControlEvent::Expired { .. })), 1);
    // One that is used again after it was due and before it is withdrawn is replaced then.
    let mut world = ControlWorld::pair(6, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.run(Duration::from_secs(4200));
    assert_eq!(world.established(0), 1);
    world.packet(0, 1);
    world.run(5 * SECOND);
    assert_eq!(world.established(0), 2);
    assert_eq!(world.unknown, 0);
}

#[test]
fn unanswered_last_packet_provokes_no_probe() {
    let mut world = ControlWorld::pair(7, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.run(5 * SECOND);
    world.packet(0, 1);
    let sent = world.sent;
    world.run(600 * SECOND);
    assert_eq!(world.sent, sent);
    assert!(world.nodes.iter().all(|node| node.probes.is_empty()));
}

#[test]
fn peer_that_says_goodbye_is_down_and_sought_for_a_while_at_most_once_a_second() {
    let mut world = ControlWorld::pair(21, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.chat(3, 500);
    let (began, before) = (world.now, world.started(0).len());
    world.goodbye(0, 1);
    let status = world.nodes[0].control.status(PeerId(1)).unwrap();
    assert_eq!((status.state, status.away_since, status.association), (PeerState::Down, Some(began), None));
    assert!(world.nodes[0].outbound.is_empty(), "nothing is sent any more");
    // It is there again, and says so at once each time: that costs one handshake a second at most.
    let mut goodbyes = 1;
    while world.now < began + 20 * SECOND {
        world.run(Duration::from_millis(50));
        if world.is_up(0, 1) {
            goodbyes += 1;
            world.goodbye(0, 1);
        }
    }
    let started = world.started(0).len() - before;
    assert!((10..=30).contains(&started), "{started} handshakes after {goodbyes} goodbyes");
    assert!(world.run_until(5, |world| world.is_up(0, 1)));
    assert_eq!(world.nodes[0].control.status(PeerId(1)).unwrap().away_since, None);
}

#[test]
fn dead_peer_is_probed_once_and_handshakes_stop_with_the_traffic() {
    let mut world = ControlWorld::pair(8, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.chat(10, 500);
    world.nodes[1].cut = true;
    let died = world.now;
    for _ in 0..30 {
        world.packet(0, 1);
        world.run(SECOND);
    }
    let [probed] = world.nodes[0].probes[..] else { panic!("{:?}", world.nodes[0].probes) };
    assert!((10..=12).contains(&(probed - died).as_secs()), "{probed:?}");
    let again = world.started(0)[1];
    assert!((15..=18).contains(&(again - died).as_secs()), "{again:?}");
    let status = world.nodes[0].control.status(PeerId(1)).unwrap();
    assert_eq!(status.state, PeerState::NoAnswer);
    assert!(status.association.is_some(), "the old pair stays until there is a new one");
    world.run(60 * SECOND);
    let sent = world.sent;
    world.run(600 * SECOND);
    assert_eq!(world.sent, sent, "no packets, so no handshakes");
    world.nodes[1].cut = false;
    world.packet(0, 1);
    world.packet(1, 0);
    world.run(60 * SECOND);
    world.chat(20, 1000);
    assert_eq!(world.unknown, 0, "the pair outlived the cut");
}

#[test]
fn answered_probe_ends_the_silence() {
    let mut world = ControlWorld::pair(9, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    // Node 1 says nothing of its own but answers what probes ask, as its data plane would.
    for _ in 0..120 {
        let probes = world.nodes[0].probes.len();
        world.packet(0, 1);
        world.run(SECOND);
        if world.nodes[0].probes.len() > probes {
            world.packet(1, 0);
        }
    }
    assert!((8..=12).contains(&world.nodes[0].probes.len()), "{:?}", world.nodes[0].probes);
    assert!(world.nodes[1].probes.is_empty());
    assert_eq!(world.established(0), 1);
}

/// Two nodes with a session, the second of which the first knows by its name.
fn named_pair(seed: u64) -> (ControlWorld, String) {
    let mut world = ControlWorld::new(2, seed, FAIR);
    let name = "site-b.example:51820".to_owned();
    world.nodes[0].names.insert(name.clone(), Ok(vec![address(1)]));
    world.add(1, peer(0, Where::Unknown, Start::OnTraffic));
    world.add(0, peer(1, Where::Name(name.clone()), Start::Eager));
    assert!(world.run_until(5, ControlWorld::both_up));
    (world, name)
}

#[test]
fn a_name_is_looked_up_anew_when_the_peer_falls_silent() {
    let (mut world, name) = named_pair(10);
    world.chat(10, 500);
    // The site moves while nothing it sends gets out, and its name follows.
    let elsewhere = "198.51.100.7:4000".parse().unwrap();
    world.roam(1, elsewhere);
    world.nodes[0].names.insert(name, Ok(vec![elsewhere]));
    for _ in 0..20 {
        world.packet(0, 1);
        world.run(SECOND);
    }
    assert_eq!(world.nodes[0].lookups.len(), 2, "{:?}", world.nodes[0].lookups);
    assert_eq!(world.nodes[0].endpoint(PeerId(1)), Some(elsewhere));
    assert_eq!(world.established(0), 2);
    world.assert_joined();
}

#[test]
fn a_lie_of_the_resolver_takes_no_session_down_and_delays_its_successor_by_an_attempt() {
    let (mut world, name) = named_pair(18);
    world.chat(2, 500);
    // The resolver lies, and for a while nothing gets through: the name is looked up.
    let lie = "198.51.100.66:51820".parse().unwrap();
    world.nodes[0].names.insert(name, Ok(vec![lie]));
    world.nodes[1].cut = true;
    for _ in 0..20 {
        world.packet(0, 1);
        world.run(SECOND);
    }
    assert!(world.nodes[0].lookups.len() > 1, "the resolver was asked");
    assert_eq!(world.nodes[0].endpoint(PeerId(1)), Some(address(1)), "packets go where the peer was heard");
    world.nodes[1].cut = false;
    world.chat(60, 500);
    assert_eq!(world.nodes[0].endpoint(PeerId(1)), Some(address(1)));
    assert_eq!(world.established(0), 2, "a handshake with the peer where it is");
    world.assert_joined();
}

#[test]
fn a_roaming_peer_is_followed() {
    let mut world = ControlWorld::pair(11, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    let elsewhere = "198.51.100.9:9999".parse().unwrap();
    world.roam(0, elsewhere);
    world.packet(0, 1);
    world.run(SECOND);
    assert_eq!(world.nodes[1].control.status(PeerId(0)).unwrap().endpoint, Some(elsewhere));
    assert_eq!(world.count(1, |e| matches!(e, ControlEvent::Moved { to, .. } if *to == elsewhere)), 1);
    // A handshake from yet another address counts as well, and the next one of the other end goes there.
    let third = "203.0.113.5:1234".parse().unwrap();
    world.roam(0, third);
    let spi = world.nodes[0].outbound[&PeerId(1)].spi();
    world.notice(0, Notice::Exhausted(PeerId(1), spi));
    world.run(SECOND);
    assert_eq!(world.established(1), 2);
    assert_eq!(world.nodes[1].endpoint(PeerId(0)), Some(third));
    let spi = world.nodes[1].outbound[&PeerId(0)].spi();
    world.notice(1, Notice::Exhausted(PeerId(0), spi));
    world.run(SECOND);
    assert_eq!(world.established(1), 3);
}

#[test]
fn lost_notices_of_moves_leave_no_wrong_endpoint() {
    let mut world = ControlWorld::pair(16, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.packet(0, 1);
    world.run(SECOND);
    let moved = |world: &ControlWorld| world.count(1, |event| matches!(event, ControlEvent::Moved { .. }));
    // The peer moves twice, and the key manager hears of neither; the notice of an earlier move comes late.
    world.nodes[1].notices_full = true;
    let places = [7, 8].map(|last| SocketAddr::from(([198, 51, 100, last], 9999)));
    for place in places {
        world.roam(0, place);
        world.packet(0, 1);
        world.run(SECOND / 20);
    }
    world.notice(1, Notice::Moved(PeerId(0)));
    assert_eq!(world.nodes[1].endpoint(PeerId(0)), Some(places[1]));
    assert_eq!(world.nodes[1].control.status(PeerId(0)).unwrap().endpoint, Some(places[1]));
    assert_eq!(moved(&world), 1);
    // Without any notice it finds out when it looks at associations.
    world.roam(0, places[0]);
    world.packet(0, 1);
    world.run(2 * SECOND);
    assert_eq!(world.nodes[1].control.status(PeerId(0)).unwrap().endpoint, Some(places[0]));
    assert_eq!(moved(&world), 2);
    // A notice again, or one of a peer that is gone, is no news.
    world.notice(1, Notice::Moved(PeerId(0)));
    world.notice(1, Notice::Moved(PeerId(77)));
    assert_eq!(moved(&world), 2);
}

#[test]
fn a_peer_that_moves_all_the_time_gets_a_log_line_a_second() {
    let mut world = ControlWorld::pair(17, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    for number in 0..300 {
        world.roam(0, SocketAddr::from(([198, 51, 100, 7], 4000 + number % 2)));
        world.packet(0, 1);
        world.run(SECOND / 100);
    }
    world.run(2 * SECOND);
    let counts: Vec<u64> = (world.nodes[1].events.iter())
        .filter_map(|(_, event)| match event {
            ControlEvent::Moved { unlogged, .. } => Some(*unlogged),
            _ => None,
        })
        .collect();
    assert!((3..=5).contains(&counts.len()), "{counts:?}");
    let lines = u64::try_from(counts.len()).unwrap();
    assert_eq!(counts.iter().sum::<u64>() + lines, 300, "each move is logged or counted");
}

#[test]
fn keepalives_come_only_when_nothing_else_went_out() {
    let mut world = ControlWorld::new(2, 12, FAIR);
    world.add(1, peer(0, Where::Unknown, Start::OnTraffic));
    let mut config = peer(1, Where::Address(address(1)), Start::OnTraffic);
    config.keepalive = Some(25 * SECOND);
    world.add(0, config);
    world.run(100 * SECOND);
    assert!(world.nodes[0].signs.is_empty(), "not before the peer has ever spoken");
    world.packet(0, 1);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.run(SECOND);
    let from = world.now;
    world.run(100 * SECOND);
    let times: Vec<u64> = world.nodes[0].signs.iter().map(|at| (*at - from).as_secs()).collect();
    assert_eq!(times, [24, 49, 74, 99], "25 s after the handshake's last datagram, and so on");
    for _ in 0..100 {
        world.packet(0, 1);
        world.run(SECOND);
    }
    assert_eq!(world.nodes[0].signs.len(), 4);
    assert!(world.nodes[1].signs.is_empty());
    // They ask for no answer, and there are keys for them for as long as the peer is there.
    let (probes, keys) = (world.nodes[0].probes.len(), world.established(0));
    world.run(Duration::from_secs(3 * HOUR));
    assert!(world.both_up());
    assert_eq!((world.nodes[0].probes.len(), world.nodes[1].probes.len()), (probes, 0));
    assert_eq!(world.nodes.iter().map(|node| node.keepalives.len()).sum::<usize>(), 0);
    let renewed = world.established(0) - keys;
    assert!((2..=4).contains(&renewed), "{renewed}");
}

#[test]
fn keepalives_tell_an_idle_peer_of_another_address_and_find_it_after_an_outage() {
    let mut world = ControlWorld::new(2, 13, FAIR);
    world.add(1, peer(0, Where::Unknown, Start::OnTraffic));
    let mut config = peer(1, Where::Address(address(1)), Start::OnTraffic);
    config.keepalive = Some(25 * SECOND);
    world.add(0, config);
    world.packet(0, 1);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.run(60 * SECOND);
    // The NAT before it has another address, and neither end has anything to say.
    let elsewhere = "198.51.100.3:7000".parse().unwrap();
    world.roam(0, elsewhere);
    world.run(30 * SECOND);
    assert_eq!(world.nodes[1].endpoint(PeerId(0)), Some(elsewhere));
    // So long away that the keys expire: it is found again, though nothing waits.
    world.nodes[1].cut = true;
    world.run(Duration::from_secs(2 * HOUR));
    assert!(!world.is_up(0, 1));
    world.nodes[1].cut = false;
    assert!(world.run_until(120, ControlWorld::both_up));
    // One that was stopped is not asked for: it knows best when it is back.
    world.goodbye(0, 1);
    let begun = world.started(0).len();
    world.run(600 * SECOND);
    assert_eq!((world.started(0).len(), world.nodes[0].keepalives.len() >= 20), (begun, true));
}

#[test]
fn a_peer_that_lost_its_state_is_found_by_either_end() {
    // It begins at once when it knows an address.
    let mut world = ControlWorld::new(2, 13, FAIR);
    world.add(1, peer(0, Where::Address(address(0)), Start::Eager));
    world.add(0, peer(1, Where::Address(address(1)), Start::OnTraffic));
    assert!(world.run_until(5, ControlWorld::both_up));
    world.run(10 * SECOND);
    let restarted = ControlNode::new(settings(1, 99, world.base), address(1), world.now);
    world.nodes[1] = restarted;
    world.add(1, peer(0, Where::Address(address(0)), Start::Eager));
    assert!(world.run_until(2, ControlWorld::both_up));
    world.run(SECOND);
    world.assert_joined();
    // It waits when it does not; the other end's packets meet nothing, which it takes as a hint.
    let mut world = ControlWorld::pair(14, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.run(10 * SECOND);
    world.nodes[0] = ControlNode::new(settings(0, 99, world.base), address(0), world.now);
    world.add(0, peer(1, Where::Address(address(1)), Start::OnTraffic));
    assert!(world.packet(1, 0), "node 1 knows nothing of the restart");
    assert!(world.run_until(2, ControlWorld::both_up));
    world.run(SECOND);
    assert_eq!(world.unknown, 1);
    world.assert_joined();
}

#[test]
fn unknown_spis_from_forged_addresses_provoke_little() {
    let mut world = ControlWorld::pair(15, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.run(10 * SECOND);
    for number in 0..6000_u32 {
        let from = if number % 2 == 0 { address(1) } else { address(7) };
        world.notice(0, Notice::UnknownSpi(from.into(), Spi(0x0500_0000 + number)));
        world.run(Duration::from_millis(100));
    }
    let provoked = world.started(0).len() - 1;
    assert!((4..=8).contains(&provoked), "{provoked} handshakes in ten minutes");
    world.assert_joined();
}

#[test]
fn a_place_of_an_earlier_run_is_tried_once_and_second_to_the_configuration() {
    let elsewhere: SocketAddr = "198.51.100.3:7000".parse().unwrap();
    let tried = |world: &ControlWorld| -> Vec<SocketAddr> {
        let events = world.nodes[0].events.iter();
        events
            .filter_map(|(_, event)| match event {
                ControlEvent::HandshakeStarted { to, .. } => Some(*to),
                _ => None,
            })
            .collect()
    };
    // Nothing else tells where it is.
    let mut world = ControlWorld::new(2, 21, FAIR);
    world.add(0, peer(1, Where::Unknown, Start::OnTraffic));
    world.ask(0, |control, now| control.remember_place(PeerId(1), elsewhere, now));
    world.run(600 * SECOND);
    assert_eq!(tried(&world), [elsewhere]);
    // It was behind another address, and the one that is configured leads nowhere.
    let mut world = ControlWorld::new(2, 22, FAIR);
    world.add(1, peer(0, Where::Unknown, Start::OnTraffic));
    world.roam(1, elsewhere);
    world.add(0, peer(1, Where::Address(address(1)), Start::OnTraffic));
    world.ask(0, |control, now| control.remember_place(PeerId(1), elsewhere, now));
    world.run(60 * SECOND);
    assert_eq!(tried(&world), [], "it is for traffic to begin");
    world.packet(0, 1);
    assert!(world.run_until(20, ControlWorld::both_up));
    assert_eq!(tried(&world), [address(1), elsewhere]);
    // So is one whose name is not found.
    let mut world = ControlWorld::new(2, 23, FAIR);
    world.add(1, peer(0, Where::Unknown, Start::OnTraffic));
    world.roam(1, elsewhere);
    world.nodes[0].names.insert("b".to_owned(), Err("no such host".to_owned()));
    world.add(0, peer(1, Where::Name("b".to_owned()), Start::Eager));
    world.ask(0, |control, now| control.remember_place(PeerId(1), elsewhere, now));
    assert!(world.run_until(5, ControlWorld::both_up));
    assert_eq!(tried(&world), [elsewhere]);
}

#[test]
fn peers_of_an_earlier_run_are_not_all_tried_at_once() {
    let mut world = ControlWorld::new(1, 24, FAIR);
    for other in 1..=100 {
        world.add(0, peer(other, Where::Unknown, Start::OnTraffic));
        let at = SocketAddr::from(([198, 51, 100, other], 7000));
        world.ask(0, |control, now| control.remember_place(PeerId(other.into()), at, now));
    }
    world.run(SECOND);
    let soon = world.started(0).len();
    assert!((10..=25).contains(&soon), "{soon} in the first second");
    // One for which something waits does.
    world.packet(0, 100);
    assert_eq!(world.started(0).len(), soon + 1);
    world.run(60 * SECOND);
    assert!((100..=103).contains(&world.started(0).len()), "{}", world.started(0).len());
}

#[test]
fn unknown_spis_from_where_a_peer_was_in_an_earlier_run_begin_a_handshake_there_seldom() {
    let elsewhere: SocketAddr = "198.51.100.3:7000".parse().unwrap();
    let mut world = ControlWorld::new(2, 25, FAIR);
    world.add(0, peer(1, Where::Address(address(1)), Start::OnTraffic));
    world.ask(0, |control, now| control.remember_place(PeerId(1), elsewhere, now));
    // It is not there, and a stranger forges its address, and others.
    let sent = world.sent;
    for number in 0..6000_u32 {
        let from = if number % 2 == 0 { elsewhere } else { address(7) };
        world.notice(0, Notice::UnknownSpi(from.into(), Spi(0x0500_0000 + number)));
        world.run(Duration::from_millis(100));
    }
    let provoked = world.started(0).len();
    assert!((4..=9).contains(&provoked), "{provoked} handshakes in ten minutes");
    assert!(world.sent - sent < 1000, "{} datagrams for 6000", world.sent - sent);
    // It is there, and knows nothing of a restart here: one datagram of it is enough.
    let mut world = ControlWorld::new(2, 26, FAIR);
    world.add(0, peer(1, Where::Address(address(1)), Start::OnTraffic));
    world.add(1, peer(0, Where::Unknown, Start::OnTraffic));
    world.roam(1, elsewhere);
    world.ask(0, |control, now| control.remember_place(PeerId(1), elsewhere, now));
    world.notice(0, Notice::UnknownSpi(elsewhere.into(), Spi(0x0500_0000)));
    assert!(world.run_until(1, ControlWorld::both_up));
}
