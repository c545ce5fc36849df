//! How late a packet may be: 8,191 numbers behind the newest, and no more, and only once.

use strait_clock::{Random, Time};
use strait_ipsec::Reason;
use strait_sim::{Halves, HalvesSettings, SimDatagram};
use strait_wire::Protocol;

use crate::stage::{A, B, v4};

const NOW: Time = Time::from_millis(1000);
const WINDOW: usize = 8192;

/// A receiver and `count` datagrams of which it has none.
fn sealed(count: usize) -> (Halves, Vec<SimDatagram>) {
    let mut halves = Halves::new(HalvesSettings::default(), NOW);
    let packet = v4(A, B, 7).udp(b"late");
    let sealed = (0..count).map(|_| halves.seal(Protocol::IPIP, &packet)).collect();
    (halves, sealed)
}

#[test]
fn everything_in_the_window_counts_once_in_any_order() {
    let (mut halves, sealed) = sealed(WINDOW);
    let mut order: Vec<usize> = (0..WINDOW).collect();
    let mut random = Random::new(3);
    for at in (1..WINDOW).rev() {
        order.swap(at, usize::try_from(random.below(at as u64 + 1)).unwrap());
    }
    let arrived: usize = order.iter().map(|at| halves.receive(&sealed[*at], NOW).len()).sum();
    assert_eq!(arrived, WINDOW);
    let again: usize = order.iter().map(|at| halves.receive(&sealed[*at], NOW).len()).sum();
    assert_eq!((again, halves.refused(Reason::Replayed)), (0, WINDOW as u64));
}

#[test]
fn the_edge_is_exact() {
    let (mut halves, sealed) = sealed(WINDOW + 1);
    assert_eq!(halves.receive(&sealed[WINDOW], NOW).len(), 1);
    assert_eq!(halves.receive(&sealed[0], NOW).len(), 0, "8,192 behind");
    assert_eq!(halves.refused(Reason::TooOld), 1);
    assert_eq!(halves.receive(&sealed[1], NOW).len(), 1, "8,191 behind");
    assert_eq!(halves.receive(&sealed[1], NOW).len(), 0);
    assert_eq!(halves.refused(Reason::Replayed), 1);
}
