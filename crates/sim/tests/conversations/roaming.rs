//! A peer that sends from a new address is answered there; a stranger cannot move it.

use core::time::Duration;
use std::net::SocketAddr;

use strait_keying::{ControlEvent, Start, Where};
use strait_sim::{Conversation, Filler, LinkSettings, NodeSettings, SimDatagram, SimNetwork};

use crate::stage::{A, B, Seed, Talk, joined, millis, seconds, v4};

fn elsewhere(last: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, last], 40_000))
}

#[test]
fn traffic_follows_a_peer_from_place_to_place() {
    let _seed = Seed(1);
    let mut network = joined(1, |_| {});
    for place in 1..20 {
        network.readdress(A, elsewhere(place));
        let mut hello = Conversation::new(v4(A, B, 7000), Filler::Text);
        network.send(A, &hello.next_packet(100));
        network.run_for(millis(20));
        hello.note(&network.node_mut(B).take_delivered());
        assert_eq!(hello.tally().missing(), 0);
        assert_eq!(network.node(B).status(A).unwrap().endpoint, Some(elsewhere(place)));
        let mut talk = Talk::new(A, B, 5000);
        talk.run(&mut network, seconds(1), millis(50));
        talk.finish(&mut network);
        talk.assert_perfect();
    }
    assert_eq!(network.node(B).handshakes(), 1, "moving needs no handshake");
}

#[test]
fn moved_peer_is_answered_when_order_queue_was_full() {
    let _seed = Seed(6);
    let mut network = joined(6, |_| {});
    Talk::new(A, B, 5000).run(&mut network, seconds(1), millis(50));
    network.node_mut(B).set_order_room(0);
    network.readdress(A, elsewhere(1));
    let mut hello = Conversation::new(v4(A, B, 7000), Filler::Text);
    network.send(A, &hello.next_packet(100));
    network.run_for(millis(20));
    hello.note(&network.node_mut(B).take_delivered());
    assert_eq!(hello.tally().missing(), 0, "what arrived is delivered");
    network.node_mut(B).set_order_room(usize::MAX);
    let mut talk = Talk::new(A, B, 5001);
    talk.run(&mut network, seconds(1), millis(50));
    talk.finish(&mut network);
    talk.assert_perfect();
    assert_eq!(network.node(B).handshakes(), 1);
}

#[test]
fn full_queues_while_a_peer_moves_leave_it_no_wrong_endpoint() {
    let _seed = Seed(7);
    let mut network = joined(7, |_| {});
    Talk::new(A, B, 5000).run(&mut network, seconds(1), millis(50));
    // A flood fills both queues of the receiver; meanwhile the peer moves twice.
    network.node_mut(B).set_order_room(0);
    network.node_mut(B).set_notice_room(0);
    for place in [1, 2] {
        network.readdress(A, elsewhere(place));
        let mut hello = Conversation::new(v4(A, B, 7000 + u16::from(place)), Filler::Text);
        network.send(A, &hello.next_packet(100));
        network.run_for(millis(20));
        hello.note(&network.node_mut(B).take_delivered());
        assert_eq!(hello.tally().missing(), 0, "what arrived is delivered");
    }
    network.node_mut(B).set_order_room(usize::MAX);
    network.node_mut(B).set_notice_room(usize::MAX);
    let mut answers = Talk::new(B, A, 5001);
    answers.run(&mut network, seconds(2), millis(50));
    answers.finish(&mut network);
    answers.assert_perfect();
    assert_eq!(network.node(B).status(A).unwrap().endpoint, Some(elsewhere(2)));
    assert_eq!(network.node(B).handshakes(), 1);
}

/// The datagrams that `node` sent whose outer IP packet has at least `size` bytes.
fn large(captured: &[SimDatagram], size: u64) -> usize {
    captured.iter().filter(|datagram| datagram.from == B.outer_v4() && datagram.outer_len() >= size).count()
}

/// A sends 3,000 packets in 2 s, each from the next of two places in turn; B sends something now and then. Gives the
/// moves that B logged, and the padded probes that it sent.
fn flap(network: &mut SimNetwork, places: [SocketAddr; 2]) -> (usize, usize) {
    let logged = |network: &SimNetwork| {
        let events = network.node(B).events().iter();
        events.filter(|(_, event)| matches!(event, ControlEvent::Moved { .. })).count()
    };
    let before = logged(network);
    let mut chatter = Conversation::new(v4(A, B, 7000), Filler::Text);
    let mut answer = Conversation::new(v4(B, A, 7001), Filler::Text);
    network.take_capture();
    for number in 0..3000 {
        network.readdress(A, places[number % 2]);
        network.send(A, &chatter.next_packet(20));
        network.run_for(Duration::from_micros(667));
        if number % 20 == 0 {
            network.send(B, &answer.next_packet(20));
        }
    }
    // What is on its way arrives.
    network.run_for(millis(100));
    network.node_mut(B).take_delivered();
    network.node_mut(A).take_delivered();
    let probes = large(&network.take_capture(), 1281);
    (logged(network) - before, probes)
}

