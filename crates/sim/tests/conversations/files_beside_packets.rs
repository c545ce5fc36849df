//! Streams leave through the pacer and the fair queue of the tunnel: they fill the link, and packets pass them.

use core::time::Duration;

use strait_keying::{Lifetime, Start};
use strait_scheduler::Rate;
use strait_sim::{Conversation, Filler, LinkSettings, LinkSwitch, LossModel, NodeSettings, SimNetwork};
use strait_stream::StreamPriority;

use crate::stage::{A, B, Seed, joined, millis, pair, seconds, v4};

/// A modem's Ethernet header, which the node is told of.
const OVERHEAD: u16 = 18;

/// Two nodes with a link of `bits` and this delay one way, which both know.
fn site(seed: u64, bits: u64, delay: Duration, loss: LossModel) -> SimNetwork {
    site_with(seed, bits, delay, loss, |_| ())
}

/// The same, of nodes that are changed.
fn site_with(
    seed: u64,
    bits: u64,
    delay: Duration,
    loss: LossModel,
    change: impl Fn(&mut NodeSettings),
) -> SimNetwork {
    let rate = Rate::from_bits(bits).unwrap();
    let mut network = joined(seed, |pair| {
        // A node that was restarted finds the other one.
        pair.answer = Some(Start::OnTraffic);
        for node in [&mut pair.a, &mut pair.b] {
            node.up = Some(rate).into();
            node.overhead = OVERHEAD;
            node.capabilities.down = Some(rate).into();
            change(node);
        }
        for link in [&mut pair.forth, &mut pair.back] {
            *link = LinkSettings { loss, ..LinkSettings::modem(rate, delay, millis(100)) };
        }
    });
    // The path's MTU is known then.
    network.send(A, &Conversation::new(v4(A, B, 9), Filler::Random).next_packet(100));
    network.run_for(seconds(20));
    network
}

/// Sends so many bytes; gives the time until the last was read.
fn transfer(network: &mut SimNetwork, bytes: u64, within: Duration) -> Duration {
    let (begun, before) = (network.now(), network.node(B).streams().tally().read);
    network.send_stream(A, B, bytes, StreamPriority::Normal);
    let done = network.run_until(within, |network| network.node(B).streams().tally().read >= before + bytes);
    let tally = network.node(B).streams().tally();
    assert!(done, "{tally:?} and {:?} of {bytes}", network.node(A).streams().tally());
    assert_eq!(tally.damaged, 0);
    network.now() - begun
}

/// The share of a link of `bits` that `bytes` of a stream took in `time`, in payload bytes.
fn share(bits: u64, bytes: u64, time: Duration) -> f64 {
    bytes as f64 * 8.0 / time.as_secs_f64() / bits as f64
}

/// A connection for streams takes a round trip, and the bytes half of one: they need no session.
#[test]
fn the_first_stream_waits_for_round_trips_only() {
    let _seed = Seed(17);
    for delay in [1, 30, 300] {
        let mut network = pair(17, |pair| {
            for link in [&mut pair.forth, &mut pair.back] {
                link.delay = millis(delay);
            }
        });
        let took = transfer(&mut network, 1_000, seconds(20));
        assert!(took <= millis(3 * delay + 20), "{delay} ms one way: {took:?}");
    }
}

/// The peer is elsewhere when a stream is begun, and says so before the connection at its old address is given up.
#[test]
fn a_first_stream_follows_a_peer_that_moved_before_it() {
    let _seed = Seed(18);
    let mut network = pair(18, |pair| {
        pair.answer = Some(Start::OnTraffic);
        for link in [&mut pair.forth, &mut pair.back] {
            link.delay = millis(30);
        }
    });
    network.readdress(B, "198.51.100.7:4500".parse().unwrap());
    network.send_stream(A, B, 1_000, StreamPriority::Normal);
    network.run_for(seconds(3));
    assert_eq!(network.node(B).streams().tally().read, 0);
    network.send(B, &Conversation::new(v4(B, A, 9), Filler::Random).next_packet(100));
    let done = network.run_until(seconds(3), |network| network.node(B).streams().tally().read == 1_000);
    assert!(done, "{:?}", network.node(A).streams().tally());
}

