//! Keys age while a node is suspended: what expired meanwhile protects nothing more, and new keys are there at once.

use std::collections::BTreeSet;

use strait_keying::ControlEvent;
use strait_sim::{Conversation, Filler, LinkSwitch, NodeId, SimDatagram, SimNetwork};

use crate::stage::{A, B, Seed, Talk, joined, millis, seconds, v4};

const HOUR: u64 = 3600;

/// The SPIs that `node` sent ESP with.
fn spis(captured: &[SimDatagram], node: NodeId) -> BTreeSet<[u8; 4]> {
    let esp = captured.iter().filter(|datagram| datagram.is_esp() && datagram.from == node.outer_v4());
    esp.filter_map(|datagram| datagram.bytes.first_chunk().copied()).collect()
}

/// Two nodes that have talked; `suspended` are, for `hours`. Gives what was captured before.
fn suspend(seed: u64, suspended: &[NodeId], hours: u64) -> (SimNetwork, Vec<SimDatagram>) {
    let mut network = joined(seed, |_| {});
    network.start_capture();
    Talk::new(A, B, 5000).run(&mut network, seconds(2), millis(50));
    // The last one is held back on its way.
    network.link(A, B).switch = LinkSwitch::Down;
    network.send(A, &Conversation::new(v4(A, B, 5999), Filler::Text).next_packet(100));
    network.link(A, B).switch = LinkSwitch::Up;
    let before = network.take_capture();
    suspended.iter().for_each(|node| network.set_suspended(*node, true));
    for _ in 0..hours * 60 {
        // Who is awake goes on.
        network.send(B, &Conversation::new(v4(B, A, 6000), Filler::Text).next_packet(100));
        network.run_for(seconds(60));
    }
    suspended.iter().for_each(|node| network.set_suspended(*node, false));
    network.take_capture();
    network.node_mut(A).take_delivered();
    network.node_mut(B).take_delivered();
    (network, before)
}

#[test]
fn expired_keys_protect_nothing_after_a_suspend() {
    for (number, suspended) in [&[A][..], &[B], &[A, B]].into_iter().enumerate() {
        let _seed = Seed(20 + number as u64);
        let (mut network, before) = suspend(20 + number as u64, suspended, 2);
        // The packet is there before any timer runs, and so is the datagram that was held back.
        let mut first = Conversation::new(v4(A, B, 7000), Filler::Text);
        network.send(A, &first.next_packet(100));
        let held = before.iter().rfind(|one| one.is_esp() && one.from == A.outer_v4()).unwrap().clone();
        network.inject(held);
        assert!(network.node(B).delivered().is_empty(), "opened with an expired key");
        network.run_for(seconds(2));
        let after = network.take_capture();
        assert!(spis(&after, A).is_disjoint(&spis(&before, A)), "sealed with an expired key");
        assert!(!spis(&after, A).is_empty());
        first.note(&network.node_mut(B).take_delivered());
        assert_eq!(first.tally().missing(), 0, "new keys take the time of a handshake");
        let mut talk = Talk::new(A, B, 7001);
        talk.run(&mut network, seconds(1), millis(50));
        talk.finish(&mut network);
        talk.assert_perfect();
    }
}

#[test]
fn keys_that_are_due_are_replaced_within_a_tick_of_the_resume() {
    let _seed = Seed(24);
    let mut network = joined(24, |_| {});
    Talk::new(A, B, 5000).run(&mut network, seconds(2), millis(50));
    [A, B].into_iter().for_each(|node| network.set_suspended(node, true));
    network.run_for(seconds(HOUR * 5 / 4));
    [A, B].into_iter().for_each(|node| network.set_suspended(node, false));
    let mut talk = Talk::new(A, B, 5001);
    talk.run(&mut network, seconds(2), millis(50));
    talk.finish(&mut network);
    talk.assert_perfect();
    assert_eq!(network.node(A).handshakes(), 2);
}

#[test]
fn an_idle_node_forgets_expired_keys_at_the_resume() {
    let _seed = Seed(25);
    let (mut network, _) = suspend(25, &[A, B], 2);
    assert!(network.node(A).is_up(B), "no timer has run yet");
    network.run_for(millis(1));
    for (node, other) in [(A, B), (B, A)] {
        assert!(!network.node(node).is_up(other));
        let expired = |event: &ControlEvent| matches!(event, ControlEvent::Expired { .. });
        assert_eq!(network.node(node).events().iter().filter(|(_, event)| expired(event)).count(), 1);
    }
}
