//! ESP directly behind IP, with a peer of a session.

use core::time::Duration;
use std::net::SocketAddr;

use strait_scheduler::Tin;
use strait_wire::ip::V4Header;
use strait_wire::probe::{Probe, ProbeKind};

use super::*;
use crate::outbound::Via;
use crate::sample::endpoint;
use crate::{CarrierState, StreamTrain, inbound};

/// A sender whose peer takes it.
fn sender(rate: Option<Rate>) -> Sender {
    let mut sender = Sender::new(STRAIT, 1500, rate, Vec::new());
    let sa = OutboundSa::new(&sa_spec(STRAIT)).with_direct(true);
    sender.order(Order::Install(Box::new(sa)));
    sender
}

fn send(sender: &mut Sender, len: usize) {
    sender.send(&noise(9, len).packet(), &PLAIN);
    sender.drain();
    sender.peer.in_datagrams.add(1);
}

/// The probes that were sent, each with what carried it.
fn probes(sender: &Sender) -> Vec<(Probe, Via)> {
    let payloads = opened(&sender.wire, STRAIT).into_iter().map(|(_, payload, _)| payload);
    let vias = sender.wire.vias.iter().copied();
    payloads.zip(vias).filter_map(|(payload, via)| Some((Probe::parse(&payload).ok()?, via))).collect()
}

/// The peer answers the last probe.
fn answer(sender: &mut Sender) {
    let (probe, via) = *probes(sender).last().unwrap();
    assert_eq!((probe.kind, via), (ProbeKind::Request, Via::Esp));
    sender.order(Order::ProbeAnswered(PEER, probe.id, probe.size));
}

fn in_use(rate: Option<Rate>) -> Sender {
    let mut sender = sender(rate);
    send(&mut sender, 100);
    answer(&mut sender);
    assert_eq!(sender.peer.carrier.state(), CarrierState::InUse);
    sender.wire = Wire::default();
    sender
}

#[test]
fn datagrams_are_the_same_and_eight_bytes_shorter_on_the_wire() {
    let mut sender = sender(None);
    assert_eq!(sender.peer.carrier.state(), CarrierState::Trying);
    let wire = |sender: &mut Sender| {
        let before = sender.peer.out_wire.get();
        send(sender, 100);
        (sender.peer.out_wire.get() - before, sender.peer.inner_mtu.load(Ordering::Relaxed))
    };
    send(&mut sender, 100);
    assert_eq!(sender.wire.vias, [Via::Udp, Via::Esp], "the packet, then the probe");
    let (in_udp, mtu_in_udp) = wire(&mut sender);
    answer(&mut sender);
    let (direct, mtu_direct) = wire(&mut sender);
    assert_eq!(sender.wire.vias[2..], [Via::Udp, Via::Esp]);
    assert_eq!(sender.wire.datagrams[2].0.len(), sender.wire.datagrams[3].0.len());
    assert_eq!((in_udp - direct, mtu_direct - mtu_in_udp), (8, 8));
    assert_eq!(sender.peer.carrier.out_direct.get(), 2, "the probe is one");
}

#[test]
fn largest_datagram_fills_the_path_by_either_carrier() {
    for (direct, outer) in [(false, 28), (true, 20)] {
        let mut sender = if direct { in_use(None) } else { Sender::new(STRAIT, 1500, None, Vec::new()) };
        sender.wire = Wire::default();
        let room = usize::try_from(sender.peer.inner_mtu.load(Ordering::Relaxed)).unwrap();
        send(&mut sender, room - 28);
        let lens: Vec<usize> =
            sender.wire.datagrams.iter().map(|(datagram, _)| datagram.len() + outer).collect();
        assert!(lens.len() == 1 && (1497..=1500).contains(&lens[0]), "{lens:?}");
    }
}

#[test]
fn answers_and_signs_of_life_go_in_udp() {
    let mut sender = in_use(None);
    sender.order(Order::AnswerProbe(PEER, 6, 0));
    sender.order(Order::Alive(PEER));
    sender.order(Order::Keepalive(PEER));
    assert_eq!(sender.wire.vias, [Via::Udp; 3]);
    send(&mut sender, 100);
    assert_eq!(sender.wire.vias[3], Via::Esp);
}

#[test]
fn what_is_sealed_and_waits_follows_the_carrier() {
    let mut sender = in_use(slow());
    for _ in 0..40 {
        sender.send(&noise(9, 1300).packet(), &PLAIN);
    }
    sender.release();
    assert!(sender.wire.vias.iter().all(|via| *via == Via::Esp));
    let left = sender.wire.vias.len();
    // Nothing is heard for a second while some leave.
    sender.now += Duration::from_millis(30);
    sender.release();
    sender.now += Duration::from_secs(2);
    sender.drain();
    assert_ne!(sender.peer.carrier.state(), CarrierState::InUse);
    let last = sender.wire.vias.iter().rposition(|via| *via == Via::Udp).unwrap();
    assert!(sender.wire.vias.len() > left && last > left);
    let data = opened(&sender.wire, STRAIT).into_iter().zip(&sender.wire.vias).skip(left + 8);
    let direct = data.filter(|((_, payload, _), via)| **via == Via::Esp && Probe::parse(payload).is_err());
    assert_eq!(direct.count(), 0, "only probes go directly");
}

