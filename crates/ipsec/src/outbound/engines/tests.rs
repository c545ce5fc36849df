use strait_compress::Method;
use strait_wire::Protocol;
use strait_wire::ip::Version;
use strait_wire::vnet::Header;

use crate::engines::JOBS_AN_ENGINE;
use crate::outbound::Order;
use crate::sample::{PEER, Receiver, STRAIT, Sender, Shape, rule};
use crate::{Reason, RuleSet};

/// A super-packet of text that takes long enough to be worth a worker.
fn large(fill: u8) -> (Vec<u8>, Header) {
    let payload =
        (0..40_000_u32).map(|at| if at % 7 == 0 { fill } else { b"strait "[at as usize % 7] }).collect();
    let shape = Shape::new(Version::V4, Protocol::TCP, payload);
    Shape { ports: [9, 1001], ..shape }.super_packet(1_300)
}

fn busy(workers: usize) -> Sender {
    let rules = vec![rule(1001, 1, Method::ZSTD)];
    let mut sender = Sender::new(STRAIT, 1500, None, rules).with_workers(workers);
    for fill in 0..8 {
        let (packet, header) = large(fill);
        sender.send(&packet, &header);
    }
    sender
}

#[test]
fn what_waits_is_shared_out() {
    let mut sender = busy(3);
    sender.drain();
    assert!(sender.wire.handed >= 4, "{} of 8", sender.wire.handed);
    let mut receiver = Receiver::new(STRAIT);
    receiver.take_all(&sender.wire);
    assert_eq!((receiver.peer.in_packets.get(), sender.dropped()), (8 * 31, 0));

    let mut alone = busy(0);
    alone.drain();
    assert_eq!(alone.wire.handed, 0);
    assert_eq!(alone.wire.datagrams.len(), sender.wire.datagrams.len());
}

#[test]
fn one_unit_stays_with_the_thread_that_calls() {
    let mut sender = Sender::new(STRAIT, 1500, None, vec![rule(1001, 1, Method::ZSTD)]).with_workers(3);
    let (packet, header) = large(1);
    sender.send(&packet, &header);
    sender.drain();
    assert_eq!(sender.wire.handed, 0, "an engine that is idle and has nothing to be brought is first");
    assert!(!sender.wire.datagrams.is_empty());
}

#[test]
fn a_peer_that_goes_takes_no_job_along() {
    let mut sender = busy(2);
    sender.out.release(sender.now, &mut sender.wire);
    assert!(!sender.wire.jobs.is_empty());
    sender.order(Order::RemovePeer(PEER));
    sender.drain();
    let gone = sender.peer.out_packets.get();
    assert_eq!(gone + sender.counters.drops.get(Reason::NoPeer), 8 * 31, "each left or is counted");
    assert_eq!(sender.out.works.engines.idle.len() + sender.out.works.engines.unmade, 3 * JOBS_AN_ENGINE);
}

#[test]
fn other_rules_do_not_hold_up_what_is_under_way() {
    let mut sender = busy(2);
    sender.out.release(sender.now, &mut sender.wire);
    sender.order(Order::Rules(std::sync::Arc::new(RuleSet::default())));
    sender.drain();
    assert_eq!((sender.peer.out_packets.get(), sender.dropped()), (8 * 31, 0));
}
