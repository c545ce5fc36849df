//! Both nodes begin at once, and end with one pair of associations that both use.

use strait_keying::Start;

use crate::stage::{A, B, Seed, Talk, joined, millis, seconds};

#[test]
fn both_agree_on_one_pair_whatever_the_delays() {
    for seed in 0..40 {
        let _seed = Seed(seed);
        let mut network = joined(seed, |pair| {
            pair.answer = Some(Start::Eager);
            pair.forth.delay = millis(1 + seed * 7 % 120);
            pair.back.delay = millis(1 + seed * 13 % 90);
            pair.forth.jitter = millis(seed % 3 * 20);
        });
        let mut talk = Talk::new(A, B, 5000);
        talk.run(&mut network, seconds(5), millis(100));
        talk.finish(&mut network);
        talk.assert_arrived();
        let [a, b] =
            [(A, B), (B, A)].map(|(at, of)| network.node(at).status(of).unwrap().association.unwrap());
        assert_eq!((a.inbound.spi, a.outbound.spi), (b.outbound.spi, b.inbound.spi));
        assert_ne!(a.role, b.role);
        network.run_for(seconds(30));
        assert!(network.node(A).handshakes() <= 2 && network.node(B).handshakes() <= 2);
    }
}

#[test]
fn handshake_succeeds_with_loss_in_both_directions() {
    for seed in 0..20 {
        let _seed = Seed(seed);
        let mut network = joined(seed, |pair| {
            pair.answer = Some(Start::Eager);
            for link in [&mut pair.forth, &mut pair.back] {
                link.delay = millis(40);
                link.loss = strait_sim::LossModel::Uniform(0.2);
            }
        });
        for link in [(A, B), (B, A)] {
            network.link(link.0, link.1).settings.loss = strait_sim::LossModel::None;
        }
        network.run_for(seconds(15));
        let mut talk = Talk::new(A, B, 5000);
        talk.run(&mut network, seconds(2), millis(50));
        talk.finish(&mut network);
        talk.assert_perfect();
    }
}
