use strait_clock::Random;

use super::*;
use std::collections::BTreeSet;

const ROUND: Option<Duration> = Some(Duration::from_millis(40));

fn at(millis: u64) -> Time {
    Time::from_millis(1_000 + millis)
}

fn asked(gaps: &mut GapTracker, millis: u64) -> Vec<(u32, u16)> {
    let missing = gaps.ask(Spi(7), ROUND, at(millis));
    missing.iter().flat_map(MissingRanges::ranges).map(|range| (range.first.0, range.count)).collect()
}

/// After these numbers, all at once.
fn after(numbers: &[u64]) -> GapTracker {
    let mut gaps = GapTracker::new();
    for number in numbers {
        gaps.arrived(Esn(*number), true, at(0));
    }
    gaps
}

#[test]
fn a_gap_is_asked_for_once_three_datagrams_are_behind_it() {
    let mut gaps = after(&[1, 2, 5, 6]);
    assert_eq!(gaps.first(), Some(Esn(3)));
    assert_eq!(asked(&mut gaps, 1), []);
    gaps.arrived(Esn(7), true, at(1));
    assert_eq!(asked(&mut gaps, 1), [(3, 2)]);
    assert_eq!(asked(&mut gaps, 2), [], "once");
}

#[test]
fn a_gap_that_nothing_follows_is_asked_for_after_a_while() {
    let mut gaps = after(&[1, 3]);
    assert_eq!(gaps.next_at(ROUND), Some(at(10)));
    assert_eq!(asked(&mut gaps, 9), []);
    assert_eq!(asked(&mut gaps, 10), [(2, 1)]);
}

#[test]
fn what_is_lost_again_is_asked_for_once_more_while_that_is_of_use() {
    let mut gaps = after(&[1, 3, 4, 5]);
    assert_eq!(asked(&mut gaps, 0), [(2, 1)]);
    assert_eq!(gaps.next_at(ROUND), Some(at(60)));
    assert_eq!(asked(&mut gaps, 60), [(2, 1)]);
    assert_eq!(asked(&mut gaps, 119), []);
    assert_eq!((gaps.expire(ROUND, at(129)), gaps.expire(ROUND, at(130))), (0, 1));
    assert_eq!((gaps.first(), gaps.next_at(ROUND)), (None, None));
}

#[test]
fn where_a_second_answer_would_come_too_late_the_request_is_sent_twice() {
    let round = Some(Duration::from_millis(100));
    let mut gaps = after(&[1, 3, 4, 5]);
    assert!(gaps.ask(Spi(7), round, at(0)).is_some());
    assert_eq!(gaps.next_at(round), Some(at(15)));
    assert!(gaps.ask(Spi(7), round, at(15)).is_some());
    assert_eq!(gaps.next_at(round), Some(at(150)), "it is given up");
    assert!(gaps.ask(Spi(7), round, at(149)).is_none());
    assert_eq!(gaps.arrived(Esn(2), true, at(101)).0, Filled::Asked(Some(at(0))));
    assert!(is_useful(round) && !is_useful(Some(Duration::from_millis(145))) && is_useful(None));
}

#[test]
fn numbers_that_come_late_leave_their_gap() {
    let mut gaps = after(&[1, 10]);
    assert_eq!(gaps.arrived(Esn(5), true, at(1)).0, Filled::Unasked);
    assert_eq!(gaps.arrived(Esn(5), true, at(1)).0, Filled::No);
    assert_eq!(asked(&mut gaps, 20), [(2, 3), (6, 4)]);
    for number in [2, 9, 3, 4, 8] {
        assert_eq!(gaps.arrived(Esn(number), true, at(21)).0, Filled::Asked(Some(at(20))), "{number}");
    }
    assert_eq!(gaps.first(), Some(Esn(6)));
    assert!(gaps.is_behind(Esn(7)) && !gaps.is_behind(Esn(6)) && !gaps.is_behind(Esn(2)));
}

#[test]
fn what_may_pass_others_is_no_sign_that_those_are_lost() {
    let mut gaps = after(&[1]);
    for number in [6, 7, 8, 9] {
        gaps.arrived(Esn(number), false, at(0));
    }
    assert_eq!(asked(&mut gaps, 9), []);
    assert_eq!(asked(&mut gaps, 10), [(2, 4)], "nothing else came");
}

#[test]
fn a_gap_that_is_still_filled_in_order_is_not_asked_for() {
    let mut gaps = after(&[1]);
    gaps.arrived(Esn(9), false, at(0));
    for (number, millis) in [(2, 9), (3, 18), (4, 27), (6, 30), (7, 32), (8, 34)] {
        assert_eq!(asked(&mut gaps, millis - 1), [], "before {number}");
        assert_eq!(gaps.arrived(Esn(number), true, at(millis)).0, Filled::Unasked);
    }
    assert_eq!(asked(&mut gaps, 34), [(5, 1)], "three came behind it");
    assert_eq!(
        (gaps.expire(ROUND, at(129)), gaps.expire(ROUND, at(130))),
        (0, 1),
        "counted from the first sight"
    );
}

