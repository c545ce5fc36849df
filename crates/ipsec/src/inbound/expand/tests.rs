use std::sync::Arc;

use strait_compress::{Codec, Codecs, Method};
use strait_crypto::{KeyMaterial, Suite};
use strait_wire::ip::Version;
use strait_wire::{Protocol, Spi, Tos, vnet};

use crate::inbound::{Batch, Order};
use crate::pool::JOBS_AN_ENGINE;
use crate::sample::{
    NOW, PEER, Receiver, ReceiverHost, SPI, STRAIT, Sender, Shape, endpoint, rule, sa_spec, without_id,
};
use crate::wrap::Head;
use crate::{InboundSa, IvMode, OutboundSa, PeerId, Policies, Reason, SaSpec};

/// Blocks of text with a packet that does not shrink behind every fourth.
fn sent() -> (Sender, Vec<Vec<u8>>) {
    let mut sender = Sender::new(STRAIT, 1500, None, vec![rule(1001, 1, Method::ZSTD)]);
    let mut packets = Vec::new();
    for fill in 0..16_u8 {
        let payload =
            (0..40_000_usize).map(|at| if at % 7 == 0 { fill } else { b"strait "[at % 7] }).collect();
        let shape = Shape { ports: [9, 1001], ..Shape::new(Version::V4, Protocol::TCP, payload) };
        let (packet, header) = shape.super_packet(1_300);
        sender.send(&packet, &header);
        packets.extend(shape.segments(1_300));
        if fill % 4 == 3 {
            let other = Shape::new(Version::V4, Protocol::UDP, vec![fill; 40]).packet();
            sender.send(&other, &vnet::Header::PLAIN);
            packets.push(other);
        }
    }
    sender.drain();
    (sender, packets)
}

fn comparable(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    packets.iter().cloned().map(without_id).collect()
}

/// A datagram with this payload.
fn seal(sa: &mut OutboundSa, next: Protocol, payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; sa.sealed_len(0, payload.len())];
    let at = sa.payload_at(0);
    datagram[at..at + payload.len()].copy_from_slice(payload);
    sa.seal(Head::Fresh(Tos(0)), &mut datagram, payload.len(), next).unwrap();
    datagram
}

/// A second peer, at 10.9.0.0/16, and what it seals with.
fn other_peer(receiver: &mut Receiver) -> OutboundSa {
    let other = PeerId(2);
    let key = KeyMaterial::new(Suite::Aes128Gcm, &[9; 20]).unwrap();
    let spec = SaSpec::session(other, Spi(0x0555_5555), key, IvMode::Implicit, STRAIT);
    let mut policies = Policies::exit();
    policies.allow("10.2.0.0/16".parse().unwrap(), PEER);
    policies.allow("10.9.0.0/16".parse().unwrap(), other);
    for order in [
        Order::Policies(Arc::new(policies)),
        Order::AddPeer(other, Arc::default(), Arc::default()),
        Order::Install(Box::new(InboundSa::new(&spec))),
    ] {
        receiver.half.handle(order);
    }
    OutboundSa::new(&spec)
}

fn others_packet() -> Vec<u8> {
    let mut packet = Shape::new(Version::V4, Protocol::UDP, vec![7; 40]).packet();
    packet[12..16].copy_from_slice(&[10, 9, 0, 1]);
    packet
}

#[test]
fn blocks_are_spread_over_engines_in_order_per_peer() {
    let (sender, packets) = sent();
    for workers in [1, 3] {
        let mut receiver = Receiver::new(STRAIT).with_workers(workers);
        receiver.take_all(&sender.wire);
        assert!(receiver.site.handed >= 4, "{} of 16", receiver.site.handed);
        assert!(comparable(&receiver.site.packets) == comparable(&packets), "in order, byte for byte");
        assert_eq!((receiver.dropped(), receiver.peer.in_packets.get()), (0, packets.len() as u64));
    }
}

#[test]
fn reading_pauses_when_workers_have_every_job_and_loses_nothing() {
    let (sender, packets) = sent();
    for workers in [1, 2] {
        let jobs = (workers + 1) * JOBS_AN_ENGINE;
        let mut receiver = Receiver::new(STRAIT).with_workers(workers);
        let mut pauses = 0;
        for (datagram, tos) in &sender.wire.datagrams {
            while !receiver.offer(datagram, *tos) {
                pauses += 1;
                assert!(receiver.site.jobs.len() <= jobs && receiver.half.intake.free_jobs() == 0);
                assert!(!receiver.half.make_room(NOW, &mut ReceiverHost::default()));
                assert!(receiver.work(), "a worker has something to do");
            }
        }
        receiver.finish();
        assert!(pauses > 0, "{workers}");
        assert!(comparable(&receiver.site.packets) == comparable(&packets));
        assert_eq!((receiver.dropped(), receiver.half.intake.free_jobs()), (0, jobs));
    }
}

