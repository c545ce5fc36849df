//! Keys that need no session, over a satellite: what the first packet waits for.

use core::time::Duration;

use strait_keying::{ControlEvent, PeerConfig, PeerState, Start, Where};
use strait_sim::{Conversation, Filler, LinkSettings, NodeSettings, SimNetwork};

use crate::stage::{A, B, Seed, Talk, millis, pair, seconds, v4};

/// Two nodes with 300 ms between them, with sessions that begin with the first packet, or without.
fn satellite(seed: u64, sessionless: bool) -> SimNetwork {
    let far = LinkSettings { delay: millis(300), ..LinkSettings::default() };
    if !sessionless {
        return pair(seed, |pair| {
            (pair.forth, pair.back) = (far, far);
            (pair.start, pair.answer) = (Start::OnTraffic, Some(Start::OnTraffic));
        });
    }
    without_sessions(seed, far, |to_a, _| to_a.place = Where::Address(NodeSettings::new(A).address))
}

/// Two nodes without sessions, of which the second knows no place of the first unless `change` says so of either as a peer.
fn without_sessions(
    seed: u64,
    link: LinkSettings,
    change: impl FnOnce(&mut PeerConfig, &mut PeerConfig),
) -> SimNetwork {
    let [a, b] = [A, B].map(NodeSettings::new);
    let mut network = SimNetwork::new(seed);
    let mut to_a = a.as_peer(Where::Unknown, Start::OnTraffic);
    let mut to_b = b.as_peer(Where::Address(b.address), Start::OnTraffic);
    change(&mut to_a, &mut to_b);
    network.add_node(a).unwrap();
    network.add_node(b).unwrap();
    network.set_link(A, B, link);
    network.set_link(B, A, link);
    network.add_sessionless(A, to_b);
    network.add_sessionless(B, to_a);
    network
}

/// The same, where the first is behind a NAT.
fn roaming(seed: u64, keepalive: Option<Duration>) -> SimNetwork {
    without_sessions(seed, LinkSettings::default(), |_, to_b| to_b.keepalive = keepalive)
}

/// Packets that arrive of one that B sends.
fn arrive_at_a(network: &mut SimNetwork, port: u16) -> u64 {
    let mut talk = Conversation::new(v4(B, A, port), Filler::Text);
    network.send(B, &talk.next_packet(100));
    network.run_for(seconds(1));
    talk.note(&network.node_mut(A).take_delivered());
    talk.tally().arrived
}

#[test]
fn keepalives_show_the_other_end_where_a_node_is_though_keys_expire_meanwhile() {
    let _seed = Seed(3);
    let mut network = roaming(3, Some(seconds(25)));
    first_reply(&mut network);
    for place in 1..=3 {
        network.run_for(seconds(1200));
        network.readdress(A, ([198, 51, 100, place], 40_000).into());
        network.run_for(seconds(27));
        assert_eq!(arrive_at_a(&mut network, 7000 + u16::from(place)), 1, "place {place}");
    }
}

#[test]
fn packets_go_to_the_place_of_an_earlier_run() {
    let _seed = Seed(4);
    let mut network = roaming(4, None);
    assert_eq!(arrive_at_a(&mut network, 7000), 0, "nothing tells where it is");
    let at = network.node(A).address();
    network.remember_place(B, A, at);
    assert_eq!(arrive_at_a(&mut network, 7001), 1);
}

/// How long the reply to the first packet takes.
fn first_reply(network: &mut SimNetwork) -> Duration {
    let (mut forth, mut back) =
        (Conversation::new(v4(A, B, 9), Filler::Random), Conversation::new(v4(B, A, 9), Filler::Random));
    let start = network.now();
    network.send(A, &forth.next_packet(100));
    assert!(network.run_until(seconds(30), |network| !network.node(B).delivered().is_empty()));
    network.send(B, &back.next_packet(100));
    assert!(network.run_until(seconds(30), |network| !network.node(A).delivered().is_empty()));
    network.now().since(start)
}

#[test]
fn the_first_reply_takes_one_round_trip_where_a_session_takes_two_or_more() {
    let _seed = Seed(1);
    let round = millis(600);
    let without = first_reply(&mut satellite(1, true));
    assert!((round..round + millis(20)).contains(&without), "{without:?}");
    let with = first_reply(&mut satellite(1, false));
    assert!(with >= 2 * round, "{with:?}");
}

#[test]
fn packets_flow_over_many_keys_and_nothing_is_said_while_idle() {
    let _seed = Seed(2);
    let mut network = satellite(2, true);
    let mut talk = Talk::new(A, B, 9);
    talk.run(&mut network, seconds(200), millis(100));
    talk.finish(&mut network);
    for (name, tally) in [("forth", talk.forth.tally()), ("back", talk.back.tally())] {
        assert_eq!((tally.sent, tally.arrived), (2000, 2000), "{name}");
    }
    assert_eq!(network.node(A).handshakes(), 0);
    let heard = |event: &ControlEvent| matches!(event, ControlEvent::HeardWithoutSession { .. });
    assert_eq!(network.node(A).events().iter().filter(|(_, event)| heard(event)).count(), 1);
    assert_eq!(network.node(B).status(A).unwrap().state, PeerState::Up);
    network.run_for(seconds(10));
    network.start_capture();
    network.run_for(seconds(300));
    assert_eq!(network.take_capture().len(), 0, "datagrams of an idle pair");
    // After all keys have gone, the first packet is understood as it was.
    let again = first_reply(&mut network);
    assert!(again < millis(620), "{again:?}");
    assert!(network.node(B).all_drops().is_empty(), "{:?}", network.node(B).all_drops());
}