#[test]
fn a_file_fills_a_satellite_link() {
    let _seed = Seed(1);
    let mut network = site(1, 10_000_000, millis(300), LossModel::None);
    let first = transfer(&mut network, 30_000_000, seconds(120));
    let again = transfer(&mut network, 30_000_000, seconds(120));
    let shares = [first, again].map(|time| share(10_000_000, 30_000_000, time));
    eprintln!("10 Mbit/s, 600 ms: {first:?} {again:?}, {shares:?} of the link in payload");
    // Of 1,518 bytes, a datagram has 1,436 of payload: 0.946. A round trip and a half goes by before the first byte.
    assert!(share(10_000_000, 30_000_000, again - millis(900)) * 1518.0 / 1436.0 > 0.95, "{shares:?}");
}

/// The rate, the delay one way in microseconds, and bytes that take some seconds, or at least fifty round trips.
const LINKS: [(u64, u64, u64); 4] = [
    (64_000, 300_000, 300_000),
    (256_000, 100_000, 800_000),
    (100_000_000, 5_000, 30_000_000),
    (10_000_000_000, 250, 60_000_000),
];

#[test]
fn a_file_fills_a_link_of_any_rate() {
    let _seed = Seed(19);
    for (bits, delay, bytes) in LINKS {
        let mut network = site(19, bits, Duration::from_micros(delay), LossModel::None);
        transfer(&mut network, bytes / 4, seconds(60));
        let took = transfer(&mut network, bytes, seconds(240));
        let share = share(bits, bytes, took - Duration::from_micros(delay)) * 1518.0 / 1436.0;
        eprintln!("{bits} bit/s, {delay} us: {took:?}, {share:.3} of what fits");
        assert!(share > 0.95, "{bits} bit/s: {share}");
    }
}

#[test]
fn a_ping_beside_a_file_is_hardly_later() {
    let _seed = Seed(2);
    for bits in [1_540_000, 10_000_000] {
        let mut network = site(2, bits, millis(20), LossModel::None);
        network.send_stream(A, B, bits, StreamPriority::Normal);
        network.run_for(seconds(1));
        let mut ping = Conversation::new(v4(A, B, 7), Filler::Random);
        let mut worst = Duration::ZERO;
        for number in 0..50 {
            let sent = network.now();
            network.send(A, &ping.next_packet(64));
            network.run_for(millis(70));
            ping.note(&network.node_mut(B).take_delivered());
            let arrived = ping.arrived_at(number).unwrap();
            worst = worst.max(arrived - sent - millis(20));
        }
        assert!(network.node(B).streams().tally().read < bits, "the file still goes on");
        eprintln!("{bits} bit/s: a ping is {worst:?} later than the path's delay");
        assert!(worst <= millis(25), "{bits}: {worst:?}");
    }
}

#[test]
fn one_lost_datagram_in_a_hundred_takes_no_more_than_it_has_to() {
    let _seed = Seed(3);
    for (delay, least) in [(50, 0.80), (300, 0.80)] {
        let mut network = site(3, 10_000_000, millis(delay), LossModel::Uniform(0.01));
        let time = transfer(&mut network, 30_000_000, seconds(240));
        let share = share(10_000_000, 30_000_000, time);
        eprintln!("10 Mbit/s, {} ms, 1 % loss: {time:?}, {share:.3} of the link", 2 * delay);
        assert!(share > least, "{share}");
    }
}

#[test]
fn a_file_goes_on_within_seconds_after_ten_minutes_without_a_path() {
    let _seed = Seed(4);
    let mut network = site(4, 1_540_000, millis(50), LossModel::None);
    network.send_stream(A, B, 2_000_000, StreamPriority::Normal);
    network.run_for(seconds(5));
    for (from, to) in [(A, B), (B, A)] {
        network.link(from, to).switch = LinkSwitch::Down;
    }
    network.run_for(seconds(600));
    let before = network.node(B).streams().tally().read;
    assert!((500_000..2_000_000).contains(&before), "{before}");
    for (from, to) in [(A, B), (B, A)] {
        network.link(from, to).switch = LinkSwitch::Up;
    }
    assert!(
        network.run_until(seconds(8), |network| network.node(B).streams().tally().read > before + 100_000),
        "{:?}",
        [A, B].map(|node| network.node(node).streams().tally().clone())
    );
    assert!(network.run_until(seconds(20), |network| network.node(A).streams().tally().delivered == 1));
    assert_eq!(network.node(B).streams().tally().read, 2_000_000);
}

