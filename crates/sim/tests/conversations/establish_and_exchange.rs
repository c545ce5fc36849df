//! Two nodes meet, and whatever their hosts say arrives as it was said.

use strait_crypto::{Suite, SuiteSet};
use strait_ipsec::IvMode;
use strait_keying::{ControlEvent, PayloadFormat};
use strait_scheduler::Rate;
use strait_sim::{Conversation, ConversationTally, Filler};

use crate::stage::{A, B, Seed, count, joined, millis, pair, seconds, v4, v6};

#[test]
fn every_suite_iv_mode_and_family_carries_every_family() {
    let mut seed = 100;
    for suite in Suite::ALL {
        for iv in [IvMode::Implicit, IvMode::Explicit] {
            for outer_v6 in [false, true] {
                seed += 1;
                let _seed = Seed(seed);
                let mut network = joined(seed, |pair| {
                    for node in [&mut pair.a, &mut pair.b] {
                        node.capabilities.suites = SuiteSet::default().with(suite);
                        node.address = if outer_v6 { node.id.outer_v6() } else { node.id.outer_v4() };
                    }
                    pair.a.capabilities.iv = iv;
                });
                let status = network.node(B).status(A).unwrap().association.unwrap();
                assert_eq!((status.suite, status.iv), (suite, iv));
                exchange(&mut network);
                assert!(network.node(A).all_drops().is_empty(), "{:?}", network.node(A).all_drops());
                assert!(network.node(B).all_drops().is_empty(), "{:?}", network.node(B).all_drops());
            }
        }
    }
}

#[test]
fn a_peer_of_standard_payloads_is_spoken_to_in_those() {
    let _seed = Seed(1);
    // Whole packets of 88 bytes and two of ESP's trailer, padded to 92, with ESP's header and its ICV: one a datagram.
    assert_eq!(esp_lens_of_twenty(PayloadFormat::Standard), [8 + 92 + 16; 20]);
    assert!(
        esp_lens_of_twenty(PayloadFormat::Strait).len() < 10,
        "others are spoken to in bundles or blocks"
    );
}

/// Bytes of the ESP datagrams that twenty packets of 88 bytes leave in, which wait for a link of 1 Mbit/s together.
fn esp_lens_of_twenty(format: PayloadFormat) -> Vec<usize> {
    let mut network = joined(1, |pair| {
        pair.b.capabilities.format = format;
        pair.a.up = Rate::from_bits(1_000_000).into();
    });
    exchange(&mut network);
    let mut talk = Conversation::new(v4(A, B, 9), Filler::Random);
    let packets: Vec<Vec<u8>> = (0..20).map(|_| talk.next_packet(60)).collect();
    network.start_capture();
    network.send_all(A, &packets);
    network.run_for(millis(500));
    talk.note(&network.node_mut(B).take_delivered());
    assert_eq!(talk.tally(), ConversationTally { sent: 20, arrived: 20, ..ConversationTally::default() });
    let captured = network.take_capture();
    let from_a = captured.iter().filter(|datagram| datagram.is_esp() && datagram.from == A.outer_v4());
    from_a.map(|datagram| datagram.bytes.len()).collect()
}

/// Packets of all sizes both ways over both families.
fn exchange(network: &mut strait_sim::SimNetwork) {
    let shapes =
        [(A, B), (B, A)].map(|(from, to)| [(from, to, v4(from, to, 9)), (from, to, v6(from, to, 9))]);
    for (from, to, shape) in shapes.into_iter().flatten() {
        let mut talk = Conversation::new(shape, Filler::Random);
        for len in [8, 9, 10, 11, 50, 500, 1000, 1200, 1232] {
            network.send(from, &talk.next_packet(len));
            network.run_for(millis(2));
        }
        network.run_for(millis(100));
        let delivered = network.node_mut(to).take_delivered();
        talk.note(&delivered);
        assert_eq!(
            talk.tally(),
            ConversationTally { sent: 9, arrived: 9, ..ConversationTally::default() },
            "{shape:?}"
        );
        assert_eq!(delivered.len(), 9);
        assert_eq!(network.node(to).host().damaged(), 0);
    }
}

#[test]
fn packets_that_come_before_the_keys_wait_for_them() {
    let _seed = Seed(2);
    let mut network = pair(2, |pair| pair.start = strait_keying::Start::OnTraffic);
    network.run_for(seconds(60));
    assert_eq!(network.link(A, B).counters().entered, 0, "a datagram was sent without traffic");
    let mut talk = Conversation::new(v4(A, B, 9), Filler::Text);
    for _ in 0..50 {
        network.send(A, &talk.next_packet(500));
    }
    network.run_for(seconds(2));
    talk.note(&network.node_mut(B).take_delivered());
    assert_eq!(talk.tally(), ConversationTally { sent: 50, arrived: 50, ..ConversationTally::default() });
}

#[test]
fn one_handshake_is_enough() {
    let _seed = Seed(3);
    let mut network = joined(3, |_| {});
    network.run_for(seconds(100));
    for node in [A, B] {
        assert_eq!(count(&network, node, |event| matches!(event, ControlEvent::Established { .. })), 1);
        assert_eq!(count(&network, node, |event| matches!(event, ControlEvent::Failed { .. })), 0);
        assert_eq!(network.node(node).control().connections(), 0, "something of a handshake is left");
    }
}
