//! What a link does to datagrams, in numbers.

use super::*;

const NOW: Time = Time::from_millis(1000);

fn link(settings: LinkSettings) -> SimLink {
    SimLink::new(settings, 7)
}

fn first(arrivals: Arrivals) -> Option<Duration> {
    arrivals[0].map(|(at, _)| at.since(NOW))
}

#[test]
fn a_bottleneck_takes_its_time_and_its_queue_ends() {
    let mut link = link(LinkSettings {
        rate: Rate::from_bits(1_000_000),
        delay: Duration::from_millis(3),
        queue: 2000,
        overhead: 18,
        ..LinkSettings::default()
    });
    // 1000 bytes at 1 Mbit/s take 8 ms.
    assert_eq!(first(link.carry(982, Tos(0), NOW)), Some(Duration::from_millis(11)));
    assert_eq!(first(link.carry(982, Tos(0), NOW)), Some(Duration::from_millis(19)));
    assert_eq!(link.carry(982, Tos(0), NOW), [None; 2]);
    assert_eq!(
        first(link.carry(982, Tos(0), NOW + Duration::from_millis(8))),
        Some(Duration::from_millis(27))
    );
    let counters = link.counters();
    assert_eq!((counters.entered, counters.carried, counters.overflowed), (4, 3, 1));
    assert_eq!(counters.bytes, 3000);
}

#[test]
fn ecn_marks_need_ecn_capable_packets() {
    let mut link = link(LinkSettings {
        rate: Rate::from_bits(1_000_000),
        mark_above: Some(500),
        ..LinkSettings::default()
    });
    let marks: Vec<Ecn> = [Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::Ect1]
        .into_iter()
        .map(|ecn| link.carry(1000, Tos(0xb8).with_ecn(ecn), NOW)[0].unwrap().1.ecn())
        .collect();
    assert_eq!(marks, [Ecn::Ect0, Ecn::Ce, Ecn::NotEct, Ecn::Ce]);
    assert_eq!(link.counters().marked, 2);
}

#[test]
fn loss_comes_as_often_as_it_was_asked_for_and_in_bursts() {
    for (loss, expected) in [
        (LossModel::None, 0.0),
        (LossModel::Uniform(0.1), 0.1),
        (LossModel::Uniform(1.0), 1.0),
        // In the bad state 0.01 / (0.01 + 0.1) of the time, and half is lost there.
        (LossModel::Bursts { begin: 0.01, end: 0.1, lost: 0.5 }, 0.0455),
    ] {
        let mut link = link(LinkSettings { loss, ..LinkSettings::default() });
        let lost = (0..50_000).filter(|_| link.carry(100, Tos(0), NOW)[0].is_none()).count();
        let share = f64::from(u32::try_from(lost).unwrap()) / 50_000.0;
        assert!((share - expected).abs() < 0.01, "{loss:?}: {share}");
        assert_eq!(link.counters().lost, u64::try_from(lost).unwrap());
    }
}

#[test]
fn what_is_too_large_and_what_meets_a_cut_is_gone() {
    let mut link = link(LinkSettings { mtu: 1400, ..LinkSettings::default() });
    assert!(link.carry(1400, Tos(0), NOW)[0].is_some());
    assert!(link.carry(1401, Tos(0), NOW)[0].is_none());
    link.switch = LinkSwitch::Down;
    assert!(link.carry(100, Tos(0), NOW)[0].is_none());
    let counters = link.counters();
    assert_eq!((counters.carried, counters.oversized, counters.cut), (1, 1, 1));
}

#[test]
fn jitter_repetition_and_holding_back_stay_in_bounds() {
    let by = Duration::from_millis(50);
    let mut link = link(LinkSettings {
        jitter: Duration::from_millis(2),
        repeated: 0.25,
        reordering: Some(Reordering { share: 0.1, by }),
        ..LinkSettings::default()
    });
    let (mut twice, mut held) = (0, 0);
    for _ in 0..10_000 {
        let arrivals = link.carry(100, Tos(0), NOW);
        let took = first(arrivals).unwrap();
        let late = took >= by;
        let rest = if late { took - by } else { took };
        assert!((5..=7).contains(&rest.as_millis()), "{took:?}");
        held += u32::from(late);
        twice += u32::from(arrivals[1].is_some());
    }
    assert!((2300..2700).contains(&twice), "{twice}");
    assert!((900..1100).contains(&held), "{held}");
}

/// How many in a row were lost, each time.
fn bursts(link: &mut SimLink, datagrams: u32) -> Vec<u32> {
    let (mut bursts, mut run) = (Vec::new(), 0);
    for _ in 0..datagrams {
        if link.carry(100, Tos(0), NOW)[0].is_none() {
            run += 1;
        } else if run > 0 {
            bursts.push(std::mem::take(&mut run));
        }
    }
    bursts
}

#[test]
fn bursts_have_the_length_and_the_share_they_were_asked_for() {
    for (share, length) in [(0.03, 5.0), (0.01, 2.0), (0.1, 20.0)] {
        let loss = LossModel::bursts(share, length);
        let mut link = link(LinkSettings { loss, ..LinkSettings::default() });
        let bursts = bursts(&mut link, 400_000);
        let lost: u32 = bursts.iter().sum();
        let mean = f64::from(lost) / bursts.len() as f64;
        let found = f64::from(lost) / 400_000.0;
        assert!((mean / length - 1.0).abs() < 0.1, "{loss:?}: {mean}");
        assert!((found / share - 1.0).abs() < 0.1, "{loss:?}: {found}");
    }
}

