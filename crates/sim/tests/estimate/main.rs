//! The estimate of a link's rate in virtual time: a paced sender, a bottleneck, a receiver that reports.

#![allow(clippy::unwrap_used)]

mod course;
mod scripted;
mod traffic;

use core::time::Duration;

use course::{Course, mbit};
use strait_scheduler::LimitedBy;
use strait_sim::LossModel;
use traffic::{Figures, Traffic};

const LOSSES: [f64; 4] = [0.0, 0.01, 0.05, 0.2];

/// How often a report comes, with a margin: 2 % of the bytes received pay for one every 20 ms at 10 Mbit/s, and every 32 ms at
/// 1.5 Mbit/s.
const APART: [Duration; 2] = [ms(50), ms(137)];

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn lossy(rate: f64, round_trip: Duration, loss: f64, apart: Duration) -> Course {
    let mut course = Course::new(mbit(rate), round_trip);
    course.report_every = apart;
    course.set_loss(LossModel::Uniform(loss));
    course
}

/// Within so much of the link's rate, on average and at worst.
fn is_near(figures: Figures, mean: f64, worst: f64) -> bool {
    (figures.mean - 1.0).abs() <= mean && figures.worst <= worst
}

#[test]
fn a_change_of_rate_is_followed_within_three_seconds_in_both_directions() {
    for apart in APART {
        for loss in LOSSES {
            let mut course = lossy(10.0, ms(50), loss, apart);
            course.run_for(Duration::from_secs(10));
            for rate in [1.5, 10.0, 1.5, 10.0] {
                course.set_rate(mbit(rate));
                // Of so many lost chance decides how many arrive.
                let near = if loss > 0.1 { 0.25 } else { 0.15 };
                let settled = course.settles(Duration::from_secs(6), near);
                let what = format!("{rate} Mbit/s, {loss} lost, a report every {apart:?}: {settled:?}");
                println!("{what}");
                assert!(settled.is_some_and(|settled| settled <= Duration::from_secs(3)), "{what}");
            }
        }
    }
}

#[test]
fn a_steady_link_is_known_and_hardly_anything_stands_in_the_modem() {
    for rate in [1.5, 10.0] {
        for apart in APART {
            for loss in LOSSES {
                let mut course = lossy(rate, ms(50), loss, apart);
                course.run_for(Duration::from_secs(10));
                let figures = course.watch(Duration::from_secs(30));
                let what = format!("{rate} Mbit/s, {loss} lost, a report every {apart:?}: {figures:?}");
                println!("{what}");
                let worst = if loss > 0.1 { 0.25 } else { 0.15 };
                assert!(is_near(figures, 0.1, worst), "{what}");
                assert!(figures.queued <= ms(20), "{what}");
                assert!(loss > 0.0 || figures.carried > 0.95, "{what}");
                assert!((course.path().loss() - loss).abs() < 0.03 + loss / 2.0, "{}", course.path().loss());
            }
        }
    }
}

#[test]
fn other_link_rates_are_estimated() {
    // Mbit/s, round trip, time between reports, jitter each way.
    for (rate, round_trip, apart, jitter) in [
        (0.128, ms(50), ms(1000), ms(0)),
        (0.5, ms(50), ms(400), ms(0)),
        (100.0, ms(20), ms(50), ms(0)),
        (400.0, ms(5), ms(50), ms(0)),
        (10.0, ms(600), ms(50), ms(0)),
        (1.5, ms(600), ms(137), ms(0)),
        (10.0, ms(50), ms(50), ms(10)),
        (1.5, ms(50), ms(137), ms(10)),
    ] {
        let mut course = lossy(rate, round_trip, 0.0, apart);
        (course.forth.settings.jitter, course.back.settings.jitter) = (jitter, jitter);
        let settled = course.settles(Duration::from_secs(10), 0.15);
        course.run_for(Duration::from_secs(10));
        let figures = course.watch(Duration::from_secs(10));
        let what = format!("{rate} Mbit/s, {round_trip:?}, {apart:?}, {jitter:?}: {settled:?} {figures:?}");
        println!("{what}");
        assert!(settled.is_some() && is_near(figures, 0.1, 0.2), "{what}");
        // One datagram takes 94 ms at 128 kbit/s.
        assert!(figures.queued <= ms(20).max(mbit(rate).time_for(1400)), "{what}");
        let round = course.path().least_round_trip().unwrap();
        // What is sent within two milliseconds is told apart no further.
        assert!(
            round + ms(2) >= round_trip && round <= round_trip + ms(10) + mbit(rate).time_for(3000),
            "{round:?}"
        );
    }
}

