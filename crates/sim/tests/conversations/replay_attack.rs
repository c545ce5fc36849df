//! Whatever was captured and is sent again has no effect.

use strait_clock::Random;
use strait_ipsec::Reason;
use strait_keying::Lifetime;

use crate::stage::{A, B, Seed, Talk, millis, pair, seconds};

#[test]
fn every_datagram_again_and_again_delivers_nothing_twice() {
    for seed in 0..3 {
        let _seed = Seed(seed);
        let mut network = pair(seed, |pair| {
            let lifetime = Lifetime { packets: 100, ..Lifetime::default() };
            (pair.a.lifetime, pair.b.lifetime) = (lifetime, lifetime);
        });
        network.start_capture();
        assert!(network.run_until_up(A, B, seconds(5)));
        let mut talk = Talk::new(A, B, 5000);
        talk.run(&mut network, seconds(10), millis(40));
        talk.finish(&mut network);
        talk.assert_perfect();
        let mut captured = network.take_capture();
        let mut random = Random::new(seed);
        for at in (1..captured.len()).rev() {
            captured.swap(at, usize::try_from(random.below(at as u64 + 1)).unwrap());
        }
        for datagram in captured.iter().chain(captured.iter()) {
            network.inject(datagram.clone());
            network.run_for(millis(1));
        }
        talk.run(&mut network, seconds(5), millis(40));
        talk.finish(&mut network);
        talk.assert_perfect();
        // The associations before the last three are gone, the others know what they received.
        let dropped = |reason| network.node(A).drops(reason) + network.node(B).drops(reason);
        let esp = captured.iter().filter(|datagram| datagram.is_esp()).count() as u64;
        assert_eq!(
            dropped(Reason::Replayed) + dropped(Reason::TooOld) + dropped(Reason::UnknownSpi),
            2 * esp
        );
        assert!(dropped(Reason::Replayed) > 100);
    }
}

#[test]
fn a_replayed_handshake_makes_no_session() {
    let _seed = Seed(10);
    let mut network = pair(10, |_| {});
    network.start_capture();
    assert!(network.run_until_up(A, B, seconds(5)));
    network.run_for(seconds(1));
    let captured = network.take_capture();
    let before = network.node(B).status(A).unwrap().association.unwrap();
    for round in 0..5 {
        for datagram in &captured {
            network.inject(datagram.clone());
            network.run_for(millis(3 * round));
        }
    }
    network.run_for(seconds(30));
    let after = network.node(B).status(A).unwrap().association.unwrap();
    assert_eq!((before.inbound.spi, before.outbound.spi), (after.inbound.spi, after.outbound.spi));
    assert_eq!((network.node(A).handshakes(), network.node(B).handshakes()), (1, 1));
    assert_eq!(network.node(B).control().connections(), 0);
}
