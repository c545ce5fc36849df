//! A node that lost all it knew is back in a moment, without help.

use core::time::Duration;
use std::net::SocketAddr;

use strait_keying::Start;
use strait_sim::{Conversation, Filler, NodeId, SimNetwork};

use crate::stage::{A, B, Seed, Talk, joined, log, millis, seconds, v4};

/// How long after a restart of `node` packets from `from` arrive again, one sent every 100 ms.
fn outage(network: &mut SimNetwork, node: NodeId, (from, to): (NodeId, NodeId)) -> Duration {
    network.restart(node).unwrap();
    silence(network, (from, to))
}

/// Returns the time from now on until packets arrive.
fn silence(network: &mut SimNetwork, (from, to): (NodeId, NodeId)) -> Duration {
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
fn of_one_that_knows_where_the_other_was() {
    for (seed, from) in [(40, A), (41, B), (42, A), (43, B)] {
        let _seed = Seed(seed);
        let mut network = joined(seed, |_| {});
        Talk::new(A, B, 5000).run(&mut network, seconds(40), millis(200));
        // It is behind a NAT, which lets in what comes from where it sends to.
        let place: SocketAddr = ([198, 51, 100, 7], 40_000).into();
        network.readdress(A, place);
        Talk::new(A, B, 5001).run(&mut network, seconds(3), millis(200));
        network.restart(B).unwrap();
        network.remember_place(B, A, place);
        let to = if from == A { B } else { A };
        let took = silence(&mut network, (from, to));
        assert!(took <= millis(500), "{took:?}");
        network.run_for(seconds(3));
        assert_eq!(network.node(B).status(A).unwrap().remembered, None, "it is known better");
        let mut talk = Talk::new(A, B, 6000);
        talk.run(&mut network, seconds(5), millis(100));
        talk.finish(&mut network);
        talk.assert_perfect();
    }
}

#[test]
fn of_one_that_knows_where_others_were_who_are_not_there() {
    let _seed = Seed(44);
    let mut network = joined(44, |_| {});
    let nowhere: SocketAddr = ([198, 51, 100, 9], 40_000).into();
    network.restart(B).unwrap();
    network.remember_place(B, A, nowhere);
    network.run_for(seconds(3600));
    let begun = log(&network, B).iter().filter(|line| line.contains("handshake with 198")).count();
    assert_eq!(begun, 1, "{:?}", log(&network, B));
    // The one that begins finds it as ever.
    let took = silence(&mut network, (A, B));
    assert!(took <= seconds(18), "{took:?}");
}

#[test]
fn of_both_at_once() {
    let _seed = Seed(30);
    let mut network = joined(30, |pair| pair.answer = Some(Start::Eager));
    network.restart(A).unwrap();
    let took = outage(&mut network, B, (A, B));
    assert!(took <= seconds(1), "{took:?}");
}
