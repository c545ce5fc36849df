//! A hub puts the blocks of many sites together at the same time.

use strait_clock::Random;
use strait_ipsec::Reason;
use strait_keying::{Start, Where};
use strait_sim::{Conversation, ConversationTally, Filler, LinkSettings, NodeId, NodeSettings, SimNetwork};

use crate::stage::{PATIENT, Seed, rule, seconds, v4};

const HUB: NodeId = NodeId(0);
/// Twice the slots for blocks that a hub had when all its peers shared them.
const SPOKES: u8 = 32;
/// Packets of each spoke.
const PACKETS: u64 = 150;

fn spokes() -> impl Iterator<Item = NodeId> {
    (1..=SPOKES).map(NodeId)
}

/// A hub with so many spokes, each over a thin link that loses nothing, all of them up.
fn hub(seed: u64) -> SimNetwork {
    let mut network = SimNetwork::new(seed);
    let hub = NodeSettings::new(HUB);
    network.add_node(hub.clone()).unwrap();
    for id in spokes() {
        let mut spoke = NodeSettings::new(id);
        spoke.up = "1500kbit".parse().unwrap();
        spoke.queueing = PATIENT;
        spoke.rules = vec![rule(80, "zstd-3")];
        network.add_node(spoke.clone()).unwrap();
        network.set_link(id, HUB, LinkSettings::default());
        network.set_link(HUB, id, LinkSettings::default());
        network.add_peer(HUB, spoke.as_peer(Where::Unknown, Start::OnTraffic));
        network.add_peer(id, hub.as_peer(Where::Address(HUB.outer_v4()), Start::Eager));
    }
    for id in spokes() {
        assert!(network.run_until_up(id, HUB, seconds(30)), "spoke {}", id.0);
    }
    // The search for the path's size is over.
    for id in spokes() {
        network.send(id, &v4(id, HUB, 9).udp(b"first"));
    }
    network.run_for(seconds(3));
    network.node_mut(HUB).take_delivered();
    network
}

#[test]
fn blocks_of_many_spokes_at_once_are_all_put_together() {
    let _seed = Seed(1);
    let mut network = hub(1);
    let mut random = Random::new(1);
    let mut talks: Vec<_> =
        spokes().map(|id| (id, Conversation::new(v4(id, HUB, 80), Filler::Digits))).collect();
    for (id, talk) in &mut talks {
        let packets: Vec<_> =
            (0..PACKETS).map(|_| talk.next_packet(600 + random.below(400) as usize)).collect();
        network.send_all(*id, &packets);
    }
    network.run_for(seconds(10));
    let delivered = network.node_mut(HUB).take_delivered();
    let (mut blocks, mut datagrams) = (0, 0);
    for (id, talk) in &mut talks {
        talk.note(&delivered);
        let counters = network.node(*id).peer_counters(HUB);
        blocks += counters.out_blocks.get();
        datagrams += counters.out_datagrams.get();
        println!("spoke {}: {:?}", id.0, talk.tally());
    }
    println!(
        "{blocks} blocks, {datagrams} datagrams, {} blocks incomplete",
        network.node(HUB).drops(Reason::BlockIncomplete)
    );
    assert!(datagrams > 2 * blocks && blocks > 10 * u64::from(SPOKES), "{blocks} blocks in {datagrams}");
    for (id, talk) in &talks {
        let all = ConversationTally { sent: PACKETS, arrived: PACKETS, ..ConversationTally::default() };
        assert_eq!(talk.tally(), all, "spoke {}", id.0);
    }
    assert_eq!(network.node(HUB).drops(Reason::BlockIncomplete), 0);
}
