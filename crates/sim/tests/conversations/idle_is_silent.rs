//! A tunnel without traffic sends nothing.

use strait_keying::{Start, Where};
use strait_sim::{Conversation, Filler, LinkSettings, NodeSettings, SimNetwork};

use crate::stage::{A, B, Seed, Talk, joined, log, millis, seconds, v4};

const DAY: u64 = 24 * 3600;

fn entered(network: &mut SimNetwork) -> [u64; 2] {
    [(A, B), (B, A)].map(|(from, to)| network.link(from, to).counters().entered)
}

#[test]
fn a_day_without_packets_passes_without_datagrams() {
    let _seed = Seed(1);
    let mut network = joined(1, |pair| pair.answer = Some(Start::Eager));
    let mut talk = Talk::new(A, B, 5000);
    talk.run(&mut network, seconds(3), millis(100));
    network.run_for(seconds(60));
    let before = entered(&mut network);
    network.run_for(seconds(DAY));
    assert_eq!(entered(&mut network), before);
    // And the first packet after it is as good as any.
    talk.run(&mut network, seconds(2), millis(100));
    talk.finish(&mut network);
    talk.assert_perfect();
}

#[test]
fn a_day_with_keepalives_has_exactly_those_and_keys_for_them() {
    let _seed = Seed(2);
    let mut network = SimNetwork::new(2);
    let [a, b] = [A, B].map(NodeSettings::new);
    let mut to_b = b.as_peer(Where::Address(b.address), Start::Eager);
    to_b.keepalive = Some(seconds(25));
    let to_a = a.as_peer(Where::Unknown, Start::OnTraffic);
    network.add_node(a).unwrap();
    network.add_node(b).unwrap();
    network.set_link(A, B, LinkSettings::default());
    network.set_link(B, A, LinkSettings::default());
    network.add_peer(B, to_a);
    network.add_peer(A, to_b);
    assert!(network.run_until_up(A, B, seconds(5)));
    network.run_for(seconds(60));
    let handshakes = network.node(A).handshakes();
    network.start_capture();
    network.run_for(seconds(DAY));
    let captured = network.take_capture();
    let kept: Vec<_> = captured.iter().filter(|datagram| datagram.is_esp()).collect();
    let (home, length) = (network.node(A).address(), kept[0].outer_len());
    println!("{} keepalives of {length} bytes", kept.len());
    assert!(kept.iter().all(|datagram| datagram.from == home && datagram.outer_len() == length));
    assert!(length <= 72, "{length}");
    // New keys, about once an hour, put the next of them off.
    let renewed = (network.node(A).handshakes() - handshakes) as u64;
    assert!((21..=27).contains(&renewed), "{renewed}");
    assert!((DAY / 25 - renewed..=DAY / 25).contains(&(kept.len() as u64)), "{}", kept.len());
    let rest = captured.len() - kept.len();
    assert!(rest as u64 <= 14 * renewed, "{rest} datagrams for {renewed} handshakes");
}

#[test]
fn keepalives_show_the_other_end_where_an_idle_node_is_behind_a_nat_with_another_address() {
    let _seed = Seed(3);
    let mut network = SimNetwork::new(3);
    let [a, b] = [A, B].map(NodeSettings::new);
    let mut to_b = b.as_peer(Where::Address(b.address), Start::Eager);
    to_b.keepalive = Some(seconds(25));
    let to_a = a.as_peer(Where::Unknown, Start::OnTraffic);
    for node in [a, b] {
        network.add_node(node).unwrap();
    }
    for (from, to) in [(A, B), (B, A)] {
        network.set_link(from, to, LinkSettings::default());
    }
    network.add_peer(B, to_a);
    network.add_peer(A, to_b);
    assert!(network.run_until_up(A, B, seconds(5)));
    network.run_for(seconds(600));
    for place in 1..=3 {
        network.readdress(A, ([198, 51, 100, place], 40_000).into());
        network.run_for(seconds(26));
        let mut talk = Conversation::new(v4(B, A, 7000 + u16::from(place)), Filler::Text);
        network.send(B, &talk.next_packet(100));
        network.run_for(seconds(1));
        talk.note(&network.node_mut(A).take_delivered());
        assert_eq!(talk.tally().arrived, 1, "from the outside to the inside: {:?}", log(&network, B));
    }
    assert_eq!(network.node(A).handshakes(), 1, "that needs no handshake");
}