#[test]
fn a_modem_that_drops_instead_of_queueing_is_not_flooded() {
    for rate in [1.5, 10.0] {
        for loss in [0.0, 0.05] {
            let mut course = lossy(rate, ms(50), loss, ms(50));
            // 8 ms of 10 Mbit/s.
            course.forth.settings.queue = 10_000;
            course.run_for(Duration::from_secs(10));
            let before = course.forth.counters();
            let figures = course.watch(Duration::from_secs(30));
            let after = course.forth.counters();
            let dropped =
                (after.overflowed - before.overflowed) as f64 / (after.entered - before.entered) as f64;
            let what = format!("{rate} Mbit/s, {loss} lost: {figures:?}, {dropped:.3} dropped");
            println!("{what}");
            assert!(is_near(figures, 0.12, 0.25) && dropped < 0.1, "{what}");
        }
    }
}

#[test]
fn a_sender_without_much_to_send_neither_probes_nor_forgets() {
    let mut course = lossy(10.0, ms(50), 0.0, ms(50));
    course.run_for(Duration::from_secs(5));
    assert_eq!(course.estimate().limited_by(), LimitedBy::Link);
    assert!(course.estimate().found().is_some());
    course.set_traffic(Traffic::Steady(mbit(1.0)));
    course.run_for(Duration::from_secs(3));
    assert_eq!(course.estimate().limited_by(), LimitedBy::Traffic);
    let rate = course.estimate().rate();
    course.run_for(Duration::from_secs(20));
    assert_eq!(course.estimate().rate(), rate);
    course.set_traffic(Traffic::Nothing);
    course.run_for(Duration::from_secs(600));
    course.set_traffic(Traffic::Greedy);
    let figures = course.watch(Duration::from_secs(10));
    assert!(is_near(figures, 0.1, 0.15), "{figures:?}");
}

#[test]
fn a_link_that_becomes_slower_is_noticed_by_a_sender_with_little_to_send() {
    let mut course = lossy(10.0, ms(50), 0.0, ms(50));
    course.run_for(Duration::from_secs(5));
    course.set_traffic(Traffic::Steady(mbit(3.0)));
    course.run_for(Duration::from_secs(2));
    course.set_rate(mbit(1.5));
    let settled = course.settles(Duration::from_secs(6), 0.15);
    assert!(settled.is_some_and(|settled| settled <= Duration::from_secs(3)), "{settled:?}");
}

#[test]
fn a_link_that_becomes_slower_is_noticed_by_a_sender_that_waits_for_answers() {
    for window in [5, 8, 20] {
        let mut course = lossy(100.0, ms(10), 0.0, ms(50));
        course.run_for(Duration::from_secs(5));
        course.set_traffic(Traffic::Window(window));
        course.run_for(Duration::from_secs(2));
        assert_eq!(course.estimate().limited_by(), LimitedBy::Traffic);
        course.set_rate(mbit(1.5));
        let settled = course.settles(Duration::from_secs(6), 0.15);
        println!("{window} on the way: {settled:?}");
        assert!(settled.is_some_and(|settled| settled <= Duration::from_secs(3)), "{window}: {settled:?}");
    }
}

#[test]
fn longer_path_is_not_mistaken_for_queue() {
    let mut course = lossy(10.0, ms(50), 0.0, ms(50));
    course.run_for(Duration::from_secs(5));
    (course.forth.settings.delay, course.back.settings.delay) = (ms(60), ms(60));
    course.run_for(Duration::from_secs(15));
    let figures = course.watch(Duration::from_secs(10));
    assert!(is_near(figures, 0.1, 0.15) && figures.carried > 0.9, "{figures:?}");
}

#[test]
fn lost_overtaken_and_repeated_reports_change_little() {
    let mut course = lossy(10.0, ms(50), 0.0, ms(50));
    course.back.settings.loss = LossModel::Uniform(0.3);
    course.back.settings.jitter = ms(120);
    course.back.settings.repeated = 0.2;
    course.run_for(Duration::from_secs(10));
    let figures = course.watch(Duration::from_secs(20));
    assert!(is_near(figures, 0.1, 0.2), "{figures:?}");
    assert_eq!(course.path().refused(), 0);
}
