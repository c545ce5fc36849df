//! Streams begin before there is a session: a command of its own node is answered after two round trips.

use core::time::Duration;

use strait_crypto::{Suite, SuiteSet};
use strait_keying::Start;
use strait_sim::SimNetwork;
use strait_stream::{StreamLost, StreamPriority};

use crate::stage::{A, B, Seed, millis, pair, seconds};

/// Two nodes that have never met, this delay apart one way. The second begins nothing.
fn strangers(seed: u64, delay: Duration) -> SimNetwork {
    pair(seed, |pair| {
        pair.answer = Some(Start::OnTraffic);
        for link in [&mut pair.forth, &mut pair.back] {
            link.delay = delay;
        }
    })
}

/// Asks a question as `strait ls` does, of 62 bytes, and waits for the 1,240 bytes of its answer.
fn ask(network: &mut SimNetwork) -> Duration {
    let begun = network.now();
    let key = network.ask_stream((A, B), (62, 20), StreamPriority::Normal).unwrap();
    let done = network.run_until(seconds(20), |network| network.node(A).streams().answered(key) == 1240);
    assert!(done, "{:?}", network.node(A).streams().tally());
    network.now() - begun
}

#[test]
fn a_first_question_is_answered_after_two_round_trips() {
    let _seed = Seed(1);
    for delay in [1, 30, 300] {
        let mut network = strangers(1, millis(delay));
        let first = ask(&mut network);
        assert!(first <= millis(4 * delay + 20), "{delay} ms one way: {first:?}");
        network.run_for(seconds(1));
        // Another process with the same key, as of the next command: the other end still has keys for the one before.
        network.restart(A).unwrap();
        let second = ask(&mut network);
        assert!(second <= millis(4 * delay + 20), "{delay} ms one way, again: {second:?}");
        // That one says that it ends, so that there are no keys.
        network.stop_and_restart(A).unwrap();
        let third = ask(&mut network);
        assert!(third <= millis(4 * delay + 20), "{delay} ms one way, after an end: {third:?}");
    }
}

/// A few datagrams may leave without a session, and no more.
#[test]
fn a_stream_without_a_session_is_given_up() {
    let _seed = Seed(2);
    let [one, other] = [Suite::ALL[0], Suite::ALL[1]].map(|suite| SuiteSet::default().with(suite));
    let mut network = pair(2, |pair| {
        (pair.a.capabilities.suites, pair.b.capabilities.suites) = (one, other);
    });
    ask(&mut network);
    network.send_stream(A, B, 100_000, StreamPriority::Normal);
    network.run_for(seconds(60));
    let tally = network.node(B).streams().tally();
    assert!(tally.read < 6_000, "{tally:?}");
    let lost = network.node(A).streams().tally().lost.clone();
    assert!(lost.iter().any(|why| why.to_string().contains("no session in time")), "{lost:?}");
}

/// A command that ends while the handshake of its session is under way leaves nothing behind.
#[test]
fn nothing_is_sent_to_a_peer_that_ends_before_its_session() {
    for after in [10, 65, 95, 125, 155] {
        let _seed = Seed(3);
        let mut network = strangers(3, millis(30));
        network.ask_stream((A, B), (62, 20), StreamPriority::Normal).unwrap();
        network.run_for(millis(after));
        network.stop(A);
        network.run_for(seconds(1));
        let sent = network.link(B, A).counters().entered;
        network.run_for(seconds(300));
        assert_eq!(network.link(B, A).counters().entered, sent, "{after} ms");
    }
}

/// A peer says that it refuses a key a round trip after it has proved its own: the first stream is open by then.
#[test]
fn a_second_stream_to_a_peer_that_refuses_this_node_does_not_open() {
    let _seed = Seed(4);
    let mut network = strangers(4, millis(30));
    network.remove_peer(B, A);
    for _ in 0..2 {
        network.ask_stream((A, B), (62, 20), StreamPriority::Normal).unwrap();
        network.run_for(seconds(40));
    }
    let lost = &network.node(A).streams().tally().lost;
    assert!(matches!(lost[..], [StreamLost::Connection(_), StreamLost::NoConnection(_)]), "{lost:?}");
}

/// Each command begins a handshake and a connection for streams, several a second.
#[test]
fn a_script_of_short_commands_is_answered() {
    let _seed = Seed(5);
    let mut network = strangers(5, millis(30));
    for number in 0..60 {
        let took = ask(&mut network);
        assert!(took <= millis(140), "command {number}: {took:?}");
        network.stop_and_restart(A).unwrap();
    }
}
