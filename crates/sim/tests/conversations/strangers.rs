//! What strangers send costs a tunnel at 1 Mbit/s next to nothing: not its packets' time, and not its link out.

use core::time::Duration;
use std::net::SocketAddr;
use std::time::Instant;

use strait_clock::Time;
use strait_keying::{Action, Control, ControlSettings, KeyExport, Lifetime, PresharedToken, Start, Where};
use strait_scheduler::{LinkRate, Rate};
use strait_sim::{LinkSettings, NodeId, NodeSettings, SimDatagram, SimNetwork};
use strait_wire::Tos;

use crate::stage::{A, B, C, Seed, joined, millis, seconds, v4};

/// How long the flood lasts, and the tunnel is watched beyond it.
const FLOOD: Duration = seconds(4);
const AFTER: Duration = seconds(3);
/// A flight of the responder leaves at once before any share is counted.
const FIRST_FLIGHT: u64 = 3_000;

/// The first datagrams of a stranger that begins a handshake with node 0.
fn first_flight(number: u64, at: Time) -> Vec<Vec<u8>> {
    #[expect(clippy::disallowed_methods, reason = "QUIC counts from some instant; which one has no effect")]
    let base = Instant::now();
    let node = NodeSettings::new(NodeId(200));
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&number.to_be_bytes());
    let settings = ControlSettings {
        identity: node.id.private_key(),
        capabilities: node.capabilities.clone(),
        up: LinkRate::Unpaced,
        lifetime: Lifetime::default(),
        token: None,
        export: KeyExport::Never,
        counters: Default::default(),
        seed: seed.into(),
        base,
    };
    let mut control = Control::new(settings, at).unwrap();
    let target = NodeSettings::new(A);
    control.add_peer(target.as_peer(Where::Address(target.address), Start::Eager), at);
    let mut flight = Vec::new();
    while let Some(action) = control.poll_action() {
        if let Action::Out(strait_ipsec::outbound::Order::Transmit(_, _, bytes)) = action {
            flight.push(bytes.to_vec());
        }
    }
    flight
}

/// Initials as a stranger sends them, many times over.
fn initials(at: Time) -> Vec<Vec<u8>> {
    (0..60).flat_map(|number| first_flight(number, at)).collect()
}

/// 1,200 bytes of a version that no node has.
fn unknown_version() -> Vec<Vec<u8>> {
    let ids = [&[8][..], &[0xd1; 8], &[8], &[0x51; 8]].concat();
    let mut bytes = [&[0xc0, 0x1a, 0x2a, 0x3a, 0x5a], ids.as_slice()].concat();
    bytes.resize(1200, 0);
    vec![bytes]
}

/// Short headers with connection ids that no connection has.
fn short_headers() -> Vec<Vec<u8>> {
    (0..100_u8).map(|number| [&[0x40, number], [number ^ 0x5a; 1180].as_slice()].concat()).collect()
}

fn spoofed(number: u32) -> SocketAddr {
    let [_, a, b, c] = number.to_be_bytes();
    SocketAddr::from(([10, a, b, c], 4000))
}

/// What a flood did to a tunnel with a packet each 5 ms.
struct Damage {
    /// The longest time without a packet at the other end.
    silence: Duration,
    /// Wire bytes that left for strangers.
    answers: u64,
    /// Packets sent and delivered.
    sent: usize,
    delivered: usize,
}

