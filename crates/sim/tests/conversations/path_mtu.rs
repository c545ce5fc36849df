//! The largest packet is found under way, and nothing small is lost meanwhile.

use std::sync::atomic::Ordering;

use strait_ipsec::Reason;
use strait_sim::{Conversation, ConversationTally, Filler, FlowShape, Fragmentation};
use strait_wire::repetition::HEADER_LEN;
use strait_wire::{Protocol, ip};

use crate::stage::{A, B, Seed, joined, millis, seconds, v4, v6};

/// ESP with its sequence number, tag and shortest trailer, in UDP in IPv4.
const AROUND: u64 = 20 + 8 + 8 + 2 + 16;

#[test]
fn the_search_settles_on_every_path_without_losing_a_small_packet() {
    for mtu in (1300..=1500).step_by(20) {
        let _seed = Seed(mtu.into());
        let mut network = joined(mtu.into(), |pair| pair.forth.mtu = mtu);
        let mut talks = [v4(A, B, 80), v6(A, B, 80)].map(|shape| Conversation::new(shape, Filler::Random));
        // A packet of 1,280 bytes always passes, whatever the path is thought to take.
        for _ in 0..300 {
            network.send(A, &talks[0].next_packet(1280 - 28));
            network.send(A, &talks[1].next_packet(1280 - 48));
            network.run_for(millis(100));
        }
        network.run_for(seconds(1));
        let delivered = network.node_mut(B).take_delivered();
        for talk in &mut talks {
            talk.note(&delivered);
            assert_eq!(
                talk.tally(),
                ConversationTally { sent: 300, arrived: 300, ..ConversationTally::default() },
                "MTU {mtu}"
            );
        }
        let inner = network.node(A).peer_counters(B).inner_mtu.load(Ordering::Relaxed);
        let most = u64::from(mtu) - AROUND;
        assert!(inner <= most.max(1280) && inner + 12 > most, "MTU {mtu}: {inner} of {most}");
    }
}

#[test]
fn a_probe_does_not_wait_behind_what_a_super_packet_makes() {
    let _seed = Seed(5);
    let mut network = joined(5, |pair| {
        pair.a.up = "56kbit".parse().unwrap();
        pair.forth.rate = pair.a.up.given();
    });
    // All of it takes 9 s.
    let (packet, offload) = v4(A, B, 80).tcp_super(1, &[7; 60_000], 1380);
    network.send_offloaded(A, &packet, offload);
    network.run_for(seconds(2));
    let inner = network.node(A).peer_counters(B).inner_mtu.load(Ordering::Relaxed);
    assert_eq!(inner, 1500 - AROUND - HEADER_LEN as u64);
}

#[test]
fn too_big_packet_is_answered_with_inner_mtu() {
    let _seed = Seed(1);
    let mut network = joined(1, |pair| pair.forth.mtu = 1400);
    let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
    for _ in 0..200 {
        network.send(A, &talk.next_packet(100));
        network.run_for(millis(100));
    }
    network.node_mut(A).take_delivered();
    let inner = network.node(A).peer_counters(B).inner_mtu.load(Ordering::Relaxed);
    for (shape, header, protocol) in
        [(v4(A, B, 81), 28, Protocol::ICMP), (v6(A, B, 81), 48, Protocol::ICMPV6)]
    {
        let fits = usize::try_from(inner).unwrap() - header;
        network.send(A, &shape.udp(&vec![7; fits]));
        assert!(network.node(A).delivered().is_empty());
        network.send(A, &shape.udp(&vec![7; fits + 1]));
        let answers = network.node_mut(A).take_delivered();
        assert_eq!(answers.len(), 1);
        let answer = ip::Packet::parse(&answers[0].packet).unwrap();
        assert_eq!((answer.dst(), answer.protocol()), (shape.src.ip(), protocol));
        let message = answer.payload();
        let mtu = u32::from_be_bytes([0, 0, message[6], message[7]]);
        assert_eq!(u64::from(mtu), inner);
        network.run_for(millis(100));
        assert_eq!(
            network.node_mut(B).take_delivered().iter().filter(|one| one.packet.len() > 1000).count(),
            1
        );
    }
    assert_eq!(network.node(A).host().damaged(), 0);
}

#[test]
fn fragmentable_packets_are_carried_in_fragments() {
    let _seed = Seed(2);
    let mut network = joined(2, |pair| pair.forth.mtu = 1400);
    let shape = FlowShape { fragmentation: Fragmentation::Allowed, ..v4(A, B, 80) };
    let mut talk = Conversation::new(shape, Filler::Random);
    for _ in 0..100 {
        network.send(A, &talk.next_packet(1450));
        network.run_for(millis(200));
    }
    network.run_for(seconds(1));
    talk.note(&network.node_mut(B).take_delivered());
    assert_eq!(talk.tally(), ConversationTally { sent: 100, arrived: 100, ..ConversationTally::default() });
}

#[test]
fn interface_refusing_its_own_mtu_lowers_path_mtu() {
    for up in [None, "10Mbit".parse().ok()] {
        let _seed = Seed(3);
        let mut network = joined(3, |pair| {
            pair.a.interface_mtu = 1420;
            pair.a.up = up.into();
        });
        let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
        for at in 0..200 {
            // What the interface refuses takes no packet of the host's along, however short.
            network.send(A, &talk.next_packet(if at % 2 == 0 { 20 } else { 1280 - 28 }));
            network.run_for(millis(100));
        }
        network.run_for(seconds(1));
        talk.note(&network.node_mut(B).take_delivered());
        assert_eq!(
            talk.tally(),
            ConversationTally { sent: 200, arrived: 200, ..ConversationTally::default() },
            "{up:?}"
        );
        let inner = network.node(A).peer_counters(B).inner_mtu.load(Ordering::Relaxed);
        assert!((1420 - AROUND - 12..=1420 - AROUND).contains(&inner), "{inner}");
        let refused = network.node(A).drops(Reason::NetworkRefused);
        assert!(
            refused <= 6,
            "{refused} refused: each size is tried once, and each halves what is left to search"
        );
    }
}

#[test]
fn smaller_path_mtu_is_detected_and_larger_one_used() {
    let _seed = Seed(4);
    let mut network = joined(4, |_| {});
    let inner =
        |network: &strait_sim::SimNetwork| network.node(A).peer_counters(B).inner_mtu.load(Ordering::Relaxed);
    let run = |network: &mut strait_sim::SimNetwork, span| {
        let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
        // Only a sender of large datagrams has to know whether they arrive.
        let mut bulk = Conversation::new(v4(A, B, 81), Filler::Random);
        for _ in 0..span * 2 {
            network.send(A, &talk.next_packet(100));
            network.send(A, &bulk.next_packet(1390));
            network.run_for(millis(500));
        }
        network.run_for(seconds(1));
        talk.note(&network.node_mut(B).take_delivered());
        assert_eq!(talk.tally().missing(), 0);
    };
    run(&mut network, 5);
    assert_eq!(inner(&network), 1500 - AROUND);
    network.link(A, B).settings.mtu = 1360;
    run(&mut network, 130);
    assert!((1360 - AROUND - 12..=1360 - AROUND).contains(&inner(&network)), "{}", inner(&network));
    network.link(A, B).settings.mtu = 1500;
    run(&mut network, 700);
    assert_eq!(inner(&network), 1500 - AROUND);
}
