//! What is lost between two nodes comes back before the hosts notice, in its place.

use core::time::Duration;

use strait_ipsec::{RepairCounters, RepairState};
use strait_keying::{Start, Where};
use strait_sim::{
    Conversation, Filler, LinkSettings, LossModel, NodeId, NodeSettings, PairSettings, Reordering, SimNetwork,
};

use crate::stage::{A, B, Seed, joined, millis, rule, seconds, v4};

const RATE: &str = "10Mbit";

/// A link of 10 Mbit/s with a round trip of 100 ms that loses so much in each direction.
fn lossy(pair: &mut PairSettings, loss: LossModel) {
    (pair.a.up, pair.b.up) = (RATE.parse().unwrap(), RATE.parse().unwrap());
    let link = LinkSettings { delay: millis(50), loss, ..LinkSettings::default() };
    (pair.forth, pair.back) = (link, link);
}

/// A flow of so many packets of 1,200 bytes each 10 ms, for `span`, and what is still on its way.
fn bulk(network: &mut SimNetwork, talk: &mut Conversation, count: usize, span: Duration) {
    let end = network.now() + span;
    while network.now() < end {
        let packets: Vec<_> = (0..count).map(|_| talk.next_packet(1_200)).collect();
        network.send_all(A, &packets);
        network.run_for(millis(10));
        talk.note(&network.node_mut(B).take_delivered());
    }
    network.run_for(seconds(1));
    talk.note(&network.node_mut(B).take_delivered());
}

fn there(network: &SimNetwork) -> [u64; 4] {
    let counters = network.node(B).peer_counters(A);
    let RepairCounters { missing, repaired, late, lost, .. } = &counters.repair;
    [missing, repaired, late, lost].map(strait_ipsec::Tally::get)
}

fn spent(network: &SimNetwork) -> u64 {
    network.node(A).peer_counters(B).repair.wire.get() + network.node(B).peer_counters(A).repair.wire.get()
}

#[test]
fn one_loss_in_a_hundred_is_repaired_in_order() {
    for seed in 1..4 {
        let _seed = Seed(seed);
        let mut network = joined(seed, |pair| lossy(pair, LossModel::Uniform(0.01)));
        let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
        bulk(&mut network, &mut talk, 8, seconds(20));
        let (tally, [missing, repaired, late, lost]) = (talk.tally(), there(&network));
        assert!(tally.sent > 10_000 && missing > 100, "{tally:?} {missing}");
        assert!(tally.missing() * 1_000 <= tally.sent, "{tally:?}");
        assert!(tally.overtaken <= lost, "{tally:?}, {lost} given up");
        assert_eq!((tally.repeated, tally.damaged), (0, 0));
        let [sender, receiver] = [(A, B), (B, A)].map(|(at, peer)| network.node(at).peer_counters(peer));
        assert_eq!(sender.path.repair(), Some(RepairState::Retransmission));
        // Repetitions and notices as they left, but for those that were lost; requests come the other way.
        let (sent, came) = (sender.repair.wire.get(), receiver.repair.wire_in.get());
        assert!(came <= sent && came * 10 > sent * 9, "{came} of {sent} bytes");
        assert!(sender.repair.wire_in.get() > 0);
        assert!(
            repaired + late + lost <= missing && lost * 20 <= missing,
            "{missing} {repaired} {late} {lost}"
        );
    }
}

#[test]
fn bursts_of_losses_are_repaired_in_order() {
    let _seed = Seed(4);
    let mut network = joined(4, |pair| lossy(pair, LossModel::bursts(0.03, 5.0)));
    let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
    bulk(&mut network, &mut talk, 7, seconds(20));
    let (tally, [missing, repaired, late, lost]) = (talk.tally(), there(&network));
    assert!(missing > 300, "{missing}");
    assert!(tally.missing() * 200 <= tally.sent, "{tally:?}: {missing} {repaired} {late} {lost}");
    assert!(tally.overtaken <= lost, "{tally:?}, {lost} given up");
    assert_eq!((tally.repeated, tally.damaged), (0, 0));
}

/// Wire bytes for each 100 bytes of text that took such a path, compressed in units as large as the path allows.
fn wire_for_text(loss: LossModel) -> u64 {
    let mut network = joined(9, |pair| {
        lossy(pair, loss);
        pair.a.rules = vec![rule(80, "zstd-3")];
    });
    let mut talk = Conversation::new(v4(A, B, 80), Filler::Text);
    bulk(&mut network, &mut talk, 30, seconds(3));
    let (before, sent) = (network.link(A, B).counters().bytes, talk.tally().sent);
    bulk(&mut network, &mut talk, 30, seconds(10));
    let wire = network.link(A, B).counters().bytes - before;
    wire * 100 / ((talk.tally().sent - sent) * 1_228)
}

