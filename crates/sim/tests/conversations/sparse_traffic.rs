//! Sparse traffic for an hour, wire bytes of both directions counted: polls, telemetry, speech. A tunnel of `WireGuard` with the same
//! packets, by the rules of its protocol, is never cheaper.

use core::time::Duration;

use strait_clock::Time;
use strait_scheduler::{LinkRate, Rate};
use strait_sim::{Conversation, Filler, LinkSettings, SimNetwork};

use crate::stage::{A, B, Seed, millis, pair, v4};

/// One kind of traffic.
struct SparseTraffic {
    name: &'static str,
    /// From one packet of A's to the next.
    every: Duration,
    /// How long it goes on: an hour, and less where packets are many and handshakes count little.
    minutes: u64,
    /// Bytes behind the UDP header of A's packets, and of B's answers 10 ms later.
    forth: usize,
    back: Option<usize>,
}

impl SparseTraffic {
    const fn new(name: &'static str, every: u64, forth: usize, back: Option<usize>) -> SparseTraffic {
        let minutes = if every < 50 { 10 } else { 60 };
        SparseTraffic { name, every: millis(every), minutes, forth, back }
    }

    const fn lasts(&self) -> Duration {
        Duration::from_secs(60 * self.minutes)
    }
}

/// The polls of Modbus are 12 bytes behind 40 of TCP/IP, here behind 28 of UDP/IP; G.729 sends 20 bytes behind 12 of RTP each
/// 20 ms, Opus at 24 kbit/s 60.
const TRAFFIC: [SparseTraffic; 9] = [
    SparseTraffic::new("20 polls a second, one way", 50, 36, None),
    SparseTraffic::new("20 polls a second, answered", 50, 24, Some(24)),
    SparseTraffic::new("a poll every 200 ms, one way", 200, 36, None),
    SparseTraffic::new("a poll every 200 ms, answered", 200, 24, Some(28)),
    SparseTraffic::new("a poll every 500 ms, answered", 500, 24, Some(200)),
    SparseTraffic::new("telemetry every 5 s, one way", 5_000, 100, None),
    SparseTraffic::new("telemetry every 30 s, one way", 30_000, 100, None),
    SparseTraffic::new("speech, G.729, both ways", 20, 32, Some(32)),
    SparseTraffic::new("speech, Opus, one way", 20, 72, None),
];

/// Wire bytes of both directions.
#[derive(Clone, Copy, Debug, Default)]
struct WireBytes {
    forth: u64,
    back: u64,
}

impl WireBytes {
    const fn all(self) -> u64 {
        self.forth + self.back
    }
}

/// An hour of this traffic through two nodes with links of 1.54 Mbit/s, from before their first handshake.
fn strait(seed: u64, traffic: &SparseTraffic, up: LinkRate) -> WireBytes {
    let rate = Rate::from_bits(1_540_000);
    let mut network = pair(seed, |pair| {
        (pair.a.up, pair.b.up) = (up, up);
        pair.forth = LinkSettings { rate, delay: millis(10), ..LinkSettings::default() };
        pair.back = pair.forth;
    });
    let shapes = [v4(A, B, 502), v4(B, A, 502)];
    let mut talks = shapes.map(|shape| Conversation::new(shape, Filler::Random));
    let (mut bytes, end) = (WireBytes::default(), network.now() + traffic.lasts());
    network.start_capture();
    while network.now() < end {
        network.send(A, &talks[0].next_packet(traffic.forth));
        let answer = millis(10);
        network.run_for(answer);
        if let Some(len) = traffic.back {
            network.send(B, &talks[1].next_packet(len));
        }
        network.run_for(traffic.every - answer);
        bytes = count(&mut network, bytes);
    }
    for (talk, to) in talks.iter_mut().zip([B, A]) {
        talk.note(&network.node_mut(to).take_delivered());
        assert!(talk.tally().missing() <= 1, "{}: {:?}", traffic.name, talk.tally());
    }
    bytes
}

fn count(network: &mut SimNetwork, before: WireBytes) -> WireBytes {
    let home = network.node(A).address();
    network.take_capture().iter().fold(before, |bytes, one| {
        let len = one.outer_len();
        if one.from == home {
            WireBytes { forth: bytes.forth + len, ..bytes }
        } else {
            WireBytes { back: bytes.back + len, ..bytes }
        }
    })
}

