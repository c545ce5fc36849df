//! Keys of a login on a slow link: a packet each for the key and its echo, inside ESP; and every byte once and in order, whatever the
//! path does.

use core::time::Duration;
use std::net::SocketAddr;

use strait_keying::Lifetime;
use strait_scheduler::Rate;
use strait_sim::{LinkSettings, LossModel, NodeId, NodeSettings, Reordering, SimDatagram, SimNetwork};
use strait_stream::{StreamKey, StreamPriority};

use crate::stage::{A, B, Seed, joined, millis, seconds};

/// Bytes of a key's message, and of its echo's.
const MESSAGE: u64 = 16;

/// Two nodes with links of 28.8 kbit/s.
fn slow(seed: u64, link: LinkSettings, change: impl Fn(NodeId, &mut NodeSettings)) -> SimNetwork {
    let rate = Rate::from_bits(28_800).unwrap();
    let mut network = joined(seed, |pair| {
        for node in [&mut pair.a, &mut pair.b] {
            node.up = Some(rate).into();
            change(node.id, node);
        }
        [&mut pair.forth, &mut pair.back].into_iter().for_each(|way| *way = slow_link(link));
    });
    network.run_for(seconds(5));
    network
}

fn slow_link(link: LinkSettings) -> LinkSettings {
    let rate = Rate::from_bits(28_800).unwrap();
    LinkSettings { rate: Some(rate), queue: rate.bytes_in(seconds(1)), ..link }
}

/// A login between two such nodes whose request was answered.
fn login(seed: u64, link: LinkSettings, change: impl Fn(&mut NodeSettings)) -> (SimNetwork, StreamKey) {
    let mut network = slow(seed, link, |_, node| change(node));
    let key = network.ask_stream((A, B), (200, 1), StreamPriority::Now).unwrap();
    assert!(network.run_until(seconds(60), |network| network.node(A).streams().answered(key) == 200));
    network.run_for(seconds(20));
    (network, key)
}

/// Types a key and waits for its echo; returns how long that took.
fn typed(network: &mut SimNetwork, key: StreamKey) -> Duration {
    let (begun, before) = (network.now(), network.node(A).streams().answered(key));
    network.say_stream(A, key, MESSAGE);
    let echoed =
        network.run_until(seconds(60), |network| network.node(A).streams().answered(key) == before + MESSAGE);
    assert!(echoed, "no echo after 60 s");
    network.now() - begun
}

/// Datagrams of a key and its echo, a second each.
fn captured(network: &mut SimNetwork, key: StreamKey) -> Vec<SimDatagram> {
    network.start_capture();
    typed(network, key);
    network.run_for(seconds(1));
    network.take_capture()
}

fn clean() -> LinkSettings {
    LinkSettings { delay: millis(40), ..LinkSettings::default() }
}

#[test]
fn a_key_and_its_echo_are_a_packet_each_inside_esp() {
    let _seed = Seed(51);
    let (mut network, key) = login(51, clean(), |_| ());
    // With the first key, the client tells what it has read.
    captured(&mut network, key);
    for number in 0..30 {
        let sent = captured(&mut network, key);
        assert_eq!(sent.iter().map(SimDatagram::is_esp).collect::<Vec<_>>(), [true; 2], "key {number}");
        // IP and UDP, ESP with a tag of 16 bytes and no IV, two bytes of the lane, the message, and what fills the last word.
        let len = 28 + 8 + (2 + MESSAGE + 2).next_multiple_of(4) + 16;
        assert_eq!(sent.iter().map(SimDatagram::outer_len).collect::<Vec<_>>(), [len; 2], "key {number}");
    }
    assert_eq!(network.node(B).streams().tally().damaged + network.node(A).streams().tally().damaged, 0);
}

#[test]
fn with_a_peer_that_takes_no_pieces_or_on_a_fast_link_all_of_it_is_quic() {
    let _seed = Seed(52);
    let without = |node: &mut NodeSettings| node.capabilities.lanes = false;
    let fast = |node: &mut NodeSettings| node.up = Rate::from_bits(600_000).into();
    let changes: [&dyn Fn(&mut NodeSettings); 2] = [&without, &fast];
    for change in changes {
        let (mut network, key) = login(52, clean(), change);
        let sent = captured(&mut network, key);
        assert!(sent.len() >= 2 && sent.iter().all(|datagram| !datagram.is_esp()), "{sent:?}");
    }
}

