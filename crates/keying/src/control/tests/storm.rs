//! Handshakes whose last words are lost again and again.

use core::time::Duration;

use super::world::{ControlWorld, Weather};
use crate::Start;

/// Every second datagram of QUIC is lost, of both ends together: probes arrive and are acknowledged, so that QUIC's pauses begin anew,
/// and what they stand for is lost.
#[test]
fn losses_by_turns_make_no_storm() {
    for seed in 0..40 {
        let delay = seed % 4 * 13 + 1;
        let weather = Weather { delay: (delay, delay), lost: 0, twice: 0 };
        let mut world = ControlWorld::pair(seed, weather, Start::Eager);
        world.turn = Some(seed / 4);
        // As long as an attempt has.
        world.chat(10, 200);
        let begin = world.quic[0].0;
        let from = |second: u64| begin + Duration::from_secs(second);
        let count = |from, until| world.quic.iter().filter(|(at, _)| (from..until).contains(at)).count();
        let all = count(begin, from(10));
        assert!(all < 170, "{seed}: {all} datagrams in 10 s");
        let late: Vec<_> = (4..9).map(|second| count(from(second), from(second + 1))).collect();
        assert!(late.iter().all(|count| *count < 30), "{seed}: {late:?}");
    }
}

#[test]
fn handshake_without_losses_takes_eight_datagrams_of_each_end() {
    let weather = Weather { delay: (20, 20), lost: 0, twice: 0 };
    let mut world = ControlWorld::pair(1, weather, Start::Eager);
    world.chat(20, 200);
    let of = |node| world.quic.iter().filter(|(_, from)| *from == node).count();
    assert!((1..=8).contains(&of(0)) && (1..=8).contains(&of(1)), "{:?}", world.quic);
}
