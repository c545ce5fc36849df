use super::found::changes;
use super::run::PathLook;
use super::*;

fn script(name: &str) -> PathScript {
    script::all(None, 1).into_iter().find(|script| script.name == name).unwrap()
}

#[test]
fn ten_paths_and_a_policer_have_names_of_their_own() {
    let mut names = PathLab::names();
    assert_eq!(names.len(), 11);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 11);
}

#[test]
fn changes_are_those_that_a_tunnel_has_to_find() {
    let at = |name| -> Vec<(f64, f64)> {
        changes(&script(name)).iter().map(|change| (change.at, change.to)).collect()
    };
    assert_eq!(at("constant"), [(0.0, 10.0)]);
    assert_eq!(at("doubles"), [(0.0, 5.0), (15.0, 10.0), (30.0, 5.0)]);
    assert_eq!(at("beside"), [(0.0, 10.0), (8.0, 5.0), (18.0, 2.0), (20.0, 10.0), (28.0, 5.0), (45.0, 10.0)]);
    assert_eq!(at("cellular").len(), 1);
    assert!(at("shared").len() > 4);
}

#[test]
fn a_rate_is_found_when_nine_tenths_are_and_a_slower_one_when_no_more_is_left() {
    let script = script("doubles");
    let look = |(second, found)| PathLook { second, found: Some(found), queue: 0.0 };
    let looks = [(0.0, 1.0), (1.0, 4.5), (15.1, 8.9), (15.2, 9.1), (30.1, 6.0), (30.5, 5.5)].map(look);
    let found = found::found(&script, &looks);
    let seconds: Vec<f64> = found.iter().map(|found| found.seconds.unwrap()).collect();
    assert!(
        seconds.iter().zip([1.0, 0.2, 0.5]).all(|(found, told)| (found - told).abs() < 1e-9),
        "{found:?}"
    );
    assert!((found[1].round_trips.unwrap() - 4.0).abs() < 1e-9);
    assert_eq!(found::found(&script, &looks[..3])[1].seconds, None);
}

#[test]
fn scripted_rates_are_what_the_link_carries() {
    use std::time::Duration;
    use strait_clock::Time;
    let script = script("fourfold");
    let record = script.record().unwrap();
    let rate = |from: f64, to: f64| {
        let at = |second: f64| Time::ZERO + Duration::from_secs_f64(script::BEGIN + second);
        record.bits_between(at(from), at(to)) as f64 / 1e6 / (to - from)
    };
    for (from, to, told) in [(0.0, 15.0, 4.0), (15.0, 30.0, 16.0), (30.0, 40.0, 4.0)] {
        assert!((rate(from, to) - told).abs() < 0.02, "{}", rate(from, to));
    }
    assert!(script::all(None, 1).iter().filter(|script| script.record().is_some()).count() == 4);
}

#[test]
fn a_run_follows_from_its_seed_and_uses_the_link() {
    let lab = PathLab {
        seed: 3,
        effort: Effort::Quick,
        record: None,
        only: ["constant", "beside"].map(str::to_owned).to_vec(),
    };
    let run = || lab.run(&mut |_| {}).unwrap();
    let (first, second) = (run(), run());
    assert_eq!(format!("{:?}", first.paths), format!("{:?}", second.paths));
    assert_eq!((first.paths.len(), first.figures.len()), (4, 2));
    for result in &first.paths {
        println!("{result:?}");
        assert!((0.3..1.1).contains(&result.used) && result.received_mbit > 1.0, "{result:?}");
        assert!(result.found_over_true.is_some() && result.queue_median_ms <= result.queue_p95_ms);
    }
    assert_eq!(first.figures[0].drawing(), second.figures[0].drawing());
}

fn whole(name: &str) -> [PathResult; 2] {
    let lab = PathLab { seed: 1, effort: Effort::Full, record: None, only: vec![name.to_owned()] };
    lab.run(&mut |_| {}).unwrap().paths.try_into().unwrap()
}

#[test]
fn tcp_in_the_tunnel_has_its_part_beside_tcp_that_fills_the_queue() {
    let [greedy, tcp] = whole("beside");
    println!("{greedy:?} {tcp:?}");
    // For 17 of 55 seconds another connection shares the link.
    assert!(tcp.used > 0.84 && greedy.used > 0.95, "{} {}", tcp.used, greedy.used);
    assert!(greedy.used < 1.2, "{}: the other connection has its part, too", greedy.used);
}

#[test]
fn policer_without_a_queue_is_met_by_a_sender_that_does_not_slow_down() {
    let [greedy, _] = whole("policer");
    println!("{greedy:?}");
    assert!(greedy.found[0].round_trips.is_some_and(|found| found < 20.0), "{:?}", greedy.found);
    assert!(greedy.overflowed < 0.12, "{}", greedy.overflowed);
}
