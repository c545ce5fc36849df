//! Keys that need no session between nodes that have each other's cards, with ML-KEM-768 in each key.

use std::time::Duration;

use strait_testbed::{Extra, FrameDirection};

use crate::frame::HEADERS;
use crate::pair::{Family, Pair, allowed, eventually};
use crate::sessionless::{
    Captured, KEYING, kinds, nothing_is_delivered_again, output_of, ping, refusals, sessionless, tapped,
};

/// The first byte of a key packet.
const KEY_PACKET: u8 = 0x12;

/// What the configuration of each site says of the other: its card, and further lines.
fn with_cards(pair: &Pair, more: &str) -> [String; 2] {
    [0, 1].map(|which| {
        let (site, peer) = (&pair.sites[1 - which], &pair.sites[which]);
        let config = site.configure("strait", &[peer], KEYING).unwrap();
        let mut command = site.host.command(site.program());
        let card = output_of(command.args(["keys", "card", &config.display().to_string()]));
        assert!(card.starts_with("strait-card "), "{card}");
        format!("keying = \"sessionless\"\ncard = \"{}\"\n{more}", card.trim())
    })
}

fn start(pair: &mut Pair, which: usize, lines: &[String; 2]) {
    pair.start(which, Extra { peer: &lines[which], ..KEYING });
}

/// Key packets that crossed in a direction.
fn key_packets(captured: &Captured, wanted: FrameDirection) -> usize {
    let frames = captured.lock().unwrap();
    let is_one = |frame: &Vec<u8>| frame.get(HEADERS) == Some(&KEY_PACKET);
    frames.iter().filter(|(direction, frame)| *direction == wanted && is_one(frame)).count()
}

#[test]
fn the_first_ping_between_nodes_with_cards_is_answered_under_ml_kem() {
    if !allowed() {
        return;
    }
    let (mut pair, _relay, captured) = tapped(|_, _| true);
    let lines = with_cards(&pair, "");
    start(&mut pair, 0, &lines);
    start(&mut pair, 1, &lines);
    assert_eq!(ping(&pair, 1), 1, "{}", pair.logs());
    for direction in [FrameDirection::There, FrameDirection::Back] {
        assert!(key_packets(&captured, direction) > 0, "{direction:?}: {:?}", kinds(&captured));
    }
    pair.tcp(1, Family::V4, 500_000);
    pair.tcp(0, Family::V6, 500_000);
    assert!(kinds(&captured).iter().all(|kind| (0x04..0x20).contains(kind)), "no handshake");
    for which in [0, 1] {
        let state = sessionless(&pair, which);
        assert_eq!(state["hybrid"], true);
        assert_eq!(state["acknowledged"], true, "{}", pair.logs());
    }
    // Once it is acknowledged, the key packet is not repeated.
    let sent = key_packets(&captured, FrameDirection::There);
    pair.tcp(1, Family::V4, 500_000);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(ping(&pair, 1), 1, "{}", pair.logs());
    assert_eq!(key_packets(&captured, FrameDirection::There), sent);
}

/// The cards are made, and with them the ML-KEM keys, when both nodes run.
#[test]
fn cards_that_are_made_later_count_from_a_reload_on() {
    if !allowed() {
        return;
    }
    let (mut pair, _relay, captured) = tapped(|_, _| true);
    for which in [0, 1] {
        pair.start(which, KEYING);
    }
    pair.tcp(0, Family::V4, 100_000);
    let lines = with_cards(&pair, "");
    for which in [0, 1] {
        let (site, peer) = (&pair.sites[which], &pair.sites[1 - which]);
        site.configure("strait", &[peer], Extra { peer: &lines[which], ..KEYING }).unwrap();
        pair.daemon(which).reload().unwrap();
    }
    for from in [0, 1] {
        pair.tcp(from, Family::V4, 100_000);
        assert_eq!(sessionless(&pair, from)["hybrid"], true);
    }
    assert!(key_packets(&captured, FrameDirection::There) > 0, "{:?}", kinds(&captured));
}

#[test]
fn either_daemon_with_cards_may_be_killed_and_what_crossed_is_refused() {
    if !allowed() {
        return;
    }
    let (mut pair, relay, captured) = tapped(|_, _| true);
    let lines = with_cards(&pair, "");
    start(&mut pair, 0, &lines);
    start(&mut pair, 1, &lines);
    for which in [1, 0, 1] {
        pair.tcp(which, Family::V4, 100_000);
        let direction = [FrameDirection::There, FrameDirection::Back][which];
        let before = key_packets(&captured, direction);
        pair.kill(which);
        start(&mut pair, which, &lines);
        pair.tcp(1 - which, Family::V4, 100_000);
        pair.tcp(which, Family::V6, 100_000);
        assert!(key_packets(&captured, direction) > before, "a secret of its own after the restart");
    }
    assert!(kinds(&captured).iter().all(|kind| (0x04..0x20).contains(kind)), "no handshake");
    nothing_is_delivered_again(&pair, &relay, &captured);
    pair.tcp(1, Family::V4, 100_000);
}

#[test]
fn one_way_with_cards_carries_datagrams_under_ml_kem() {
    if !allowed() {
        return;
    }
    let (mut pair, _relay, captured) = tapped(|direction, _| direction == FrameDirection::There);
    let lines = with_cards(&pair, "one_way = true\n");
    start(&mut pair, 0, &lines);
    start(&mut pair, 1, &lines);
    let (sender, receiver) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
    for number in 0..50_u8 {
        let bytes = vec![number; if number % 2 == 0 { 100 } else { 1400 }];
        sender.send_to(&bytes, receiver.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 1500];
        assert_eq!(receiver.recv(&mut buffer).unwrap(), bytes.len(), "{}", pair.logs());
        assert_eq!(buffer[0], number);
    }
    assert_eq!(sessionless(&pair, 0)["hybrid"], true);
    assert!(key_packets(&captured, FrameDirection::There) > 0);
    let frames = captured.lock().unwrap();
    assert!(!frames.iter().any(|(direction, _)| *direction == FrameDirection::Back), "nothing is said back");
}

#[test]
fn who_has_a_card_takes_no_keys_without_the_secret() {
    if !allowed() {
        return;
    }
    let (mut pair, _relay, _captured) = tapped(|_, _| true);
    let lines = with_cards(&pair, "");
    // The first has no card of the second, and so no ML-KEM key of it.
    pair.start(0, KEYING);
    start(&mut pair, 1, &lines);
    assert_eq!(ping(&pair, 1), 0);
    assert!(refusals(&pair, 1, "not_hybrid") > 0, "{}", pair.logs());
    eventually("the log says so", || pair.daemon(1).last_words().contains("refused: not_hybrid"));
    // With the card, it goes on.
    pair.kill(0);
    start(&mut pair, 0, &lines);
    assert_eq!(ping(&pair, 1), 1, "{}", pair.logs());
}

#[test]
fn a_card_of_another_node_is_refused() {
    if !allowed() {
        return;
    }
    let (pair, _relay, _captured) = tapped(|_, _| true);
    let lines = with_cards(&pair, "");
    // Each its own.
    let site = &pair.sites[0];
    let config = site.configure("strait", &[&pair.sites[1]], Extra { peer: &lines[1], ..KEYING }).unwrap();
    let mut command = site.host.command(site.program());
    let output = command.args(["check", &config.display().to_string()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("is the card of the node"), "{said}");
}
