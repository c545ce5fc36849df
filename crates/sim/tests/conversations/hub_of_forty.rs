//! A hub serves forty sites as well as four: each gets from its own link what it would get alone.

use std::sync::atomic::Ordering;

use strait_clock::Random;
use strait_keying::{Start, Where};
use strait_sim::{LinkSettings, NodeId, NodeSettings, SimNetwork};
use strait_wire::ip;

use crate::stage::{Seed, millis, rule, seconds, v4};

const HUB: NodeId = NodeId(0);
/// Payload bytes of a packet.
const PAYLOAD: usize = 1_300;
/// What waits at each site all the time: more than its link takes while the host looks away.
const WAITING: u64 = 100_000;

/// Words of which a few come often and most seldom, as in any text.
fn text(len: usize, random: &mut Random) -> Vec<u8> {
    let letters = |random: &mut Random| {
        let len = 2 + random.below(8) as usize;
        (0..len).map(|_| b'a' + random.below(26) as u8).collect::<Vec<u8>>()
    };
    let words: Vec<_> = (0..2_000).map(|_| letters(random)).collect();
    let mut text = Vec::with_capacity(len + 16);
    while text.len() < len {
        let rank = (random.unit().powi(4) * words.len() as f64) as usize;
        text.extend_from_slice(&words[rank]);
        text.push(b' ');
    }
    text
}

/// A hub and so many sites, each with a link of 1.5 Mbit/s and a rule for its text; all of them up.
fn hub(count: u8) -> SimNetwork {
    let mut network = SimNetwork::new(3);
    let hub = NodeSettings { up: "100mbit".parse().unwrap(), receive_workers: 2, ..NodeSettings::new(HUB) };
    network.add_node(hub.clone()).unwrap();
    for id in (1..=count).map(NodeId) {
        let mut site = NodeSettings::new(id);
        site.up = "1500kbit".parse().unwrap();
        site.rules = vec![rule(80, "zstd-1")];
        network.add_node(site.clone()).unwrap();
        let link = LinkSettings { delay: millis(10), ..LinkSettings::default() };
        network.set_link(id, HUB, LinkSettings { rate: "1500kbit".parse().ok(), ..link });
        network.set_link(HUB, id, link);
        network.add_peer(HUB, site.as_peer(Where::Unknown, Start::OnTraffic));
        network.add_peer(id, hub.as_peer(Where::Address(HUB.outer_v4()), Start::Eager));
    }
    for id in (1..=count).map(NodeId) {
        assert!(network.run_until_up(id, HUB, seconds(30)), "site {}", id.0);
    }
    network
}

/// Lets all sites send text for `turns` of 10 ms, the hub's host answering every second packet; gives the payload bits a second of
/// each site, in order.
fn goodputs(network: &mut SimNetwork, count: u8, turns: u32, text: &[u8]) -> Vec<f64> {
    let mut random = Random::new(9);
    let mut bytes = vec![0_usize; usize::from(count)];
    for _ in 0..turns {
        for id in (1..=count).map(NodeId) {
            let counters = network.node(id).peer_counters(HUB);
            let waits = counters.queued.load(Ordering::Relaxed);
            let packets: Vec<_> = (0..WAITING.saturating_sub(waits) / PAYLOAD as u64)
                .map(|_| {
                    let at = random.below((text.len() - PAYLOAD) as u64) as usize;
                    v4(id, HUB, 80).udp(&text[at..at + PAYLOAD])
                })
                .collect();
            network.send_all(id, &packets);
        }
        network.run_for(millis(10));
        for delivered in network.node_mut(HUB).take_delivered() {
            let packet = ip::Packet::parse(&delivered.packet).unwrap();
            // The third byte of a site's addresses is its number and one.
            let site = delivered.packet[14] - 1;
            bytes[usize::from(site) - 1] += packet.payload().len();
            if bytes[usize::from(site) - 1] / packet.payload().len() % 2 == 0 {
                network.send(HUB, &v4(HUB, NodeId(site), 80).udp(b"an acknowledgement"));
            }
        }
    }
    let mut goodputs: Vec<_> =
        bytes.iter().map(|bytes| *bytes as f64 * 8.0 / (f64::from(turns) * 0.01)).collect();
    goodputs.sort_by(f64::total_cmp);
    goodputs
}

/// The median goodput of so many sites, and the least.
fn median(count: u8, text: &[u8]) -> f64 {
    let mut network = hub(count);
    goodputs(&mut network, count, 60, text);
    let found = goodputs(&mut network, count, 100, text);
    let median = found[found.len() / 2];
    println!(
        "{count} sites: median {:.3} Mbit/s a site, least {:.3}; dropped at the hub: {:?}, at a site: {:?}",
        median / 1e6,
        found[0] / 1e6,
        network.node(HUB).all_drops(),
        network.node(NodeId(1)).all_drops()
    );
    median
}

#[test]
fn forty_sites_of_text_get_what_four_get() {
    let _seed = Seed(3);
    let text = text(1 << 20, &mut Random::new(1));
    let (few, many) = (median(4, &text), median(40, &text));
    println!("the ratio of the medians is {:.3}", many / few);
    assert!(few > 2.0 * 1.5e6, "the text does not shrink: {few}");
    assert!(many >= 0.95 * few, "{many} of {few}");
}
