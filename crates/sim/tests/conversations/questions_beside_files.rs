//! A person's question is answered at once beside files to the same peer, on links so slow that a few buffers are half a minute.

use core::time::Duration;

use strait_keying::{ControlEvent, Lifetime};
use strait_scheduler::{LinkRate, Rate};
use strait_sim::{LinkSettings, NodeId, NodeSettings, SimNetwork, UNREAD};
use strait_stream::StreamPriority;

use crate::stage::{A, B, Seed, Talk, count, joined, log, millis, seconds};

/// The round trip of the path.
const ROUND: Duration = millis(200);
/// The modem's Ethernet header, which a node counts that knows the rate.
const OVERHEAD: u16 = 18;

/// The way in which a node knows its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Given,
    Auto,
    Unset,
}

/// Two nodes with a modem of `bits` each, which queues for 500 ms.
fn modems(seed: u64, bits: u64, known: Known) -> SimNetwork {
    modems_with(seed, bits, known, |_| ())
}

/// The same, of nodes that are changed.
fn modems_with(seed: u64, bits: u64, known: Known, change: impl Fn(&mut NodeSettings)) -> SimNetwork {
    let rate = Rate::from_bits(bits).unwrap();
    let mut network = joined(seed, |pair| {
        for node in [&mut pair.a, &mut pair.b] {
            node.up = match known {
                Known::Given => Some(rate).into(),
                Known::Auto => LinkRate::Auto,
                Known::Unset => LinkRate::Unpaced,
            };
            if known == Known::Given {
                (node.overhead, node.capabilities.down) = (OVERHEAD, Some(rate).into());
            }
            change(node);
        }
        for link in [&mut pair.forth, &mut pair.back] {
            let queue = rate.bytes_in(millis(500));
            *link = LinkSettings { queue, ..LinkSettings::modem(rate, ROUND / 2, millis(500)) };
        }
    });
    network.run_for(seconds(5));
    network
}

/// The longest time that one of several questions took, each on a stream of its own, beside files from `from`.
fn answered(network: &mut SimNetwork, from: NodeId, (files, priority): (usize, StreamPriority)) -> Duration {
    let to = if from == A { B } else { A };
    for _ in 0..files {
        network.send_stream(from, to, 20_000_000, priority);
    }
    network.run_for(seconds(60));
    let mut worst = Duration::ZERO;
    for number in 0..10 {
        let begun = network.now();
        // As `strait ls`: 62 bytes, and a page of names.
        let key = network.ask_stream((A, B), (62, 20), StreamPriority::Normal).unwrap();
        let done = network.run_until(seconds(120), |network| network.node(A).streams().answered(key) == 1240);
        assert!(done, "question {number} has no answer after 120 s");
        worst = worst.max(network.now() - begun);
        network.run_for(millis(3_000 + 370 * number));
    }
    let tally = network.node(to).streams().tally();
    assert_eq!(tally.damaged, 0);
    worst
}