/// Sends `flood` at node 0 of a tunnel whose link takes 1 Mbit/s, `a_second` datagrams a second.
fn damage(seed: u64, flood: &[Vec<u8>], a_second: u32, from: impl Fn(u32) -> SocketAddr) -> Damage {
    let mut network = joined(seed, |pair| pair.a.up = "1Mbit".parse().unwrap());
    network.run_for(seconds(2));
    network.node_mut(B).take_delivered();
    network.start_capture();
    let (began, mut number) = (network.now(), 0_u32);
    let flow = v4(A, B, 80);
    let mut sent = 0;
    while network.now() < began + FLOOD + AFTER {
        network.send(A, &flow.udp(&[0x5a; 400]));
        sent += 1;
        if network.now() < began + FLOOD {
            for _ in 0..a_second / 200 {
                number += 1;
                let bytes = flood[number as usize % flood.len()].clone();
                inject(&mut network, from(number), bytes);
            }
        }
        network.run_for(millis(5));
    }
    network.run_for(seconds(2));
    let times: Vec<Time> = network.node(B).delivered().iter().map(|packet| packet.at).collect();
    let last = times.iter().copied().max().unwrap_or(began);
    let from_the_start: Vec<Time> = [began].into_iter().chain(times.iter().copied()).collect();
    let gaps = from_the_start.windows(2).map(|pair| pair[1] - pair[0]);
    let silence = gaps.chain([(began + FLOOD + AFTER).since(last)]).max().unwrap_or(FLOOD);
    let home = network.node(A).address();
    let peer = network.node(B).address();
    let captured = network.take_capture();
    let strange = captured.iter().filter(|one| one.from == home && one.to != peer);
    let answers = strange.map(SimDatagram::outer_len).sum();
    Damage { silence, answers, sent, delivered: times.len() }
}

fn inject(network: &mut SimNetwork, from: SocketAddr, bytes: Vec<u8>) {
    let at = network.now();
    let to = network.node(A).address();
    network.inject(SimDatagram { at, from, to, tos: Tos(0), fragments: false, bytes });
}

fn assert_small(damage: &Damage) {
    let rate = Rate::from_bits(1_000_000).unwrap();
    let most = rate.bytes_in(FLOOD) / 100 + FIRST_FLIGHT;
    assert!(damage.silence <= millis(100), "silent for {:?}", damage.silence);
    assert!(damage.answers <= most, "{} bytes of answers, {most} allowed", damage.answers);
    assert!(damage.delivered >= damage.sent * 99 / 100, "{} of {}", damage.delivered, damage.sent);
}

#[test]
fn a_flood_of_initials_leaves_the_tunnel_its_link() {
    let _seed = Seed(1);
    let flood = initials(Time::from_millis(1000));
    assert_small(&damage(1, &flood, 2_000, spoofed));
}

#[test]
fn a_flood_of_initials_from_one_address_leaves_the_tunnel_its_link() {
    let _seed = Seed(2);
    let flood = initials(Time::from_millis(1000));
    assert_small(&damage(2, &flood, 2_000, |_| spoofed(7)));
}

#[test]
fn a_flood_of_unknown_versions_leaves_the_tunnel_its_link() {
    let _seed = Seed(3);
    assert_small(&damage(3, &unknown_version(), 10_000, spoofed));
}

#[test]
fn a_flood_of_forged_short_headers_leaves_the_tunnel_its_link() {
    let _seed = Seed(4);
    assert_small(&damage(4, &short_headers(), 10_000, spoofed));
}

/// Restarts node 1, from `address` on, in the midst of a flood of 100,000 datagrams a second at node 0, and says how
/// long it takes until packets can flow again.
fn back_after(seed: u64, address: Option<SocketAddr>, from: impl Fn(u32) -> SocketAddr) -> Option<Duration> {
    back_after_with(seed, || None, address, from)
}

