//! Headers that strangers make up for a node without sessions: each is counted by what is wrong with it, and nothing stalls.

use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use strait_clock::Random;
use strait_keying::PublicKey;
use strait_testbed::attack::{AttackRoute, ForgedHeader, SentFrames};
use strait_testbed::{Extra, LinkSpec, Namespace, Networks, PORT, TwoHosts, WireLink};

use crate::pair::{Family, Pair, allowed, eventually, fast};

const KEYING: Extra<'_> =
    Extra { peer: "keying = \"sessionless\"", node: "", link: "", sections: "", networks: Networks::Hidden };
/// Different datagrams of a flood, and datagrams a second.
const DIFFERENT: u16 = 2000;
const RATE: f64 = 3000.0;
/// Datagrams a second from one address: far more than are passed on.
const FLOOD: f64 = 20_000.0;

/// A pair without sessions, and a host without keys that has a wire of its own to the second.
fn attacked() -> (Pair, AttackRoute, WireLink) {
    let hosts = TwoHosts::direct(fast()).unwrap();
    let other = Namespace::create("stranger").unwrap();
    let wire = WireLink::join(&other, &hosts.b, 7, LinkSpec::unshaped()).unwrap();
    AttackRoute::open_to_the_world(&wire).unwrap();
    let route = AttackRoute::over(&wire, PORT).unwrap();
    let mut pair = Pair::idle(hosts);
    pair.start(0, KEYING);
    pair.start(1, KEYING);
    (pair, route, wire)
}

/// Frames with such headers for the second site, in the name of the first, from the address that `source` gives for a number.
fn frames(
    pair: &Pair,
    route: &AttackRoute,
    kind: ForgedHeader,
    source: impl Fn(u16) -> SocketAddrV4,
) -> Arc<[Vec<u8>]> {
    let key = |which: usize| pair.sites[which].public_key().parse::<PublicKey>().unwrap();
    let (sender, receiver) = (key(0), key(1));
    let mut random = Random::new(5);
    let frame = |number| route.frame(source(number), &kind.datagram(&sender, &receiver, &mut random));
    (0..DIFFERENT).map(frame).collect()
}

/// Sends such headers to the second site, in the name and from the address of the first, while that exchanges data with it.
fn flood(pair: &Pair, route: &AttackRoute, kind: ForgedHeader) -> SentFrames {
    let SocketAddr::V4(site) = pair.sites[0].outside else { panic!("IPv4 outside") };
    let source = |number| if number % 2 == 0 { site } else { route.own(1024 + number) };
    let attack = route.start_cycle(RATE, frames(pair, route, kind, source)).unwrap();
    pair.tcp(1, Family::V4, 300_000);
    pair.tcp(0, Family::V6, 300_000);
    attack.stop().unwrap()
}

fn refusals(pair: &Pair, reason: &str) -> u64 {
    let report = pair.daemon(1).show().unwrap();
    let all = report["sessionless"]["refusals"].as_array().unwrap();
    all.iter().find(|refusal| refusal["reason"] == reason).unwrap()["datagrams"].as_u64().unwrap()
}

/// A flood whose datagrams are refused for one of these reasons, and disturbs no transfer.
fn refused(kind: ForgedHeader, reasons: &[&str]) {
    if !allowed() {
        return;
    }
    let (pair, route, wire) = attacked();
    // The pair has met, so that the first transfer is not what is measured.
    pair.tcp(1, Family::V4, 1000);
    let quiet = wire.b.traffic().unwrap().sent_bytes;
    let sent = flood(&pair, &route, kind);
    let answered = wire.b.traffic().unwrap().sent_bytes - quiet;
    assert!(sent.frames > 0, "{sent:?}");
    // The machine may lose some before they reach the socket.
    let count = || reasons.iter().map(|reason| refusals(&pair, reason)).sum::<u64>();
    eventually("what strangers made up is counted", || count() * 2 > sent.frames);
    assert!(answered < sent.frames * 20, "{answered} bytes of answers to {} datagrams", sent.frames);
    // Neither did the sender's place move, nor is anything left behind.
    pair.tcp(0, Family::V4, 100_000);
    pair.tcp(1, Family::V6, 100_000);
}

#[test]
fn headers_with_any_name_are_refused_and_counted() {
    refused(ForgedHeader::AnyName, &["unknown_name", "waiting_full"]);
}

#[test]
fn forged_keys_with_a_name_that_is_known_are_refused_and_counted() {
    refused(ForgedHeader::Wrap, &["forged", "busy"]);
}

#[test]
fn headers_of_epochs_far_off_are_refused_and_counted() {
    refused(ForgedHeader::FarEpoch, &["epoch_far_off"]);
}

#[test]
fn headers_for_another_node_are_refused_and_counted() {
    refused(ForgedHeader::Check, &["bad_check"]);
}

#[test]
fn one_source_that_floods_leaves_room_for_new_keys_of_peers() {
    if !allowed() {
        return;
    }
    let (mut pair, route, _wire) = attacked();
    pair.tcp(1, Family::V4, 1000);
    let all = [ForgedHeader::Wrap, ForgedHeader::AnyName, ForgedHeader::FarEpoch];
    let frames = all.iter().flat_map(|kind| {
        let frames = frames(&pair, &route, *kind, |number| route.own(1024 + number));
        frames.to_vec()
    });
    let attack = route.start_cycle(FLOOD, frames.collect()).unwrap();
    let over = |pair: &Pair| pair.drops(1, "header-over-budget");
    eventually("the flood is more than is passed on", || over(&pair) > 1000);
    for _ in 0..3 {
        let before = over(&pair);
        // A daemon that starts begins a packet key.
        pair.kill(0);
        pair.start(0, KEYING);
        let (sender, receiver) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
        receiver.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        eventually("a packet under a key that is new arrives", || {
            sender.send_to(b"new", receiver.local_addr().unwrap()).unwrap();
            receiver.recv(&mut [0; 100]).is_ok()
        });
        eventually("the flood went on", || over(&pair) > before);
    }
    // It ends before the queue to the key manager; on a machine that stops for a moment, a few datagrams find that full.
    let lost = pair.daemon(1).show().unwrap()["control"]["dropped_messages"].as_u64().unwrap();
    assert!(lost < over(&pair) / 100, "{lost}");
    attack.stop().unwrap();
    pair.tcp(0, Family::V4, 100_000);
}
