//! A bad wire: datagrams lost, repeated and overtaken.

use std::time::Duration;

use strait_testbed::{Extra, FrameFate, Relay};

use crate::pair::{Family, Pair, allowed, fast};

#[test]
fn the_tunnel_comes_up_and_carries_tcp_on_a_bad_wire() {
    if !allowed() {
        return;
    }
    let mut count = 0_u64;
    let (hosts, _relay) = Relay::between(fast(), move |_, _| {
        count += 1;
        // In a pattern rather than at random, so that a failure repeats: 5 % lost, 3 % repeated, 6 % late.
        match count * 7 % 100 {
            0..5 => FrameFate::Lose,
            5..8 => FrameFate::Repeat,
            8..14 => FrameFate::Delay(Duration::from_millis(4)),
            _ => FrameFate::Pass,
        }
    })
    .unwrap();
    let pair = Pair::up(hosts, Extra::default());
    pair.tcp(1, Family::V4, 150_000);
    pair.tcp(0, Family::V6, 150_000);
    assert!(pair.drops(1, "replayed") > 0, "repeated datagrams were not noticed");
    assert_eq!(pair.drops(1, "forged"), 0);
}