#[test]
fn datagrams_that_came_after_all_make_it_wait_longer() {
    let mut gaps = after(&[1]);
    gaps.note_late();
    gaps.note_late();
    gaps.arrived(Esn(3), true, at(0));
    gaps.arrived(Esn(4), true, at(0));
    gaps.arrived(Esn(5), true, at(0));
    assert_eq!(asked(&mut gaps, 3), []);
    assert_eq!(asked(&mut gaps, 4), [(2, 1)]);
    assert_eq!(gaps.settle(2, 1), 1);
    (0..RECOVERIES).for_each(|_| gaps.note_repaired());
    gaps.arrived(Esn(9), true, at(100));
    gaps.arrived(Esn(10), true, at(100));
    gaps.arrived(Esn(11), true, at(100));
    assert_eq!(asked(&mut gaps, 102), [(6, 3)]);
}

#[test]
fn what_will_not_be_sent_again_is_settled() {
    let mut gaps = after(&[1, 11, 21]);
    assert_eq!(gaps.settle(5, 10), 6 + 3);
    assert_eq!(asked(&mut gaps, 20), [(2, 3), (15, 6)]);
    assert_eq!(gaps.settle(0, u64::MAX), 9);
    assert_eq!((gaps.first(), gaps.settle(4, 0), gaps.settle(u64::MAX, 9)), (None, 0, 0));
}

#[test]
fn a_peer_that_skips_numbers_fills_no_memory() {
    let mut gaps = GapTracker::new();
    assert_eq!(
        gaps.arrived(Esn(u64::MAX / 2), true, at(0)),
        (Filled::No, u64::MAX / 2 - 1, u64::MAX / 2 - 1)
    );
    assert_eq!(gaps.first(), None, "an outage");
    let mut lost = 0;
    for number in 1..=1_000 {
        lost += gaps.arrived(Esn(u64::MAX / 2 + 2 * number), true, at(0)).2;
    }
    assert_eq!((gaps.gaps.len(), lost), (GAPS_MAX, 1_000 - GAPS_MAX as u64));
}

#[test]
fn gaps_that_are_filled_in_pieces_stay_within_the_bound() {
    let (count, apart) = (8, NUMBERS_MAX + 1);
    let whole = |gaps: &mut GapTracker| {
        (1..=count).map(|turn| gaps.arrived(Esn(turn * apart), true, at(0)).2).sum::<u64>()
    };
    // Every second number comes: one by one, by symbols, or as what is not sent again.
    let pieces = || (1..count * apart).filter(|number| number % 2 == 0 && number % apart != 0);
    for way in 0..3 {
        let mut gaps = GapTracker::new();
        assert_eq!(whole(&mut gaps), 0);
        let (mut most, mut filled, mut lost) = (0, 0, 0);
        for number in pieces() {
            let here = match way {
                0 => {
                    let (here, _, given_up) = gaps.arrived(Esn(number), true, at(1));
                    lost += given_up;
                    u64::from(here != Filled::No)
                }
                1 => u64::from(gaps.fill(number) != Filled::No),
                _ => gaps.settle(number, 1),
            };
            filled += here;
            most = most.max(gaps.gaps.len());
        }
        assert_eq!(most, GAPS_MAX, "way {way}");
        let left: u64 = gaps.gaps.iter().map(|gap| gap.last - gap.first + 1).sum();
        lost += gaps.arrived(Esn(count * apart + 1), true, at(1)).2;
        assert_eq!(filled + lost + left, count * NUMBERS_MAX, "each is told once");
    }
}

#[test]
fn missing_numbers_are_those_of_a_set() {
    let mut random = Random::new(5);
    let mut gaps = GapTracker::new();
    let (mut missing, mut highest) = (BTreeSet::new(), 0);
    for _ in 0..20_000 {
        let number = (highest + 1 + random.below(4)).saturating_sub(random.below(30)).max(1);
        if number > highest {
            missing.extend(highest + 1..number);
            highest = number;
        }
        if random.below(50) == 0 {
            let settled = missing.extract_if(number..number + 9, |_| true).count() as u64;
            assert_eq!(gaps.settle(number, 9), settled);
        }
        let was = missing.remove(&number);
        let (filled, _, lost) = gaps.arrived(Esn(number), true, at(0));
        assert_eq!(filled != Filled::No, was, "{number}");
        for _ in 0..lost {
            missing.pop_first();
        }
        assert_eq!(gaps.first().map(|first| first.0), missing.first().copied());
    }
}
