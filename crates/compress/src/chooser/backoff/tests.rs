//! Backoff in virtual time.

use std::net::{IpAddr, Ipv4Addr};

use strait_wire::Protocol;

use super::*;

fn flow(number: u32) -> Flow {
    Flow {
        src: IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + number)),
        dst: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        protocol: Protocol::TCP,
        src_port: 40_000,
        dst_port: 443,
    }
}

const fn unit(flow: &Flow) -> Unit<'_> {
    Unit { flow, rule: RuleId(1), method: Method::ZSTD }
}

/// Sends one unit of 1,400 bytes that would go to `after`; whether it was tried.
fn send(backoff: &mut Backoff, unit: &Unit<'_>, after: usize, now: Time) -> bool {
    let tried = backoff.choose(unit, now) == unit.method;
    if tried {
        backoff.learn(unit, 1_400, after, now);
    }
    tried
}

/// Sends a unit every millisecond from `from` to `until`; the times of those tried.
fn tries(backoff: &mut Backoff, unit: &Unit<'_>, after: usize, from: u64, until: u64) -> Vec<u64> {
    (from..until).filter(|milli| send(backoff, unit, after, Time::from_millis(*milli))).collect()
}

#[test]
fn a_rule_without_codec_is_never_tried() {
    let flow = flow(1);
    let unit = Unit { method: Method::NONE, ..unit(&flow) };
    assert_eq!(Backoff::new(1).choose(&unit, Time::ZERO), Method::NONE);
}

#[test]
fn what_shrinks_is_always_compressed() {
    let flow = flow(1);
    let mut backoff = Backoff::new(1);
    assert_eq!(tries(&mut backoff, &unit(&flow), 1_330, 0, 5_000).len(), 5_000);
}

#[test]
fn random_data_costs_one_try_and_then_one_a_span_that_doubles() {
    let flow = flow(1);
    let mut backoff = Backoff::new(1);
    let times = tries(&mut backoff, &unit(&flow), 1_400, 0, 40_000);
    assert_eq!(times, [0, 250, 750, 1_750, 3_750, 7_750, 15_750, 23_750, 31_750, 39_750]);
}

#[test]
fn a_saving_just_under_five_percent_is_not_worth_it() {
    let flow = flow(1);
    for (after, worth) in [(1_330, true), (1_331, false)] {
        let mut backoff = Backoff::new(1);
        send(&mut backoff, &unit(&flow), after, Time::ZERO);
        assert_eq!(send(&mut backoff, &unit(&flow), after, Time::from_millis(1)), worth, "{after}");
    }
}

#[test]
fn a_few_small_packets_do_not_condemn_a_flow() {
    let flow = flow(1);
    let mut backoff = Backoff::new(1);
    for milli in 0..9 {
        let now = Time::from_millis(milli);
        assert_eq!(backoff.choose(&unit(&flow), now), Method::ZSTD);
        backoff.learn(&unit(&flow), 110, 110, now);
    }
    // 990 bytes so far; the next passes the thousand.
    backoff.learn(&unit(&flow), 110, 110, Time::from_millis(9));
    assert_eq!(backoff.choose(&unit(&flow), Time::from_millis(10)), Method::NONE);
}

#[test]
fn a_flow_that_turns_random_is_noticed_within_fifty_kilobytes() {
    let flow = flow(1);
    let mut backoff = Backoff::new(1);
    assert_eq!(tries(&mut backoff, &unit(&flow), 500, 0, 1_000).len(), 1_000);
    let wasted = tries(&mut backoff, &unit(&flow), 1_400, 1_000, 1_200).len();
    assert!(wasted <= 50_000 / 1_400, "{wasted} units wasted");
}

#[test]
fn data_that_shrinks_again_is_found_within_a_second_after_a_second_of_random() {
    let flow = flow(1);
    let mut backoff = Backoff::new(1);
    tries(&mut backoff, &unit(&flow), 1_400, 0, 1_000);
    let times = tries(&mut backoff, &unit(&flow), 500, 1_000, 3_000);
    assert_eq!(times.first(), Some(&1_750));
    assert_eq!(times.len(), 1_250, "every unit since is compressed");
}

