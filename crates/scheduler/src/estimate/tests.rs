use core::time::Duration;

use proptest::prelude::*;
use strait_clock::{Random, Time};

use super::*;

/// Bytes around a datagram.
const AROUND: usize = 28;

/// A path on which a datagram of 972 bytes (1,000 on the wire) was sent each millisecond, a thousand of them.
fn path() -> (Path, Time) {
    let mut path = Path::new();
    let rate = Rate::from_bits(8_000_000);
    for number in 1..=1000 {
        path.sent(number, 972, rate, Time::from_millis(number));
    }
    (path, Time::from_millis(1000))
}

/// The report of `datagrams` of which none was lost, the last of them on the way for `delay` milliseconds.
fn report(datagrams: u64, delay: u64) -> DeliveryCount {
    DeliveryCount {
        datagrams,
        bytes: datagrams * 972,
        highest: datagrams,
        received_at: (datagrams + delay) * 1000,
        held: Duration::from_millis(2),
    }
}

#[test]
fn two_reports_give_one_sample() {
    let (mut path, _) = path();
    let back = |number: u64| Time::from_millis(number + 52);
    assert_eq!(path.report(&report(100, 10), AROUND, back(100)), Ok(None));
    let second = DeliveryCount { datagrams: 290, bytes: 290 * 972, ..report(300, 30) };
    let sample = path.report(&second, AROUND, back(300) + Duration::from_millis(20)).unwrap().unwrap();
    // Of ten that are missing, four may have been overtaken.
    assert_eq!((sample.numbers, sample.lost), (200.0, 6.0));
    assert_eq!((sample.bytes, sample.span), (sample.sent * 0.97, 0.22));
    // What is sent within two milliseconds shares an entry.
    assert!((sample.sent - 200_000.0).abs() <= 2_000.0 && (sample.sent_span - 0.2).abs() <= 0.002);
    assert!((sample.allowed / sample.sent - 1.0).abs() < 0.02, "{sample:?}");
    assert!((sample.unreported - 700_000.0).abs() <= 2_000.0);
    assert!((sample.delay - 0.02).abs() <= 0.002 && (sample.due - 0.052).abs() <= 0.002, "{sample:?}");
    assert!((0.015..0.05).contains(&path.loss()), "{}", path.loss());
    let round = path.least_round_trip().unwrap();
    assert!((48..=50).contains(&round.as_millis()), "{round:?}");
}

#[test]
fn reordered_datagrams_are_not_counted_lost_and_missing_ones_are() {
    let at = |gone: u64, held_up: [u64; 6]| {
        let mut path = path().0;
        for (round, held_up) in (1..).zip(held_up) {
            let all = report(round * 100, 10);
            let datagrams = all.datagrams - gone * round - held_up;
            let back = Time::from_millis(round * 100 + 52);
            path.report(&DeliveryCount { datagrams, bytes: datagrams * 972, ..all }, AROUND, back).unwrap();
        }
        path.loss()
    };
    assert_eq!(at(0, [3, 0, 3, 3, 0, 3]), 0.0, "a datagram passes three before every report or so");
    let loss = at(5, [0, 3, 0, 3, 0, 3]);
    assert!((0.03..0.06).contains(&loss), "{loss} of five in a hundred");
}

