//! Peers of one node reach each other through it if it is a hub, and not otherwise.

use strait_ipsec::Reason;
use strait_ipsec::inbound::Forwarding;
use strait_keying::{PeerConfig, Start, Where};
use strait_sim::{Conversation, ConversationTally, Filler, LinkSettings, NodeSettings, SimNetwork, prefixes};

use crate::stage::{A, B, C, Seed, millis, seconds, v4, v6};

/// A and B with C between them, who forwards or not.
pub(crate) fn spokes(seed: u64, forwarding: Forwarding) -> SimNetwork {
    star(seed, |hub| hub.forwarding = forwarding)
}

/// A and B, each knowing C, who is as `change` says.
pub(crate) fn star(seed: u64, change: impl FnOnce(&mut NodeSettings)) -> SimNetwork {
    let mut network = SimNetwork::new(seed);
    let mut settings = [A, B, C].map(NodeSettings::new);
    change(&mut settings[2]);
    for one in &settings {
        network.add_node(one.clone()).unwrap();
    }
    for (spoke, other) in [(0, B), (1, A)] {
        let spoke = &settings[spoke];
        network.set_link(spoke.id, C, LinkSettings::default());
        network.set_link(C, spoke.id, LinkSettings::default());
        network.add_peer(C, spoke.as_peer(Where::Unknown, Start::OnTraffic));
        let mut hub: PeerConfig = settings[2].as_peer(Where::Address(C.outer_v4()), Start::Eager);
        for prefix in prefixes(other) {
            hub.spec.allowed.push(prefix.parse().unwrap());
        }
        network.add_peer(spoke.id, hub);
    }
    assert!(network.run_until_up(A, C, seconds(5)) && network.run_until_up(B, C, seconds(5)));
    network
}

#[test]
fn a_hub_carries_packets_from_spoke_to_spoke() {
    let _seed = Seed(1);
    let mut network = spokes(1, Forwarding::Between);
    for (from, to, shape) in
        [(A, B, v4(A, B, 7)), (B, A, v4(B, A, 7)), (A, B, v6(A, B, 7)), (B, A, v6(B, A, 7))]
    {
        let mut talk = Conversation::new(shape, Filler::Text);
        for len in [10, 100, 1000, 1200] {
            network.send(from, &talk.next_packet(len));
        }
        network.run_for(millis(200));
        let delivered = network.node_mut(to).take_delivered();
        talk.note(&delivered);
        assert_eq!(talk.tally(), ConversationTally { sent: 4, arrived: 4, ..ConversationTally::default() });
        for one in delivered {
            let ttl = strait_wire::ip::Packet::parse(&one.packet).unwrap().ttl();
            assert_eq!(ttl, 63, "the hub is one hop");
        }
        assert!(network.node(C).delivered().is_empty());
        assert_eq!(network.node(to).host().damaged(), 0);
    }
}

#[test]
fn node_without_forwarding_drops_packets_between_peers() {
    let _seed = Seed(2);
    let mut network = spokes(2, Forwarding::None);
    let mut talk = Conversation::new(v4(A, B, 7), Filler::Text);
    network.send(A, &talk.next_packet(100));
    network.run_for(millis(200));
    assert!(network.node(B).delivered().is_empty() && network.node(C).delivered().is_empty());
    assert_eq!(network.node(C).drops(Reason::NotForwarding), 1);
    // Nor by way of its host, which may forward whatever it likes.
    let mut around = Conversation::new(v4(A, B, 8), Filler::Text);
    network.send(C, &around.next_packet(100));
    network.run_for(millis(200));
    assert!(network.node(B).delivered().is_empty());
    assert_eq!(network.node(C).drops(Reason::NotForwarding), 2);
    let mut own = Conversation::new(v4(A, C, 7), Filler::Text);
    network.send(A, &own.next_packet(100));
    network.run_for(millis(200));
    own.note(&network.node_mut(C).take_delivered());
    assert_eq!(own.tally().arrived, 1);
}
