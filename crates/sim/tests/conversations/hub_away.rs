//! A hub was away for long, and is back: its sites find it soon, not all at once, and meanwhile they did not fill their links.

use core::time::Duration;

use strait_clock::Time;
use strait_keying::{ControlEvent, Start, Where};
use strait_sim::{LinkSettings, NodeId, NodeSettings, SimNetwork};

use crate::stage::{Seed, log, millis, seconds, v4};

const HUB: NodeId = NodeId(0);
const SITES: u8 = 20;
const AWAY: Duration = seconds(30 * 60);

fn sites() -> impl Iterator<Item = NodeId> {
    (1..=SITES).map(NodeId)
}

/// A hub that does not know where its sites are, and the sites, all of them up.
fn hub(seed: u64) -> SimNetwork {
    let mut network = SimNetwork::new(seed);
    let hub = NodeSettings::new(HUB);
    network.add_node(hub.clone()).unwrap();
    let link = LinkSettings { delay: millis(20), ..LinkSettings::default() };
    for site in sites().map(NodeSettings::new) {
        network.add_node(site.clone()).unwrap();
        network.set_link(site.id, HUB, link);
        network.set_link(HUB, site.id, link);
        network.add_peer(HUB, site.as_peer(Where::Unknown, Start::OnTraffic));
        network.add_peer(site.id, hub.as_peer(Where::Address(HUB.outer_v4()), Start::Eager));
    }
    for id in sites() {
        assert!(network.run_until_up(id, HUB, seconds(30)), "site {}", id.0);
    }
    network
}

/// The hosts of these sites send a packet a second for `span`, or until all of them have keys that are newer than `since`.
fn talk(network: &mut SimNetwork, talking: impl Fn(u8) -> bool, span: Duration, since: Option<Time>) {
    let end = network.now() + span;
    while network.now() < end {
        for id in sites().filter(|id| talking(id.0)) {
            network.send(id, &v4(id, HUB, 9).udp(b"who is there"));
        }
        network.run_for(seconds(1));
        if since.is_some_and(|since| sites().all(|id| back(network, id, since).is_some())) {
            return;
        }
    }
}

/// The time at which a site had new keys after `since`.
fn back(network: &SimNetwork, id: NodeId, since: Time) -> Option<Time> {
    let mut events = network.node(id).events().iter();
    events
        .find(|(at, event)| *at >= since && matches!(event, ControlEvent::Established { .. }))
        .map(|(at, _)| *at)
}

/// The times at which a site began a handshake in such a span.
fn begun(network: &SimNetwork, id: NodeId, (from, to): (Time, Time)) -> Vec<Time> {
    let events = network.node(id).events().iter();
    let begun = events.filter(|(_, event)| matches!(event, ControlEvent::HandshakeStarted { .. }));
    begun.map(|(at, _)| *at).filter(|at| (from..to).contains(at)).collect()
}

#[test]
fn sites_whose_packets_wait_are_back_within_ten_seconds_and_not_all_at_once() {
    for seed in 1..=2 {
        let _seed = Seed(seed);
        let mut network = hub(seed);
        network.set_suspended(HUB, true);
        let left = network.now();
        talk(&mut network, |_| true, AWAY - seconds(60), None);
        network.start_capture();
        let counted = network.now();
        talk(&mut network, |_| true, seconds(60), None);
        let sent = network.take_capture();
        let bytes: u64 = sent.iter().filter(|one| !one.is_esp()).map(|one| one.outer_len()).sum();
        println!("{} bytes a site in the last minute", bytes / u64::from(SITES));
        let returned = network.now();
        for id in sites() {
            let attempts = begun(&network, id, (left + seconds(60), returned));
            let apart = attempts.windows(2).map(|two| two[1] - two[0]).min().unwrap();
            assert!(apart >= seconds(5), "site {} sends again after {apart:?}", id.0);
            let last = begun(&network, id, (counted, returned)).len();
            assert!((2..=6).contains(&last), "site {} begins {last} handshakes in a minute", id.0);
        }
        // The processes of a hub that was off know nothing.
        network.set_suspended(HUB, false);
        network.restart(HUB).unwrap();
        talk(&mut network, |_| true, seconds(90), Some(returned));
        let mut after: Vec<_> = sites()
            .map(|id| back(&network, id, returned).map_or(Duration::MAX, |at| at.since(returned)))
            .collect();
        after.sort();
        println!("back after {after:?}");
        let (first, last) = (after[0], after[after.len() - 1]);
        assert!(last <= seconds(10), "{last:?}: {:?}", log(&network, NodeId(1)).iter().rev().take(6));
        assert!(last - first >= seconds(1), "all at once: {first:?} to {last:?}");
    }
}

#[test]
fn site_that_has_nothing_to_send_seldom_asks_and_asks_at_once_when_it_has() {
    let _seed = Seed(3);
    let mut network = hub(3);
    network.set_suspended(HUB, true);
    talk(&mut network, |_| true, seconds(300), None);
    // What waited is given up.
    network.run_for(seconds(120));
    let quiet = network.now();
    network.run_for(seconds(600));
    for id in sites() {
        assert_eq!(begun(&network, id, (quiet, network.now())), [], "site {}", id.0);
    }
    network.set_suspended(HUB, false);
    network.restart(HUB).unwrap();
    let returned = network.now();
    talk(&mut network, |_| true, seconds(90), Some(returned));
    for id in sites() {
        let after = back(&network, id, returned).map(|at| at.since(returned));
        assert!(after.is_some_and(|after| after <= seconds(2)), "site {}: {after:?}", id.0);
    }
}