#[test]
fn data_that_shrinks_again_is_found_within_the_longest_pause_after_hours() {
    let flow = flow(1);
    let mut backoff = Backoff::new(1);
    let mut now = Time::ZERO;
    for _ in 0..1_000 {
        send(&mut backoff, &unit(&flow), 1_400, now);
        now += LONGEST_PAUSE;
    }
    let start = now;
    while !send(&mut backoff, &unit(&flow), 500, now) {
        now += Duration::from_millis(10);
    }
    assert!(now.since(start) <= LONGEST_PAUSE);
    // And the pauses start from the first again.
    let turned = now;
    while send(&mut backoff, &unit(&flow), 1_400, now) {
        now += Duration::from_millis(1);
    }
    while !send(&mut backoff, &unit(&flow), 1_400, now) {
        now += Duration::from_millis(1);
    }
    assert!(now.since(turned) <= FIRST_PAUSE + Duration::from_millis(40), "{:?}", now.since(turned));
}

#[test]
fn outcomes_of_units_already_on_their_way_do_not_lengthen_the_pause() {
    let flow = flow(1);
    let mut backoff = Backoff::new(1);
    for _ in 0..8 {
        assert_eq!(backoff.choose(&unit(&flow), Time::ZERO), Method::ZSTD);
    }
    for _ in 0..8 {
        backoff.learn(&unit(&flow), 1_400, 1_400, Time::ZERO);
    }
    assert_eq!(tries(&mut backoff, &unit(&flow), 1_400, 1, 800), [250, 750]);
}

#[test]
fn one_unit_is_tried_after_a_pause_even_while_its_outcome_is_awaited() {
    let flow = flow(1);
    let mut backoff = Backoff::new(1);
    send(&mut backoff, &unit(&flow), 1_400, Time::ZERO);
    let chosen =
        |backoff: &mut Backoff, milli| backoff.choose(&unit(&flow), Time::from_millis(milli)) == Method::ZSTD;
    assert!(chosen(&mut backoff, 250));
    assert!(!chosen(&mut backoff, 251));
    // The outcome is lost; after a pause of the same length the next unit is tried.
    assert!(!chosen(&mut backoff, 499));
    assert!(chosen(&mut backoff, 500));
}

#[test]
fn rules_and_flows_are_judged_apart() {
    let (one, other) = (flow(1), flow(2));
    let mut backoff = Backoff::new(1);
    send(&mut backoff, &unit(&one), 1_400, Time::ZERO);
    assert_eq!(backoff.choose(&unit(&one), Time::ZERO), Method::NONE);
    assert_eq!(backoff.choose(&unit(&other), Time::ZERO), Method::ZSTD);
    let by_another_rule = Unit { rule: RuleId(2), ..unit(&one) };
    assert_eq!(backoff.choose(&by_another_rule, Time::ZERO), Method::ZSTD);
}

#[test]
fn ten_thousand_flows_do_not_push_out_the_one_in_use() {
    let busy = flow(0);
    let mut backoff = Backoff::new(7);
    let mut tried = 0;
    for number in 1..=10_000 {
        let now = Time::from_millis(u64::from(number));
        tried += u32::from(send(&mut backoff, &unit(&busy), 1_400, now));
        send(&mut backoff, &unit(&flow(number)), 1_400, now);
    }
    // Alone it would be tried at 1, 251, 751, 1,751, 3,751 and 7,751 ms.
    assert_eq!(tried, 6);
}

#[test]
fn nonsense_outcomes_are_survived() {
    let flow = flow(1);
    let mut backoff = Backoff::new(1);
    for (before, after) in
        [(0, 0), (0, 9), (1, usize::MAX), (usize::MAX, 0), (usize::MAX, usize::MAX), (0, 0)]
    {
        backoff.learn(&unit(&flow), before, after, Time::ZERO);
        backoff.choose(&unit(&flow), Time::MAX);
    }
}
