//! The data of all its peers that a hub keeps takes no more than its budget, whatever they send.

use strait_ipsec::Reason;
use strait_keying::{Start, Where};
use strait_sim::{Conversation, Filler, LinkSettings, NodeId, NodeSettings, SimNetwork};

use crate::stage::{self, millis, seconds, v4};

const HUB: NodeId = NodeId(0);
const FLOWS: u16 = 32;
/// Sites, where the variable does not say how many.
const SITES: u8 = 10;
const VARIABLE: &str = "STRAIT_MEMORY_SITES";

/// A hub with so many bytes for what it keeps, and sites with a rule for 32 flows of text.
fn hub(sites: u8, memory: usize) -> SimNetwork {
    let mut network = SimNetwork::new(5);
    let hub = NodeSettings { up: "1gbit".parse().unwrap(), memory, ..NodeSettings::new(HUB) };
    network.add_node(hub.clone()).unwrap();
    for id in (1..=sites).map(NodeId) {
        let mut site = NodeSettings::new(id);
        site.up = "20mbit".parse().unwrap();
        site.rules = (80..80 + FLOWS).map(|port| stage::rule(port, "zstd-1")).collect();
        network.add_node(site.clone()).unwrap();
        let link = LinkSettings { delay: millis(10), ..LinkSettings::default() };
        network.set_link(id, HUB, link);
        network.set_link(HUB, id, link);
        network.add_peer(HUB, site.as_peer(Where::Unknown, Start::OnTraffic));
        network.add_peer(id, hub.as_peer(Where::Address(HUB.outer_v4()), Start::Eager));
        assert!(network.run_until_up(id, HUB, seconds(30)), "site {}", id.0);
    }
    network
}

#[test]
fn a_hub_keeps_no_more_than_its_budget_and_every_peer_has_some_of_it() {
    let sites = std::env::var(VARIABLE).map_or(SITES, |given| given.parse().unwrap());
    let budget = 1_600_000 * usize::from(sites);
    let mut network = hub(sites, budget);
    let mut talks: Vec<_> = (1..=sites)
        .flat_map(|id| (80..80 + FLOWS).map(move |port| (id, v4(NodeId(id), HUB, port))))
        .map(|(id, flow)| (NodeId(id), Conversation::new(flow, Filler::Text)))
        .collect();
    let mut most = 0;
    for _ in 0..24 {
        // Some blocks of each flow.
        let at_once = talks.len().div_ceil(300);
        for talks in talks.chunks_mut(at_once) {
            for (id, talk) in talks {
                let packets: Vec<_> = (0..4).map(|_| talk.next_packet(1_200)).collect();
                network.send_all(*id, &packets);
            }
            network.run_for(millis(1));
        }
        network.run_for(millis(300));
        (0..=sites).for_each(|id| drop(network.node_mut(NodeId(id)).take_delivered()));
        most = most.max(network.node(HUB).counters().memory.used());
    }
    let hub = network.node(HUB);
    let memory = &hub.counters().memory;
    let each: Vec<usize> = (1..=sites).map(|id| hub.kept_bytes(NodeId(id))).collect();
    println!("{sites} sites: {most} of {}, each {:?}", memory.most(), each);
    assert!(most <= memory.most() && most > memory.most() / 2);
    assert!(each.iter().all(|kept| *kept > memory.most() / usize::from(sites) / 8), "{each:?}");
    // Where there is no room, a block is not kept; what it refers to is there all the same.
    assert_eq!(hub.drops(Reason::HistoryGone), 0);
}
