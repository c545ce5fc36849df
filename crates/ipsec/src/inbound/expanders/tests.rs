use strait_compress::Method;
use strait_wire::ip::Version;
use strait_wire::{Protocol, Tos};

use crate::inbound::Order;
use crate::sample::{PEER, Receiver, STRAIT, Sender, Shape, rule, without_id};
use crate::{Reason, engines};

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
            sender.send(&other, &strait_wire::vnet::Header::PLAIN);
            packets.push(other);
        }
    }
    sender.drain();
    (sender, packets)
}

#[test]
fn blocks_are_shared_out_and_nothing_overtakes() {
    let (sender, packets) = sent();
    let mut receiver = Receiver::new(STRAIT).with_workers(3);
    receiver.take_all(&sender.wire);
    assert!(receiver.site.handed >= 4, "{} of 16", receiver.site.handed);
    let comparable = |packets: &[Vec<u8>]| packets.iter().cloned().map(without_id).collect::<Vec<_>>();
    assert!(comparable(&receiver.site.packets) == comparable(&packets), "in order, byte for byte");
    assert_eq!((receiver.dropped(), receiver.peer.in_packets.get()), (0, packets.len() as u64));
}

#[test]
fn jobs_are_bounded_whatever_comes_before_anything_is_asked_for() {
    let (sender, packets) = sent();
    let mut receiver = Receiver::new(STRAIT).with_workers(1);
    for (datagram, tos) in &sender.wire.datagrams {
        receiver.take(datagram, *tos);
        let expanders = receiver.half.expanders.as_ref().unwrap();
        let made = 2 * engines::JOBS_AN_ENGINE - expanders.unmade;
        assert!(expanders.under_way.len() + expanders.idle.len() <= made);
    }
    receiver.take_all(&crate::sample::Wire::default());
    assert_eq!(receiver.peer.in_packets.get(), packets.len() as u64);
}

#[test]
fn what_cannot_be_expanded_is_counted_once() {
    let mut sa = crate::OutboundSa::new(&crate::sample::sa_spec(STRAIT));
    let mut receiver = Receiver::new(STRAIT).with_workers(2);
    let payload = [&[0xf0, 3, 0, 1, 0, 1][..], b"no frame of any codec"].concat();
    let mut datagram = vec![0; sa.sealed_len(0, payload.len())];
    let at = sa.payload_at(0);
    datagram[at..at + payload.len()].copy_from_slice(&payload);
    sa.seal(crate::wrap::Head::Fresh(Tos(0)), &mut datagram, payload.len(), Protocol::AGGFRAG).unwrap();
    receiver.take(&datagram, Tos(0));
    assert_eq!(receiver.dropped(), 0, "nobody has looked yet");
    receiver.take_all(&crate::sample::Wire::default());
    assert_eq!((receiver.drops(Reason::MalformedBlock), receiver.dropped()), (1, 1));
}

#[test]
fn a_peer_that_goes_leaves_nothing_under_way() {
    let (sender, _) = sent();
    let mut receiver = Receiver::new(STRAIT).with_workers(2);
    for (datagram, tos) in sender.wire.datagrams.iter().take(6) {
        receiver.take(datagram, *tos);
    }
    receiver.half.handle(Order::RemovePeer(PEER));
    let before = receiver.site.packets.len();
    receiver.take_all(&crate::sample::Wire::default());
    assert_eq!(receiver.site.packets.len(), before);
    assert!(receiver.drops(Reason::UnknownSpi) > 0 && receiver.half.expanders.unwrap().under_way.is_empty());
}
