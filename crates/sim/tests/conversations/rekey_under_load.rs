//! Keys are replaced under traffic, and not one packet is lost, repeated or overtaken.

use strait_keying::Lifetime;
use strait_sim::SimNetwork;

use crate::stage::{A, B, PATIENT, Seed, Talk, joined, millis, seconds};

fn rekeyed(seed: u64, lifetime: Lifetime, delay: u64) -> SimNetwork {
    joined(seed, |pair| {
        pair.a.lifetime = lifetime;
        pair.b.lifetime = lifetime;
        pair.forth.delay = millis(delay);
        pair.back.delay = millis(delay);
    })
}

fn assert_seamless(mut network: SimNetwork, span: u64, every: u64, least: usize) {
    let mut talk = Talk::new(A, B, 5000);
    talk.run(&mut network, seconds(span), millis(every));
    talk.finish(&mut network);
    talk.assert_perfect();
    for node in [A, B] {
        let handshakes = network.node(node).handshakes();
        assert!(handshakes >= least, "only {handshakes} handshakes");
        assert!(network.node(node).all_drops().is_empty(), "{:?}", network.node(node).all_drops());
    }
}

#[test]
fn by_time() {
    for seed in 0..8 {
        let _seed = Seed(seed);
        let lifetime = Lifetime { soft: seconds(60), ..Lifetime::default() };
        assert_seamless(rekeyed(seed, lifetime, 5 + 20 * seed), 220, 40, 4);
    }
}

#[test]
fn by_packets() {
    for seed in 100..120 {
        let _seed = Seed(seed);
        let lifetime = Lifetime { packets: 200, ..Lifetime::default() };
        assert_seamless(rekeyed(seed, lifetime, 1 + seed % 60), 12, 7, 4);
    }
}

#[test]
fn over_a_satellite() {
    for seed in 130..134 {
        let _seed = Seed(seed);
        let lifetime = Lifetime { packets: 100, ..Lifetime::default() };
        assert_seamless(rekeyed(seed, lifetime, 600 + 300 * (seed % 4)), 90, 100, 4);
    }
}

#[test]
fn by_bytes() {
    for seed in 200..220 {
        let _seed = Seed(seed);
        let lifetime = Lifetime { bytes: 40_000, ..Lifetime::default() };
        assert_seamless(rekeyed(seed, lifetime, 1 + seed % 60), 12, 7, 4);
    }
}

#[test]
fn through_a_full_queue() {
    for seed in 300..306 {
        let _seed = Seed(seed);
        let mut network = joined(seed, |pair| {
            let lifetime = Lifetime { packets: 60, ..Lifetime::default() };
            (pair.a.lifetime, pair.b.lifetime) = (lifetime, lifetime);
            pair.a.up = "300kbit".parse().unwrap();
            pair.a.queueing = PATIENT;
            pair.forth.rate = "310kbit".parse().ok();
            pair.forth.delay = millis(30);
        });
        let mut talk = Talk::new(A, B, 5000);
        for _ in 0..5 {
            for _ in 0..250 {
                let packet = talk.forth.next_packet(400);
                network.send(A, &packet);
            }
            // 107 kB and more take 2.9 s, in which the queue is never empty.
            network.run_for(seconds(3));
            talk.collect(&mut network);
        }
        talk.finish(&mut network);
        assert_eq!(talk.missing(), [0, 0]);
        assert_eq!((talk.forth.tally().repeated, talk.forth.tally().damaged), (0, 0));
        assert!(network.node(A).handshakes() >= 3, "{}", network.node(A).handshakes());
    }
}
