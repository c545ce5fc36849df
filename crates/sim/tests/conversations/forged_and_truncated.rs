//! A datagram that is not exactly what the peer sealed is nothing.

use strait_ipsec::IvMode;
use strait_sim::{Conversation, ConversationTally, Filler, LinkSwitch, SimDatagram, SimNetwork};

use crate::stage::{A, B, Seed, joined, millis, v4};

/// A network that is up, and one ESP datagram that has not arrived.
fn withheld(seed: u64, iv: IvMode) -> (SimNetwork, Conversation, SimDatagram) {
    let mut network = joined(seed, |pair| pair.a.capabilities.iv = iv);
    network.run_for(millis(2000));
    network.start_capture();
    network.link(A, B).switch = LinkSwitch::Down;
    let mut talk = Conversation::new(v4(A, B, 7000), Filler::Text);
    network.send(A, &talk.next_packet(60));
    network.link(A, B).switch = LinkSwitch::Up;
    let sent = network.take_capture().into_iter().find(SimDatagram::is_esp).unwrap();
    (network, talk, sent)
}

#[test]
fn every_flipped_bit_is_noticed_and_the_original_still_counts() {
    for (seed, iv) in [(1, IvMode::Implicit), (2, IvMode::Explicit)] {
        let _seed = Seed(seed);
        let (mut network, mut talk, sent) = withheld(seed, iv);
        for at in 0..sent.bytes.len() {
            for bit in 0..8 {
                let mut forged = sent.clone();
                forged.bytes[at] ^= 1 << bit;
                network.inject(forged);
                assert!(network.node(B).delivered().is_empty(), "byte {at} bit {bit}");
            }
        }
        let dropped: u64 = network.node(B).all_drops().iter().map(|(_, count)| count).sum();
        // All but those that turned into QUIC's first byte (bits 6 and 7 of byte 0) or changed nothing.
        assert_eq!(dropped, sent.bytes.len() as u64 * 8 - 2);
        network.inject(sent);
        talk.note(&network.node_mut(B).take_delivered());
        assert_eq!(talk.tally(), ConversationTally { sent: 1, arrived: 1, ..ConversationTally::default() });
    }
}

#[test]
fn every_length_but_the_right_one_is_refused() {
    for (seed, iv) in [(3, IvMode::Implicit), (4, IvMode::Explicit)] {
        let _seed = Seed(seed);
        let (mut network, mut talk, sent) = withheld(seed, iv);
        for len in 0..sent.bytes.len() {
            network.inject(SimDatagram { bytes: sent.bytes[..len].to_vec(), ..sent.clone() });
        }
        for more in 1..40 {
            let bytes = [&sent.bytes[..], &vec![0; more]].concat();
            network.inject(SimDatagram { bytes, ..sent.clone() });
        }
        assert!(network.node(B).delivered().is_empty());
        network.inject(sent);
        talk.note(&network.node_mut(B).take_delivered());
        assert_eq!(talk.tally().arrived, 1);
    }
}

#[test]
fn reflected_packet_is_dropped() {
    let _seed = Seed(5);
    let (mut network, _, sent) = withheld(5, IvMode::Implicit);
    network.inject(SimDatagram { from: sent.to, to: sent.from, ..sent });
    assert!(network.node(A).delivered().is_empty());
    assert_eq!(network.node(A).drops(strait_ipsec::Reason::UnknownSpi), 1);
}
