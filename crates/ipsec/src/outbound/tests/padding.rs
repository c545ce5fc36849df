//! What rules do so that lengths tell less.

use super::*;
use crate::{LeakPolicy, Mix, Padding};

/// Rules for ports 1001 and 1002, both in one domain.
fn with_policy(policy: LeakPolicy) -> Vec<crate::Rule> {
    let rules = [1001, 1002].map(|port| crate::Rule { policy, ..rule(port, 1, Method::ZSTD) });
    rules.to_vec()
}

fn padded(padding: Padding) -> Vec<crate::Rule> {
    with_policy(LeakPolicy { padding, ..LeakPolicy::NONE })
}

/// A packet of so many words drawn by `seed`: of equal length for all seeds, and of other content.
fn words(seed: u64, len: usize) -> Vec<u8> {
    let mut random = strait_clock::Random::new(seed);
    let all = ["temperature 21.5, ", "humidity 40.0 %, ", "no rain for now, ", "wind from south, "];
    let mut payload = Vec::new();
    while payload.len() < len {
        payload.extend(all[usize::try_from(random.below(4)).unwrap()].bytes());
    }
    payload.truncate(len);
    Shape { payload, ..text(1001, 0) }.packet()
}

/// The lengths on the wire of these packets, sent at once over a slow link.
fn lengths(rules: Vec<crate::Rule>, packets: &[Vec<u8>]) -> Vec<usize> {
    let mut sender = Sender::new(STRAIT, 1500, slow(), rules);
    for packet in packets {
        sender.send(packet, &PLAIN);
    }
    sender.drain();
    let mut receiver = Receiver::new(STRAIT);
    receiver.take_all(&sender.wire);
    let all = |packets: &[Vec<u8>]| packets.iter().cloned().map(without_id).collect::<Vec<_>>();
    let [sent, arrived] = [packets, &receiver.site.packets].map(all);
    assert!(sent == arrived && receiver.dropped() == 0, "{} of {}", arrived.len(), sent.len());
    sender.wire.datagrams.iter().map(|(datagram, _)| datagram.len()).collect()
}

#[test]
fn padded_blocks_arrive_and_have_few_sizes() {
    let packets: Vec<Vec<u8>> = (0..200).map(|number| words(number, 300 + number as usize)).collect();
    let alone = |padding| {
        let of = |packet: &Vec<u8>| lengths(padded(padding), core::slice::from_ref(packet))[0];
        packets.iter().map(of).collect::<std::collections::BTreeSet<_>>().len()
    };
    let [none, padme, buckets, constant] = Padding::ALL.map(alone);
    assert!(none >= 8 && padme < none && buckets < padme, "{none} {padme} {buckets}");
    // Too few bytes for a block: what the packet's own length says anyway, in steps of four bytes.
    assert!((25..=60).contains(&constant), "{constant}");
    let together = Padding::ALL.map(|padding| lengths(padded(padding), &packets).iter().sum::<usize>());
    assert!(together.iter().all(|sum| *sum >= together[0]), "{together:?}");
    assert!(together[3] < lengths(Vec::new(), &packets).iter().sum::<usize>() * 7 / 10, "{together:?}");
}

#[test]
fn peer_without_padding_gets_no_block_that_is_padded() {
    let packets: Vec<Vec<u8>> = (0..20).map(|number| words(number, 1_000)).collect();
    for (payloads, padding, blocks) in [
        (STRAIT, Padding::Padme, true),
        (older(), Padding::Padme, false),
        (older(), Padding::None, true),
        (Payloads::STANDARD, Padding::Constant, false),
    ] {
        let mut sender = Sender::new(payloads, 1500, slow(), padded(padding));
        packets.iter().for_each(|packet| sender.send(packet, &PLAIN));
        sender.drain();
        let compressed = sender.counters.codecs.iter().any(|codec| codec.blocks.get() > 0);
        assert_eq!(compressed, blocks, "{payloads:?} {padding:?}");
        let mut receiver = Receiver::new(payloads);
        receiver.take_all(&sender.wire);
        assert_eq!((receiver.site.packets.len(), receiver.dropped()), (20, 0));
    }
}

#[test]
fn blocks_count_their_padding_as_output() {
    let packets: Vec<Vec<u8>> = (0..20).map(|number| words(number, 1_000)).collect();
    let output = |padding| {
        let mut sender = Sender::new(STRAIT, 1500, slow(), padded(padding));
        packets.iter().for_each(|packet| sender.send(packet, &PLAIN));
        sender.drain();
        let zstd = &sender.counters.codecs[3];
        (zstd.before.get(), zstd.after.get())
    };
    let (before, after) = output(Padding::Constant);
    assert!(after * 2 <= before && after * 2 + 20 > before, "{before} {after}");
    assert!(output(Padding::None).1 < after);
}

#[test]
fn leak_bound_of_a_rule_is_the_mean_over_its_blocks() {
    let bound = |padding, len| {
        let mut sender = Sender::new(STRAIT, 1500, None, padded(padding));
        let (packet, header) = Shape { protocol: Protocol::TCP, ..text(1001, len) }.super_packet(1_300);
        (0..20).for_each(|_| sender.send(&packet, &header));
        sender.drain();
        let rules = &sender.out.stages.compressor.rules;
        let [first, second] = [0, 1].map(|at| rules.counters(at).unwrap());
        assert_eq!((first.tried.get(), second.leak_bound()), (20, None));
        assert_eq!(first.packets.get(), 40);
        let [block, packets] = [first.leak_bound(), first.leak_bound_of_1000_packets()].map(Option::unwrap);
        assert!((packets - block * 500.0).abs() < 1e-6, "{packets} {block}");
        block
    };
    let all = Padding::ALL.map(|padding| (bound(padding, 2_600) * 10.0).round() / 10.0);
    assert_eq!(all, [9.4, 6.6, 2.6, 1.0]);
    assert!(bound(Padding::None, 1_400) < bound(Padding::None, 2_600), "fewer sizes in steps of four bytes");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn constant_lengths_do_not_depend_on_content(
        lens in proptest::collection::vec(400..1_300_usize, 1..40),
        seeds in (any::<u64>(), any::<u64>()),
    ) {
        let all = |seed: u64| {
            let packet = |(number, len): (u64, &usize)| words(seed.wrapping_add(number), *len);
            (0..).zip(&lens).map(packet).collect::<Vec<_>>()
        };
        let [one, other] = [seeds.0, seeds.1].map(|seed| lengths(padded(Padding::Constant), &all(seed)));
        prop_assert_eq!(one, other);
    }

    #[test]
    fn blocks_of_one_flow_never_mix_two(traffic in traffic(), rate in rates(), workers in 0..3_usize) {
        let policy = LeakPolicy { mix: Mix::Flow, ..LeakPolicy::NONE };
        let rules: Vec<_> = rules().into_iter().map(|rule| crate::Rule { policy, ..rule }).collect();
        let mut sender = Sender::new(STRAIT, 1500, rate, rules).with_workers(workers);
        send_all(&mut sender, &traffic);
        for group in groups(&sender.wire) {
            if group.coding.is_none_or(|coding| coding.codec == Codec::None) {
                continue;
            }
            let flows = group.packets.iter().map(|packet| Packet::parse(packet).unwrap().flow());
            prop_assert_eq!(flows.collect::<std::collections::BTreeSet<_>>().len(), 1);
        }
    }
}