/// A process that writes takes it for a sign of the peer if something is taken of what it writes.
#[test]
fn nothing_is_taken_of_a_file_while_nothing_is_heard() {
    let _seed = Seed(20);
    for bits in [256_000, 10_000_000] {
        let mut network = site(20, bits, millis(50), LossModel::None);
        network.send_stream(A, B, 20_000_000, StreamPriority::Normal);
        network.run_for(seconds(3));
        for (from, to) in [(A, B), (B, A)] {
            network.link(from, to).switch = LinkSwitch::Down;
        }
        network.run_for(seconds(3));
        let taken = network.node(A).streams().tally().sent;
        network.run_for(seconds(120));
        assert_eq!(network.node(A).streams().tally().sent, taken, "{bits} bit/s");
    }
}

#[test]
fn what_a_person_waits_for_goes_on_within_three_seconds_after_ten_minutes_without_a_path() {
    let _seed = Seed(11);
    for late in [0, 700, 1400, 2100] {
        let mut network = site(11, 1_540_000, millis(300), LossModel::None);
        network.send_stream(A, B, 2_000_000, StreamPriority::Now);
        network.run_for(seconds(5));
        for (from, to) in [(A, B), (B, A)] {
            network.link(from, to).switch = LinkSwitch::Down;
        }
        network.run_for(seconds(600) + millis(late));
        let before = network.node(B).streams().tally().read;
        for (from, to) in [(A, B), (B, A)] {
            network.link(from, to).switch = LinkSwitch::Up;
        }
        let goes_on =
            network.run_until(seconds(3), |network| network.node(B).streams().tally().read > before);
        assert!(goes_on, "{late} ms: {:?}", network.node(A).streams().tally());
    }
}

#[test]
fn a_file_goes_on_when_its_sender_moves() {
    let _seed = Seed(5);
    let mut network = site(5, 1_540_000, millis(50), LossModel::None);
    network.send_stream(A, B, 2_000_000, StreamPriority::Normal);
    network.run_for(seconds(3));
    network.readdress(A, "198.51.100.7:4500".parse().unwrap());
    assert!(network.run_until(seconds(30), |network| network.node(A).streams().tally().delivered == 1));
    let tally = network.node(B).streams().tally();
    assert_eq!((tally.read, tally.damaged, tally.ended), (2_000_000, 0, 1));
}

#[test]
fn streams_to_a_restarted_peer_are_given_up_once_it_is_heard_and_others_begin() {
    let _seed = Seed(6);
    let mut network = site(6, 1_540_000, millis(50), LossModel::None);
    network.send_stream(A, B, 20_000_000, StreamPriority::Normal);
    network.run_for(seconds(3));
    network.restart(B).unwrap();
    assert!(
        network.run_until(seconds(40), |network| !network.node(A).streams().tally().lost.is_empty()),
        "{:?}",
        network.node(A).streams().tally()
    );
    transfer(&mut network, 100_000, seconds(20));
}

#[test]
fn streams_to_a_restarted_peer_are_given_up_soon_after_it_begins_a_session() {
    let _seed = Seed(13);
    let mut network = site(13, 1_540_000, millis(50), LossModel::None);
    network.send_stream(A, B, 20_000_000, StreamPriority::Normal);
    network.run_for(seconds(3));
    network.restart(B).unwrap();
    network.send(B, &Conversation::new(v4(B, A, 9), Filler::Random).next_packet(100));
    assert!(network.run_until_up(B, A, seconds(10)));
    assert!(network.run_until(seconds(6), |network| !network.node(A).streams().tally().lost.is_empty()));
    transfer(&mut network, 100_000, seconds(20));
}

#[test]
fn streams_to_a_restarted_peer_are_given_up_with_the_session_that_says_so() {
    let _seed = Seed(16);
    let mut network = site(16, 1_540_000, millis(300), LossModel::None);
    network.send_stream(A, B, 20_000_000, StreamPriority::Now);
    network.run_for(seconds(15));
    network.restart(B).unwrap();
    network.send(B, &Conversation::new(v4(B, A, 9), Filler::Random).next_packet(100));
    assert!(network.run_until_up(B, A, seconds(10)));
    // No time without an answer has to pass.
    assert!(network.run_until(millis(1500), |network| !network.node(A).streams().tally().lost.is_empty()));
    transfer(&mut network, 100_000, seconds(20));
}

