//! On a path that is too long to ask for what is missing, repair symbols bring it back, in its place.

use core::time::Duration;

use strait_ipsec::{LossPattern, RepairState};
use strait_sim::{Conversation, Filler, LinkSettings, LossModel, NodeId, PairSettings, SimNetwork};

use crate::stage::{A, B, Seed, joined, millis, seconds, v4};

/// A link of 2 Mbit/s with a round trip of 600 ms that loses so much in each direction.
fn satellite(pair: &mut PairSettings, loss: LossModel) {
    (pair.a.up, pair.b.up) = ("2Mbit".parse().unwrap(), "2Mbit".parse().unwrap());
    let link = LinkSettings { delay: millis(300), loss, ..LinkSettings::default() };
    (pair.forth, pair.back) = (link, link);
}

/// A flow of one packet of 1,200 bytes each `apart`, for `span`, and what is still on its way.
fn flow(network: &mut SimNetwork, talk: &mut Conversation, apart: Duration, span: Duration) {
    let end = network.now() + span;
    while network.now() < end {
        let packet = talk.next_packet(1_200);
        network.send_all(A, &[packet]);
        network.run_for(apart);
        talk.note(&network.node_mut(B).take_delivered());
    }
    network.run_for(seconds(2));
    talk.note(&network.node_mut(B).take_delivered());
}

fn symbols(network: &SimNetwork, from: NodeId, to: NodeId) -> u64 {
    network.node(from).peer_counters(to).repair.symbols_out.get()
}

/// Requests for what is missing, which only leave while the round trip is not known.
fn asked(network: &SimNetwork) -> u64 {
    network.node(B).peer_counters(A).repair.requests.get()
}

#[test]
fn losses_of_a_long_path_come_back_in_order_without_being_asked_for() {
    for seed in 1..4 {
        let _seed = Seed(seed);
        let mut network = joined(seed, |pair| satellite(pair, LossModel::Uniform(0.01)));
        let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
        // Until the loss is known.
        flow(&mut network, &mut talk, millis(7), seconds(20));
        let before = talk.tally();
        let (sent, asked) = (symbols(&network, A, B), asked(&network));
        flow(&mut network, &mut talk, millis(7), seconds(60));
        let (after, repair) = (talk.tally(), &network.node(B).peer_counters(A).repair);
        let (packets, lost) = (after.sent - before.sent, after.missing() - before.missing());
        assert!(packets > 8_000 && lost * 1_000 < packets, "{lost} of {packets}");
        // What came back is in its place, but for the first seconds and what came back late.
        assert!(after.overtaken - before.overtaken <= packets / 1_000, "{before:?} {after:?}");
        assert!(repair.recovered.get() > 60, "{repair:?}");
        assert_eq!((repair.repaired.get(), repair.requests.get()), (0, asked), "{repair:?}");
        let share = (symbols(&network, A, B) - sent) as f64 / packets as f64;
        assert!((0.06..0.16).contains(&share), "{share}");
    }
}

#[test]
fn losses_that_are_remembered_are_repaired_from_the_first_seconds_on() {
    let mut network = joined(7, |pair| satellite(pair, LossModel::Uniform(0.01)));
    network.remember_path(A, B, None, LossPattern { share: 0.01, burst: 1.0 });
    let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
    // The round trip is not known before the first report.
    flow(&mut network, &mut talk, millis(7), seconds(3));
    let before = talk.tally();
    // Long enough that chance does not decide.
    flow(&mut network, &mut talk, millis(7), seconds(80));
    let after = talk.tally();
    assert!((after.missing() - before.missing()) * 1_000 < after.sent - before.sent, "{before:?} {after:?}");
}

#[test]
fn clean_and_sparse_traffic_gets_no_symbols() {
    let (none, lossy) = (LossModel::None, LossModel::Uniform(0.03));
    for (loss, apart, state) in
        [(none, millis(7), RepairState::FewLosses), (lossy, millis(40), RepairState::ErrorCorrection)]
    {
        let mut network = joined(3, |pair| satellite(pair, loss));
        let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
        flow(&mut network, &mut talk, apart, seconds(30));
        assert_eq!(symbols(&network, A, B), 0, "{loss:?} {apart:?}");
        assert_eq!(network.node(A).peer_counters(B).path.repair(), Some(state));
    }
}