/// The same where both nodes have this token.
fn back_after_with(
    seed: u64,
    token: impl Fn() -> Option<PresharedToken>,
    address: Option<SocketAddr>,
    from: impl Fn(u32) -> SocketAddr,
) -> Option<Duration> {
    let mut network = joined(seed, |pair| {
        (pair.a.token, pair.b.token) = (token(), token());
        pair.a.up = "1Mbit".parse().unwrap();
        (pair.forth.delay, pair.back.delay) = (millis(20), millis(20));
        pair.answer = Some(Start::Eager);
    });
    network.run_for(seconds(2));
    // With a token, what may be of a handshake under way is all that is not refused by its looks.
    let more = if token().is_some() { short_headers() } else { Vec::new() };
    let flood = [initials(network.now()), more].concat();
    let (began, mut number, mut restarted) = (network.now(), 0_u32, false);
    while network.now() < began + seconds(6) {
        for _ in 0..10 {
            number += 1;
            inject(&mut network, from(number), flood[number as usize % flood.len()].clone());
        }
        if !restarted && network.now() >= began + millis(500) {
            restarted = true;
            if let Some(address) = address {
                network.readdress(B, address);
            }
            network.restart(B).unwrap();
        }
        network.run_for(Duration::from_micros(100));
        if restarted && network.node(B).is_up(A) {
            return Some(network.now() - began - millis(500));
        }
    }
    None
}

#[test]
fn a_peer_that_restarts_in_a_spoofed_flood_of_initials_is_back_within_five_seconds() {
    let _seed = Seed(5);
    let back = back_after(5, None, spoofed);
    assert!(back.is_some_and(|back| back <= seconds(5)), "{back:?}");
}

#[test]
fn a_peer_that_restarts_elsewhere_in_a_flood_from_one_address_is_back_within_five_seconds() {
    let _seed = Seed(6);
    let elsewhere = "198.51.100.77:4500".parse().unwrap();
    let back = back_after(6, Some(elsewhere), |_| spoofed(7));
    assert!(back.is_some_and(|back| back <= seconds(5)), "{back:?}");
}

#[test]
fn a_new_handshake_is_not_delayed_on_a_slow_link() {
    // The budget holds a first flight: without a flood, 64 kbit/s cost its time and no round trip more.
    let _seed = Seed(7);
    let mut network = crate::stage::pair(7, |pair| {
        pair.b.up = "64kbit".parse().unwrap();
        (pair.forth.delay, pair.back.delay) = (millis(20), millis(20));
    });
    let began = network.now();
    assert!(network.run_until_up(A, B, seconds(5)));
    let took = network.now() - began;
    // Two and a half round trips, and 3 kB at 64 kbit/s.
    assert!(took <= millis(100 + 375), "{took:?}");
}

#[test]
fn a_peer_with_the_token_that_restarts_anywhere_in_a_spoofed_flood_is_not_delayed() {
    let _seed = Seed(8);
    let elsewhere = "198.51.100.78:4500".parse().unwrap();
    let token = || Some(PresharedToken::from_bytes(&[9; 32]));
    let back = back_after_with(8, token, Some(elsewhere), spoofed);
    // Two and a half round trips of 40 ms.
    assert!(back.is_some_and(|back| back <= millis(150)), "{back:?}");
}

#[test]
fn a_new_peer_gets_in_while_the_tunnel_to_another_is_full() {
    let _seed = Seed(9);
    let mut network = joined(9, |pair| pair.a.up = "1Mbit".parse().unwrap());
    let newcomer = NodeSettings::new(C);
    let hub = network.node(A).address();
    network.add_node(newcomer.clone()).unwrap();
    network.set_link(A, C, LinkSettings { delay: millis(20), ..LinkSettings::default() });
    network.set_link(C, A, LinkSettings { delay: millis(20), ..LinkSettings::default() });
    let flow = v4(A, B, 80);
    let mut up_after = None;
    for ms in 0..5000_u32 {
        // Three times what the link takes.
        network.send(A, &flow.udp(&[0x5a; 400]));
        if ms == 1000 {
            network.add_peer(A, newcomer.as_peer(Where::Unknown, Start::OnTraffic));
            network.add_peer(C, NodeSettings::new(A).as_peer(Where::Address(hub), Start::Eager));
        }
        network.run_for(millis(1));
        if up_after.is_none() && network.node(C).is_up(A) {
            up_after = Some(ms - 1000);
        }
    }
    assert!(up_after.is_some_and(|ms| ms <= 300), "{up_after:?} ms");
}