#[test]
fn reports_that_cannot_be_and_late_ones_have_no_effect() {
    let (mut path, now) = path();
    let first = report(300, 10);
    assert_eq!(Path::new().report(&first, AROUND, now), Err(ReportRefused::Absurd), "nothing was sent");
    path.report(&first, AROUND, now).unwrap();
    let next = report(400, 10);
    let absurd = [
        ("a number that was not sent", DeliveryCount { highest: 1001, ..next }),
        ("more datagrams than numbers", DeliveryCount { datagrams: 401, ..next }),
        ("more bytes than were sent", DeliveryCount { bytes: 972_001, ..next }),
        ("a clock that never was", DeliveryCount { received_at: u64::MAX, ..next }),
        ("nothing", DeliveryCount { datagrams: 0, ..next }),
        ("time running backwards", DeliveryCount { received_at: 1, ..next }),
        ("numbers running backwards", DeliveryCount { datagrams: 310, highest: 299, ..next }),
        ("held back for longer than it exists", DeliveryCount { held: Duration::from_secs(1), ..next }),
        ("bytes running backwards", DeliveryCount { bytes: 1, ..next }),
    ];
    for (count, (what, report)) in (1..).zip(absurd) {
        assert_eq!(path.report(&report, AROUND, now), Err(ReportRefused::Absurd), "{what}");
        assert_eq!(path.refused(), count);
    }
    for late in [report(200, 10), first] {
        assert_eq!(path.report(&late, AROUND, now), Err(ReportRefused::Late));
    }
    assert_eq!(path.refused(), 9, "what is late is no lie");
    let instant = DeliveryCount { received_at: first.received_at, ..next };
    assert_eq!(path.report(&instant, AROUND, now), Ok(None), "in no time");
    assert!(path.report(&next, AROUND, now).unwrap().is_some());
    assert!(path.loss() < 0.001);
}

#[test]
fn a_report_that_was_held_by_a_fast_clock_is_no_lie() {
    let (path, now) = path();
    // The datagram was sent 700 ms ago, or 2 ms earlier with others, and arrived at once.
    let held = |micros| DeliveryCount { held: Duration::from_micros(micros), ..report(300, 0) };
    for (micros, taken) in [(702_001, true), (702_701, true), (702_900, false)] {
        assert_eq!(path.clone().report(&held(micros), AROUND, now).is_ok(), taken, "{micros}");
    }
}

#[test]
fn another_association_begins_anew() {
    let (mut path, now) = path();
    path.report(&report(300, 10), AROUND, now).unwrap();
    path.renew();
    assert_eq!(path.report(&report(400, 10), AROUND, now), Err(ReportRefused::Absurd));
    path.sent(1, 972, None, now);
    let restarted = DeliveryCount { received_at: 5, ..report(1, 0) };
    assert_eq!(path.report(&restarted, AROUND, now), Ok(None));
}

#[test]
fn a_given_rate_is_never_exceeded() {
    let given = Rate::from_bits(64_000);
    let mut estimate = Estimate::new(None, given, Time::ZERO);
    assert_eq!((estimate.rate(), estimate.pacing()), (given, given));
    estimate.set_ceiling(Rate::from_bits(32_000));
    assert_eq!(estimate.pacing(), Rate::from_bits(32_000));
}

/// 100 kB, sent in 40 ms, that took so many milliseconds longer to arrive, the last of them with this delay.
fn overload(longer: f64, delay: f64, at: Time) -> PathSample {
    PathSample {
        bytes: 100_000.0,
        span: 0.04 + longer / 1e3,
        sent: 100_000.0,
        sent_span: 0.04,
        allowed: 0.0,
        sent_from: at,
        sent_at: at + Duration::from_millis(40),
        numbers: 100.0,
        lost: 0.0,
        delay: delay / 1e3,
        unreported: 50_000.0,
        due: 0.02,
    }
}

#[test]
fn one_late_report_is_a_host_without_a_processor_and_two_are_a_limit() {
    let mut estimate = Estimate::new(None, None, Time::ZERO);
    let mut now = Time::from_millis(1000);
    let mut report = |estimate: &mut Estimate, longer, delay| {
        now += Duration::from_millis(80);
        estimate.sample(&overload(longer, delay, now), now + Duration::from_millis(60));
        estimate.pacing()
    };
    for _ in 0..10 {
        assert_eq!(report(&mut estimate, 60.0, 60.0), None);
        assert_eq!(report(&mut estimate, -30.0, 0.0), None, "it came at once then");
    }
    report(&mut estimate, 40.0, 40.0);
    assert!(report(&mut estimate, 40.0, 80.0) < estimate.found(), "what stands before the link goes first");
    let found = estimate.found().map_or(0, Rate::bits);
    assert!((9_500_000..10_500_000).contains(&found), "100 kB in 80 ms: {found}");
    assert_eq!(estimate.limited_by(), LimitedBy::Link);
}