/// What a tunnel of `WireGuard` sends: the rules of its paper and of `wireguard-go`.
#[derive(Default)]
struct Guard {
    bytes: WireBytes,
    /// When the keys were agreed, with A as initiator.
    keys: Option<Time>,
    /// Since when an end has received packets and sent nothing: A, B.
    unanswered: [Option<Time>; 2],
}

/// IPv4 and UDP.
const OUTER: u64 = 28;
/// Initiation, response, and the message without a packet that confirms the keys or keeps them alive.
const INITIATION: u64 = OUTER + 148;
const RESPONSE: u64 = OUTER + 92;
const EMPTY: u64 = OUTER + 32;
/// REKEY_AFTER_TIME and KEEPALIVE_TIMEOUT.
const REKEY_AFTER: Duration = Duration::from_secs(120);
const KEEPALIVE: Duration = Duration::from_secs(10);

impl Guard {
    /// Keepalives that were due before `now`.
    fn pass(&mut self, now: Time) {
        for (end, unanswered) in self.unanswered.iter_mut().enumerate() {
            if unanswered.is_some_and(|since| since + KEEPALIVE <= now) {
                *unanswered = None;
                *[&mut self.bytes.forth, &mut self.bytes.back][end] += EMPTY;
            }
        }
    }

    /// End `from` (0 is A) sends a packet of `len` bytes, padded to a multiple of 16.
    fn send(&mut self, from: usize, len: usize, now: Time) {
        self.pass(now);
        if from == 0 && self.keys.is_none_or(|keys| keys + REKEY_AFTER <= now) {
            // With the first keys, the packet itself confirms them.
            self.bytes.forth += INITIATION + if self.keys.is_some() { EMPTY } else { 0 };
            self.bytes.back += RESPONSE;
            self.keys = Some(now);
        }
        *[&mut self.bytes.forth, &mut self.bytes.back][from] += EMPTY + len.next_multiple_of(16) as u64;
        self.unanswered[from] = None;
        self.unanswered[1 - from].get_or_insert(now);
    }
}

/// The same hour through it.
fn guarded(traffic: &SparseTraffic) -> WireBytes {
    let mut guard = Guard::default();
    let (mut now, end) = (Time::from_millis(1000), Time::from_millis(1000) + traffic.lasts());
    while now < end {
        guard.send(0, traffic.forth + 28, now);
        if let Some(len) = traffic.back {
            guard.send(1, len + 28, now + millis(10));
        }
        now += traffic.every;
    }
    guard.pass(end);
    guard.bytes
}

#[test]
fn an_hour_of_sparse_traffic_costs_no_more_than_wireguard() {
    let _seed = Seed(1);
    let given = LinkRate::from(Rate::from_bits(1_540_000));
    println!("wire bytes forth + back: Strait with its rate given, estimated; WireGuard; shares of that");
    for traffic in &TRAFFIC {
        let guard = guarded(traffic);
        let [told, auto] = [given, LinkRate::Auto].map(|up| strait(1, traffic, up));
        let shares = [told, auto].map(|bytes| bytes.all() as f64 / guard.all() as f64);
        let columns = [told, auto, guard].map(|bytes| format!("{:>9} + {:<9}", bytes.forth, bytes.back));
        println!("{:30} {} {:.3} {:.3}", traffic.name, columns.join(" "), shares[0], shares[1]);
        assert!(shares.iter().all(|share| *share <= 1.0), "{}: {shares:?}", traffic.name);
    }
}

#[test]
fn a_poll_is_not_answered_by_a_report() {
    let _seed = Seed(2);
    let polls = SparseTraffic { minutes: 2, ..SparseTraffic::new("polls", 50, 36, None) };
    for up in [LinkRate::from(Rate::from_bits(1_540_000)), LinkRate::Auto] {
        let bytes = strait(2, &polls, up);
        // The handshake takes 4,400 bytes each way and the credit 2,000; an empty packet of 56 bytes every 8 s or so says that polls arrive.
        let most = bytes.forth / 100 + 4_400 + 2_000 + 120 / 7 * 56;
        assert!(bytes.back <= most, "{up:?}: {bytes:?}, {most} at most");
    }
}
