//! Bundles of many flows in several trust domains, on a link that loses: each packet arrives whole, or is counted.

use core::sync::atomic::Ordering;

use strait_ipsec::{Domain, Reason, Rule};
use strait_keying::LossRepair;
use strait_sim::{Conversation, Filler, FlowShape, LossModel, NodeId, SimNetwork};
use strait_wire::Tos;

use crate::stage::{self, A, B, Seed, Talk, joined, millis, seconds, v4};

const LOSSES: [f64; 4] = [0.0, 0.01, 0.05, 0.2];
/// What the receiver gives up since something of it is missing.
const INCOMPLETE: [Reason; 2] = [Reason::BlockIncomplete, Reason::FragmentIncomplete];

/// Compress what goes to these ports, as the data of `domain`.
fn rule(ports: core::ops::RangeInclusive<u16>, domain: u16) -> Rule {
    Rule { ports: vec![ports], domain: Domain(domain), ..stage::rule(0, "auto") }
}

/// Four flows of each of two domains that are compressed, and of what no rule covers.
fn flows() -> Vec<Conversation> {
    let kinds = [(5000, Filler::Text), (5100, Filler::Text), (5200, Filler::Random)];
    let all =
        kinds.into_iter().flat_map(|(first, filler)| (first..first + 4).map(move |port| (port, filler)));
    all.map(|(port, filler)| Conversation::new(v4(A, B, port), filler)).collect()
}

fn note(network: &mut SimNetwork, flows: &mut [Conversation]) {
    let delivered = network.node_mut(B).take_delivered();
    for flow in flows {
        flow.note(&delivered);
    }
}

/// Packets that a node dropped for any reason.
fn dropped(network: &SimNetwork, node: NodeId) -> u64 {
    network.node(node).all_drops().iter().map(|(_, packets)| packets).sum()
}

/// A quarter more than the link takes, for ten seconds, and until nothing waits any more.
fn crowd(network: &mut SimNetwork, flows: &mut [Conversation]) {
    let end = network.now() + seconds(10);
    let mut round = 0;
    while network.now() < end {
        let packets: Vec<Vec<u8>> = flows
            .iter_mut()
            .enumerate()
            .map(|(at, flow)| flow.next_packet(40 + (at * 131 + round * 17) % 1300))
            .collect();
        network.send_all(A, &packets);
        network.run_for(millis(6));
        note(network, flows);
        round += 1;
    }
    network.run_for(seconds(10));
    note(network, flows);
}

#[test]
fn on_a_link_that_loses_each_packet_arrives_whole_or_is_counted() {
    for (seed, loss) in (1..).zip(LOSSES) {
        let _seed = Seed(seed);
        let mut network = joined(seed, |pair| {
            pair.a.up = "4Mbit".parse().unwrap();
            pair.a.rules = vec![rule(5000..=5099, 0), rule(5100..=5199, 1)];
            pair.forth.rate = "4.1Mbit".parse().ok();
            // What is lost stays lost.
            pair.a.capabilities.repair = LossRepair::Off;
        });
        network.run_for(seconds(5));
        network.node_mut(B).take_delivered();
        network.link(A, B).settings.loss = LossModel::Uniform(loss);
        let peers = [network.node(A).peer_counters(B), network.node(B).peer_counters(A)];
        let before = (peers[0].out_packets.get(), peers[1].in_packets.get());
        let dropped_before = dropped(&network, A);
        let mut flows = flows();
        crowd(&mut network, &mut flows);

        let [sent, arrived] =
            [|flow: &Conversation| flow.tally().sent, |flow: &Conversation| flow.tally().arrived]
                .map(|of| flows.iter().map(of).sum::<u64>());
        for tally in flows.iter().map(Conversation::tally) {
            assert_eq!((tally.damaged, tally.repeated), (0, 0), "{loss}");
            assert!(tally.arrived > 0, "{loss}: a flow got nothing through");
        }
        // Whatever did not leave was counted, and nothing waits.
        let (left, came) = (peers[0].out_packets.get() - before.0, peers[1].in_packets.get() - before.1);
        assert_eq!(
            sent,
            left + dropped(&network, A) - dropped_before,
            "{loss}: {:?}",
            network.node(A).all_drops()
        );
        assert_eq!(peers[0].queued.load(Ordering::Relaxed), 0);
        assert!(
            peers[0].out_blocks.get() > 100 && peers[0].out_bundles.get() > 100,
            "{loss}: nothing was bundled"
        );
        // Whatever came in was whole, and what is missing went with a datagram.
        assert_eq!((arrived, network.node(B).host().damaged()), (came, 0), "{loss}");
        let share = (left - came) as f64 / left as f64;
        println!("{loss}: {sent} sent, {left} left, {came} came, {share:.4} of them lost");
        assert!(left < sent, "{loss}: the link had room for all");
        assert!((loss * 0.5..=loss * 3.0).contains(&share), "{loss}: {share} of the packets that left");
        let others =
            network.node(B).all_drops().into_iter().filter(|(reason, _)| !INCOMPLETE.contains(reason));
        assert_eq!(
            others.map(|(_, count)| count).sum::<u64>(),
            0,
            "{loss}: {:?}",
            network.node(B).all_drops()
        );

        // And nothing is stuck: what comes after on a good link crosses it.
        network.link(A, B).settings.loss = LossModel::Uniform(0.0);
        let mut calm = Talk::new(A, B, 5001);
        calm.run(&mut network, seconds(5), millis(50));
        calm.finish(&mut network);
        calm.assert_perfect();
    }
}

