//! Captured datagrams that are sent again, cut, bent and forged: each is counted, none is delivered, the tunnel lives on.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use strait_testbed::{Extra, FrameDirection, FrameFate, PORT, Relay};

use crate::frame::{HEADERS, is_esp, is_udp, shortened};
use crate::pair::{Family, Pair, allowed, eventually, fast};

type Captured = Arc<Mutex<Vec<Vec<u8>>>>;

/// A pair whose datagrams from site-a to site-b are kept.
fn tapped() -> (Pair, Relay, Captured) {
    let captured = Captured::default();
    let keep = Arc::clone(&captured);
    let (hosts, relay) = Relay::between(fast(), move |direction, frame| {
        if direction == FrameDirection::There && is_udp(frame) {
            keep.lock().unwrap().push(frame.to_vec());
        }
        FrameFate::Pass
    })
    .unwrap();
    (Pair::up(hosts, Extra::default()), relay, captured)
}

/// Sends numbered datagrams through the tunnel and receives them.
fn exchange(pair: &Pair, count: u8) -> (UdpSocket, Vec<u8>) {
    let (sender, receiver) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
    let mut buffer = [0; 100];
    let mut got = Vec::new();
    for number in 0..count {
        sender.send_to(&[number; 50], receiver.local_addr().unwrap()).unwrap();
        assert_eq!(receiver.recv(&mut buffer).unwrap(), 50);
        got.push(buffer[0]);
    }
    (receiver, got)
}

#[test]
fn what_was_captured_is_not_delivered_again() {
    if !allowed() {
        return;
    }
    let (pair, relay, captured) = tapped();
    let (receiver, got) = exchange(&pair, 20);
    assert_eq!(got, (0..20).collect::<Vec<u8>>());
    let frames = captured.lock().unwrap().clone();
    let esp: Vec<_> = frames.iter().filter(|frame| is_esp(frame)).collect();
    assert!(esp.len() >= 20);
    esp.iter().for_each(|frame| relay.inject(FrameDirection::There, frame));
    let expected = u64::try_from(esp.len()).unwrap();
    eventually("every repeated datagram is counted", || pair.drops(1, "replayed") >= expected);
    receiver.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(receiver.recv(&mut [0; 100]).is_err(), "a repeated datagram was delivered");
    pair.tcp(1, Family::V4, 50_000);
}

#[test]
fn replayed_datagram_from_elsewhere_moves_no_peer() {
    if !allowed() {
        return;
    }
    let (pair, _relay, captured) = tapped();
    exchange(&pair, 20);
    let frames = captured.lock().unwrap().clone();
    let esp: Vec<_> = frames.iter().filter(|frame| is_esp(frame)).collect();
    let target = (pair.hosts.address_of_b().0, PORT);
    pair.hosts
        .a
        .run("repeat what was captured", || {
            let socket = UdpSocket::bind("0.0.0.0:4000")?;
            esp.iter().try_for_each(|frame| socket.send_to(&frame[HEADERS..], target).map(|_| ()))
        })
        .unwrap();
    let expected = u64::try_from(esp.len()).unwrap();
    eventually("every repeated datagram is counted", || pair.drops(1, "replayed") >= expected);
    assert_eq!(pair.peer(1)["endpoint"], pair.sites[0].outside.to_string());
    // What site-b sends next goes where it went before.
    pair.tcp(0, Family::V4, 50_000);
}

#[test]
fn what_is_bent_or_cut_is_counted_and_harmless() {
    if !allowed() {
        return;
    }
    let (pair, relay, captured) = tapped();
    exchange(&pair, 5);
    // The longest, so that enough of them can be bent.
    let frame = captured.lock().unwrap().iter().max_by_key(|frame| frame.len()).unwrap().clone();
    // Without the UDP checksum, or the kernel would drop what is bent before the daemon sees it.
    let mut bare = frame.clone();
    bare[40..42].fill(0);
    for at in HEADERS..bare.len() {
        let mut bent = bare.clone();
        // A number of its own for each, or it would be known as a repeated one before its inside is looked at.
        bent[HEADERS + 4..HEADERS + 8].copy_from_slice(&(1000 + u32::try_from(at).unwrap()).to_be_bytes());
        bent[at] ^= 0x55;
        relay.inject(FrameDirection::There, &bent);
    }
    for length in 0..bare.len() - HEADERS {
        relay.inject(FrameDirection::There, &shortened(&bare, length));
    }
    let tampered = |reason| pair.drops(1, reason);
    eventually("bent datagrams are counted", || {
        tampered("forged") >= 100 && tampered("malformed-esp") > 0 && tampered("unknown-spi") > 0
    });
    pair.tcp(1, Family::V4, 50_000);
    pair.tcp(0, Family::V6, 50_000);
}

#[test]
fn a_flood_of_nonsense_from_the_network_changes_nothing() {
    if !allowed() {
        return;
    }
    let (pair, _relay, _) = tapped();
    let target = (pair.hosts.address_of_b().0, PORT);
    pair.hosts
        .a
        .run("send nonsense", || {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            for first in 0..=255_u8 {
                for length in [0, 1, 7, 8, 20, 100, 1200, 1400] {
                    let mut datagram = vec![first.wrapping_mul(31); length];
                    datagram.first_mut().into_iter().for_each(|byte| *byte = first);
                    socket.send_to(&datagram, target)?;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        })
        .unwrap();
    eventually("nonsense is counted", || {
        pair.drops(1, "unknown-datagram") > 0 && pair.drops(1, "unknown-spi") > 0
    });
    pair.tcp(1, Family::V4, 50_000);
}
