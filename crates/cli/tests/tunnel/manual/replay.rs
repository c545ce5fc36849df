//! Packets that were recorded before a restart: to keys from the file they are new afterwards.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex};

use strait_testbed::{FrameDirection, FrameFate, Relay};

use super::case::{Case, PLAIN};
use crate::frame::{HEADERS, is_udp};
use crate::pair::{Pair, allowed, eventually, fast, has};

/// Frames that are sent at once: the receiver's socket holds more, however late it is read.
const AT_ONCE: usize = 16;
/// SIGCONT and SIGSTOP.
const GO_ON: i32 = 18;
const HALT: i32 = 19;

/// Sends what `site-a` once sent to `site-b` again, from another port, as fast as `taken` says that it is taken.
fn replay(pair: &Pair, case: &Case, frames: &[Vec<u8>], taken: impl Fn() -> u64) {
    let target = (case.outside(&pair.hosts, 1), 4500);
    let socket = pair.hosts.a.run("bind", || UdpSocket::bind("0.0.0.0:4000")).unwrap();
    let mut sent = 0;
    for some in frames.chunks(AT_ONCE) {
        for frame in some {
            socket.send_to(&frame[HEADERS..], target).unwrap();
        }
        sent += some.len() as u64;
        eventually("what was recorded is taken or refused", || taken() >= sent);
    }
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
        // The true peer is halted: what it sends late, the end of a connection, would be taken first, or move it back.
        pair.daemon(0).signal(HALT).unwrap();
        case.start(&mut pair, 1);
        let home = pair.peer(1)["endpoint"].clone();
        let new = || pair.peer(1)["manual"]["inbound_packets"].as_u64().unwrap();
        replay(&pair, &case, &frames, || new() + pair.drops(1, "replayed"));
        let endpoint = pair.peer(1)["endpoint"].clone();
        pair.daemon(0).signal(GO_ON).unwrap();
        assert!(new() > 0);
        assert_eq!(endpoint != home, moves, "{}", case.evidence(&pair));
        case.exchange(&pair, 20_000);
    }
}