#[test]
fn nothing_is_sent_to_a_peer_that_has_said_that_it_ends() {
    for after in [1_000, 3_010, 3_020, 3_030] {
        let _seed = Seed(17);
        let mut network = site(17, 1_540_000, millis(50), LossModel::None);
        // A long one is under way both ways.
        let bytes = if after == 1_000 { 10_000 } else { 20_000_000 };
        network.send_stream(A, B, bytes, StreamPriority::Normal);
        network.run_for(millis(after));
        network.stop(A);
        network.run_for(seconds(1));
        let sent = network.link(B, A).counters().entered;
        network.run_for(seconds(300));
        assert_eq!(network.link(B, A).counters().entered, sent, "{after} ms");
        let lost = network.node(B).streams().tally().lost.clone();
        assert!(lost.iter().all(|why| why.to_string().contains("the peer was stopped")), "{lost:?}");
        assert_eq!(lost.len(), usize::from(after > 1_000), "{lost:?}");
    }
}

#[test]
fn a_stream_to_a_restarted_peer_begins_on_a_connection_that_it_has() {
    for used in [false, true] {
        let _seed = Seed(14);
        let mut network = site(14, 1_540_000, millis(50), LossModel::None);
        transfer(&mut network, 10_000, seconds(20));
        if used {
            network.send_stream(A, B, 20_000_000, StreamPriority::Normal);
            network.run_for(seconds(3));
        }
        network.restart(B).unwrap();
        network.send(B, &Conversation::new(v4(B, A, 9), Filler::Random).next_packet(100));
        assert!(network.run_until_up(B, A, seconds(10)));
        network.run_for(millis(200));
        network.send_stream(A, B, 100_000, StreamPriority::Normal);
        network.run_for(seconds(20));
        let (here, there) = (network.node(A).streams().tally(), network.node(B).streams().tally());
        assert_eq!(here.lost.len(), usize::from(used), "only what began before is lost: {here:?}");
        assert_eq!(there.read, 100_000, "{there:?}");
    }
}

#[test]
fn streams_from_a_restarted_peer_are_given_up_once_it_opens_another() {
    let _seed = Seed(11);
    let mut network = site(11, 1_540_000, millis(50), LossModel::None);
    network.send_stream(A, B, 20_000_000, StreamPriority::Normal);
    network.run_for(seconds(3));
    network.restart(A).unwrap();
    assert!(network.run_until_up(A, B, seconds(30)));
    network.send_stream(A, B, 20_000_000, StreamPriority::Normal);
    // What was received for a transfer is locked until the older stream has ended.
    assert!(
        network.run_until(seconds(8), |network| !network.node(B).streams().tally().lost.is_empty()),
        "{:?}",
        network.node(B).streams().tally()
    );
    let before = network.node(B).streams().tally().read;
    network.run_for(seconds(60));
    let tally = network.node(B).streams().tally();
    assert!(tally.read > before + 8_000_000 && tally.lost.len() == 1, "the newer one goes on: {tally:?}");
}

#[test]
fn a_file_goes_on_while_keys_are_replaced() {
    let _seed = Seed(12);
    let mut network = site_with(12, 1_540_000, millis(50), LossModel::None, |node| {
        node.lifetime = Lifetime { soft: seconds(60), ..Lifetime::default() };
    });
    network.send_stream(A, B, 30_000_000, StreamPriority::Normal);
    network.run_for(seconds(70));
    let [handshakes, read] = [network.node(A).handshakes() as u64, network.node(B).streams().tally().read];
    assert!(handshakes >= 2 && read > 10_000_000, "{handshakes} handshakes, {read} bytes");
    // A stream that begins now has a connection of its own; the older one goes on beside it.
    network.send_stream(A, B, 1_000_000, StreamPriority::Normal);
    assert!(network.run_until(seconds(15), |network| network.node(A).streams().tally().delivered == 1));
    assert_eq!(network.node(A).streams().core().connections(), 2);
    assert!(network.run_until(seconds(150), |network| network.node(A).streams().tally().delivered == 2));
    for tally in [A, B].map(|node| network.node(node).streams().tally().clone()) {
        assert_eq!((tally.damaged, tally.lost), (0, Vec::new()));
    }
    assert_eq!(network.node(B).streams().tally().read, 31_000_000);
}