#[test]
fn every_byte_comes_once_and_in_order_on_a_bad_path() {
    let _seed = Seed(53);
    let weather = LinkSettings {
        jitter: millis(20),
        reordering: Some(Reordering { share: 0.1, by: millis(400) }),
        loss: LossModel::Uniform(0.1),
        repeated: 0.05,
        ..clean()
    };
    let (mut network, key) =
        login(53, weather, |node| node.lifetime = Lifetime { packets: 300, ..Lifetime::default() });
    let mut expected = network.node(A).streams().answered(key);
    for number in 0..600_u64 {
        if number % 150 == 149 {
            network.readdress(A, SocketAddr::from(([198, 51, 100, number as u8], 40_000)));
        }
        // Keys that wait for no echo, and a line at once that is no piece.
        let bytes = if number % 40 == 39 { 300 } else { MESSAGE };
        network.say_stream(A, key, bytes);
        expected += bytes;
        network.run_for(millis(100 + number * 37 % 500));
    }
    assert!(network.run_until(seconds(120), |network| network.node(A).streams().answered(key) == expected));
    let [here, there] = [A, B].map(|node| network.node(node).streams().tally().clone());
    assert_eq!((here.damaged, there.damaged, here.lost, there.lost), (0, 0, Vec::new(), Vec::new()));
}

#[test]
fn an_echo_that_is_lost_comes_again_soon() {
    let _seed = Seed(54);
    let lossy = LinkSettings { loss: LossModel::Uniform(0.1), ..clean() };
    let (mut network, key) = login(54, lossy, |_| ());
    let mut took: Vec<Duration> = Vec::new();
    for _ in 0..100 {
        took.push(typed(&mut network, key));
        network.run_for(millis(300));
    }
    took.sort();
    assert!(took[50] < millis(300) && took[75] < seconds(4), "{took:?}");
}

#[test]
fn where_esp_no_longer_passes_keys_go_by_quic() {
    let _seed = Seed(55);
    let (mut network, key) = login(55, clean(), |_| ());
    captured(&mut network, key);
    // The receiver's orders and notices are lost, among these what came on lanes.
    network.node_mut(B).set_notice_room(0);
    let late = typed(&mut network, key);
    assert!(late > millis(400), "it waits for an answer inside ESP first: {late:?}");
    for _ in 0..20 {
        typed(&mut network, key);
        network.run_for(millis(500));
    }
    let sent = captured(&mut network, key);
    let client = network.node(A).address();
    let pieces = sent.iter().filter(|datagram| datagram.from == client && datagram.is_esp());
    assert_eq!(pieces.count(), 0, "none is tried any more");
}

/// Lets things happen until `done`, which takes no more turns than a link without a fault would.
fn turns_until(network: &mut SimNetwork, span: Duration, done: impl Fn(&SimNetwork) -> bool) -> bool {
    let (end, mut turns) = (network.now() + span, 0);
    while !done(network) && network.now() < end && network.step() {
        turns += 1;
        assert!(turns < 5_000, "the same is due again and again at {:?}", network.now());
    }
    done(network)
}

#[test]
fn the_last_of_two_keys_has_its_echo_without_another_key() {
    let _seed = Seed(56);
    let lossy = LinkSettings { loss: LossModel::Uniform(0.1), ..clean() };
    let overtaking = Reordering { share: 0.2, by: millis(300) };
    let reordered = LinkSettings { reordering: Some(overtaking), ..clean() };
    for (link, apart) in [(lossy, 30), (lossy, 250), (reordered, 30), (reordered, 250)] {
        let (mut network, key) = login(56, clean(), |_| ());
        [(A, B), (B, A)].into_iter().for_each(|(from, to)| network.set_link(from, to, slow_link(link)));
        let mut expected = network.node(A).streams().answered(key);
        for pair in 0..100 {
            for _ in 0..2 {
                network.say_stream(A, key, MESSAGE);
                network.run_for(millis(apart));
            }
            expected += 2 * MESSAGE;
            let echoed =
                network.run_until(seconds(40), |network| network.node(A).streams().answered(key) == expected);
            assert!(echoed, "no echo of the last key of pair {pair}, {apart} ms apart");
            network.run_for(millis(200));
        }
    }
}

#[test]
fn where_one_end_alone_takes_pieces_keys_go_by_quic_and_nothing_is_due_without_end() {
    let _seed = Seed(57);
    for without in [A, B] {
        let mut network = slow(57, clean(), |id, node| node.capabilities.lanes = id != without);
        let key = network.ask_stream((A, B), (200, 1), StreamPriority::Now).unwrap();
        let answered = |network: &SimNetwork, sum| network.node(A).streams().answered(key) == sum;
        assert!(turns_until(&mut network, seconds(60), |network| answered(network, 200)), "{without:?}");
        network.say_stream(A, key, MESSAGE);
        assert!(
            turns_until(&mut network, seconds(60), |network| answered(network, 200 + MESSAGE)),
            "{without:?}"
        );
        turns_until(&mut network, seconds(60), |_| false);
    }
}

#[test]
fn a_peer_without_lanes_that_names_one_keeps_nobody_busy() {
    let _seed = Seed(58);
    for first in [0xc0, 0xc7] {
        // Nothing else, and what is no record.
        for bytes in [1, 200] {
            let mut network = slow(58, clean(), |id, node| node.capabilities.lanes = id != A);
            network.ask_stream((A, B), (bytes, first), StreamPriority::Normal).unwrap();
            turns_until(&mut network, seconds(60), |_| false);
            assert_eq!(network.node(A).streams().tally().lost.len(), usize::from(bytes > 1));
        }
    }
}
