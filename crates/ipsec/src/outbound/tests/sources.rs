//! The address of the host that datagrams leave with.

use std::net::IpAddr;

use super::*;
use crate::outbound::Via;
use crate::sample::endpoint;
use crate::{Place, SPARES};

fn local() -> IpAddr {
    "203.0.113.3".parse().unwrap()
}

/// The source of each datagram that leaves when so many packets are sent, one after the other.
fn sources(sender: &mut Sender, packets: usize) -> Vec<Option<IpAddr>> {
    sender.wire.sources.clear();
    sender.wire.datagrams.clear();
    for _ in 0..packets {
        sender.send(&noise(9, 200).packet(), &PLAIN);
        sender.drain();
    }
    sender.wire.sources.clone()
}

#[test]
fn datagrams_leave_with_the_address_that_the_peers_arrive_at() {
    let mut sender = Sender::new(STRAIT, 1500, None, Vec::new());
    assert_eq!(sources(&mut sender, 1), [None], "the routing table chooses");
    let place = Place { remote: endpoint(), local: Some(local()) };
    sender.peer.endpoint.set(place);
    assert_eq!(sources(&mut sender, 2), [Some(local()); 2]);
    sender.order(Order::Keepalive(PEER));
    sender.order(Order::Transmit(Via::Udp, place, [0xc3; 100].into()));
    sender.order(Order::Transmit(Via::Udp, endpoint().into(), [0xc3; 100].into()));
    assert_eq!(sender.wire.sources[2..], [Some(local()), Some(local()), None]);
}

#[test]
fn an_address_that_is_gone_is_forgotten_and_nothing_is_lost() {
    let mut sender = Sender::new(STRAIT, 1500, None, Vec::new());
    let place = Place { remote: endpoint(), local: Some(local()) };
    sender.peer.endpoint.set(place);
    sender.wire.gone = Some((local(), 0));
    assert_eq!(sources(&mut sender, 3), [None; 3], "all of them leave");
    assert_eq!(sender.wire.gone, Some((local(), 1)), "it is tried once");
    assert_eq!(sender.peer.endpoint.place(), Some(endpoint().into()));
    sender.order(Order::Transmit(Via::UdpInFragments, place, [0xc3; 100].into()));
    assert_eq!((sender.wire.sources.len(), sender.dropped()), (4, 0));
    assert_eq!(sender.wire.vias.last(), Some(&Via::UdpInFragments), "nothing but the source is another");
}

#[test]
fn one_of_the_addresses_that_are_offered_takes_the_place_of_one_that_is_gone() {
    let mut sender = Sender::new(STRAIT, 1500, None, Vec::new());
    let spare: IpAddr = "203.0.113.9".parse().unwrap();
    let place = |local| Place { remote: endpoint(), local: Some(local) };
    sender.peer.endpoint.set(place(local()));
    sender.peer.endpoint.offer(endpoint().ip(), [Some(local()), Some(spare)]);
    sender.wire.gone = Some((local(), 0));
    sender.order(Order::Keepalive(PEER));
    assert_eq!(sender.wire.sources, [Some(spare)], "a keepalive leaves with it too");
    assert_eq!(sources(&mut sender, 3), [Some(spare); 3]);
    assert_eq!((sender.wire.gone, sender.dropped()), (Some((local(), 1)), 0));
    assert_eq!(sender.peer.endpoint.place(), Some(place(spare)));
    sender.order(Order::Transmit(Via::Udp, place(local()), [0xc3; 100].into()));
    assert_eq!(sender.wire.sources.last(), Some(&Some(spare)));
}

#[test]
fn nothing_leaves_without_any_of_them() {
    let mut sender = Sender::new(STRAIT, 1500, None, Vec::new());
    sender.peer.endpoint.set(Place { remote: endpoint(), local: Some(local()) });
    sender.peer.endpoint.offer(endpoint().ip(), [None; SPARES]);
    sender.wire.gone = Some((local(), 0));
    assert_eq!(sources(&mut sender, 2), []);
    // It is back.
    sender.wire.gone = None;
    assert_eq!(sources(&mut sender, 1), [Some(local())]);
}
