mod direct;
mod mss;
mod padding;
mod pauses;
mod probes;
mod refusals;
mod reports;
mod sources;
mod strangers;
mod unknown;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use strait_compress::{Blocks, Codec, CodecSet, Coding, Method};
use strait_crypto::NonceCounter;
use strait_scheduler::Rate;
use strait_wire::flow::Flow;
use strait_wire::ip::{Packet, Version};
use strait_wire::{Ecn, Protocol, Tos, aggfrag, block, ipcomp, vnet};

use super::{Order, Queueing};
use crate::block::PACKETS_MAX;
use crate::sample::{PEER, Receiver, SPI, STRAIT, Sender, Shape, Wire, rule, sa_spec, without_id};
use crate::wrap::Inside;
use crate::{InboundSa, Notice, OutboundSa, Payloads, Reason, Reserve, RuleSet};

const PLAIN: vnet::Header = vnet::Header::PLAIN;

/// A peer that takes all codecs and no header compression.
fn older() -> Payloads {
    Payloads::Strait { codecs: Codec::ALL.into_iter().collect(), block_cap: 65_536 }
}

fn slow() -> Option<Rate> {
    Rate::from_bits(1_000_000)
}

/// A packet to a port; text, so that it shrinks.
fn text(port: u16, len: usize) -> Shape {
    let words = b"GET /index.html HTTP/1.1 Accept: text/html Host: example.org ";
    let payload = words.iter().copied().cycle().take(len).collect();
    Shape { ports: [port ^ 0x1234, port], ..Shape::new(Version::V4, Protocol::UDP, payload) }
}

/// The same, of bytes that do not shrink.
fn noise(port: u16, len: usize) -> Shape {
    let mut random = strait_clock::Random::new(len as u64);
    let payload = (0..len).map(|_| random.next_u64().to_be_bytes()[0]).collect();
    Shape { payload, ..text(port, 0) }
}

/// What is inside each datagram, with the outer mark.
fn opened(wire: &Wire, payloads: Payloads) -> Vec<(Protocol, Vec<u8>, Tos)> {
    let mut sa = InboundSa::new(&sa_spec(payloads));
    let open = |(datagram, tos): &(Vec<u8>, Tos)| {
        let mut bytes = datagram.clone();
        let inside = Inside::untouched(0, bytes.len(), Protocol::ESP);
        let inside = sa.open(&mut bytes, inside).unwrap();
        (inside.next, bytes[inside.range()].to_vec(), *tos)
    };
    wire.datagrams.iter().map(open).collect()
}

/// What left together: the packets of one block, bundle or datagram.
#[derive(Debug)]
struct Group {
    coding: Option<Coding>,
    packets: Vec<Vec<u8>>,
    /// ESP payload bytes of all its datagrams.
    wire: usize,
    datagrams: usize,
    tos: Tos,
}

/// Puts the groups together again, without the code under test; each part must follow the one before.
fn groups(wire: &Wire) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut parts: Option<(block::Header, Vec<u8>, Group)> = None;
    for (next, bytes, tos) in opened(wire, STRAIT) {
        let mut group = Group { coding: None, packets: Vec::new(), wire: bytes.len(), datagrams: 1, tos };
        match (next, bytes[0]) {
            (Protocol::AGGFRAG, block::SUBTYPE) => {
                let (header, part) = block::Header::parse(&bytes).unwrap();
                let (first, mut sofar, mut whole) = parts.take().unwrap_or((header, Vec::new(), group));
                if header.part > 0 {
                    assert_eq!((header.id, header.codec, header.parts), (first.id, first.codec, first.parts));
                    whole.wire += bytes.len();
                    whole.datagrams += 1;
                }
                sofar.extend(part);
                if header.part + 1 < header.parts {
                    parts = Some((first, sofar, whole));
                    continue;
                }
                let padded = header.codec & block::PADDED != 0;
                let coding = Coding::from_id(header.codec & !block::PADDED).unwrap();
                let (mut plain, whole_block) = (vec![0; 65_536], &sofar[..]);
                let bytes = if padded { block::without_padding(whole_block).unwrap() } else { whole_block };
                let len = Blocks::new().expand(coding, PACKETS_MAX, bytes, &mut plain).unwrap();
                whole.packets =
                    block::packets(&plain[..len]).map(|packet| packet.unwrap().to_vec()).collect();
                whole.coding = Some(coding);
                groups.push(whole);
                continue;
            }
            (Protocol::AGGFRAG, 0) => {
                let region = aggfrag::Payload::parse(&bytes).unwrap().region;
                group.packets = block::packets(region).map(|packet| packet.unwrap().to_vec()).collect();
            }
            (Protocol::AGGFRAG, _) => continue,
            _ => group.packets.push(bytes),
        }
        assert!(parts.is_none(), "a block's parts are not interrupted");
        groups.push(group);
    }
    assert!(parts.is_none());
    groups
}

