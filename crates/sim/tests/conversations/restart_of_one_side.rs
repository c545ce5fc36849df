//! A node that lost all it knew is back in a moment, without help.

use core::time::Duration;

use strait_keying::Start;
use strait_sim::{Conversation, Filler, NodeId, SimNetwork};

use crate::stage::{A, B, Seed, Talk, joined, log, millis, seconds, v4};

/// How long after a restart of `node` packets from `from` arrive again, one sent every 100 ms.
fn outage(network: &mut SimNetwork, node: NodeId, (from, to): (NodeId, NodeId)) -> Duration {
    network.restart(node).unwrap();
    let restarted = network.now();
    let mut talk = Conversation::new(v4(from, to, 7000), Filler::Text);
    loop {
        network.send(from, &talk.next_packet(100));
        network.run_for(millis(100));
        talk.note(&network.node_mut(to).take_delivered());
        let after = network.now() - restarted;
        if talk.tally().arrived > 0 {
            return after;
        }
        assert!(after < seconds(60), "{:?}\n{:?}", log(network, A), log(network, B));
    }
}

/// After a restart packets flow both ways again.
fn assert_recovers(seed: u64, node: NodeId, from: NodeId, within: u64, answer: Option<Start>) {
    let _seed = Seed(seed);
    let mut network = joined(seed, |pair| pair.answer = answer);
    let mut talk = Talk::new(A, B, 5000);
    talk.run(&mut network, seconds(40), millis(200));
    let to = if from == A { B } else { A };
    let took = outage(&mut network, node, (from, to));
    assert!(took <= seconds(within), "{took:?}");
    network.run_for(seconds(3));
    let mut talk = Talk::new(A, B, 6000);
    talk.run(&mut network, seconds(5), millis(100));
    talk.finish(&mut network);
    talk.assert_perfect();
}

#[test]
fn of_the_one_that_begins() {
    for seed in 0..5 {
        assert_recovers(seed, A, A, 1, None);
        assert_recovers(seed, A, B, 1, None);
    }
}

#[test]
fn of_one_that_knows_where_the_other_is() {
    for seed in 10..15 {
        for start in [Start::Eager, Start::OnTraffic] {
            assert_recovers(seed, B, A, 1, Some(start));
            assert_recovers(seed, B, B, 1, Some(start));
        }
    }
}

#[test]
fn of_one_that_has_to_be_spoken_to() {
    // Only the silence tells the other: 10 s until it asks, 5 s until it gives up on an answer.
    for seed in 20..25 {
        assert_recovers(seed, B, A, 18, None);
    }
}

#[test]
fn of_both_at_once() {
    let _seed = Seed(30);
    let mut network = joined(30, |pair| pair.answer = Some(Start::Eager));
    network.restart(A).unwrap();
    let took = outage(&mut network, B, (A, B));
    assert!(took <= seconds(1), "{took:?}");
}
