//! Streams of TCP go on as soon as the path does, though their hosts wait ever longer between two tries.

use core::time::Duration;

use strait_clock::Time;
use strait_scheduler::{LinkRate, Rate};
use strait_sim::{FlowShape, LinkSettings, LinkSwitch, NodeId, PairSettings, SimNetwork, TcpFields};
use strait_wire::Protocol;
use strait_wire::ip::Packet;
use strait_wire::tcp::{Segment, TcpFlags};

use crate::stage::{A, B, Seed, joined, millis, seconds, v4};
use crate::stream::TURN;

/// The shortest and the longest timer of a host (Linux's TCP_RTO_MIN beside what a round trip takes, TCP_RTO_MAX).
const SHORTEST: Duration = millis(200);
const LONGEST: Duration = seconds(120);

/// A stream that has one segment under way, as TCP has after a loss (RFC 5681 section 3.1), with a timer that doubles (RFC 6298).
struct Talker {
    ends: [NodeId; 2],
    shapes: [FlowShape; 2],
    patience: Duration,
    timer: Duration,
    due: Time,
    /// The segment that is under way, the one that is missing at the receiver, and those that came there, again or not.
    sent: u32,
    missing: u32,
    came: u32,
}

impl Talker {
    fn new(way: Way, port: u16, round_trip: Duration) -> Talker {
        let (from, to) = way;
        let patience = SHORTEST + round_trip;
        let (timer, due) = (patience, Time::ZERO);
        let shapes = [v4(from, to, port), v4(to, from, port)];
        Talker { ends: [from, to], shapes, patience, timer, due, sent: 0, missing: 0, came: 0 }
    }

    fn turn(&mut self, network: &mut SimNetwork) {
        if self.due <= network.now() {
            self.send(network);
            self.timer = (2 * self.timer).min(LONGEST);
        }
    }

    fn send(&mut self, network: &mut SimNetwork) {
        network.send(self.ends[0], &self.shapes[0].tcp(self.sent, TcpFlags::PSH, &[7; 500]));
        self.due = network.now() + self.timer;
    }

    fn take(&mut self, network: &mut SimNetwork, node: NodeId, packet: &[u8]) {
        let packet = Packet::parse(packet).unwrap();
        let flow = packet.flow();
        if packet.protocol() != Protocol::TCP {
            return;
        }
        let segment = Segment::parse(packet.payload()).unwrap();
        if node == self.ends[1] && flow.src_port == self.shapes[0].src.port() {
            self.came += 1;
            self.missing += u32::from(segment.seq() == self.missing);
            let fields = TcpFields { seq: 1, ack: self.missing, ..TcpFields::default() };
            network.send(node, &self.shapes[1].tcp_with(&fields, &[]));
        } else if flow.dst_port == self.shapes[0].src.port() && segment.ack() > self.sent {
            (self.sent, self.timer) = (segment.ack(), self.patience);
            self.send(network);
        }
    }
}

/// Carries the streams on until `done`, at most for `span`; says how long that took.
fn run(
    talkers: &mut [Talker],
    network: &mut SimNetwork,
    span: Duration,
    done: impl Fn(&[Talker]) -> bool,
) -> Duration {
    let begin = network.now();
    while !done(talkers) && network.now() < begin + span {
        talkers.iter_mut().for_each(|talker| talker.turn(network));
        network.run_for(TURN);
        for node in [A, B] {
            for one in network.node_mut(node).take_delivered() {
                talkers.iter_mut().for_each(|talker| talker.take(network, node, &one.packet));
            }
        }
    }
    network.now() - begin
}

fn run_for(talkers: &mut [Talker], network: &mut SimNetwork, span: Duration) {
    run(talkers, network, span, |_| false);
}

fn switch(network: &mut SimNetwork, ways: &[Way], switch: LinkSwitch) {
    for (from, to) in ways {
        network.link(*from, *to).switch = switch;
    }
}

fn resent(network: &SimNetwork) -> u64 {
    [(A, B), (B, A)].iter().map(|(at, to)| network.node(*at).peer_counters(*to).queue.resent.get()).sum()
}

fn wire(delay: u64) -> LinkSettings {
    LinkSettings { delay: millis(delay), ..LinkSettings::default() }
}

/// Two nodes so far from each other, whose links have this rate.
fn far(pair: &mut PairSettings, delay: u64, rate: Option<u64>) {
    (pair.forth, pair.back) = (wire(delay), wire(delay));
    let rate = rate.and_then(Rate::from_bits);
    for (node, link) in [(&mut pair.a, &mut pair.forth), (&mut pair.b, &mut pair.back)] {
        link.rate = rate;
        node.up = rate.map_or(LinkRate::Unpaced, LinkRate::Given);
    }
}