#[test]
fn batch_resumes_where_free_jobs_ran_out() {
    let shape = Shape::new(Version::V4, Protocol::UDP, b"strait ".repeat(180));
    let plain = shape.packet().repeat(30);
    let mut compressed = vec![0; 1_000];
    let len = Codecs::new().compress(Method::ZSTD, &plain, &mut compressed).unwrap();
    let mut sa = OutboundSa::new(&sa_spec(STRAIT));
    let codec = Codec::Zstd.id();
    let sealed: Vec<_> = (0..20)
        .map(|id| {
            let payload = [&[0xf0, codec, 0, id, 0, 1][..], &compressed[..len]].concat();
            seal(&mut sa, Protocol::AGGFRAG, &payload)
        })
        .collect();
    let (segment, mut bytes) = (sealed[0].len(), sealed.concat());
    let mut receiver = Receiver::new(STRAIT).with_workers(1);
    let (mut at, mut calls) = (0, 0);
    while at < bytes.len() {
        let batch = Batch { from: endpoint().into(), tos: Tos(0), segment, bytes: &mut bytes[at..] };
        let taken = receiver.half.datagrams(batch, NOW, &mut receiver.site);
        assert_eq!(taken % segment, 0, "whole datagrams");
        at += taken;
        calls += 1;
        assert!(at == bytes.len() || receiver.work());
    }
    receiver.finish();
    assert!(calls > 1);
    assert_eq!((receiver.site.packets.len(), receiver.dropped()), (20 * 30, 0));
}

#[test]
fn other_peers_do_not_wait_for_a_block_under_way() {
    let (sender, _) = sent();
    let mut receiver = Receiver::new(STRAIT).with_workers(3);
    let mut other = other_peer(&mut receiver);
    for (datagram, tos) in sender.wire.datagrams.iter().take(6) {
        receiver.take(datagram, *tos);
    }
    assert!(!receiver.site.jobs.is_empty() && receiver.site.packets.is_empty());
    let packet = others_packet();
    receiver.take(&seal(&mut other, Protocol::IPIP, &packet), Tos(0));
    assert_eq!(receiver.site.packets, [packet]);
}

#[test]
fn packets_behind_a_block_wait_in_its_job() {
    let (sender, _) = sent();
    let mut receiver = Receiver::new(STRAIT).with_workers(3);
    let (datagram, tos) = &sender.wire.datagrams[0];
    receiver.take(datagram, *tos);
    let mut sa = OutboundSa::new(&sa_spec(STRAIT));
    // The first number is that of the block.
    for number in 0..60_u8 {
        let packet = Shape::new(Version::V4, Protocol::UDP, vec![number; 40]).packet();
        let sealed = seal(&mut sa, Protocol::IPIP, &packet);
        receiver.take(&sealed, Tos(0));
    }
    let before = receiver.site.packets.len();
    receiver.finish();
    let last = receiver.site.packets.last().unwrap();
    assert_eq!((before, last[last.len() - 1]), (0, 59));
    assert_eq!(receiver.dropped(), 1, "the number that came twice");
}

#[test]
fn malformed_block_is_counted_once() {
    let mut sa = OutboundSa::new(&sa_spec(STRAIT));
    let mut receiver = Receiver::new(STRAIT).with_workers(2);
    let payload = [&[0xf0, 3, 0, 1, 0, 1][..], b"no frame of any codec"].concat();
    receiver.take(&seal(&mut sa, Protocol::AGGFRAG, &payload), Tos(0));
    assert_eq!(receiver.dropped(), 0, "no engine has looked yet");
    receiver.finish();
    assert_eq!((receiver.drops(Reason::MalformedBlock), receiver.dropped()), (1, 1));
}

#[test]
fn malformed_block_header_takes_no_job() {
    let mut sa = OutboundSa::new(&sa_spec(STRAIT));
    let mut receiver = Receiver::new(STRAIT).with_workers(2);
    let free = receiver.half.intake.free_jobs();
    for payload in [&[0xf0, 3, 0][..], &[0xf0, 0x7f, 0, 1, 0, 1, 9]] {
        receiver.take(&seal(&mut sa, Protocol::AGGFRAG, payload), Tos(0));
        assert_eq!(receiver.half.intake.free_jobs(), free);
    }
    assert_eq!(receiver.dropped(), 2);
}