/// The domain that the test's rules, which are for IPv4, give a packet, and their codec.
fn ruled(packet: &[u8]) -> (u16, Codec) {
    let packet = Packet::parse(packet).unwrap();
    match packet.flow().dst_port {
        _ if packet.version() == Version::V6 => (0, Codec::None),
        1001 => (1, Codec::Zstd),
        1002 => (2, Codec::Zstd),
        1003 => (1, Codec::Lz4),
        1004 => (3, Codec::None),
        _ => (0, Codec::None),
    }
}

fn rules() -> Vec<crate::Rule> {
    vec![
        rule(1001, 1, Method::ZSTD),
        rule(1002, 2, Method::ZSTD),
        rule(1003, 1, Method::LZ4),
        rule(1004, 3, Method::NONE),
    ]
}

/// Packets and super-packets, in runs of one kind so that something groups.
fn traffic() -> impl Strategy<Value = Vec<(Shape, u16)>> {
    let one = (0..12_usize, 0..6_u16, any::<bool>(), 0..1300_usize, 0..4_u8, 0..30_usize);
    proptest::collection::vec(one, 1..40).prop_map(|steps| {
        let (mut port, mut dscp) = (1001, 0);
        let shape = |(index, (run, kind, shrinks, len, ecn, large)): (
            usize,
            (usize, u16, bool, usize, u8, usize),
        )| {
            if run < 3 {
                (port, dscp) = (1000 + kind, (ecn & 1) << 5);
            }
            let small = if run % 2 == 0 { len } else { len / 12 };
            let (payload, step) = if large == 0 { (len * 40, 1000) } else { (small, 0) };
            let shape = if shrinks { text(port, payload) } else { noise(port, payload) };
            let (version, protocol) =
                [(Version::V4, Protocol::UDP), (Version::V6, Protocol::TCP), (Version::V4, Protocol::TCP)]
                    [index % 3];
            (
                Shape {
                    version,
                    protocol,
                    tos: dscp | (ecn % 3),
                    id: u16::try_from(index * 100).unwrap(),
                    ..shape
                },
                step,
            )
        };
        steps.into_iter().enumerate().map(shape).collect()
    })
}

/// Sends everything at once; the packets that it is.
fn send_all(sender: &mut Sender, traffic: &[(Shape, u16)]) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    for (shape, step) in traffic {
        if *step == 0 || shape.payload.is_empty() {
            sender.send(&shape.packet(), &PLAIN);
            sent.push(shape.packet());
        } else {
            let (packet, header) = shape.super_packet(*step);
            sender.send(&packet, &header);
            sent.extend(shape.segments((*step).into()));
        }
    }
    sender.drain();
    sent
}

fn comparable(packets: impl IntoIterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    packets.into_iter().map(without_id).collect()
}