#[test]
fn processor_that_is_busy_is_no_limit_of_a_link_that_was_just_fast() {
    let mut estimate = Estimate::new(None, None, Time::ZERO);
    let mut now = Time::from_millis(1000);
    let mut report = |estimate: &mut Estimate, megabytes: f64, delay, after| {
        now += Duration::from_millis(after);
        let sample =
            PathSample { bytes: megabytes * 1e6, sent: megabytes * 1e6, ..overload(40.0, delay, now) };
        estimate.sample(&sample, now + Duration::from_millis(60));
        estimate.pacing()
    };
    // A gigabit a second, and then 200 Mbit/s with a queue.
    assert_eq!(report(&mut estimate, 10.0, 0.0, 80), None);
    for delay in [40.0, 80.0, 120.0, 160.0] {
        assert_eq!(report(&mut estimate, 2.0, delay, 80), None);
    }
    assert_eq!(report(&mut estimate, 2.0, 0.0, 2000), None);
    assert_eq!(report(&mut estimate, 2.0, 40.0, 80), None);
    assert!(report(&mut estimate, 2.0, 80.0, 80).is_some(), "it was fast long ago");
}

#[test]
fn rate_beyond_which_pacing_is_the_limit_itself_is_not_paced() {
    let known = Rate::from_bits(600_000_000);
    assert_eq!(Estimate::new(known, None, Time::ZERO).pacing(), None);
    let ceiling = Rate::from_bits(700_000_000);
    assert_eq!(Estimate::new(known, ceiling, Time::ZERO).pacing(), ceiling, "but where a rate was given");
}

proptest! {
    #[test]
    fn whatever_is_reported_rates_stay_in_bounds(seed: u64, ceiling in proptest::option::of(1_000_u64..1 << 40)) {
        let mut random = Random::new(seed);
        let mut path = Path::new();
        let ceiling = ceiling.and_then(Rate::from_bits);
        let (mut now, mut number) = (Time::from_millis(1000), 0);
        let mut estimate = Estimate::new(None, ceiling, now);
        let mut truth = DeliveryCount { datagrams: 0, bytes: 0, highest: 0, received_at: 0, held: Duration::ZERO };
        for _ in 0..100 {
            number += random.below(40);
            path.sent(number, random.below(50_000), estimate.pacing(), now);
            now += Duration::from_micros(random.below(100_000));
            truth.datagrams += random.below(30);
            truth.bytes += random.below(40_000);
            truth.highest += random.below(40);
            truth.received_at += random.below(100_000);
            truth.held = Duration::from_nanos(random.next_u64() >> (30 + random.below(30)));
            let mut said = truth;
            match random.below(8) {
                0 => said.bytes = random.next_u64() >> random.below(64),
                1 => said.received_at = random.next_u64() >> random.below(64),
                2 => said.highest = random.next_u64() >> random.below(64),
                3 => said.datagrams = random.next_u64() >> random.below(64),
                _ => {}
            }
            let before = estimate.rate();
            match path.report(&said, AROUND, now) {
                Ok(Some(sample)) => estimate.sample(&sample, now),
                Ok(None) | Err(_) => prop_assert_eq!(estimate.rate(), before),
            }
            let most = ceiling.unwrap_or(Rate::MAX);
            for rate in [estimate.rate(), estimate.pacing()].into_iter().flatten() {
                prop_assert!(rate <= most && rate.bits() >= most.bits().min(8_000), "{:?}", rate);
            }
            prop_assert!((0.0..=1.0).contains(&path.loss()));
        }
    }
}