#[test]
fn loss_each_by_itself_comes_in_bursts_of_hardly_more_than_one() {
    let mut link = link(LinkSettings { loss: LossModel::Uniform(0.01), ..LinkSettings::default() });
    let bursts = bursts(&mut link, 200_000);
    let mean = f64::from(bursts.iter().sum::<u32>()) / bursts.len() as f64;
    assert!((1.0..1.03).contains(&mean), "{mean}");
}

#[test]
fn a_modems_queue_holds_so_much_time_of_its_rate() {
    let rate = Rate::from_bits(2_000_000).unwrap();
    let settings = LinkSettings::modem(rate, Duration::from_millis(30), Duration::from_millis(300));
    assert_eq!(settings.queue, 75_000);
    let mut link = link(settings);
    let arrived: Vec<Duration> = (0..60).filter_map(|_| first(link.carry(1500, Tos(0), NOW))).collect();
    // 1,514 bytes each on the wire, 6.056 ms.
    assert_eq!(arrived.len(), 49);
    assert_eq!(arrived.last(), Some(&Duration::from_micros(30_000 + 49 * 6_056)));
    assert_eq!(link.waits(NOW + Duration::from_micros(49 * 6_056 - 100)), Duration::from_micros(100));
    assert_eq!(link.waits(NOW + Duration::from_millis(301)), Duration::ZERO);
    let slow =
        LinkSettings::modem(Rate::from_bits(9600).unwrap(), Duration::ZERO, Duration::from_millis(300));
    assert_eq!(slow.queue, 12_112);
}

#[test]
fn a_recorded_rate_lets_packets_leave_when_it_had_room() {
    let record: RateTrace = "# four in 40 ms, two at once\n10\n20\n20\n40\n".parse().unwrap();
    assert_eq!(record.length(), Duration::from_millis(40));
    assert!((record.mean_bits() - 1_203_200.0).abs() < 1.0);
    let bits = |from, to| record.bits_between(Time::from_millis(from), Time::from_millis(to)) / 8 / 1504;
    assert_eq!([bits(0, 40), bits(15, 25), bits(25, 35), bits(0, 400)], [4, 2, 0, 40]);
    let delay = Duration::from_millis(5);
    let mut link = link(LinkSettings { delay, queue: 4500, ..LinkSettings::default() }).following(record);
    let start = Time::from_millis(400);
    let mut leaves = |len, at| link.carry(len, Tos(0), start + Duration::from_millis(at))[0];
    let after = |millis: u64| Some((start + delay + Duration::from_millis(millis), Tos(0)));
    // Full packets take an opportunity each, and what is left of one starts the next.
    assert_eq!([leaves(1500, 0), leaves(1500, 0), leaves(1500, 0)], [after(10), after(20), after(20)]);
    assert_eq!(leaves(1500, 0), None, "a fourth is more than the queue holds");
    // Both share the opportunity at 40; what it has left is gone when nothing waits for the next.
    assert_eq!([leaves(700, 30), leaves(700, 30)], [after(40), after(40)]);
    // The record begins again.
    assert_eq!([leaves(100, 41), leaves(1500, 60)], [after(50), after(60)]);
    assert_eq!([leaves(1500, 60), leaves(100, 8_000_001)], [after(60), after(8_000_010)]);
}

#[test]
fn a_recorded_rate_is_what_a_full_link_carries() {
    let text: String = (1..=500_u32).map(|line| format!("{}\n", line * line / 100)).collect();
    let record: RateTrace = text.parse().unwrap();
    let mean = record.mean_bits();
    let mut link = link(LinkSettings::default()).following(record);
    let last =
        (0..20_000).filter_map(|_| link.carry(1500, Tos(0), NOW)[0]).map(|(at, _)| at.since(NOW)).max();
    let carried = 20_000.0 * 1500.0 * 8.0 / last.unwrap().as_secs_f64();
    assert!((carried / mean - 1.0).abs() < 0.01, "{carried} of {mean}");
}

#[test]
fn text_that_is_no_record_is_refused_with_its_line() {
    for (text, expected) in [
        ("", InvalidTrace::Empty),
        ("0\n0\n", InvalidTrace::Empty),
        ("1\nx\n", InvalidTrace::Number(2)),
        ("1\n-2\n", InvalidTrace::Number(2)),
        ("# comment\n5\n4\n", InvalidTrace::Backwards(3)),
    ] {
        assert_eq!(text.parse::<RateTrace>(), Err(expected), "{text:?}");
    }
}

#[test]
fn a_shared_medium_leaves_what_others_do_not_take() {
    let rate = Rate::from_bits(12_032_000).unwrap();
    // A packet a millisecond has room; in the second ten milliseconds others take all of it, and half of the third.
    let others = (10..20).map(|at| (at, 1504)).chain((20..30).map(|at| (at, 752))).chain([(30, 0)]);
    let traffic = others.map(|(at, bytes)| (Duration::from_millis(at), bytes));
    let left = RateTrace::beside(rate, traffic).unwrap();
    let expected: RateTrace =
        (1..=10).chain([22, 24, 26, 28, 30]).map(|at| format!("{at}\n")).collect::<String>().parse().unwrap();
    assert_eq!(left, expected);
    let all = (0..10).map(|at| (Duration::from_millis(at), 1504));
    assert_eq!(RateTrace::beside(rate, all), Err(InvalidTrace::Empty));
    // A burst takes its room later.
    let burst = [(Duration::ZERO, 15_040), (Duration::from_millis(12), 0)];
    assert_eq!(RateTrace::beside(rate, burst).unwrap(), "11\n12\n".parse().unwrap());
}
