//! A tunnel without traffic says nothing, unless it is told to keep a hole in a NAT open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use strait_testbed::{Extra, FrameFate, Relay};

use crate::frame::is_udp;
use crate::pair::{Family, PATIENCE, Pair, allowed, fast};

/// How long nothing may be said.
const SILENCE: Duration = Duration::from_secs(12);

/// A pair, its wire, and how many datagrams crossed that.
fn counted() -> (Pair, Relay, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&count);
    let (hosts, relay) = Relay::between(fast(), move |_, frame| {
        if is_udp(frame) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        FrameFate::Pass
    })
    .unwrap();
    (Pair::idle(hosts), relay, count)
}

/// Waits until nothing has been said for ten seconds: an end whose last packets nothing answered hears once that they arrived.
fn settle(count: &AtomicU64) {
    let start = std::time::Instant::now();
    loop {
        let before = count.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_secs(10));
        if count.load(Ordering::Relaxed) == before {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "it never stops talking");
    }
}

#[test]
fn an_idle_tunnel_is_silent() {
    if !allowed() {
        return;
    }
    let (pair, _relay, count) = counted();
    let pair = pair.and_up(Extra::default());
    pair.tcp(1, Family::V4, 50_000);
    settle(&count);
    let before = count.load(Ordering::Relaxed);
    std::thread::sleep(SILENCE);
    assert_eq!(count.load(Ordering::Relaxed) - before, 0, "datagrams of an idle tunnel\n{}", pair.logs());
    pair.tcp(0, Family::V6, 50_000);
}

#[test]
fn keepalive_speaks() {
    if !allowed() {
        return;
    }
    let (mut pair, _relay, count) = counted();
    pair.start(0, Extra { peer: "keepalive = \"1s\"", ..Extra::default() });
    pair.start(1, Extra::default());
    pair.wait_for_session();
    std::thread::sleep(Duration::from_secs(2));
    let before = count.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_secs(5));
    let said = count.load(Ordering::Relaxed) - before;
    // One a second, and nothing else: at most as many again for what a busy machine shifts.
    assert!((2..=10).contains(&said), "{said} datagrams in 5 s\n{}", pair.logs());
}
