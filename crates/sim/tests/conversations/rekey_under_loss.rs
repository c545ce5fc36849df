//! Keys are replaced on a bad link: packets are lost as the link loses them, and no more.

use strait_keying::Lifetime;
use strait_sim::LossModel;

use crate::stage::{A, B, Seed, Talk, joined, millis, seconds};

#[test]
fn replacing_keys_costs_nothing_beyond_what_the_link_loses() {
    for seed in 0..8 {
        let _seed = Seed(seed);
        let mut network = joined(seed, |pair| {
            let lifetime = Lifetime { packets: 300, ..Lifetime::default() };
            (pair.a.lifetime, pair.b.lifetime) = (lifetime, lifetime);
            for link in [&mut pair.forth, &mut pair.back] {
                link.delay = millis(20);
                link.jitter = millis(15);
                link.repeated = 0.02;
                link.loss = if seed % 2 == 0 {
                    LossModel::Uniform(0.1)
                } else {
                    LossModel::Bursts { begin: 0.01, end: 0.1, lost: 0.9 }
                };
            }
        });
        let mut talk = Talk::new(A, B, 5000);
        talk.run(&mut network, seconds(60), millis(20));
        talk.finish(&mut network);
        for (from, to, tally) in [(A, B, talk.forth.tally()), (B, A, talk.back.tally())] {
            let lost = network.link(from, to).counters().lost;
            assert!(tally.missing() <= lost, "{tally:?} but the link lost {lost}");
            assert!(tally.missing() * 5 < tally.sent, "{tally:?}");
            assert_eq!((tally.repeated, tally.damaged), (0, 0));
        }
        assert!(network.node(A).handshakes() >= 8, "{}", network.node(A).handshakes());
    }
}