#[test]
fn a_peer_that_flaps_between_two_ports_costs_no_search_and_a_log_line_a_second() {
    let _seed = Seed(8);
    let mut network = joined(8, |_| {});
    Talk::new(A, B, 5000).run(&mut network, seconds(20), millis(50));
    network.start_capture();
    let [one, other] = [40_000, 40_001].map(|port| SocketAddr::new(A.outer_v4().ip(), port));
    let (lines, probes) = flap(&mut network, [one, other]);
    assert!(lines <= 3, "{lines} lines in 2 s");
    assert_eq!(probes, 0, "the path to the same host is known");
    network.send(B, &Conversation::new(v4(B, A, 7002), Filler::Text).next_packet(1350));
    network.run_for(millis(50));
    assert_eq!(large(&network.take_capture(), 1351), 1, "and takes a large packet whole");
    // It still roams at once.
    let mut talk = Talk::new(A, B, 5001);
    talk.run(&mut network, seconds(1), millis(50));
    talk.finish(&mut network);
    talk.assert_perfect();
}

#[test]
fn a_peer_that_flaps_between_two_hosts_costs_one_search_in_ten_seconds() {
    let _seed = Seed(9);
    let mut network = joined(9, |_| {});
    Talk::new(A, B, 5000).run(&mut network, seconds(20), millis(50));
    network.start_capture();
    let (lines, probes) = flap(&mut network, [elsewhere(1), elsewhere(2)]);
    assert!(lines <= 3, "{lines} lines in 2 s");
    assert!(probes <= 1, "{probes} probes in 2 s");
    // It still roams at once, and its path is searched again in the end.
    network.take_capture();
    Talk::new(B, A, 5001).run(&mut network, seconds(12), millis(50));
    assert!(large(&network.take_capture(), 1281) >= 1);
}

#[test]
fn a_copy_from_elsewhere_does_not_move_the_peer() {
    let _seed = Seed(2);
    let mut network = joined(2, |_| {});
    network.start_capture();
    let mut talk = Talk::new(A, B, 5000);
    talk.run(&mut network, seconds(2), millis(50));
    let home = network.node(A).address();
    for mut datagram in network.take_capture().into_iter().filter(|one| one.is_esp() && one.from == home) {
        datagram.from = elsewhere(66);
        network.inject(datagram);
        assert_eq!(network.node(B).status(A).unwrap().endpoint, Some(home));
    }
    talk.run(&mut network, seconds(1), millis(50));
    talk.finish(&mut network);
    talk.assert_perfect();
    assert_eq!(network.strays(), 0, "something was sent elsewhere");
}

#[test]
fn an_old_packet_that_was_held_back_does_not_move_the_peer() {
    let _seed = Seed(3);
    let mut network = joined(3, |_| {});
    network.start_capture();
    network.link(A, B).switch = strait_sim::LinkSwitch::Down;
    let mut talk = Conversation::new(v4(A, B, 7000), Filler::Text);
    network.send(A, &talk.next_packet(100));
    let mut held = network.take_capture().into_iter().find(strait_sim::SimDatagram::is_esp).unwrap();
    network.link(A, B).switch = strait_sim::LinkSwitch::Up;
    network.send(A, &talk.next_packet(100));
    network.run_for(millis(50));
    held.from = elsewhere(66);
    network.inject(held);
    talk.note(&network.node_mut(B).take_delivered());
    assert_eq!(talk.tally().arrived, 2, "it is authentic and new");
    assert_eq!(network.node(B).status(A).unwrap().endpoint, Some(network.node(A).address()));
}

#[test]
fn two_peers_that_moved_meet_at_configured_endpoints() {
    let _seed = Seed(4);
    let mut network = joined(4, |pair| pair.answer = Some(Start::OnTraffic));
    for (node, place) in [(A, 1), (B, 2)] {
        network.readdress(node, elsewhere(place));
        Talk::new(A, B, 5000).run(&mut network, seconds(1), millis(50));
    }
    assert_eq!(network.node(A).status(B).unwrap().endpoint, Some(elsewhere(2)));
    network.readdress(A, A.outer_v4());
    network.readdress(B, B.outer_v4());
    // Silence 15 s, an attempt without an answer 10 s, a pause.
    Talk::new(A, B, 5001).run(&mut network, seconds(30), millis(200));
    let mut talk = Talk::new(A, B, 5002);
    talk.run(&mut network, seconds(2), millis(50));
    talk.finish(&mut network);
    talk.assert_perfect();
}

#[test]
fn a_peer_that_is_found_by_name_is_looked_up_again_when_it_falls_silent() {
    let _seed = Seed(5);
    let mut network = SimNetwork::new(5);
    let [a, b] = [A, B].map(NodeSettings::new);
    let to_b = b.as_peer(Where::Name("b.example:51820".to_owned()), Start::Eager);
    let to_a = a.as_peer(Where::Unknown, Start::OnTraffic);
    for settings in [a, b] {
        network.add_node(settings).unwrap();
    }
    for (from, to) in [(A, B), (B, A)] {
        network.set_link(from, to, LinkSettings::default());
    }
    network.add_peer(B, to_a);
    network.add_peer(A, to_b);
    network.run_for(seconds(20));
    assert!(!network.node(A).is_up(B), "the name does not exist yet");
    network.names.insert("b.example:51820".to_owned(), vec![B.outer_v4()]);
    assert!(network.run_until_up(A, B, seconds(40)));
    network.readdress(B, elsewhere(2));
    network.restart(B).unwrap();
    network.names.insert("b.example:51820".to_owned(), vec![elsewhere(2)]);
    Talk::new(A, B, 5001).run(&mut network, seconds(18), millis(200));
    assert_eq!(network.node(A).status(B).unwrap().endpoint, Some(elsewhere(2)));
    let mut talk = Talk::new(A, B, 5002);
    talk.run(&mut network, seconds(2), millis(50));
    talk.finish(&mut network);
    talk.assert_perfect();
}
