//! Processes of one user without a daemon: each is a node with the same key, at another port, and none ends the streams of another.

use core::time::Duration;
use std::net::SocketAddr;

use strait_keying::{PeerState, Start, Where};
use strait_scheduler::Rate;
use strait_sim::{LinkSettings, NodeId, NodeSettings, SimNetwork, UNREAD};
use strait_stream::StreamPriority;

use crate::stage::{A, B, C, Seed, joined, millis, seconds};

/// Longer than a connection counts as new.
const LATER: Duration = seconds(11);

fn rate() -> Rate {
    Rate::from_bits(1_540_000).unwrap()
}

fn modem() -> LinkSettings {
    LinkSettings::modem(rate(), millis(50), millis(300))
}

fn paced(node: &mut NodeSettings) {
    node.up = Some(rate()).into();
    node.capabilities.down = Some(rate()).into();
}

/// The first process, and its peer, which does not know where the others are.
fn begun(seed: u64) -> SimNetwork {
    joined(seed, |pair| {
        [&mut pair.a, &mut pair.b].into_iter().for_each(paced);
        (pair.forth, pair.back) = (modem(), modem());
    })
}

/// Another process with the key of the first, at another port of its host.
fn begin(network: &mut SimNetwork, id: NodeId) {
    begin_with(network, id, Start::OnTraffic);
}

/// The same, which begins a handshake then.
fn begin_with(network: &mut SimNetwork, id: NodeId, start: Start) {
    let mut settings = NodeSettings { keys: A, ..NodeSettings::new(id) };
    paced(&mut settings);
    settings.address = SocketAddr::new(A.outer_v4().ip(), 40_000 + u16::from(id.0));
    network.add_node(settings).unwrap();
    network.set_link(id, B, modem());
    network.set_link(B, id, modem());
    let peer = NodeSettings::new(B).as_peer(Where::Address(B.outer_v4()), start);
    network.add_peer(id, peer);
}

/// Such a process sends some bytes, which arrive, and ends.
fn send_beside(network: &mut SimNetwork, id: NodeId) {
    begin(network, id);
    network.send_stream(id, B, 20_000, StreamPriority::Normal);
    let done = network.run_until(seconds(20), |network| network.node(id).streams().tally().delivered == 1);
    assert!(done, "{:?}", network.node(id).streams().tally());
    network.stop(id);
}

fn lost(network: &SimNetwork, nodes: &[NodeId]) -> Vec<String> {
    let lost = |node: &NodeId| network.node(*node).streams().tally().lost.clone();
    nodes.iter().flat_map(lost).map(|why| why.to_string()).collect()
}

fn state(network: &SimNetwork) -> PeerState {
    network.node(B).status(A).unwrap().state
}

#[test]
fn a_file_goes_on_beside_others_of_processes_with_the_same_key() {
    for kills in [false, true] {
        let _seed = Seed(41);
        let mut network = begun(41);
        let (begin_at, bytes) = (network.now(), 12_000_000);
        network.send_stream(A, B, bytes, StreamPriority::Normal);
        for after in [millis(200), LATER, seconds(2), LATER, seconds(1)] {
            network.run_for(after);
            if kills {
                begin(&mut network, C);
                network.send_stream(C, B, 2_000_000, StreamPriority::Normal);
                network.run_for(seconds(2));
                network.kill(C);
            } else {
                send_beside(&mut network, C);
            }
        }
        let done = network.run_until(seconds(60), |network| network.node(A).streams().tally().delivered == 1);
        assert!(done, "{kills}: {:?}", [A, B].map(|node| network.node(node).streams().tally().clone()));
        assert_eq!(lost(&network, &[A]), [""; 0], "{kills}");
        assert!(kills || lost(&network, &[B]).is_empty(), "{:?}", lost(&network, &[B]));
        assert_eq!(network.node(B).streams().tally().damaged, 0);
        // Nothing stands still, but for what the others send. A byte takes a twentieth more on the wire.
        let alone = rate().time_for(bytes).mul_f64(1.06);
        let took = network.now() - begin_at;
        eprintln!("{took:?}, {alone:?} alone");
        assert!(took < alone + seconds(if kills { 14 } else { 4 }), "{kills}: {took:?} of {alone:?}");
    }
}

#[test]
fn what_waits_for_a_key_goes_on_beside_others() {
    let _seed = Seed(42);
    let mut network = begun(42);
    let login = network.ask_stream((A, B), (1, 1), StreamPriority::Now).unwrap();
    for round in 1..=3 {
        network.run_for(LATER);
        send_beside(&mut network, C);
        network.say_stream(A, login, 1);
        let answered =
            network.run_until(seconds(1), |network| network.node(A).streams().answered(login) == round + 1);
        assert!(answered, "{round}: {:?}", lost(&network, &[A, B]));
    }
    // A stream that begins now has its session, too.
    network.send_stream(A, B, 1_000, StreamPriority::Normal);
    assert!(network.run_until(seconds(1), |network| network.node(A).streams().tally().delivered == 1));
}

