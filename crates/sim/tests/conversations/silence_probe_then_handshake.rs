//! A node that sends and receives nothing probes once, and only then begins a handshake.

use strait_keying::ControlEvent;
use strait_sim::{Conversation, Filler, LinkSwitch};

use crate::stage::{A, B, Seed, count, joined, millis, seconds, v4};

fn started(event: &ControlEvent) -> bool {
    matches!(event, ControlEvent::HandshakeStarted { .. })
}

fn silent(event: &ControlEvent) -> bool {
    matches!(event, ControlEvent::Silent { .. })
}

#[test]
fn a_dead_path_is_probed_after_10_s_and_given_up_after_15() {
    let _seed = Seed(1);
    let mut network = joined(1, |_| {});
    network.run_for(seconds(30));
    network.link(A, B).switch = LinkSwitch::Down;
    let mut talk = Conversation::new(v4(A, B, 7000), Filler::Text);
    let cut = network.now();
    while network.now() < cut + seconds(17) {
        network.send(A, &talk.next_packet(100));
        network.run_for(millis(250));
    }
    let asked: Vec<_> = network.node(A).events().iter().filter(|(_, event)| silent(event)).collect();
    let again: Vec<_> =
        network.node(A).events().iter().filter(|(at, event)| started(event) && *at > cut).collect();
    assert_eq!((asked.len(), again.len()), (1, 1), "{asked:?} {again:?}");
    let (asked, again) = (asked[0].0 - cut, again[0].0 - cut);
    assert!((seconds(10)..=seconds(12)).contains(&asked), "{asked:?}");
    assert!((seconds(15)..=seconds(17)).contains(&again), "{again:?}");
    network.link(A, B).switch = LinkSwitch::Up;
    network.send(A, &talk.next_packet(100));
    network.run_for(seconds(1));
    talk.note(&network.node_mut(B).take_delivered());
    assert_eq!(talk.tally().arrived, 1, "the old keys still serve");
}

#[test]
fn a_listener_that_never_speaks_answers_for_itself() {
    let _seed = Seed(2);
    let mut network = joined(2, |_| {});
    let mut talk = Conversation::new(v4(A, B, 7000), Filler::Text);
    for _ in 0..600 {
        network.send(A, &talk.next_packet(100));
        network.run_for(millis(500));
    }
    talk.note(&network.node_mut(B).take_delivered());
    assert_eq!(talk.tally().missing(), 0);
    assert_eq!(count(&network, A, started), 1, "a probe's answer is sign enough");
    assert_eq!(count(&network, B, started), 0);
}

#[test]
fn a_node_without_traffic_sends_no_probe() {
    let _seed = Seed(3);
    let mut network = joined(3, |_| {});
    network.send(A, &Conversation::new(v4(A, B, 7000), Filler::Text).next_packet(100));
    network.run_for(seconds(5));
    let before = network.link(A, B).counters().entered;
    network.link(B, A).switch = LinkSwitch::Down;
    network.run_for(seconds(600));
    assert_eq!(network.link(A, B).counters().entered, before);
}
