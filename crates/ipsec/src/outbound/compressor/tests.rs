use core::time::Duration;
use std::sync::Arc;

use strait_clock::{Stopwatch, Time};
use strait_compress::Method;
use strait_crypto::{KeyMaterial, Suite};
use strait_scheduler::Rate;
use strait_wire::ip::Version;
use strait_wire::vnet::Header;
use strait_wire::{Protocol, Spi};

use crate::outbound::{CompressTools, Order};
use crate::pool::JOBS_AN_ENGINE;
use crate::sample::{PEER, Receiver, SPI, STRAIT, Sender, Shape, rule};
use crate::{IvMode, OutboundSa, PeerId, PeerSpec, Policies, Reason, Rule, RuleSet, SaSpec};

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
fn queued_units_are_spread_over_engines() {
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
fn single_unit_runs_on_calling_thread() {
    let mut sender = Sender::new(STRAIT, 1500, None, vec![rule(1001, 1, Method::ZSTD)]).with_workers(3);
    let (packet, header) = large(1);
    sender.send(&packet, &header);
    sender.drain();
    assert_eq!(sender.wire.handed, 0, "an engine that is idle and has nothing to be brought is first");
    assert!(!sender.wire.datagrams.is_empty());
}

/// The DSCP of single packets, by which their datagrams are known.
const SINGLE: u8 = 46 << 2;

/// Which share of a link of 10 Mbit/s is used while one worker takes so long for each block, in milliseconds; and how long single packets
/// of other flows waited in the median.
fn used(each: u64) -> (f64, Duration) {
    let rate = Rate::from_bits(10_000_000).unwrap();
    let rules = vec![rule(1001, 1, "zstd-15".parse().unwrap())];
    let mut sender = Sender::new(STRAIT, 1500, Some(rate), rules).with_workers(1);
    let mut random = strait_clock::Random::new(1);
    let [own, mut tools] = [(); 2].map(|()| {
        let mut clock = 0;
        CompressTools::new(Stopwatch::new(move || {
            clock += each * 1_000_000;
            clock
        }))
    });
    sender.out.stages.compressor.pool.tools = own;
    let begin = sender.now;
    let (mut free, mut sent) = (begin, 0);
    let mut done: Vec<(Time, super::CompressJob)> = Vec::new();
    let (mut port, mut asked, mut waited, mut seen) = (2_000, begin, Vec::new(), 0);
    let mut waits: Option<Time> = None;
    loop {
        let came = sender.wire.datagrams.get(seen..).unwrap_or_default().iter();
        if came.filter(|(_, tos)| tos.0 == SINGLE).count() > 0
            && let Some(since) = waits.take()
        {
            waited.push(sender.now.since(since));
        }
        seen = sender.wire.datagrams.len();
        if waits.is_none() && sender.now >= asked && sent < 2_900 {
            port += 1;
            let single = Shape::new(Version::V4, Protocol::UDP, vec![1; 40]);
            let single = Shape { ports: [9, port], tos: SINGLE, ..single }.packet();
            sender.send(&single, &Header::PLAIN);
            waits = Some(sender.now);
            asked = sender.now + Duration::from_millis(33);
        }
        // There is always something to send, and no more than may wait.
        while sent < 3_000 && sent < sender.peer.out_packets.get() + 80 {
            // Half of it is left.
            let payload = (0..19_500).map(|_| b'a' + (random.next_u64() & 15) as u8).collect();
            let shape = Shape::new(Version::V4, Protocol::TCP, payload);
            let (packet, header) = Shape { ports: [9, 1001], ..shape }.super_packet(1_300);
            sender.send(&packet, &header);
            sent += 15;
        }
        sender.release();
        for mut job in sender.wire.jobs.drain(..) {
            job.run(&mut tools);
            free = free.max(sender.now) + Duration::from_millis(each);
            done.push((free, job));
        }
        let step = sender.out.poll_timeout().map(|deadline| deadline.at.max(sender.now));
        let ends = done.first().map(|(at, _)| *at);
        let Some(next) = step.into_iter().chain(ends).min() else { break };
        sender.now = next;
        if ends == Some(next) {
            sender.out.finished(done.remove(0).1, next);
        }
    }
    assert_eq!(sender.dropped(), 0);
    waited.sort_unstable();
    let median = waited[waited.len() / 2];
    let took = sender.now.since(begin).as_secs_f64();
    (sender.peer.out_wire.get() as f64 * 8.0 / 10e6 / took, median)
}

#[test]
fn link_does_not_wait_while_the_next_block_is_compressed_and_single_packets_pass() {
    for each in [1, 4, 8] {
        let (used, waited) = used(each);
        assert!(used > 0.95, "{each} ms for each block: {used:.3} of the link");
        assert!(waited < Duration::from_millis(2), "{each} ms for each block: {waited:?}");
    }
}

#[test]
fn removing_peer_returns_its_jobs() {
    let mut sender = busy(2);
    sender.out.release(sender.now, &mut sender.wire);
    assert!(!sender.wire.jobs.is_empty());
    sender.order(Order::RemovePeer(PEER));
    sender.drain();
    let gone = sender.peer.out_packets.get();
    assert_eq!(gone + sender.counters.drops.get(Reason::NoPeer), 8 * 31, "each left or is counted");
    assert_eq!(sender.out.stages.compressor.pool.free(), 3 * JOBS_AN_ENGINE);
}

#[test]
fn rule_change_does_not_delay_pending_units() {
    let mut sender = busy(2);
    sender.out.release(sender.now, &mut sender.wire);
    sender.order(Order::Rules(Arc::new(RuleSet::default())));
    sender.drain();
    assert_eq!((sender.peer.out_packets.get(), sender.dropped()), (8 * 31, 0));
}

/// The second peer.
const OTHER: PeerId = PeerId(99);

/// A sender with workers and two peers, the second of which is reached at `rate`; IPv6 goes there.
fn two_peers(rate: Option<Rate>) -> Sender {
    let v4 = rule(1001, 1, Method::ZSTD);
    let v6 = Rule { from: "::/0".parse().unwrap(), to: "::/0".parse().unwrap(), ..v4.clone() };
    let mut sender = Sender::new(STRAIT, 1500, None, vec![v4, v6]).with_workers(2);
    sender.order(Order::AddPeer(Box::new(PeerSpec {
        id: OTHER,
        allowed: Vec::new(),
        endpoint: Some("192.0.2.2:4500".parse().unwrap()),
        mtu: Some(1500),
        counters: Arc::default(),
        caches: Arc::default(),
    })));
    let mut policies = Policies::exit();
    policies.allow("10.1.0.0/16".parse().unwrap(), PEER);
    policies.allow("fd01::/16".parse().unwrap(), OTHER);
    sender.order(Order::Policies(Arc::new(policies)));
    let key = KeyMaterial::new(Suite::Aes128Gcm, &[9; 20]).unwrap();
    let spec = SaSpec::session(OTHER, Spi(0x0777_7777), key, IvMode::Implicit, STRAIT);
    sender.order(Order::Install(Box::new(OutboundSa::new(&spec))));
    sender.order(Order::Rate(OTHER, rate.into()));
    sender
}

fn packet(version: Version, port: u16, payload: Vec<u8>) -> Vec<u8> {
    Shape { ports: [9, port], ..Shape::new(version, Protocol::UDP, payload) }.packet()
}

#[test]
fn jobs_for_a_peer_without_keys_are_given_up() {
    let mut sender = two_peers(None);
    for _ in 0..60 {
        sender.send(&packet(Version::V4, 1001, b"strait ".repeat(180)), &Header::PLAIN);
    }
    sender.out.release(sender.now, &mut sender.wire);
    assert!(!sender.wire.jobs.is_empty());
    sender.order(Order::Withdraw(PEER, SPI));
    sender.drain();
    let pool = &sender.out.stages.compressor.pool;
    assert_eq!(pool.free(), 3 * JOBS_AN_ENGINE, "none is held");
    assert!(sender.counters.drops.get(Reason::NoSa) > 0);
    let before = sender.wire.datagrams.len();
    sender.send(&packet(Version::V6, 1001, b"strait ".repeat(180)), &Header::PLAIN);
    sender.drain();
    assert_eq!(sender.wire.datagrams.len(), before + 1, "the other peer is served");
}

#[test]
fn train_leaves_before_next_link_is_served() {
    let mut sender = two_peers(Rate::from_bits(3_000_000));
    let mut random = strait_clock::Random::new(1);
    let mut noise = |version, len: u64| {
        let payload = (0..len).map(|_| random.next_u64().to_be_bytes()[0]).collect();
        packet(version, 9, payload)
    };
    for less in 0..40 {
        sender.send(&noise(Version::V6, 1_300 - less), &Header::PLAIN);
    }
    sender.out.release(sender.now, &mut sender.wire);
    sender.now += core::time::Duration::from_millis(50);
    for _ in 0..20 {
        sender.send(&noise(Version::V4, 1_300), &Header::PLAIN);
    }
    sender.send(&packet(Version::V4, 1001, b"strait ".repeat(180)), &Header::PLAIN);
    sender.drain();
    assert_eq!(sender.peer.out_datagrams.get(), 21, "each left as its peer's");
}