#[test]
fn a_flood_of_flows_is_bounded_and_starves_no_other_flow() {
    let _seed = Seed(9);
    let mut network = joined(9, |pair| {
        pair.a.up = "4Mbit".parse().unwrap();
        pair.a.rules = vec![rule(5000..=5099, 0)];
        pair.forth.rate = "4.1Mbit".parse().ok();
    });
    network.run_for(seconds(5));
    let peer = network.node(A).peer_counters(B);
    let (left_before, dropped_before) = (peer.out_packets.get(), dropped(&network, A));
    let mut honest = Conversation::new(v4(A, B, 5000), Filler::Text);
    let mut voice = Conversation::new(v4(A, B, 5002), Filler::Random);
    // Expedited forwarding (RFC 3246).
    voice.set_tos(Tos(0xb8));
    let (mut flood, mut most) = (0, 0);
    for round in 0..1_000_u16 {
        // Each packet a flow of its own, and of no other before it.
        let packets: Vec<Vec<u8>> = (0..60)
            .map(|at| {
                let number = round * 60 + at;
                FlowShape::new(A.inner_v4(number), B.inner_v4(40_000 + number % 20_000)).udp(&[7; 64])
            })
            .collect();
        network.send_all(A, &packets);
        flood += 60;
        if round % 4 == 0 {
            network.send_all(A, &[honest.next_packet(200), voice.next_packet(160)]);
        }
        network.run_for(millis(5));
        let delivered = network.node_mut(B).take_delivered();
        honest.note(&delivered);
        voice.note(&delivered);
        most = most.max(peer.queued.load(Ordering::Relaxed));
    }
    network.run_for(seconds(10));
    let delivered = network.node_mut(B).take_delivered();
    honest.note(&delivered);
    voice.note(&delivered);
    let (left, lost) = (peer.out_packets.get() - left_before, dropped(&network, A) - dropped_before);
    println!(
        "{flood} in the flood, {left} left, {lost} dropped, {most} bytes waited at most, {:?}",
        honest.tally()
    );
    // What the queue of a link of this rate holds at most: 250 ms of bytes that shrink to a quarter.
    assert!(most <= 500_000, "{most} bytes waited");
    assert_eq!(
        flood + honest.tally().sent + voice.tally().sent,
        left + lost,
        "{:?}",
        network.node(A).all_drops()
    );
    assert_eq!(peer.queued.load(Ordering::Relaxed), 0);
    assert!(lost > flood / 4, "{lost} dropped: no flood");
    // Among as many flows each gets little, but something; what is said to be urgent is of another class.
    assert!(honest.tally().arrived >= 5, "{:?}", honest.tally());
    assert_eq!(voice.tally().missing(), 0, "{:?}", voice.tally());
    let mut calm = Talk::new(A, B, 5001);
    calm.run(&mut network, seconds(5), millis(50));
    calm.finish(&mut network);
    calm.assert_perfect();
}
