use core::time::Duration;
use std::net::SocketAddr;

use strait_crypto::{Ranking, Suite, SuiteSet};
use strait_ipsec::{IvMode, Notice, Payloads, PeerId};
use strait_scheduler::{LinkRate, Pace, Rate};
use strait_wire::Spi;

use super::world::{ControlWorld, FAIR, Weather, address, peer};
use crate::{
    CarrierMode, ControlEvent, DeliveryReporting, DirectEsp, HandshakeFailure, KeyExport, PayloadFormat,
    PeerConfig, PeerState, Refusal, Role, SaDirection, Start, Where,
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_pair_comes_up_in_few_datagrams_and_the_connection_goes() {
    let mut world = ControlWorld::pair(1, FAIR, Start::Eager);
    assert_eq!(world.nodes[0].control.status(PeerId(1)).unwrap().state, PeerState::Connecting);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.assert_joined();
    world.run(5 * SECOND);
    assert_eq!((world.established(0), world.established(1)), (1, 1));
    let status = world.nodes[0].control.status(PeerId(1)).unwrap();
    assert_eq!(status.association.as_ref().unwrap().role, Role::Initiator);
    assert_eq!(status.association.unwrap().suite, Suite::Aes128Gcm);
    assert_eq!(status.failures, 0);
    assert!(world.sent <= 14, "{} datagrams", world.sent);
    for node in &world.nodes {
        assert_eq!(node.control.connections(), 0, "no connection, and so no secret, is left");
        assert_eq!(node.inbound.len(), 1);
        for spi in node.inbound.keys() {
            assert!((0x0400_0000..=0x0fff_ffff).contains(&spi.0));
        }
    }
}

#[test]
fn each_suite_iv_and_format_is_agreed_on_by_both() {
    let ivs = [IvMode::Implicit, IvMode::Explicit];
    for suite in Suite::ALL {
        for (asks, iv) in ivs.into_iter().enumerate() {
            let mut world = ControlWorld::with(2, 2, FAIR, |node, settings| {
                settings.capabilities.suites = SuiteSet::ALL;
                if usize::from(node) == asks {
                    settings.capabilities.suites = SuiteSet::EMPTY.with(suite);
                    settings.capabilities.iv = iv;
                }
            });
            world.introduce(Start::Eager);
            assert!(world.run_until(5, ControlWorld::both_up), "{suite}");
            world.assert_joined();
            let pair = world.nodes[0].control.status(PeerId(1)).unwrap().association.unwrap();
            assert_eq!((pair.suite, pair.iv), (suite, iv));
            assert!(matches!(pair.payloads, Payloads::Strait { .. }));
        }
    }
    let mut world = ControlWorld::new(2, 2, FAIR);
    let mut standard = peer(0, Where::Unknown, Start::OnTraffic);
    standard.format = PayloadFormat::Standard;
    world.add(1, standard);
    world.add(0, peer(1, Where::Address(address(1)), Start::Eager));
    assert!(world.run_until(5, ControlWorld::both_up));
    for (node, other) in [(0, 1), (1, 0)] {
        let pair = world.nodes[node].control.status(PeerId(other)).unwrap().association.unwrap();
        assert_eq!(pair.payloads, Payloads::STANDARD);
    }
}

#[test]
fn the_suite_is_the_one_that_costs_both_least() {
    let mut world = ControlWorld::with(2, 3, FAIR, |node, settings| {
        let nanos_per_packet =
            if node == 0 { [1_000, 1_200, 3_000, 1_000] } else { [20_000, 26_000, 6_000, 20_000] };
        settings.capabilities.ranking = Ranking { nanos_per_packet };
    });
    world.introduce(Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.assert_joined();
    let pair = world.nodes[1].control.status(PeerId(0)).unwrap().association.unwrap();
    assert_eq!(pair.suite, Suite::ChaCha20Poly1305);
}

#[test]
fn esp_behind_ip_is_offered_only_to_peers_that_the_configuration_names() {
    for (modes, agreed) in [
        ([CarrierMode::Ip, CarrierMode::Ip], true),
        ([CarrierMode::Ip, CarrierMode::Udp], false),
        ([CarrierMode::Udp, CarrierMode::Udp], false),
    ] {
        let mut world = ControlWorld::with(2, 5, FAIR, |_, settings| {
            settings.capabilities.direct = DirectEsp::Taken;
        });
        for (node, carrier) in (0..).zip(modes) {
            let other = peer(1 - node, Where::Address(address(1 - node)), Start::Eager);
            world.add(node.into(), PeerConfig { carrier, ..other });
        }
        assert!(world.run_until(5, ControlWorld::both_up));
        let said = |node: usize| {
            let status = world.nodes[node].control.status(PeerId(1 - u32::try_from(node).unwrap())).unwrap();
            status.capabilities.unwrap().direct == DirectEsp::Taken
        };
        assert_eq!([said(1), said(0)], modes.map(|mode| mode == CarrierMode::Ip));
        assert_eq!(said(0) && said(1), agreed);
    }
}

#[test]
fn the_rate_is_the_smaller_of_ours_out_and_theirs_in() {
    let rate = |bits| Rate::from_bits(bits).unwrap();
    let (slow, fast) = (rate(1_000_000), rate(2_000_000));
    let estimated = |at_most| Pace::Estimated { at_most };
    let (none, auto) = (LinkRate::Unpaced, LinkRate::Auto);
    let table = [
        (none, none, Pace::None),
        (LinkRate::Given(fast), none, Pace::At(fast)),
        (none, LinkRate::Given(slow), Pace::At(slow)),
        (LinkRate::Given(fast), LinkRate::Given(slow), Pace::At(slow)),
        (LinkRate::Given(slow), LinkRate::Given(fast), Pace::At(slow)),
        (auto, none, estimated(None)),
        (none, auto, estimated(None)),
        (auto, auto, estimated(None)),
        (LinkRate::Given(fast), auto, estimated(Some(fast))),
        (auto, LinkRate::Given(slow), estimated(Some(slow))),
    ];
    for (up, down, expected) in table {
        let mut world = ControlWorld::with(2, 4, FAIR, |node, settings| match node {
            0 => settings.up = up,
            _ => settings.capabilities.down = down,
        });
        world.introduce(Start::Eager);
        let told = |world: &ControlWorld| world.nodes[0].paces.get(&PeerId(1)).copied().unwrap_or_default();
        assert_eq!(told(&world), Pace::between(up, none), "before anything is known of the peer");
        assert!(world.run_until(5, ControlWorld::both_up));
        assert_eq!(told(&world), expected, "{up:?} {down:?}");
        assert_eq!(world.nodes[0].control.status(PeerId(1)).unwrap().pace, expected);
    }
}

#[test]
fn rate_is_not_estimated_without_delivery_reports() {
    for (delivery, format) in [
        (DeliveryReporting::Untold, PayloadFormat::Strait),
        (DeliveryReporting::Reported, PayloadFormat::Standard),
    ] {
        let mut world = ControlWorld::with(2, 4, FAIR, |node, settings| match node {
            0 => settings.up = LinkRate::Auto,
            _ => (settings.capabilities.delivery, settings.capabilities.format) = (delivery, format),
        });
        world.introduce(Start::Eager);
        assert!(world.run_until(5, ControlWorld::both_up));
        assert_eq!(world.nodes[0].paces[&PeerId(1)], Pace::None, "{delivery:?} {format:?}");
    }
}

#[test]
fn both_ends_log_that_no_suite_is_common() {
    let mut world = ControlWorld::with(2, 5, FAIR, |node, settings| {
        settings.capabilities.suites = SuiteSet::EMPTY.with(Suite::ALL[usize::from(node)]);
    });
    world.introduce(Start::Eager);
    world.run(5 * SECOND);
    for node in 0..2 {
        let why = |event: &ControlEvent| {
            matches!(event, ControlEvent::Failed { why: HandshakeFailure::NoCommonSuite, .. })
        };
        assert!(world.count(node, why) > 0, "{node}: {:?}", world.nodes[node].events);
        assert!(world.nodes[node].inbound.is_empty() && world.nodes[node].outbound.is_empty());
    }
}

#[test]
fn node_with_another_key_is_rejected() {
    // Node 2 answers at node 1's address.
    let mut world = ControlWorld::new(3, 6, FAIR);
    world.add(0, peer(1, Where::Address(address(2)), Start::Eager));
    world.add(2, peer(0, Where::Unknown, Start::OnTraffic));
    world.run(5 * SECOND);
    let wrong =
        |event: &ControlEvent| matches!(event, ControlEvent::Failed { why: HandshakeFailure::WrongKey, .. });
    assert!(world.count(0, wrong) >= 2, "{:?}", world.nodes[0].events);
    assert!(world.nodes.iter().all(|node| node.inbound.is_empty() && node.outbound.is_empty()));
}

#[test]
fn unknown_key_is_refused_and_both_ends_log_it() {
    let mut world = ControlWorld::new(2, 7, FAIR);
    world.add(0, peer(1, Where::Address(address(1)), Start::Eager));
    world.run(5 * SECOND);
    let public = world.nodes[0].control.public();
    let refused = |event: &ControlEvent| {
        matches!(event, ControlEvent::Failed { why: HandshakeFailure::RefusedThere { .. }, .. })
    };
    assert!(world.count(0, refused) >= 2, "{:?}", world.nodes[0].events);
    let stranger = |event: &ControlEvent| matches!(event, ControlEvent::Refused { why: Refusal::Stranger(key), .. } if *key == public);
    assert!(world.count(1, stranger) >= 2, "{:?}", world.nodes[1].events);
    assert!(!world.is_up(0, 1));
    world.run(20 * SECOND);
    assert_eq!(world.nodes[1].control.connections(), 0);
}

#[test]
fn the_handshake_survives_a_bad_link() {
    for seed in 0..60 {
        let weather = Weather { delay: (5, 80), lost: 300, twice: 50 };
        let mut world = ControlWorld::pair(seed, weather, Start::Eager);
        assert!(world.run_until(60, ControlWorld::both_up), "seed {seed}: {:?}", world.nodes[0].events);
        world.weather = FAIR;
        world.run(20 * SECOND);
        world.assert_joined();
        assert!(world.nodes.iter().all(|node| node.control.connections() == 0), "seed {seed}");
    }
}

#[test]
fn handshake_succeeds_at_first_attempt_with_a_tenth_lost() {
    let mut failed = 0;
    for seed in 100..200 {
        let mut world =
            ControlWorld::pair(seed, Weather { delay: (20, 25), lost: 100, twice: 0 }, Start::Eager);
        assert!(world.run_until(30, ControlWorld::both_up), "seed {seed}");
        failed += world.count(0, |event| matches!(event, ControlEvent::Failed { .. }));
    }
    assert!(failed <= 2, "{failed} of 100");
}

#[test]
fn first_packet_confirms_as_a_message_does() {
    // The confirmation is lost, and with it everything the initiator's connection sends.
    let mut world = ControlWorld::pair(8, FAIR, Start::Eager);
    assert!(world.run_until(5, |world| world.is_up(0, 1)));
    assert!(!world.is_up(1, 0), "the responder waits");
    let spi = *world.nodes[1].inbound.keys().next().unwrap();
    assert!(!world.nodes[1].outbound.contains_key(&PeerId(0)));
    world.notice(1, Notice::Confirmed(PeerId(0), Spi(spi.0 ^ 1)));
    assert!(!world.is_up(1, 0), "an SPI that is not awaited confirms nothing");
    world.notice(1, Notice::Confirmed(PeerId(0), spi));
    assert!(world.is_up(1, 0));
    world.assert_joined();
    world.run(10 * SECOND);
    assert_eq!((world.established(0), world.established(1)), (1, 1));
}

#[test]
fn unconfirmed_pair_is_withdrawn() {
    let mut world = ControlWorld::pair(9, FAIR, Start::Eager);
    assert!(world.run_until(5, |world| !world.nodes[1].inbound.is_empty()));
    world.nodes[0].cut = true;
    world.run(50 * SECOND);
    assert_eq!(world.nodes[1].inbound.len(), 1, "its initiator may have it");
    world.run(20 * SECOND);
    assert!(world.nodes[1].inbound.is_empty());
    assert!(world.nodes[1].outbound.is_empty());
    assert_eq!(world.nodes[1].control.connections(), 0);
    assert_eq!(world.nodes[1].control.poll_timeout(), None, "nothing is left to wait for");
}

/// Has `node` replace the pair in use; everything that `lost` is sent from then on is lost for a while: the confirmation where it is the
/// other end, the answer where it is `node`.
fn rekey(world: &mut ControlWorld, node: usize, lost: usize) {
    let peer = PeerId(u32::try_from(1 - node).unwrap());
    let inbound = world.nodes[1 - node].inbound.len();
    let spi = world.nodes[node].outbound[&peer].spi();
    world.notice(node, Notice::Exhausted(peer, spi));
    assert!(world.run_until(30, |world| world.nodes[1 - node].inbound.len() > inbound));
    world.nodes[lost].cut = true;
    world.run(15 * SECOND);
    world.nodes[lost].cut = false;
}

/// Two nodes of which the first sends with a second pair, and the second has not heard on it: the network takes no ESP.
fn with_an_unconfirmed_pair() -> ControlWorld {
    let mut world = ControlWorld::pair(9, FAIR, Start::Eager);
    assert!(world.run_until(5, ControlWorld::both_up));
    world.no_esp = true;
    rekey(&mut world, 0, 1);
    assert_eq!((world.established(0), world.established(1)), (2, 1));
    world
}

#[test]
fn a_late_packet_on_an_unconfirmed_pair_does_not_bring_it_back() {
    let mut world = with_an_unconfirmed_pair();
    rekey(&mut world, 1, 0);
    assert_eq!((world.established(0), world.established(1)), (2, 2));
    // The first end has not heard on the pair of the second, and goes on with its own.
    world.no_esp = false;
    world.packet(0, 1);
    world.run(SECOND);
    world.packet(1, 0);
    world.run(SECOND);
    assert_eq!((world.established(0), world.established(1)), (3, 2));
    world.assert_joined();
}

#[test]
fn the_pair_before_an_unconfirmed_one_is_used_where_its_initiator_goes_on_with_it() {
    let mut world = with_an_unconfirmed_pair();
    rekey(&mut world, 0, 0);
    assert_eq!((world.established(0), world.established(1)), (2, 1));
    world.no_esp = false;
    world.packet(0, 1);
    world.run(Duration::from_millis(50));
    assert_eq!((world.established(0), world.established(1)), (2, 2));
    world.assert_joined();
}

#[test]
fn handshake_on_traffic_waits_for_the_first_packet() {
    let mut world = ControlWorld::pair(10, FAIR, Start::OnTraffic);
    world.run(3600 * SECOND);
    assert_eq!(world.sent, 0);
    assert!(!world.packet(0, 1));
    assert!(world.run_until(1, ControlWorld::both_up));
    assert!(world.packet(0, 1));
}

#[test]
fn peer_without_endpoint_gets_no_handshake() {
    let mut world = ControlWorld::pair(11, FAIR, Start::OnTraffic);
    for _ in 0..3 {
        assert!(!world.packet(1, 0));
        world.run(SECOND);
    }
    assert_eq!(world.count(1, |event| matches!(event, ControlEvent::NoEndpoint { .. })), 1, "said once");
    assert_eq!(world.sent, 0);
    world.packet(0, 1);
    assert!(world.run_until(1, ControlWorld::both_up));
    assert_eq!(world.nodes[1].endpoint(PeerId(0)), Some(address(0)));
    assert!(world.packet(1, 0));
}

#[test]
fn pauses_stay_short_while_packets_wait_and_attempts_end_when_none_does() {
    let mut world = ControlWorld::pair(12, FAIR, Start::OnTraffic);
    world.nodes[1].cut = true;
    for _ in 0..600 {
        world.packet(0, 1);
        world.run(SECOND);
    }
    let starts = world.started(0);
    let gaps: Vec<u64> = starts.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert!(gaps.iter().zip(&[10, 11, 13]).all(|(gap, least)| gap >= least), "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= 10 + 5 + 1), "{gaps:?}");
    assert!(gaps.iter().skip(3).all(|gap| *gap >= 10 + 3), "{gaps:?}");
    let failures = world.nodes[0].control.status(PeerId(1)).unwrap().failures;
    assert_eq!(
        usize::try_from(failures).unwrap(),
        world.count(0, |e| matches!(e, ControlEvent::Failed { .. }))
    );
    world.run(120 * SECOND);
    let sent = world.sent;
    assert_eq!(world.nodes[0].control.status(PeerId(1)).unwrap().state, PeerState::Idle);
    assert_eq!(world.nodes[0].control.poll_timeout(), None);
    world.run(3600 * SECOND);
    assert_eq!(world.sent, sent, "it is not wanted any more");
    world.nodes[1].cut = false;
    world.packet(0, 1);
    assert!(world.run_until(2, ControlWorld::both_up));
    assert_eq!(world.nodes[0].control.status(PeerId(1)).unwrap().failures, 0);
}

#[test]
fn unusable_address_fails_the_attempt() {
    for text in ["0.0.0.0:51820", "192.0.2.9:0", "[::]:1"] {
        let mut world = ControlWorld::new(1, 13, FAIR);
        let address: SocketAddr = text.parse().unwrap();
        world.add(0, peer(1, Where::Address(address), Start::Eager));
        world.run(5 * SECOND);
        assert!(
            world.count(0, |e| matches!(
                e,
                ControlEvent::Failed { why: HandshakeFailure::BadAddress { .. }, .. }
            )) > 0
        );
    }
}

#[test]
fn names_are_looked_up_first_and_again_after_a_failure() {
    let mut world = ControlWorld::new(3, 14, FAIR);
    world.add(2, peer(0, Where::Unknown, Start::OnTraffic));
    let name = "site-b.example:51820".to_owned();
    world.nodes[0].names.insert(name.clone(), Err("no such host".to_owned()));
    // Node 0 takes node 2 for its peer.
    world.add(0, peer(2, Where::Name(name.clone()), Start::Eager));
    world.run(5 * SECOND);
    assert!(world.nodes[0].lookups.len() >= 2, "{:?}", world.nodes[0].lookups);
    assert!(world.count(0, |e| matches!(e, ControlEvent::Unresolved { .. })) >= 2);
    // First it leads nowhere, then to the peer.
    world.nodes[0].names.insert(name.clone(), Ok(vec!["192.0.2.77:1".parse().unwrap()]));
    assert!(world.run_until(10, |world| !world.started(0).is_empty()));
    world.nodes[0].names.insert(name, Ok(vec![address(2)]));
    assert!(world.run_until(60, |world| world.is_up(0, 2)));
    assert_eq!(world.nodes[0].endpoint(PeerId(2)), Some(address(2)));
}

#[test]
fn silent_resolver_fails_attempts_until_trying_ends() {
    let mut world = ControlWorld::new(1, 15, FAIR);
    world.add(0, peer(1, Where::Name("nowhere.example:1".to_owned()), Start::Eager));
    world.run(120 * SECOND);
    assert!(world.nodes[0].lookups.len() >= 3, "{:?}", world.nodes[0].lookups);
    assert!(
        world.count(0, |e| matches!(e, ControlEvent::Failed { why: HandshakeFailure::Unresolved(_), .. }))
            >= 3
    );
    assert_eq!(world.sent, 0);
    let late = world.nodes[0].lookups.len();
    world.run(3600 * SECOND);
    assert_eq!(world.nodes[0].lookups.len(), late);
}

#[test]
fn keys_are_handed_out_only_when_asked_for() {
    for export in [KeyExport::Never, KeyExport::Danger] {
        let mut world = ControlWorld::with(2, 16, FAIR, |_, settings| settings.export = export);
        world.introduce(Start::Eager);
        assert!(world.run_until(5, ControlWorld::both_up));
        for node in &world.nodes {
            assert_eq!(node.keys.len(), if export == KeyExport::Danger { 2 } else { 0 });
            assert!(node.keys.iter().all(|key| format!("{key:?}").contains("[key]")));
        }
    }
}

#[test]
fn each_connection_has_keys_of_its_own() {
    let keys = |seed| {
        let mut world = ControlWorld::pair(seed, FAIR, Start::Eager);
        assert!(world.run_until(5, ControlWorld::both_up));
        let spi = world.nodes[0].outbound[&PeerId(1)].spi();
        let node = &world.nodes[0];
        node.key(SaDirection::Out, spi).material.expose().to_vec()
    };
    // Even the same seed does not make the same keys: TLS has its own randomness.
    assert_ne!(keys(17), keys(17));
}