#[test]
fn text_shrinks_as_much_where_losses_are_repaired_as_where_nothing_is_lost() {
    let (clean, lossy) = (wire_for_text(LossModel::None), wire_for_text(LossModel::Uniform(0.01)));
    assert!(lossy * 10 <= clean * 11, "{clean} wire bytes for 100 of text without losses, {lossy} with them");
}

#[test]
fn lost_requests_are_made_up_for() {
    let _seed = Seed(5);
    let mut network = joined(5, |pair| {
        lossy(pair, LossModel::Uniform(0.01));
        pair.back.loss = LossModel::Uniform(0.1);
    });
    let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
    bulk(&mut network, &mut talk, 8, seconds(20));
    let tally = talk.tally();
    assert!(tally.sent > 10_000 && tally.missing() * 1_000 <= tally.sent, "{tally:?}");
}

#[test]
fn without_losses_repair_costs_no_three_thousandths() {
    let _seed = Seed(6);
    let mut network = joined(6, |pair| lossy(pair, LossModel::None));
    let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
    bulk(&mut network, &mut talk, 8, seconds(10));
    bulk(&mut network, &mut talk, 8, millis(50));
    let (tally, wire) = (talk.tally(), network.node(A).peer_counters(B).out_wire.get());
    assert_eq!((tally.missing(), tally.overtaken, there(&network)), (0, 0, [0; 4]));
    let spent = spent(&network);
    assert!(spent > 0 && spent * 1_000 <= wire, "{spent} of {wire}: beside the 4 bytes in a datagram");
}

#[test]
fn a_network_that_delays_single_datagrams_is_soon_borne_with() {
    let _seed = Seed(7);
    let mut network = joined(7, |pair| {
        lossy(pair, LossModel::None);
        pair.forth.reordering = Some(Reordering { share: 0.02, by: millis(8) });
    });
    let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
    bulk(&mut network, &mut talk, 8, seconds(20));
    let (tally, [missing, repaired, late, lost]) = (talk.tally(), there(&network));
    assert_eq!((tally.missing(), tally.overtaken, tally.repeated), (0, 0, 0));
    assert!(missing > 100 && late + repaired == missing && lost == 0, "{missing} {repaired} {late} {lost}");
    let asked = network.node(B).peer_counters(A).repair.requests.get();
    assert!(asked * 5 <= missing, "{asked} requests for {missing} datagrams that were only late");
}

#[test]
fn forty_lossy_sites_are_repaired_side_by_side() {
    let _seed = Seed(8);
    let (hub, sites) = (NodeId(0), 1..=40_u8);
    let mut network = SimNetwork::new(8);
    let settings = NodeSettings { up: "100mbit".parse().unwrap(), ..NodeSettings::new(hub) };
    network.add_node(settings.clone()).unwrap();
    let link = LinkSettings { delay: millis(25), loss: LossModel::Uniform(0.01), ..LinkSettings::default() };
    for id in sites.clone().map(NodeId) {
        let site = NodeSettings { up: "1500kbit".parse().unwrap(), ..NodeSettings::new(id) };
        network.add_node(site.clone()).unwrap();
        network.set_link(id, hub, link);
        network.set_link(hub, id, link);
        network.add_peer(hub, site.as_peer(Where::Unknown, Start::OnTraffic));
        network.add_peer(id, settings.as_peer(Where::Address(hub.outer_v4()), Start::Eager));
    }
    for id in sites.clone().map(NodeId) {
        assert!(network.run_until_up(id, hub, seconds(30)), "site {}", id.0);
    }
    let mut talks: Vec<_> =
        sites.clone().map(|id| Conversation::new(v4(NodeId(id), hub, 80), Filler::Random)).collect();
    for _ in 0..250 {
        for (id, talk) in sites.clone().zip(&mut talks) {
            let packets = [talk.next_packet(1_200), talk.next_packet(1_200)];
            network.send_all(NodeId(id), &packets);
        }
        network.run_for(millis(20));
        let delivered = network.node_mut(hub).take_delivered();
        for talk in &mut talks {
            talk.note(&delivered);
        }
    }
    network.run_for(seconds(1));
    let delivered = network.node_mut(hub).take_delivered();
    let mut lost = 0;
    for (id, talk) in sites.zip(&mut talks) {
        talk.note(&delivered);
        let tally = talk.tally();
        let given_up = network.node(hub).peer_counters(NodeId(id)).repair.lost.get();
        assert_eq!((tally.repeated, tally.damaged), (0, 0));
        // Beside those before the flow was known to be busy.
        assert!(
            tally.overtaken <= given_up + 2,
            "{tally:?}, {given_up} given up: {:?}",
            network.node(hub).peer_counters(NodeId(id)).repair
        );
        lost += tally.missing();
    }
    assert!(lost <= 40 * 500 / 500, "{lost} packets were lost of 20,000");
}