#[test]
fn a_question_is_answered_within_three_seconds_beside_files() {
    let _seed = Seed(41);
    let mut missed = Vec::new();
    for bits in [64_000, 256_000] {
        for known in [Known::Given, Known::Auto, Known::Unset] {
            for from in [A, B] {
                for files in
                    [(1, StreamPriority::Normal), (3, StreamPriority::Normal), (1, StreamPriority::Bulk)]
                {
                    let mut network = modems(41, bits, known);
                    let worst = answered(&mut network, from, files);
                    eprintln!("{bits} bit/s, {known:?}, {files:?} from {from:?}: {worst:?}");
                    if worst > seconds(3) {
                        missed.push((bits, known, from, files, worst));
                    }
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// The longest time from a key to its echo on a login that is open, beside a file from `from`.
fn typed(network: &mut SimNetwork, from: NodeId) -> Duration {
    let to = if from == A { B } else { A };
    let key = network.ask_stream((A, B), (1, 1), StreamPriority::Now).unwrap();
    network.send_stream(from, to, 20_000_000, StreamPriority::Normal);
    network.run_for(seconds(60));
    let mut worst = Duration::ZERO;
    for number in 0..40 {
        let (begun, before) = (network.now(), network.node(A).streams().answered(key));
        network.say_stream(A, key, 40);
        let done =
            network.run_until(seconds(60), |network| network.node(A).streams().answered(key) == before + 40);
        assert!(done, "key {number} has no echo after 60 s");
        worst = worst.max(network.now() - begun);
        network.run_for(millis(500 + 37 * number));
    }
    worst
}

#[test]
fn an_echo_takes_a_round_trip_and_two_datagrams_beside_a_file() {
    let _seed = Seed(42);
    let mut missed = Vec::new();
    for bits in [64_000, 256_000] {
        for known in [Known::Given, Known::Auto, Known::Unset] {
            for from in [A, B] {
                let mut network = modems(42, bits, known);
                let worst = typed(&mut network, from);
                eprintln!("{bits} bit/s, {known:?}, file from {from:?}: echo within {worst:?}");
                let most = match known {
                    Known::Given => ROUND + millis(300),
                    // The modem's queue is full of the file.
                    Known::Auto | Known::Unset => seconds(3),
                };
                if worst > most {
                    missed.push((bits, known, from, worst));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn a_small_file_that_begins_late_is_not_behind_large_ones() {
    let _seed = Seed(43);
    let mut network = modems(43, 256_000, Known::Given);
    for _ in 0..3 {
        network.send_stream(A, B, 20_000_000, StreamPriority::Normal);
    }
    network.run_for(seconds(30));
    network.send_stream(A, B, 50_000, StreamPriority::Normal);
    // A quarter of the link is 8 kB/s.
    let done = network.run_until(seconds(10), |network| network.node(A).streams().tally().delivered == 1);
    assert!(done, "{:?}", network.node(A).streams().tally());
}

#[test]
fn a_login_that_begins_beside_a_file_and_a_login_waits_for_neither() {
    let _seed = Seed(44);
    for bits in [64_000, 1_000_000] {
        let mut network = modems(44, bits, Known::Given);
        network.ask_stream((A, B), (1, 1), StreamPriority::Now).unwrap();
        network.send_stream(A, B, 20_000_000, StreamPriority::Normal);
        network.run_for(seconds(60));
        let begun = network.now();
        let key = network.ask_stream((A, B), (100, 1), StreamPriority::Now).unwrap();
        let done = network.run_until(seconds(60), |network| network.node(A).streams().answered(key) == 100);
        let took = network.now() - begun;
        eprintln!("{bits} bit/s: {took:?}");
        assert!(done && took < ROUND + millis(300), "{took:?}");
    }
}

#[test]
fn a_stream_that_its_reader_has_left_keeps_no_other_out() {
    let _seed = Seed(45);
    let mut network = modems(45, 10_000_000, Known::Given);
    network.ask_stream((A, B), (5_000_000, UNREAD), StreamPriority::Normal).unwrap();
    network.run_for(seconds(30));
    let key = network.ask_stream((A, B), (62, 20), StreamPriority::Normal).unwrap();
    let done = network.run_until(seconds(3), |network| network.node(A).streams().answered(key) == 1240);
    assert!(done, "no answer in 3 s");
}

#[test]
fn keys_are_replaced_in_time_beside_a_file() {
    let _seed = Seed(46);
    for known in [Known::Given, Known::Unset] {
        let lifetime = Lifetime { soft: seconds(60), ..Lifetime::default() };
        let mut network = modems_with(46, 64_000, known, |node| node.lifetime = lifetime);
        network.send_stream(A, B, 20_000_000, StreamPriority::Normal);
        let before = network.node(A).handshakes();
        // Keys that are not used are not replaced.
        Talk::new(A, B, 7).run(&mut network, seconds(600), seconds(2));
        let handshakes = network.node(A).handshakes() - before;
        let failed = count(&network, A, |event| matches!(event, ControlEvent::Failed { .. }));
        eprintln!("{known:?}: {handshakes} handshakes, {failed} failed");
        assert!(handshakes >= 8, "{known:?}: {handshakes}, {failed} failed: {:?}", log(&network, A));
        // A modem that is full drops some of the datagrams of each, and the next attempt is in time.
        assert!(failed == 0 || known == Known::Unset, "{:?}", log(&network, A));
        assert!(network.node(A).streams().tally().lost.is_empty());
    }
}
