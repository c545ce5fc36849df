//! A tunnel without traffic sends nothing.

use strait_keying::{Start, Where};
use strait_sim::{LinkSettings, NodeSettings, SimNetwork};

use crate::stage::{A, B, Seed, Talk, joined, millis, seconds};

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
fn a_day_with_keepalives_has_exactly_those() {
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
    network.start_capture();
    let before = entered(&mut network);
    network.run_for(seconds(DAY));
    let after = entered(&mut network);
    assert_eq!(after[0] - before[0], DAY / 25);
    assert_eq!(after[1] - before[1], 0);
    assert!(network.take_capture().iter().all(|datagram| datagram.bytes == [0xff]));
}