#[test]
fn probe_goes_before_what_waits_and_by_the_carrier_that_it_asks_about() {
    let mut sender = sender(slow());
    for _ in 0..40 {
        sender.send(&noise(9, 1300).packet(), &PLAIN);
    }
    sender.drain();
    let probes = probes(&sender);
    assert!(probes.iter().any(|(probe, via)| probe.size == 0 && *via == Via::Esp));
    assert!(probes.iter().all(|(probe, via)| probe.id == 0 || *via == Via::Esp), "{probes:?}");
}

#[test]
fn streams_stay_in_udp() {
    for rate in [None, slow()] {
        let mut sender = in_use(rate);
        for _ in 0..3 {
            sender.send(&noise(9, 1000).packet(), &PLAIN);
            let (to, bytes) = (endpoint(), vec![0x40; 900].into());
            let (peer, tin, flow, segment, early) = (PEER, Tin::Bulk, 7, 300, None);
            let train = StreamTrain { peer, to, early, tin, flow, segment, inside: false, bytes };
            sender.order(Order::Stream(Box::new(train)));
        }
        sender.drain();
        let quic = |datagram: &[u8]| datagram[0] == 0x40;
        let sent = sender.wire.datagrams.iter().zip(&sender.wire.vias);
        let mut kinds: Vec<(bool, Via)> = sent.map(|((datagram, _), via)| (quic(datagram), *via)).collect();
        assert_eq!(kinds.iter().filter(|(quic, _)| *quic).count(), 9);
        kinds.retain(|(quic, via)| *quic != (*via == Via::Udp));
        assert_eq!(kinds, [], "{rate:?}");
    }
}

#[test]
fn refused_datagrams_lead_back_to_udp() {
    let mut sender = in_use(None);
    sender.wire.refuses_direct = true;
    for _ in 0..3 {
        send(&mut sender, 100);
    }
    assert_eq!(sender.wire.vias, [Via::Udp; 2], "one is lost");
    for _ in 0..9 {
        sender.now += Duration::from_millis(1200);
        send(&mut sender, 100);
    }
    assert_eq!(sender.peer.carrier.state(), CarrierState::Refused);
}

/// A receiver that takes it, or not.
fn receiver(direct: bool) -> Receiver {
    Receiver::of(InboundSa::new(&sa_spec(STRAIT)).with_direct(direct))
}

/// What a datagram is directly behind IP.
fn behind_ip(datagram: &[u8], from: SocketAddr) -> Vec<u8> {
    let SocketAddr::V4(from) = from else { panic!("{from}") };
    let mut packet = [vec![0; 20], datagram.to_vec()].concat();
    let (src, dst) = (*from.ip(), "192.0.2.2".parse().unwrap());
    let (protocol, payload_len) = (Protocol::ESP, datagram.len());
    V4Header { src, dst, tos: Tos(0), id: 1, dont_fragment: true, protocol, payload_len }
        .emit(&mut packet)
        .unwrap();
    packet
}

#[test]
fn packets_directly_behind_ip_are_taken_only_where_that_is_agreed() {
    let mut sender = sender(None);
    send(&mut sender, 100);
    let datagram = sender.wire.datagrams[0].0.clone();
    for (agreed, taken, refused) in [(true, 1, 0), (false, 0, 1)] {
        let mut receiver = receiver(agreed);
        receiver.take_direct(&behind_ip(&datagram, endpoint()));
        receiver.finish();
        assert_eq!((receiver.site.packets.len(), receiver.drops(Reason::UnknownSpi)), (taken, refused));
        assert_eq!(receiver.peer.carrier.in_direct.get(), taken as u64);
        assert_eq!(receiver.peer.in_wire.get(), if agreed { datagram.len() as u64 + 20 } else { 0 });
        // By the other carrier it is the same packet, which came already.
        receiver.take(&datagram, Tos(0));
        receiver.finish();
        assert_eq!(receiver.site.packets.len(), 1);
    }
}

#[test]
fn stranger_directly_behind_ip_is_no_notice() {
    let mut receiver = receiver(true);
    let forged = [&[5; 4][..], &[0; 60]].concat();
    receiver.take_direct(&behind_ip(&forged, endpoint()));
    assert_eq!(receiver.drops(Reason::UnknownSpi), 1);
    assert_eq!((receiver.site.notices.len(), receiver.site.orders.len()), (0, 0));
}

#[test]
fn peer_is_where_its_datagrams_come_from_in_udp_only() {
    let mut sender = sender(None);
    for _ in 0..4 {
        sender.now += Duration::from_millis(1);
        send(&mut sender, 100);
    }
    let elsewhere: SocketAddr = "198.51.100.7:9".parse().unwrap();
    let mut receiver = receiver(true);
    let data: Vec<Vec<u8>> = sender.wire.datagrams.iter().map(|(datagram, _)| datagram.clone()).collect();
    receiver.take_direct(&behind_ip(&data[0], elsewhere));
    assert_eq!(receiver.peer.endpoint.get(), None);
    receiver.take(&data[1], Tos(0));
    assert_eq!(receiver.peer.endpoint.get(), Some(endpoint()));
    receiver.take_direct(&behind_ip(&data[2], elsewhere));
    assert_eq!(receiver.peer.endpoint.get(), Some(endpoint()));
    let mut bytes = data[3].clone();
    let batch =
        inbound::Batch { from: elsewhere.into(), tos: Tos(0), segment: bytes.len(), bytes: &mut bytes };
    receiver.half.datagrams(batch, crate::sample::NOW, &mut receiver.site);
    assert_eq!(receiver.peer.endpoint.get(), Some(elsewhere), "it goes on roaming");
}