#[test]
fn removed_peer_leaves_no_pending_work() {
    let (sender, _) = sent();
    let mut receiver = Receiver::new(STRAIT).with_workers(2);
    for (datagram, tos) in sender.wire.datagrams.iter().take(6) {
        receiver.take(datagram, *tos);
    }
    receiver.half.handle(Order::RemovePeer(PEER));
    let (packets, dropped) = (receiver.site.packets.len(), receiver.drops(Reason::UnknownSpi));
    assert!(dropped > 0);
    receiver.finish();
    assert_eq!((receiver.site.packets.len(), receiver.dropped()), (packets, dropped), "counted once");
    assert_eq!(receiver.half.intake.free_jobs(), 3 * JOBS_AN_ENGINE);
}

#[test]
fn pending_blocks_of_withdrawn_association_are_delivered() {
    let (sender, packets) = sent();
    let mut receiver = Receiver::new(STRAIT).with_workers(3);
    for (datagram, tos) in &sender.wire.datagrams {
        receiver.take(datagram, *tos);
    }
    assert!(receiver.site.packets.len() < packets.len());
    receiver.half.handle(Order::Withdraw(SPI));
    receiver.finish();
    assert!(comparable(&receiver.site.packets) == comparable(&packets));
    let (datagram, tos) = &sender.wire.datagrams[0];
    receiver.take(datagram, *tos);
    assert_eq!((receiver.drops(Reason::UnknownSpi), receiver.dropped()), (1, 1));
    assert_eq!(receiver.half.intake.free_jobs(), 4 * JOBS_AN_ENGINE);
}

#[test]
fn packets_on_a_new_association_do_not_overtake_blocks_of_the_old_one() {
    let (sender, packets) = sent();
    let mut receiver = Receiver::new(STRAIT).with_workers(3);
    let key = KeyMaterial::new(Suite::Aes128Gcm, &[9; 20]).unwrap();
    let renewed = SaSpec::session(PEER, Spi(0x0555_5555), key, IvMode::Implicit, STRAIT);
    receiver.half.handle(Order::Install(Box::new(InboundSa::new(&renewed))));
    for (datagram, tos) in &sender.wire.datagrams {
        while !receiver.offer(datagram, *tos) {
            receiver.work();
        }
    }
    let mut sa = OutboundSa::new(&renewed);
    let packet = Shape::new(Version::V4, Protocol::UDP, vec![7; 40]).packet();
    let datagram = seal(&mut sa, Protocol::IPIP, &packet);
    while !receiver.offer(&datagram, Tos(0)) {
        receiver.work();
    }
    assert!(receiver.site.packets.len() < packets.len(), "engines have blocks of the old one");
    receiver.half.handle(Order::Withdraw(SPI));
    receiver.finish();
    assert!(receiver.site.packets.last() == Some(&packet), "behind them");
    assert!(comparable(&receiver.site.packets[..packets.len()]) == comparable(&packets));
    assert_eq!((receiver.dropped(), receiver.half.intake.free_jobs()), (0, 4 * JOBS_AN_ENGINE));
}

#[test]
fn blocks_of_tiny_packets_that_workers_expand_are_limited_too() {
    let mut sa = OutboundSa::new(&sa_spec(STRAIT));
    let mut receiver = Receiver::new(STRAIT).with_workers(2);
    let mut other = other_peer(&mut receiver);
    let packet = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 253, 0, 0, 10, 2, 0, 1, 10, 1, 0, 1].repeat(2_048);
    let (method, mut output) = (Method::ZSTD, vec![0; packet.len()]);
    let len = Codecs::new().compress(method, &packet, &mut output).unwrap();
    let payload = [&[0xf0, method.codec.id(), 0, 1, 0, 1][..], &output[..len]].concat();
    for round in 1..=3 {
        for _ in 0..20 {
            receiver.take(&seal(&mut sa, Protocol::AGGFRAG, &payload), Tos(0));
        }
        receiver.take(&seal(&mut other, Protocol::IPIP, &others_packet()), Tos(0));
        receiver.finish();
        assert_eq!(receiver.peer.in_packets.get(), round * 2_048, "one block a turn");
        assert_eq!((receiver.drops(Reason::OverBudget), receiver.dropped()), (round * 19, round * 19));
        receiver.half.caught_up();
    }
}