#[test]
fn datagrams_of_streams_are_as_large_as_the_path_takes_though_the_tunnel_is_idle() {
    let _seed = Seed(15);
    let rate = Rate::from_bits(1_540_000).unwrap();
    let mut network = joined(15, |pair| {
        for node in [&mut pair.a, &mut pair.b] {
            node.up = Some(rate).into();
            node.overhead = OVERHEAD;
            node.capabilities.down = Some(rate).into();
        }
        for link in [&mut pair.forth, &mut pair.back] {
            *link = LinkSettings::modem(rate, millis(50), millis(100));
        }
    });
    let took = transfer(&mut network, 6_000_000, seconds(60));
    // Behind some 36 bytes of QUIC's: 0.930 of the link with datagrams of 1,252 bytes, 0.942 with 1,472.
    let share = share(1_540_000, 6_000_000, took);
    assert!(share > 0.935, "{share} of the link");
}

#[test]
fn an_idle_connection_is_forgotten_without_a_word() {
    let _seed = Seed(7);
    let mut network = site(7, 1_540_000, millis(50), LossModel::None);
    transfer(&mut network, 10_000, seconds(20));
    network.run_for(seconds(5));
    assert_eq!(network.node(A).streams().core().connections(), 1);
    network.start_capture();
    network.run_for(seconds(200));
    assert_eq!([A, B].map(|node| network.node(node).streams().core().connections()), [0, 0]);
    assert_eq!(network.take_capture().iter().filter(|one| !one.is_esp()).count(), 0);
    transfer(&mut network, 10_000, seconds(20));
}

#[test]
fn a_file_to_a_peer_that_moved_is_given_up_once_that_is_known_and_goes_there() {
    let _seed = Seed(8);
    let mut network = site(8, 1_540_000, millis(50), LossModel::None);
    network.send_stream(A, B, 20_000_000, StreamPriority::Normal);
    network.run_for(seconds(3));
    network.readdress(B, "198.51.100.7:4500".parse().unwrap());
    assert!(
        network.run_until(seconds(90), |network| !network.node(A).streams().tally().lost.is_empty()),
        "{:?}",
        network.node(A).streams().tally()
    );
    transfer(&mut network, 100_000, seconds(20));
}

#[test]
fn streams_that_go_first_do_so_and_a_link_without_a_rate_carries_them() {
    let _seed = Seed(9);
    let mut network = site(9, 1_540_000, millis(50), LossModel::None);
    network.send_stream(A, B, 1_000_000, StreamPriority::Bulk);
    network.run_for(seconds(2));
    let now = transfer_ended(&mut network, 100_000, StreamPriority::Now, 1);
    assert!(now < seconds(3), "{now:?}");
    assert!(network.run_until(seconds(20), |network| network.node(B).streams().tally().ended == 2));

    let mut network = joined(10, |pair| {
        let rate = Rate::from_bits(10_000_000).unwrap();
        pair.forth = LinkSettings::modem(rate, millis(20), millis(100));
    });
    let time = transfer(&mut network, 10_000_000, seconds(60));
    assert!(share(10_000_000, 10_000_000, time) > 0.7, "CUBIC fills a modem's queue: {time:?}");
}

/// Sends so many bytes; gives the time until so many streams were read to their end.
fn transfer_ended(network: &mut SimNetwork, bytes: u64, priority: StreamPriority, ended: u64) -> Duration {
    let begun = network.now();
    network.send_stream(A, B, bytes, priority);
    let done = network.run_until(seconds(60), |network| network.node(B).streams().tally().ended == ended);
    assert!(done, "{:?}", network.node(B).streams().tally());
    network.now() - begun
}

#[test]
fn both_ends_of_a_connection_export_the_same_and_no_others() {
    let _seed = Seed(31);
    let mut exports = Vec::new();
    for seed in [31, 32] {
        let mut network = site(seed, 1_000_000, millis(20), LossModel::None);
        for _ in 0..2 {
            network.send_stream(A, B, 1_000_000, StreamPriority::Normal);
        }
        network.run_for(seconds(2));
        let of = |node, label: &[u8]| network.node(node).streams().exports(label);
        let (a, b) = (of(A, b"EXPORTER-Channel-Binding"), of(B, b"EXPORTER-Channel-Binding"));
        assert_eq!((a.len(), b.len()), (2, 2), "two streams of one connection");
        assert!(a.iter().chain(&b).all(|it| *it == a[0]) && a[0] != [0; 32]);
        assert_ne!(of(A, b"EXPORTER-other")[0], a[0]);
        exports.push(a[0]);
    }
    assert_ne!(exports[0], exports[1], "another connection");
}
