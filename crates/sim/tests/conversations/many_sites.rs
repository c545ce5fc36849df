//! Many honest sites send a hub blocks of many parts, over links that lose, delay and reorder some of them.

use core::time::Duration;

use strait_clock::Random;
use strait_ipsec::Reason;
use strait_keying::{Start, Where};
use strait_scheduler::Rate;
use strait_sim::{
    Conversation, EventQueue, Filler, FlowShape, Fragmentation, LinkSettings, LossModel, NodeId,
    NodeSettings, Reordering, SimNetwork,
};

use crate::stage::{Seed, millis, seconds, v4};

const HUB: NodeId = NodeId(0);
const SITES: u8 = 64;
/// The rate of each site's link.
const RATE: u64 = 2_000_000;
/// Payload bytes of a part, and of the smallest and the largest block: 4 and 54 parts.
const PART: u64 = 1_200;
const SMALLEST: u64 = 3 * PART + 200;
const LARGEST: u64 = 54 * PART;
/// For how long they send.
const SPAN: Duration = seconds(3);

fn sites() -> impl Iterator<Item = NodeId> {
    (1..=SITES).map(NodeId)
}

/// A hub whose receiver has so many workers, and its sites, all of them up.
fn hub(seed: u64, workers: usize) -> SimNetwork {
    let mut network = SimNetwork::new(seed);
    let node = |id| NodeSettings { link_mtu: 1280, ..NodeSettings::new(id) };
    let hub = NodeSettings { receive_workers: workers, ..node(HUB) };
    network.add_node(hub.clone()).unwrap();
    for site in sites().map(node) {
        network.add_node(site.clone()).unwrap();
        network.set_link(site.id, HUB, LinkSettings::default());
        network.set_link(HUB, site.id, LinkSettings::default());
        network.add_peer(HUB, site.as_peer(Where::Unknown, Start::OnTraffic));
        network.add_peer(site.id, hub.as_peer(Where::Address(HUB.outer_v4()), Start::Eager));
    }
    for id in sites() {
        assert!(network.run_until_up(id, HUB, seconds(30)), "site {}", id.0);
    }
    for id in sites() {
        network.send(id, &v4(id, HUB, 9).udp(b"first"));
    }
    network.run_for(seconds(3));
    network.node_mut(HUB).take_delivered();
    for id in sites() {
        let reordering = Some(Reordering { share: 0.01, by: millis(60) });
        let loss = LossModel::Uniform(0.01);
        let (rate, jitter, delay) = (Rate::from_bits(RATE), millis(2), millis(20));
        let link = LinkSettings { rate, delay, jitter, reordering, loss, ..LinkSettings::default() };
        network.set_link(id, HUB, link);
    }
    network
}

/// Blocks that a site sent, by whether the link lost a part, and how many of the others arrived.
#[derive(Debug, Default)]
struct BlockTally {
    sent: u64,
    parts: [u64; 2],
    whole: u64,
    arrived: u64,
}

/// Each site sends one block behind the other, as fast as its link takes them.
fn run(workers: usize) -> BlockTally {
    let _seed = Seed(5);
    let mut network = hub(5, workers);
    let mut random = Random::new(5);
    let talk = |id| {
        // What may be cut goes as a block of as many parts as it takes.
        let shape = FlowShape { fragmentation: Fragmentation::Allowed, ..v4(id, HUB, 80) };
        (id, Conversation::new(shape, Filler::Random), Vec::new())
    };
    let mut talks: Vec<_> = sites().map(talk).collect();
    let (mut queue, mut tally) = (EventQueue::<usize>::default(), BlockTally::default());
    tally.parts[0] = u64::MAX;
    let end = network.now() + SPAN;
    (0..talks.len()).for_each(|at| queue.push(network.now() + millis(at as u64), at));
    while let Some((at, site)) = queue.pop_if(|at, _| at < end) {
        network.run_for(at.since(network.now()));
        let (id, talk, spared) = &mut talks[site];
        let packet = talk.next_packet((SMALLEST + random.below(LARGEST - SMALLEST)) as usize);
        let before = network.link(*id, HUB).counters();
        network.send(*id, &packet);
        let after = network.link(*id, HUB).counters();
        let parts = after.entered - before.entered;
        assert!(parts > 0, "{} bytes did not leave: {:?}", packet.len(), network.node(*id).all_drops());
        tally.parts = [tally.parts[0].min(parts), tally.parts[1].max(parts)];
        tally.sent += 1;
        spared.push(after.lost == before.lost);
        let wire = after.bytes - before.bytes;
        queue.push(at + Duration::from_nanos(wire * 8 * 1_000_000_000 / RATE), site);
    }
    network.run_for(seconds(3));
    let delivered = network.node_mut(HUB).take_delivered();
    let mut by_site = vec![Vec::new(); usize::from(SITES) + 1];
    for packet in delivered {
        // The third byte of the source address is the site's number and one.
        by_site[usize::from(packet.packet[14]) - 1].push(packet);
    }
    for (id, talk, spared) in &mut talks {
        talk.note(&by_site[usize::from(id.0)]);
        assert_eq!((talk.tally().damaged, talk.tally().repeated), (0, 0));
        let numbers = (0..).zip(spared.iter()).filter(|(_, spared)| **spared);
        for (number, _) in numbers {
            tally.whole += 1;
            tally.arrived += u64::from(talk.arrived_at(number).is_some());
        }
    }
    println!(
        "{workers} workers: {tally:?}, {:.3} % of the whole ones arrive, {} given up at the hub",
        tally.arrived as f64 / tally.whole as f64 * 100.0,
        network.node(HUB).drops(Reason::BlockIncomplete)
    );
    tally
}

#[test]
fn blocks_of_sixty_four_lossy_sites_arrive_unless_the_link_lost_a_part() {
    for workers in [0, 2] {
        let tally = run(workers);
        assert!(tally.parts[0] <= 4 && tally.parts[1] >= 54, "{:?}", tally.parts);
        assert!(tally.whole > 1_000 && tally.sent > tally.whole * 5 / 4, "{tally:?}");
        assert!(tally.arrived * 1_000 >= tally.whole * 999, "{tally:?}");
    }
}
