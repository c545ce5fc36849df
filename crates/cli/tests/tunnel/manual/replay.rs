//! Packets that were recorded before a restart: to keys from the file they are new afterwards.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex};

use strait_testbed::{FrameDirection, FrameFate, Relay};

use super::case::{Case, PLAIN};
use crate::frame::{HEADERS, is_udp};
use crate::pair::{Pair, allowed, eventually, fast, has};

/// Sends what `site-a` once sent to `site-b` again, from another port; says how many datagrams that were.
fn replay(pair: &Pair, case: &Case, frames: &[Vec<u8>]) -> usize {
    let target = (case.outside(&pair.hosts, 1), 4500);
    let again = || {
        let socket = UdpSocket::bind("0.0.0.0:4000")?;
        frames.iter().try_for_each(|frame| socket.send_to(&frame[HEADERS..], target).map(|_| ()))
    };
    pair.hosts.a.run("repeat what was captured", again).unwrap();
    frames.len()
}

#[test]
fn a_replay_after_a_restart_moves_no_peer_with_manual_keys() {
    if !allowed() || !has("ping") {
        return;
    }
    for (manual, moves) in [("", false), ("danger_roaming = true\n", true)] {
        let case = Case { manual, ..PLAIN };
        let captured = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&captured);
        let (hosts, _relay) = Relay::between(fast(), move |direction, frame| {
            if direction == FrameDirection::There && is_udp(frame) {
                keep.lock().unwrap().push(frame.to_vec());
            }
            FrameFate::Pass
        })
        .unwrap();
        let mut pair = case.up(hosts);
        case.exchange(&pair, 20_000);
        pair.kill(1);
        let frames = captured.lock().unwrap().clone();
        case.start(&mut pair, 1);
        let home = pair.peer(1)["endpoint"].clone();
        let sent = replay(&pair, &case, &frames);
        let taken = || pair.peer(1)["manual"]["inbound_packets"].as_u64().unwrap();
        eventually("recorded packets are new to it", || taken() + pair.drops(1, "replayed") >= sent as u64);
        assert!(taken() > 0);
        assert_eq!(pair.peer(1)["endpoint"] != home, moves, "{}", case.evidence(&pair));
        case.exchange(&pair, 20_000);
    }
}
