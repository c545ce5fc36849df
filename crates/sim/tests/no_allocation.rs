//! In the long run neither sender nor receiver allocates for a packet, whatever form it takes.

#![allow(unsafe_code, reason = "an allocator that counts has to be one")]
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::IoSlice;

use core::time::Duration;

use strait_clock::{Stopwatch, Time};
use strait_compress::Calibration;
use strait_ipsec::inbound::{Batch, ExpandJob, ExpandTools, Inlet};
use strait_ipsec::outbound::{self, Outlet, Train, TransmitRefused};
use strait_ipsec::{Domain, LeakPolicy, Mix, Notice, Padding, Place, Reason, Rule};
use strait_sim::{Conversation, Filler, FlowShape, Halves, HalvesSettings, NodeId};
use strait_wire::{Tos, vnet};

#[path = "no_allocation/lone.rs"]
mod lone;

thread_local! {
    /// Allocations of this thread.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator as it came; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's layout, as it came.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's memory and layout, as they came.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's memory, layout and size, as they came.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The network and both hosts, in memory that was there before.
struct Wire {
    bytes: Vec<u8>,
    /// Length of each train and its segments.
    trains: Vec<(usize, usize)>,
    delivered: u64,
}

impl Outlet for Wire {
    fn transmit(&mut self, train: Train<'_>) -> Result<(), TransmitRefused> {
        assert!(
            self.bytes.len() + train.bytes.len() <= self.bytes.capacity(),
            "the test's buffer is too small"
        );
        self.bytes.extend_from_slice(train.bytes);
        self.trains.push((train.bytes.len(), train.segment));
        Ok(())
    }

    fn to_host(&mut self, _: &[u8]) {}

    fn notice(&mut self, _: Notice) {}
}

impl Inlet for Wire {
    fn deliver(&mut self, _: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason> {
        self.delivered += pieces.len() as u64;
        Ok(())
    }

    fn control(&mut self, _: Place, _: Tos, _: &[u8]) {}

    fn order(&mut self, _: outbound::Order) {}

    fn notice(&mut self, _: Notice) {}
}

/// A host beside whom workers expand, in memory that was there before: jobs come back one round of the loop later.
struct Worked {
    jobs: Vec<ExpandJob>,
    handed: u64,
    delivered: u64,
}

impl Inlet for Worked {
    fn deliver(&mut self, _: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason> {
        self.delivered += pieces.len() as u64;
        Ok(())
    }

    fn control(&mut self, _: Place, _: Tos, _: &[u8]) {}

    fn order(&mut self, _: outbound::Order) {}

    fn notice(&mut self, _: Notice) {}

    fn hand_over(&mut self, _: usize, job: ExpandJob) -> Option<ExpandJob> {
        self.handed += 1;
        self.jobs.push(job);
        None
    }
}

/// What the last rounds came to.
#[derive(Debug, Default)]
struct Steady {
    /// Allocations of the sender.
    sending: u64,
    /// Allocations of the receiver.
    receiving: u64,
    datagrams: u64,
    delivered: u64,
    /// Blocks that were compressed, from the first round on.
    blocks: u64,
}

/// Sends the packets again and again, and receives what leaves.
fn steady(settings: HalvesSettings, packets: &[(Vec<u8>, vnet::Header)]) -> Steady {
    let mut packets = packets.to_vec();
    const ROUNDS: u64 = 60;
    let mut now = Time::from_millis(1000);
    let mut halves = Halves::new(settings, now);
    let mut wire =
        Wire { bytes: Vec::with_capacity(4 << 20), trains: Vec::with_capacity(10_000), delivered: 0 };
    let from = NodeId(0).outer_v4();
    let mut steady = Steady::default();
    for round in 0..ROUNDS {
        let before = COUNT.with(Cell::get);
        for (packet, header) in &mut packets {
            halves.outbound.packet(packet, header, now, &mut wire);
        }
        halves.outbound.release(now, &mut wire);
        while let Some(deadline) = halves.outbound.poll_timeout() {
            now = now.max(deadline.at);
            halves.outbound.release(now, &mut wire);
        }
        let between = COUNT.with(Cell::get);
        let (Wire { bytes, trains, .. }, mut start) = (&mut wire, 0);
        let mut sink = Wire { bytes: Vec::new(), trains: Vec::new(), delivered: 0 };
        for (len, segment) in trains.iter().copied() {
            let bytes = bytes.get_mut(start..start + len).unwrap();
            start += len;
            halves.inbound.datagrams(
                Batch { from: from.into(), tos: Tos(0), segment, bytes },
                now,
                &mut sink,
            );
        }
        let after = COUNT.with(Cell::get);
        let datagrams: u64 = trains.iter().map(|(len, segment)| len.div_ceil(*segment) as u64).sum();
        bytes.clear();
        trains.clear();
        now += Duration::from_millis(10);
        // Contexts, queues and tables are made at their first use.
        if round >= ROUNDS / 2 {
            steady.sending += between - before;
            steady.receiving += after - between;
            steady.datagrams += datagrams;
            steady.delivered += sink.delivered;
        }
    }
    steady.blocks = halves.sender().codecs.iter().map(|codec| codec.blocks.get()).sum();
    steady
}

fn whole(packets: impl IntoIterator<Item = Vec<u8>>) -> Vec<(Vec<u8>, vnet::Header)> {
    packets.into_iter().map(|packet| (packet, vnet::Header::default())).collect()
}

fn shape(port: u16) -> FlowShape {
    FlowShape::new(NodeId(0).inner_v4(port), NodeId(1).inner_v4(port))
}

fn talk(filler: Filler, count: usize, len: usize) -> Vec<(Vec<u8>, vnet::Header)> {
    let mut talk = Conversation::new(shape(80), filler);
    whole((0..count).map(|_| talk.next_packet(len)))
}

fn compressing(method: &str) -> Vec<Rule> {
    vec![Rule {
        history: Some(strait_ipsec::HistoryScope::Flow),
        cache: None,
        from: "0.0.0.0/0".parse().unwrap(),
        to: "0.0.0.0/0".parse().unwrap(),
        protocol: None,
        ports: Vec::new(),
        domain: Domain(0),
        allowed: method.parse().unwrap(),
        policy: LeakPolicy::NONE,
    }]
}

fn assert_none(what: &str, settings: HalvesSettings, packets: &[(Vec<u8>, vnet::Header)]) -> Steady {
    let steady = steady(settings, packets);
    assert!(steady.delivered >= 30 * packets.len() as u64, "{what}: {steady:?}");
    assert_eq!((steady.sending, steady.receiving), (0, 0), "{what}");
    steady
}

#[test]
fn the_allocator_counts() {
    let before = COUNT.with(Cell::get);
    drop(core::hint::black_box(vec![0_u8; 100]));
    assert!(COUNT.with(Cell::get) > before);
}

#[test]
fn raw_packets() {
    let steady = assert_none("raw", HalvesSettings::default(), &talk(Filler::Random, 100, 1200));
    assert_eq!(steady.datagrams, steady.delivered);
}

#[test]
fn super_packets() {
    let payload = vec![7; 60_000];
    let tcp = shape(80).tcp_super(1, &payload, 1400);
    let udp = shape(81).udp_super(&payload, 1400);
    let packets = [tcp.clone(), udp.clone(), tcp];
    let up = "100Mbit".parse().ok();
    for settings in [HalvesSettings::default(), HalvesSettings { up, ..HalvesSettings::default() }] {
        let steady = assert_none("TCP and UDP", settings, &packets);
        assert_eq!(steady.datagrams, 30 * 3 * 43);
    }
}

#[test]
fn bundles() {
    let settings = HalvesSettings { up: "10Mbit".parse().ok(), ..HalvesSettings::default() };
    let steady = assert_none("bundles", settings, &talk(Filler::Random, 200, 60));
    assert!(steady.datagrams * 10 < steady.delivered, "{steady:?}");
}

#[test]
fn compressed_blocks() {
    for method in ["zstd-3", "lz4", "deflate-6"] {
        for up in [None, Some("10Mbit")] {
            let up = up.and_then(|up| up.parse().ok());
            let settings = HalvesSettings { up, rules: compressing(method), ..HalvesSettings::default() };
            let steady = assert_none(method, settings, &talk(Filler::Text, 100, 700));
            assert!(steady.blocks >= 60, "{method}: {steady:?}");
        }
    }
}

#[test]
fn padded_blocks_of_one_flow() {
    for padding in Padding::ALL {
        for pause in [false, true] {
            let policy = LeakPolicy { padding, mix: Mix::Flow, pause };
            let rules = compressing("zstd-3").into_iter().map(|rule| Rule { policy, ..rule }).collect();
            let settings = HalvesSettings { up: "10Mbit".parse().ok(), rules, ..HalvesSettings::default() };
            let steady = assert_none("padded", settings, &talk(Filler::Text, 100, 1200));
            assert!(steady.blocks > 0, "{policy:?}: {steady:?}");
        }
    }
}

/// The times of a machine on which a block is worth a worker from the first on.
fn slow() -> Calibration {
    let slow = Calibration::assumed().numbers().map(|numbers| {
        let [a, b, c, set_up, per_byte, d, e, f, g] = numbers;
        [a, b, c, set_up * 30.0, per_byte * 30.0, d, e, f, g]
    });
    Calibration::from_numbers(&slow).unwrap()
}

/// With it each job takes 50 us, near to that: what engines take is learned as well.
fn stopwatch() -> Stopwatch {
    let mut nanos = 0;
    Stopwatch::new(move || {
        nanos += 50_000;
        nanos
    })
}

#[test]
fn blocks_that_workers_expand() {
    // Jobs are made when they are first needed, and engines learn for a while: the last new one is in round 39.
    const ROUNDS: u64 = 300;
    let mut now = Time::from_millis(1000);
    let settings = HalvesSettings { rules: compressing("zstd-3"), ..HalvesSettings::default() };
    let mut halves = Halves::new(settings, now);
    halves.inbound = halves.inbound.with_workers(2, &slow(), stopwatch());
    let mut tools = ExpandTools::new(stopwatch());
    let mut wire =
        Wire { bytes: Vec::with_capacity(4 << 20), trains: Vec::with_capacity(10_000), delivered: 0 };
    let mut host = Worked { jobs: Vec::with_capacity(100), handed: 0, delivered: 0 };
    // Packets that shrink between packets that do not, so that some wait behind blocks.
    let mut packets = Vec::new();
    for (text, noise) in talk(Filler::Text, 400, 700).chunks(40).zip(talk(Filler::Random, 10, 900)) {
        packets.extend_from_slice(text);
        packets.push(noise);
    }
    let (mut counted, mut sent) = (0, 0);
    for round in 0..ROUNDS {
        for (packet, header) in &mut packets {
            halves.outbound.packet(packet, header, now, &mut wire);
            sent += 1;
        }
        halves.outbound.release(now, &mut wire);
        let before = COUNT.with(Cell::get);
        let (Wire { bytes, trains, .. }, mut start) = (&mut wire, 0);
        for (len, segment) in trains.iter().copied() {
            let end = start + len;
            while start < end {
                let bytes = bytes.get_mut(start..end).unwrap();
                let batch = Batch { from: NodeId(0).outer_v4().into(), tos: Tos(0), segment, bytes };
                start += halves.inbound.datagrams(batch, now, &mut host);
                if start < end {
                    let mut job = host.jobs.pop().unwrap();
                    job.run(&mut tools);
                    halves.inbound.finished(job, now, &mut host);
                }
            }
        }
        halves.inbound.release(now, &mut host);
        while let Some(mut job) = host.jobs.pop() {
            job.run(&mut tools);
            halves.inbound.finished(job, now, &mut host);
        }
        counted += if round >= ROUNDS / 2 { COUNT.with(Cell::get) - before } else { 0 };
        bytes.clear();
        trains.clear();
        now += Duration::from_millis(10);
    }
    assert_eq!((host.delivered, counted), (sent, 0));
    assert!(host.handed > ROUNDS, "{}", host.handed);
}

#[test]
fn blocks_in_several_parts() {
    // Random text shrinks little, so that a block of many packets takes many datagrams.
    let mut random = strait_clock::Random::new(1);
    let packets = whole((0..100).map(|_| {
        let digits: Vec<u8> =
            (0..700).map(|_| b"0123456789abcdef"[(random.next_u64() % 16) as usize]).collect();
        shape(80).udp(&digits)
    }));
    let up = "10Mbit".parse().ok();
    let settings = HalvesSettings { up, rules: compressing("zstd-1"), ..HalvesSettings::default() };
    let steady = assert_none("parts", settings, &packets);
    assert!(steady.blocks > 60 && steady.datagrams > 5 * steady.blocks / 2, "{steady:?}");
}
