//! What is on the wire never exceeds the rate that was given, handshakes and link layer included.

use core::time::Duration;

use strait_clock::Time;
use strait_keying::Lifetime;
use strait_sim::{Conversation, Filler};

use crate::stage::{A, B, Seed, joined, millis, seconds, v4};

/// The pacer's own burst, and one datagram that leaves when there is room for less.
const BURST: Duration = Duration::from_millis(4);
const DATAGRAM: u64 = 1500 + 18;
/// Control datagrams go ahead and are paid for afterwards: all of a handshake, twice when both ends begin.
const FLIGHTS: u64 = 2 * 5_500;

/// Offers twice what the link takes for 10 s; gives the wire bytes at each time they left.
fn flood(seed: u64, up: &str, down: Option<&str>, lifetime: Lifetime) -> Vec<(Time, u64, bool)> {
    let mut network = joined(seed, |pair| {
        pair.a.up = up.parse().unwrap();
        pair.a.overhead = 18;
        pair.b.capabilities.down = down.map(|down| down.parse().unwrap()).into();
        (pair.a.lifetime, pair.b.lifetime) = (lifetime, lifetime);
    });
    network.run_for(seconds(2));
    network.start_capture();
    let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
    let end = network.now() + seconds(10);
    while network.now() < end {
        let packets: Vec<_> = (0..6).map(|at| talk.next_packet(200 * at + 60)).collect();
        network.send_all(A, &packets);
        network.run_for(millis(12));
    }
    let sent = network.take_capture();
    let home = network.node(A).address();
    sent.iter()
        .filter(|one| one.from == home)
        .map(|one| (one.at, one.outer_len() + 18, one.is_esp()))
        .collect()
}

fn assert_paced(sent: &[(Time, u64, bool)], bits: u64, slack: u64) {
    let rate = strait_scheduler::Rate::from_bits(bits).unwrap();
    let allowed = |span: Duration| rate.bytes_in(span + BURST) + DATAGRAM + slack;
    // Every window that begins with a datagram and ends with one.
    let mut sums = vec![0];
    for (_, bytes, _) in sent {
        sums.push(sums.last().unwrap() + bytes);
    }
    for from in (0..sent.len()).step_by(7) {
        for to in from..sent.len() {
            let bytes = sums[to + 1] - sums[from];
            let span = sent[to].0 - sent[from].0;
            assert!(bytes <= allowed(span), "{bytes} bytes in {span:?}, {} allowed", allowed(span));
        }
    }
    let total = sums.last().unwrap();
    let span = sent.last().unwrap().0 - sent.first().unwrap().0;
    assert!(*total >= rate.bytes_in(span) * 97 / 100, "the link stood idle: {total} bytes in {span:?}");
}

#[test]
fn by_its_own_rate() {
    let _seed = Seed(1);
    assert_paced(&flood(1, "2Mbit", None, Lifetime::default()), 2_000_000, 0);
}

#[test]
fn by_the_rate_that_the_peer_can_take() {
    let _seed = Seed(2);
    assert_paced(&flood(2, "2Mbit", Some("1Mbit"), Lifetime::default()), 1_000_000, 0);
}

#[test]
fn with_handshakes_among_the_packets() {
    let _seed = Seed(3);
    let sent = flood(3, "1Mbit", None, Lifetime { packets: 300, ..Lifetime::default() });
    assert!(sent.iter().filter(|(_, _, esp)| !esp).count() > 10, "no handshake took place");
    assert_paced(&sent, 1_000_000, FLIGHTS);
}

#[test]
fn to_all_peers_together() {
    let _seed = Seed(4);
    let mut network = crate::forwarding::star(4, |hub| hub.up = "1Mbit".parse().unwrap());
    network.run_for(seconds(2));
    network.start_capture();
    let mut talks = [A, B].map(|to| Conversation::new(v4(crate::stage::C, to, 80), Filler::Random));
    let end = network.now() + seconds(5);
    while network.now() < end {
        let packets: Vec<_> = talks.iter_mut().map(|talk| talk.next_packet(1000)).collect();
        network.send_all(crate::stage::C, &packets);
        network.run_for(millis(10));
    }
    let home = network.node(crate::stage::C).address();
    let sent = network.take_capture();
    let sent: Vec<_> =
        sent.iter().filter(|one| one.from == home).map(|one| (one.at, one.outer_len(), true)).collect();
    assert_paced(&sent, 1_000_000, 0);
    // And each has its share.
    network.run_for(seconds(10));
    for (to, talk) in [A, B].into_iter().zip(&mut talks) {
        talk.note(&network.node_mut(to).take_delivered());
        let tally = talk.tally();
        assert!(tally.arrived * 5 > tally.sent * 2, "{tally:?}");
    }
}
