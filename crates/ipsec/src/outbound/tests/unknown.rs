//! Packets to addresses whose peer is looked up.

use core::time::Duration;
use std::net::IpAddr;

use super::*;
use crate::Policies;

/// Where the packets of [`text`] go.
fn destination() -> IpAddr {
    Packet::parse(&text(9, 10).packet()).unwrap().dst()
}

/// A sender with an association, to whose peer no address leads yet.
fn seeking() -> Sender {
    let mut sender = Sender::new(STRAIT, 1500, None, Vec::new());
    sender.order(Order::Policies(Arc::new(policies(false))));
    sender.wire.notices.clear();
    sender
}

fn policies(has_peer: bool) -> Policies {
    let mut policies = Policies::exit();
    policies.seek(format!("{}/24", destination()).parse().unwrap());
    if has_peer {
        policies.allow(format!("{}/32", destination()).parse().unwrap(), PEER);
    }
    policies
}

#[test]
fn the_first_packets_wait_for_the_peer_and_leave_in_order() {
    let mut sender = seeking();
    for len in 10..14 {
        sender.send(&text(9, len).packet(), &PLAIN);
    }
    let (packet, header) = text(9, 100).super_packet(34);
    sender.send(&packet, &header);
    assert_eq!(sender.wire.notices, [Notice::NeedsPeer(destination())], "asked for once");
    assert_eq!((sender.dropped(), sender.wire.datagrams.len()), (0, 0));
    sender.order(Order::Policies(Arc::new(policies(true))));
    sender.drain();
    assert_eq!((sender.peer.out_packets.get(), sender.dropped()), (7, 0));
    let lens: Vec<usize> =
        groups(&sender.wire).iter().flat_map(|group| &group.packets).map(Vec::len).collect();
    assert_eq!(lens[..4], [38, 39, 40, 41], "20 bytes of IP and 8 of UDP each");
    // The end of the look-up comes behind.
    sender.order(Order::NoPeer(destination(), sender.now));
    sender.send(&text(9, 10).packet(), &PLAIN);
    sender.drain();
    assert_eq!((sender.peer.out_packets.get(), sender.dropped()), (8, 0));
}

#[test]
fn an_address_without_a_peer_is_dropped_without_asking_until_its_time() {
    let mut sender = seeking();
    sender.send(&text(9, 10).packet(), &PLAIN);
    let until = sender.now + Duration::from_secs(30);
    sender.order(Order::NoPeer(destination(), until));
    assert_eq!(sender.counters.drops.get(Reason::NoPeer), 1);
    for _ in 0..100 {
        sender.send(&text(9, 10).packet(), &PLAIN);
    }
    assert_eq!((sender.counters.drops.get(Reason::NoPeer), sender.wire.notices.len()), (101, 1));
    sender.now = until;
    sender.send(&text(9, 10).packet(), &PLAIN);
    assert_eq!(sender.wire.notices.len(), 2);
}

#[test]
fn what_gets_no_answer_is_dropped_in_the_end_and_what_is_too_much_at_once() {
    let mut sender = seeking();
    for _ in 0..100 {
        sender.send(&text(9, 10).packet(), &PLAIN);
    }
    let (waiting, full) = (100 - sender.dropped(), sender.counters.drops.get(Reason::NoPeerYet));
    assert!(waiting > 0 && full == 100 - waiting);
    sender.now = sender.out.poll_timeout().expect("something waits").at;
    sender.out.release(sender.now, &mut sender.wire);
    assert_eq!((sender.counters.drops.get(Reason::NoPeer), sender.out.poll_timeout()), (waiting, None));
}