/// From one node to another.
type Way = (NodeId, NodeId);

const BOTH: [Way; 2] = [(A, B), (B, A)];

/// Cuts these ways for so many seconds while streams go these ways over links like these; says how long after the return segments come
/// to all their receivers, and new ones leave.
fn outage(cut: &[Way], streams: &[Way], away: u64, delay: u64, rate: Option<u64>) -> [Duration; 2] {
    let _seed = Seed(away);
    let mut network = joined(away, |pair| far(pair, delay, rate));
    let stream = |(way, port)| Talker::new(way, port, millis(2 * delay));
    let mut talkers: Vec<_> = streams.iter().copied().zip(2000..).map(stream).collect();
    run_for(&mut talkers, &mut network, seconds(5));
    switch(&mut network, cut, LinkSwitch::Down);
    run_for(&mut talkers, &mut network, seconds(away));
    let before: Vec<_> = talkers.iter().map(|talker| (talker.came, talker.sent)).collect();
    switch(&mut network, cut, LinkSwitch::Up);
    let all = |talkers: &[Talker], on: fn(&Talker, (u32, u32)) -> bool| {
        talkers.iter().zip(&before).all(|(talker, before)| on(talker, *before))
    };
    let came = run(&mut talkers, &mut network, seconds(150), |it| all(it, |it, before| it.came > before.0));
    let on = run(&mut talkers, &mut network, seconds(150), |it| all(it, |it, before| it.sent > before.1));
    assert!(resent(&network) > 0, "{away} s of {cut:?}");
    run_for(&mut talkers, &mut network, seconds(6));
    assert!(all(&talkers, |it, before| it.sent > before.1 + 4), "{away} s of {cut:?}");
    [came, came + on]
}

#[test]
fn streams_go_on_within_a_second_and_a_round_trip_of_the_links_return() {
    for away in [3, 8, 30, 120] {
        for (delay, rate) in [(30, None), (300, None), (30, Some(64_000))] {
            let (round_trip, limit) = (millis(2 * delay), seconds(1) + millis(2 * delay));
            let [came, on] = outage(&BOTH, &BOTH, away, delay, rate);
            assert!(came <= limit, "{away} s at {rate:?}, {delay} ms away: {came:?}");
            assert!(on <= limit + round_trip, "{away} s at {rate:?}, {delay} ms away: {on:?}");
            for way in [&BOTH[..1], &BOTH[1..]] {
                let [_, on] = outage(way, &BOTH[..1], away, delay, rate);
                assert!(on <= limit + round_trip, "{away} s of {way:?} at {rate:?}, {delay} ms away: {on:?}");
            }
        }
    }
}

#[test]
fn streams_go_on_soon_after_an_outage_of_any_length() {
    // The host of a stream gives up after 15 min (Linux's tcp_retries2).
    for away in [300, 900] {
        let [came, _] = outage(&BOTH, &BOTH, away, 30, None);
        // Probes are a 200th of the silence apart.
        assert!(came <= seconds(away) / 200 + millis(100), "{away}: {came:?}");
    }
}

#[test]
fn host_that_does_not_answer_is_no_outage() {
    let _seed = Seed(1);
    let mut network = joined(1, |pair| far(pair, 30, None));
    let port = v4(A, B, 2000);
    let before = network.link(A, B).counters().entered;
    // As Linux sends a SYN (tcp_syn_retries), ten times one after another.
    let tries = 10;
    for _ in 0..tries {
        for pause in [1, 2, 4, 8, 16, 32] {
            network.send(A, &port.tcp(0, TcpFlags::SYN, &[]));
            network.run_for(seconds(pause));
        }
    }
    assert_eq!(resent(&network), 0);
    let sent = network.link(A, B).counters().entered - before;
    assert!(sent < 2 * 6 * tries + 10, "{sent} datagrams");
}

#[test]
fn probes_end_when_no_host_sends_any_more() {
    let _seed = Seed(2);
    let mut network = joined(2, |pair| far(pair, 30, None));
    let mut talkers = [Talker::new((A, B), 2000, millis(60))];
    run_for(&mut talkers, &mut network, seconds(5));
    switch(&mut network, &BOTH, LinkSwitch::Down);
    network.start_capture();
    run_for(&mut talkers, &mut network, seconds(30));
    let esp = |network: &mut SimNetwork| network.take_capture().iter().filter(|one| one.is_esp()).count();
    let probes = esp(&mut network);
    assert!((50..75).contains(&probes), "{probes} datagrams in 30 s");
    network.run_for(seconds(150));
    esp(&mut network);
    network.run_for(seconds(3000));
    assert_eq!(network.take_capture(), []);
}
