//! A link beside recorded traffic of others: the Bellcore Ethernet trace of August 1989 (Leland et al., ToN 2(1) 1994).
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use strait_clock::Time;
use strait_scheduler::Rate;
use strait_sim::{LinkSettings, RateTrace, SimLink};
use strait_testdata as data;
use strait_wire::Tos;

/// A line has seconds and the bytes of a packet.
fn packet(line: &str) -> Option<(Duration, u64)> {
    let (time, bytes) = line.trim().split_once(char::is_whitespace)?;
    Some((Duration::from_secs_f64(time.parse().ok()?), bytes.trim().parse().ok()?))
}

#[test]
fn a_link_beside_recorded_traffic_carries_what_that_leaves() {
    let Some(path) = data::find_or_skip("traces/BC-pAug89-first100k.TL") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let packets: Vec<_> = text.lines().filter_map(packet).collect();
    let taken: u64 = packets.iter().map(|(_, bytes)| bytes).sum();
    let length = packets.last().unwrap().0.as_secs_f64();
    let rate: Rate = "6Mbit".parse().unwrap();
    let left = RateTrace::beside(rate, packets).unwrap();
    let expected = rate.bits() as f64 - taken as f64 * 8.0 / length;
    let mean = left.mean_bits();
    assert!((mean / expected - 1.0).abs() < 0.01, "{mean} of {expected}");

    // A sender that keeps the link full gets all of that, and it changes a lot from one second to the next.
    let settings = LinkSettings { queue: 200_000, ..LinkSettings::default() };
    let mut link = SimLink::new(settings, 1).following(left);
    let mut seconds = vec![0_u64; length as usize];
    for millis in 0..length as u64 * 1000 {
        let now = Time::from_millis(millis);
        while let [Some((at, _)), _] = link.carry(1500, Tos(0), now) {
            let second = usize::try_from(at.since(Time::ZERO).as_secs()).unwrap();
            if let Some(bytes) = seconds.get_mut(second) {
                *bytes += 1500;
            }
        }
    }
    let carried = seconds.iter().sum::<u64>() as f64 * 8.0 / seconds.len() as f64;
    assert!((carried / expected - 1.0).abs() < 0.02, "{carried} of {expected}");
    let (least, most) = (*seconds.iter().min().unwrap(), *seconds.iter().max().unwrap());
    assert!(most > 2 * least, "{least} to {most} bytes a second");
}
