//! A run repeats from its seed: the same datagrams of the same sizes at the same times.

use std::net::SocketAddr;

use strait_clock::Time;
use strait_keying::{Lifetime, Start};
use strait_sim::{ConversationTally, LossModel, Reordering};
use strait_wire::Tos;

use crate::stage::{A, B, Talk, joined, millis, seconds};

type Trace = Vec<(Time, SocketAddr, SocketAddr, Tos, usize)>;

fn run(seed: u64) -> (Trace, [ConversationTally; 2]) {
    let mut network = joined(seed, |pair| {
        pair.answer = Some(Start::Eager);
        pair.a.up = "1Mbit".parse().unwrap();
        let lifetime = Lifetime { packets: 100, ..Lifetime::default() };
        (pair.a.lifetime, pair.b.lifetime) = (lifetime, lifetime);
        for link in [&mut pair.forth, &mut pair.back] {
            link.jitter = millis(10);
            link.loss = LossModel::Uniform(0.05);
            link.repeated = 0.05;
            link.reordering = Some(Reordering { share: 0.05, by: millis(30) });
        }
    });
    network.start_capture();
    let mut talk = Talk::new(A, B, 5000);
    talk.run(&mut network, seconds(20), millis(23));
    talk.finish(&mut network);
    let trace = network.take_capture();
    let trace = trace.iter().map(|one| (one.at, one.from, one.to, one.tos, one.bytes.len())).collect();
    (trace, [talk.forth.tally(), talk.back.tally()])
}

#[test]
fn two_runs_of_one_seed_are_one_run() {
    for seed in 0..3 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
    assert_ne!(run(1).0, run(2).0);
}