#[test]
fn two_that_begin_at_once_have_both_begun_within_round_trips() {
    let _seed = Seed(43);
    let mut network = SimNetwork::new(43);
    // Of a slow link, it gives answers to strangers a small share only.
    network.add_node(NodeSettings::new(B)).unwrap();
    network.add_peer(B, NodeSettings::new(A).as_peer(Where::Unknown, Start::OnTraffic));
    let both = [NodeId(5), NodeId(6)];
    for (id, wait) in both.into_iter().zip([millis(3), millis(0)]) {
        begin_with(&mut network, id, Start::Eager);
        network.send_stream(id, B, 1_000, StreamPriority::Normal);
        network.run_for(wait);
    }
    let done =
        |network: &SimNetwork| both.iter().all(|id| network.node(*id).streams().tally().delivered == 1);
    assert!(network.run_until(millis(800), done), "{:?}", lost(&network, &both));
}

#[test]
fn the_peer_is_there_until_the_last_of_its_processes_has_ended() {
    let _seed = Seed(44);
    let mut network = begun(44);
    network.ask_stream((A, B), (1, UNREAD), StreamPriority::Normal).unwrap();
    network.run_for(LATER);
    send_beside(&mut network, C);
    assert_eq!(state(&network), PeerState::Up);
    begin(&mut network, C);
    network.send_stream(C, B, 20_000, StreamPriority::Normal);
    network.run_for(seconds(2));
    // The goodbye of the first says nothing of the newer one.
    network.stop(A);
    network.run_for(seconds(5));
    assert_eq!(state(&network), PeerState::Up);
    network.stop(C);
    network.run_for(seconds(5));
    assert_eq!(state(&network), PeerState::Down);
}

#[test]
fn a_goodbye_that_others_outlived_counts_when_they_are_gone() {
    let _seed = Seed(45);
    let mut network = begun(45);
    network.ask_stream((A, B), (1, UNREAD), StreamPriority::Normal).unwrap();
    network.run_for(LATER);
    send_beside(&mut network, C);
    // The keys of the first are forgotten by then.
    network.run_for(seconds(100));
    assert_eq!(state(&network), PeerState::Up);
    network.stop(A);
    network.run_for(seconds(5));
    assert_eq!(state(&network), PeerState::Down);
}

#[test]
fn one_more_process_than_may_be_ends_none_of_the_others() {
    let _seed = Seed(46);
    let mut network = begun(46);
    let others = [2, 3, 4].map(NodeId);
    network.send_stream(A, B, 3_000_000, StreamPriority::Normal);
    for id in others {
        network.run_for(seconds(1));
        begin(&mut network, id);
        network.send_stream(id, B, 3_000_000, StreamPriority::Normal);
    }
    network.run_for(seconds(3));
    let newest = NodeId(5);
    begin(&mut network, newest);
    network.send_stream(newest, B, 1_000, StreamPriority::Normal);
    network.run_for(seconds(5));
    assert_eq!((lost(&network, &[newest]).len(), network.node(B).streams().core().connections()), (1, 4));
    let all = [A, others[0], others[1], others[2]];
    let done = |network: &SimNetwork| all.iter().all(|id| network.node(*id).streams().tally().delivered == 1);
    assert!(network.run_until(seconds(60), done), "{:?}", lost(&network, &all));
    // Then there is room again.
    for id in others {
        network.stop(id);
    }
    network.send_stream(newest, B, 1_000, StreamPriority::Normal);
    assert!(network.run_until(seconds(5), |network| network.node(newest).streams().tally().delivered == 1));
}

#[test]
fn a_process_that_is_restarted_in_its_place_has_lost_its_streams_and_others_have_not() {
    let _seed = Seed(47);
    let mut network = begun(47);
    network.send_stream(A, B, 20_000_000, StreamPriority::Normal);
    begin(&mut network, C);
    network.ask_stream((C, B), (1, UNREAD), StreamPriority::Normal).unwrap();
    network.run_for(LATER);
    network.restart(A).unwrap();
    network.send_stream(A, B, 1_000, StreamPriority::Normal);
    assert!(network.run_until(seconds(8), |network| !lost(network, &[B]).is_empty()));
    network.run_for(seconds(20));
    assert_eq!(
        (lost(&network, &[B]).len(), lost(&network, &[C])),
        (1, Vec::new()),
        "{:?}",
        lost(&network, &[B])
    );
}

#[test]
fn streams_of_a_process_that_is_gone_end_soon_after_another_begins_elsewhere() {
    let _seed = Seed(48);
    let mut network = begun(48);
    network.send_stream(A, B, 20_000_000, StreamPriority::Normal);
    network.run_for(LATER);
    network.kill(A);
    send_beside(&mut network, C);
    // What was received for a transfer is locked until the older stream has ended.
    assert!(network.run_until(seconds(6), |network| lost(network, &[B]).len() == 1));
}