/// Packets by what the queue keeps in order: flow and class of service; without congestion marks, which it may make.
fn by_flow(packets: Vec<Vec<u8>>) -> BTreeMap<(Flow, u8), Vec<Vec<u8>>> {
    let mut flows = BTreeMap::<_, Vec<_>>::new();
    for mut bytes in packets {
        strait_wire::ip::set_ecn(&mut bytes, Ecn::NotEct);
        let packet = Packet::parse(&bytes).unwrap();
        let key = (packet.flow(), packet.tos().dscp());
        flows.entry(key).or_default().push(without_id(bytes));
    }
    flows
}

fn rates() -> impl Strategy<Value = Option<Rate>> {
    prop_oneof![Just(None), Just(Rate::from_bits(1_000_000)), Just(Rate::from_bits(50_000_000))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn everything_arrives_in_order_or_is_counted(
        traffic in traffic(),
        rate in rates(),
        mtu in prop_oneof![Just(1500_u16), Just(1280), Just(576)],
        strait in any::<bool>(),
        workers in 0..4_usize,
        lossless in any::<bool>(),
        window in prop_oneof![Just(1), Just(3), Just(Queueing::WINDOW)],
    ) {
        let payloads = if strait { STRAIT } else { Payloads::STANDARD };
        let rules = if strait { rules() } else { vec![rule(1001, 1, Method::DEFLATE)] };
        let queueing = Queueing { lossless, window, ..Queueing::default() };
        let mut sender = Sender::new(payloads, mtu, rate, rules).with_workers(workers).waiting(queueing);
        let sent = send_all(&mut sender, &traffic);
        let mut receiver = Receiver::new(payloads).with_workers(workers);
        receiver.take_all(&sender.wire);

        let out = sender.peer.out_packets.get();
        prop_assert_eq!(sent.len() as u64, out + sender.dropped());
        let arrived = receiver.site.packets.len() as u64;
        prop_assert_eq!((out, receiver.dropped(), receiver.peer.in_packets.get()), (arrived, 0, arrived));
        prop_assert_eq!(sender.peer.out_bytes.get(), receiver.peer.in_bytes.get());
        prop_assert_eq!(sender.peer.out_datagrams.get(), sender.wire.datagrams.len() as u64);
        let wire: usize = sender.wire.datagrams.iter().map(|(datagram, _)| datagram.len() + 28).sum();
        prop_assert_eq!((sender.peer.out_wire.get(), receiver.peer.in_wire.get()), (wire as u64, wire as u64));
        prop_assert!(sender.wire.datagrams.iter().all(|(datagram, _)| datagram.len() + 28 <= usize::from(mtu)));
        // Each flow in order: what was dropped left a gap and nothing else.
        let mut rest = by_flow(sent);
        for (flow, packets) in by_flow(receiver.site.packets) {
            let mut rest = rest.remove(&flow).unwrap_or_default().into_iter();
            for packet in packets {
                prop_assert!(rest.any(|sent| sent == packet), "out of order or made up");
            }
        }
        let dropped = [Reason::QueueFull, Reason::QueueDelay].map(|why| sender.counters.drops.get(why));
        if mtu == 1500 {
            prop_assert_eq!(sender.dropped(), dropped.iter().sum::<u64>());
            prop_assert_eq!(dropped, [sender.peer.queue.overflow.get(), sender.peer.queue.late.get()]);
        }
        prop_assert!(dropped[1] == 0 || !lossless);
    }

    #[test]
    fn groups_never_mix_and_no_bundle_exceeds_its_size(traffic in traffic(), rate in rates(), workers in 0..3_usize) {
        let mut sender = Sender::new(STRAIT, 1500, rate, rules()).with_workers(workers);
        send_all(&mut sender, &traffic);
        for group in groups(&sender.wire) {
            let domain = ruled(&group.packets[0]).0;
            let tos: Vec<Tos> = group.packets.iter().map(|packet| Packet::parse(packet).unwrap().tos()).collect();
            for (packet, tos) in group.packets.iter().zip(&tos) {
                let (of, codec) = ruled(packet);
                prop_assert_eq!(of, domain, "one domain");
                let used = group.coding.map_or(Codec::None, |coding| coding.codec);
                prop_assert!([Codec::None, codec].contains(&used), "compressed as its rule says");
                prop_assert_eq!(tos.dscp(), group.tos.dscp(), "one class, inside and outside");
            }
            let capable = tos.iter().all(|tos| tos.ecn() != Ecn::NotEct);
            prop_assert_eq!(group.tos.ecn() != Ecn::NotEct, capable, "marks only if all can take them");
            // What left together took no more datagrams and fewer or as many bytes than apart; a bundle
            // spends 4 bytes on having one ESP header less for each packet but the first.
            let raw: usize = group.packets.iter().map(Vec::len).sum();
            prop_assert!(group.datagrams <= group.packets.len());
            let bundled = raw + if group.packets.len() > 1 { aggfrag::PLAIN_LEN } else { 0 };
            match group.coding {
                Some(Coding::HEADERS) => prop_assert!(group.wire < bundled && group.datagrams == 1),
                Some(used) => prop_assert!(used.codec != Codec::None && group.wire < raw),
                None if group.packets.len() == 1 => prop_assert_eq!(group.wire, raw),
                None => prop_assert!(group.wire == bundled && group.datagrams == 1),
            }
        }
    }
}

#[test]
fn lone_packet_leaves_at_once_uncompressed() {
    for rate in [None, slow()] {
        let mut sender = Sender::new(STRAIT, 1500, rate, Vec::new());
        sender.send(&text(9, 30).packet(), &PLAIN);
        sender.drain();
        assert_eq!(sender.now, strait_clock::Time::from_millis(1000));
        assert_eq!(opened(&sender.wire, STRAIT), [(Protocol::IPIP, text(9, 30).packet(), Tos(0))]);
    }
}

#[test]
fn packets_bundle_only_when_several_wait() {
    for (payloads, coding) in [(older(), None), (STRAIT, Some(Coding::HEADERS))] {
        let mut sender = Sender::new(payloads, 1500, slow(), Vec::new());
        for _ in 0..5 {
            sender.send(&text(9, 1300).packet(), &PLAIN);
        }
        sender.drain();
        assert_eq!(sender.peer.out_bundles.get(), 0, "no two fit");
        for len in 0..30 {
            sender.send(&text(9, len).packet(), &PLAIN);
        }
        sender.drain();
        assert_eq!(sender.peer.out_bundles.get(), 1);
        let groups = groups(&sender.wire);
        let last = groups.last().unwrap();
        assert_eq!((last.packets.len(), last.coding), (30, coding));
        // Of 28 bytes of headers, three at most stay, but for the first packet's.
        let saved = sender.peer.out_headers.get();
        assert!(if coding.is_some() { (25 * 30..28 * 35).contains(&saved) } else { saved == 0 }, "{saved}");
    }
}

#[test]
fn a_long_block_resumes_where_the_last_one_ended() {
    for (method, cap) in [(Method::ZSTD, 4096), (Method::LZ4, 65_536), (Method::ZSTD, 60)] {
        let payloads = Payloads::Strait { codecs: CodecSet::ALL, block_cap: cap };
        for rate in [None, slow()] {
            let mut sender = Sender::new(payloads, 1500, rate, vec![rule(7, 1, method)]);
            let shape = text(7, 40_000);
            let (packet, header) = shape.super_packet(999);
            sender.send(&packet, &header);
            sender.send(&text(7, 50).packet(), &PLAIN);
            sender.drain();
            let mut receiver = Receiver::new(payloads);
            receiver.take_all(&sender.wire);
            let mut expected = shape.segments(999);
            expected.push(text(7, 50).packet());
            assert_eq!(comparable(receiver.site.packets), comparable(expected), "{cap} {rate:?}");
            // Not even the shortest packet, 68 bytes, with its headers coded.
            assert_eq!(sender.peer.out_blocks.get() > 0, cap > 60);
        }
    }
}

#[test]
fn many_small_segments_wait_in_the_queue_and_leave_aggregated() {
    // Of 48 bytes each, 30 fill a datagram; or some 66 of 21 bytes, once it is known that they become so few.
    for (payloads, datagrams) in [(older(), 2500_usize.div_ceil(30)), (STRAIT, 40)] {
        let mut sender = Sender::new(payloads, 1500, slow(), Vec::new());
        let shape = noise(9, 50_000);
        let (packet, header) = shape.super_packet(20);
        sender.send(&packet, &header);
        sender.drain();
        assert_eq!((sender.peer.out_packets.get(), sender.dropped()), (2500, 0));
        assert_eq!(sender.wire.datagrams.len(), datagrams);
    }
}

#[test]
fn blocks_on_a_small_path_have_no_more_parts_than_a_peer_takes() {
    let mut sender = Sender::new(older(), 576, slow(), vec![rule(7, 1, Method::LZ4)]);
    for index in 0..480 {
        // Little but the headers shrinks: all of them together would be a hundred parts.
        let payload = noise(7, 1000 + index).payload[..100].to_vec();
        sender.send(&Shape { payload, ..text(7, 0) }.packet(), &PLAIN);
    }
    sender.drain();
    let mut receiver = Receiver::new(STRAIT);
    receiver.take_all(&sender.wire);
    assert_eq!((receiver.site.packets.len(), receiver.dropped(), sender.dropped()), (480, 0, 0));
    assert!(sender.peer.out_blocks.get() > 0);
}

#[test]
fn block_that_saves_less_than_its_headers_is_sent_uncompressed() {
    let mut blocks = 0;
    for (tail, method) in (0..60).flat_map(|tail| [(tail, Method::LZ4), (tail, Method::DEFLATE)]) {
        let mut sender = Sender::new(older(), 576, slow(), vec![rule(7, 1, method)]);
        // Below 256 bytes the entropy probe is not used.
        let mut first = noise(7, 247 - tail);
        first.payload.extend(vec![0; tail]);
        let second = Shape { protocol: Protocol::TCP, payload: noise(7, 235).payload, ..first.clone() };
        sender.send(&first.packet(), &PLAIN);
        sender.send(&second.packet(), &PLAIN);
        sender.drain();
        for group in groups(&sender.wire) {
            let raw: usize = group.packets.iter().map(Vec::len).sum();
            assert!(group.coding.is_none() || (group.wire < raw && group.datagrams <= 2), "{tail} {method}");
        }
        blocks += sender.peer.out_blocks.get();
    }
    assert!((1..120).contains(&blocks), "some shrink enough, some do not: {blocks}");
}

#[test]
fn without_an_association_packets_wait_within_bounds() {
    let mut sender = Sender::without_sa(1500, None, Vec::new());
    for _ in 0..400 {
        sender.send(&text(9, 1000).packet(), &PLAIN);
    }
    let waiting = 400 - sender.dropped();
    // Packets of 1,028 bytes are kept in buffers of 1,152.
    assert_eq!(waiting, 192 * 1024 / 1152);
    assert_eq!(sender.counters.drops.get(Reason::NoSa), sender.dropped());
    assert_eq!(sender.wire.notices, [Notice::NeedsSa(PEER)]);
    sender.order(Order::Install(Box::new(OutboundSa::new(&sa_spec(STRAIT)))));
    sender.drain();
    assert_eq!(sender.peer.out_packets.get(), waiting);
}

#[test]
fn a_storm_of_packets_asks_for_keys_once_a_second() {
    let mut sender = Sender::without_sa(1500, None, Vec::new());
    for _ in 0..3_000 {
        sender.send(&text(9, 10).packet(), &PLAIN);
        sender.now += core::time::Duration::from_millis(1);
    }
    assert_eq!(sender.wire.notices, [const { Notice::NeedsSa(PEER) }; 3], "3,000 packets in three seconds");
}

#[test]
fn packets_queued_for_removed_peer_are_counted() {
    let mut sender = Sender::without_sa(1500, None, Vec::new());
    let (packet, header) = text(9, 1000).super_packet(100);
    sender.send(&packet, &header);
    sender.send(&text(9, 10).packet(), &PLAIN);
    sender.order(Order::RemovePeer(PEER));
    sender.send(&packet, &header);
    assert_eq!(sender.counters.drops.get(Reason::NoPeer), 21);
}

#[test]
fn packets_sealed_for_removed_peer_are_counted() {
    for rate in [100_000, 1_000_000] {
        // Each takes two datagrams, of which the link has room for one.
        let mut sender = Sender::new(STRAIT, 1280, Rate::from_bits(rate), Vec::new());
        let packet = Shape { dont_fragment: false, ..text(9, 1400) }.packet();
        for _ in 0..100 {
            sender.send(&packet, &PLAIN);
        }
        while !sender.out.links[&PEER].backlog.has_ready() {
            sender.now = sender.out.poll_timeout().unwrap().at.max(sender.now);
            sender.out.release(sender.now, &mut sender.wire);
        }
        sender.order(Order::RemovePeer(PEER));
        let mut receiver = Receiver::new(STRAIT);
        for (datagram, tos) in sender.wire.datagrams.clone() {
            receiver.take(&datagram, tos);
        }
        let (sealed, left) = (sender.peer.out_packets.get(), receiver.peer.in_packets.get());
        assert!(sealed > left, "some are sealed and wait: {sealed}, {left} left");
        assert_eq!(left + sender.counters.drops.get(Reason::NoPeer), 100);
    }
}

#[test]
fn exhausted_association_notifies_once_and_packets_wait_for_next() {
    let mut sender = Sender::new(STRAIT, 1500, None, Vec::new());
    let reserve = Reserve::new(NonceCounter::LAST - 2, u64::MAX);
    let sa = OutboundSa::new(&sa_spec(STRAIT)).within(reserve);
    sender.order(Order::Install(Box::new(sa)));
    let (packet, header) = text(9, 1000).super_packet(100);
    sender.send(&packet, &header);
    assert_eq!((sender.peer.out_packets.get(), sender.counters.drops.get(Reason::Exhausted)), (3, 7));
    sender.send(&packet, &header);
    sender.send(&packet, &header);
    let exhausted = Notice::Exhausted(PEER, SPI);
    assert_eq!(sender.wire.notices.iter().filter(|notice| **notice == exhausted).count(), 1);
    sender.order(Order::Install(Box::new(OutboundSa::new(&sa_spec(STRAIT)))));
    sender.drain();
    assert_eq!((sender.peer.out_packets.get(), sender.dropped()), (23, 7));
}

#[test]
fn a_copy_of_the_machine_repeats_a_number_until_it_is_known_and_none_from_then_on() {
    let mut copies = [1, 2].map(|_| Sender::new(STRAIT, 1500, None, Vec::new()));
    // SPI and number, which the nonce is made of, and what is sealed under it.
    let sent = |sender: &mut Sender| -> Vec<(Vec<u8>, Vec<u8>)> {
        let datagrams = core::mem::take(&mut sender.wire.datagrams).into_iter();
        datagrams.map(|(datagram, _)| (datagram[..8].to_vec(), datagram[8..].to_vec())).collect()
    };
    let send = |sender: &mut Sender, port| {
        sender.send(&noise(port, 500).packet(), &PLAIN);
        sender.drain();
    };
    let [first, second] = [0, 1].map(|at| {
        send(&mut copies[at], 9 + u16::try_from(at).unwrap());
        sent(&mut copies[at])
    });
    assert!(first[0].0 == second[0].0 && first[0].1 != second[0].1, "one nonce for two packets");
    let copy = &mut copies[1];
    copy.counters.generations.add(1);
    copy.out.follow_generation();
    send(copy, 11);
    // Made before, and in the queue of orders since.
    copy.order(Order::Install(Box::new(OutboundSa::new(&sa_spec(STRAIT)))));
    copy.drain();
    assert!(sent(copy).is_empty() && copy.wire.notices.contains(&Notice::NeedsSa(PEER)));
    copy.order(Order::Renewed(1));
    copy.order(Order::Install(Box::new(OutboundSa::new(&sa_spec(STRAIT)))));
    copy.drain();
    assert_eq!(sent(copy).len(), 1, "what waited");
    // It happens again, and the orders of the copy before come late.
    copy.counters.generations.add(1);
    copy.order(Order::Renewed(1));
    copy.order(Order::Install(Box::new(OutboundSa::new(&sa_spec(STRAIT)))));
    send(copy, 12);
    assert!(sent(copy).is_empty());
}

#[test]
fn rules_that_change_do_not_mix_domains_of_the_same_number() {
    let mut sender = Sender::new(STRAIT, 1500, slow(), vec![rule(1001, 1, Method::ZSTD)]);
    // The first fills the link, so that the others wait.
    sender.send(&noise(9, 1400).packet(), &PLAIN);
    sender.drain();
    for _ in 0..3 {
        sender.send(&text(1001, 500).packet(), &PLAIN);
    }
    sender.order(Order::Rules(Arc::new(RuleSet::new(vec![rule(1002, 1, Method::ZSTD)]))));
    for _ in 0..3 {
        sender.send(&text(1002, 500).packet(), &PLAIN);
    }
    sender.drain();
    let groups = groups(&sender.wire);
    let ports = |group: &Group| -> Vec<u16> {
        group.packets.iter().map(|packet| Packet::parse(packet).unwrap().flow().dst_port).collect()
    };
    let ports: Vec<Vec<u16>> = groups.iter().map(ports).collect();
    assert_eq!(ports, [vec![9], vec![1001; 3], vec![1002; 3]]);
}

#[test]
fn packet_above_every_datagram_size_gets_too_big_answer() {
    // ESP around a packet: header 8, ICV 16, trailer 2 and padding; IPv4 and UDP 28.
    for (payloads, mtu, version, len, told) in [
        (STRAIT, 1500, Version::V4, 1500, Some(1446)),
        (STRAIT, 1500, Version::V6, 1500, Some(1446)),
        (STRAIT, 1500, Version::V4, 1446, None),
        (STRAIT, 1280, Version::V6, 1280, None),
        (STRAIT, 1280, Version::V6, 1281, Some(1280)),
        (Payloads::STANDARD, 1280, Version::V4, 1280, Some(1226)),
        (Payloads::STANDARD, 1280, Version::V4, 1226, None),
        (Payloads::STANDARD, 1280, Version::V6, 1281, Some(1280)),
    ] {
        for wait in [None, slow()] {
            let mut sender = Sender::new(payloads, mtu, wait, Vec::new());
            let mut shape = Shape::new(version, Protocol::UDP, Vec::new());
            shape.payload = vec![1; len - shape.header_len()];
            sender.send(&shape.packet(), &PLAIN);
            sender.drain();
            let answers: Vec<_> =
                sender.wire.host.iter().map(|packet| Packet::parse(packet).unwrap()).collect();
            let mtus: Vec<_> = answers
                .iter()
                .map(|answer| u16::from_be_bytes([answer.payload()[6], answer.payload()[7]]))
                .collect();
            assert_eq!(mtus, told.into_iter().collect::<Vec<_>>(), "{payloads:?} {mtu} {version:?} {len}");
            assert_eq!(sender.counters.drops.get(Reason::TooBig), u64::from(told.is_some()));
            assert_eq!(sender.wire.datagrams.is_empty(), told.is_some());
            let sent = Packet::parse(&shape.packet()).map(|packet| (packet.dst(), packet.src())).unwrap();
            assert!(answers.iter().all(|answer| (answer.src(), answer.dst()) == sent));
        }
    }
}

#[test]
fn a_flood_of_packets_that_are_too_big_gets_few_answers() {
    let mut sender = Sender::new(STRAIT, 1500, None, Vec::new());
    let packet = Shape::new(Version::V4, Protocol::UDP, vec![1; 1472]).packet();
    for _ in 0..10_000 {
        sender.send(&packet, &PLAIN);
    }
    assert_eq!((sender.wire.host.len(), sender.counters.drops.get(Reason::TooBig)), (50, 10_000));
}

#[test]
fn fragmentable_packet_above_mtu_is_sent_in_block_parts() {
    let mut sender = Sender::new(STRAIT, 1280, None, Vec::new());
    let shape = Shape { dont_fragment: false, ..noise(9, 3000) };
    sender.send(&shape.packet(), &PLAIN);
    sender.drain();
    let groups = groups(&sender.wire);
    let [group] = groups.as_slice() else { panic!("{groups:?}") };
    assert_eq!((group.coding, group.datagrams), (Some(Coding::NONE), 3));
    assert_eq!(group.packets, [shape.packet()]);
}

#[test]
fn standard_peer_gets_ipcomp() {
    let mut sender = Sender::new(Payloads::STANDARD, 9000, slow(), vec![rule(7, 1, Method::DEFLATE)]);
    let packets =
        [text(7, 1000), noise(7, 1000), text(7, 20), text(8, 1000), text(7, 2500)].map(|s| s.packet());
    for packet in &packets {
        sender.send(packet, &PLAIN);
    }
    sender.drain();
    let sent = opened(&sender.wire, Payloads::STANDARD);
    let nexts: Vec<_> = sent.iter().map(|(next, ..)| *next).collect();
    // What does not shrink, is short or has no rule goes as it is.
    let raw = Protocol::IPIP;
    assert_eq!(nexts, [Protocol::IPCOMP, raw, raw, raw, Protocol::IPCOMP]);
    let (header, compressed) = ipcomp::Header::parse(&sent[0].1).unwrap();
    assert_eq!((header.next, header.cpi), (Protocol::IPIP, strait_wire::Cpi::DEFLATE));
    assert!(compressed.len() < 200);
    let mut receiver = Receiver::new(Payloads::STANDARD);
    receiver.take_all(&sender.wire);
    receiver.site.packets.sort();
    let mut packets = packets;
    packets.sort();
    assert_eq!(receiver.site.packets, packets);
    let counters = &sender.counters.codecs[usize::from(Codec::Deflate.id())];
    let learned = sender.learned.load(Ordering::Relaxed);
    assert_eq!((counters.packets.get(), counters.blocks.get()), (2, 2));
    assert!(learned == counters.tried.get() && learned >= 1, "the chooser is told");
}

#[test]
fn the_rate_holds_and_nothing_is_charged_twice() {
    let mut sender = Sender::new(STRAIT, 1500, slow(), Vec::new());
    let started = sender.now;
    for _ in 0..100 {
        sender.send(&noise(9, 1300).packet(), &PLAIN);
        sender.order(Order::AnswerProbe(PEER, 1, 1400));
        sender.now = sender.now.max(sender.out.poll_timeout().unwrap().at);
        // An answer while sealed datagrams wait goes behind them, though there is room by now.
        sender.order(Order::AnswerProbe(PEER, 2, 1400));
        sender.out.release(sender.now, &mut sender.wire);
    }
    sender.drain();
    let wire = sender.peer.out_wire.get();
    let took = sender.now.since(started);
    let expected = slow().unwrap().time_for(wire);
    let spread = core::time::Duration::from_millis(16);
    assert!(took + spread > expected && took < expected + spread, "{took:?} {expected:?}");
}
