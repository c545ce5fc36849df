//! Scripted paths: rates that change, other traffic, loss in bursts, hosts that stall.

use core::time::Duration;

use strait_scheduler::LimitedBy;
use strait_sim::LossModel;

use crate::course::{Course, mbit};
use crate::traffic::Traffic;
use crate::{is_near, ms};

/// A link with a modem's queue of `queue`, where reports come every half round trip, but no faster than every 20 ms, and no more
/// than 1 % of the bytes received.
fn modem(rate: f64, round_trip: Duration, queue: Duration) -> Course {
    let mut course = Course::new(mbit(rate), round_trip);
    course.forth.settings.queue = mbit(rate).bytes_in(queue);
    course.report_every = (round_trip / 2).max(ms(20)).max(mbit(rate).time_for(11_000));
    course
}

#[test]
fn rate_that_doubles_is_found_within_four_round_trips_and_fourfold_within_eight() {
    for round_trip in [ms(30), ms(50), ms(100), ms(300), ms(600)] {
        for (rate, times, round_trips) in [(2.0, 2.0, 4), (10.0, 2.0, 4), (2.0, 4.0, 8), (10.0, 4.0, 8)] {
            // The step comes at any time between two of the sender's own.
            for begun in [8_000, 8_170, 8_430, 9_010] {
                let mut course = modem(rate, round_trip, ms(300));
                course.run_for(ms(begun));
                course.set_rate(mbit(rate * times));
                // Where reports are more than 50 ms apart, a step that comes while the queue is let go is found a little later:
                // 5.1 round trips at most here.
                let late = if round_trip > ms(100) && round_trips == 4 { round_trip * 6 / 5 } else { ms(0) };
                let within = (round_trip * round_trips).max(ms(300)) + late;
                let found = course.reaches(0.9, within * 4);
                let what = format!("{round_trip:?}, {rate} Mbit/s times {times} after {begun} ms: {found:?}");
                println!("{what}");
                assert!(found.is_some_and(|found| found <= within), "{what}");
            }
        }
    }
}

#[test]
fn limit_is_found_in_the_first_half_second_and_what_stands_before_it_goes() {
    for queue in [ms(50), ms(300), ms(1000)] {
        for rate in [1.54, 10.0, 100.0] {
            let mut course = modem(rate, ms(50), queue);
            assert!(course.is_free());
            let found = course.reaches(0.9, ms(3000));
            course.run_for(ms(1500));
            let figures = course.watch(ms(5000));
            let what = format!("{rate} Mbit/s, a queue of {queue:?}: {found:?}, then {figures:?}");
            println!("{what}");
            assert!(found.is_some_and(|found| found <= ms(600)), "{what}");
            assert!(is_near(figures, 0.1, 0.25) && figures.carried > 0.95, "{what}");
            assert!(figures.queued <= ms(20), "{what}");
        }
    }
}

#[test]
fn remembered_rate_is_used_at_once_and_corrected_where_it_is_wrong() {
    for remembered in [2.5, 9.0, 10.0, 20.0] {
        let mut course = modem(10.0, ms(50), ms(300)).remembering(mbit(remembered));
        assert!(!course.is_free());
        course.run_for(ms(1000));
        let figures = course.watch(ms(5000));
        let what = format!("{remembered} Mbit/s remembered of 10: {figures:?}");
        println!("{what}");
        assert!(is_near(figures, 0.1, 0.25) && figures.carried > 0.9, "{what}");
    }
}

#[test]
fn shared_medium_is_followed_without_collapse_or_standing_queue() {
    for round_trip in [ms(30), ms(100)] {
        let mut course = modem(9.0, round_trip, ms(1000));
        course.run_for(ms(3000));
        let (mut carried, mut queued, mut count) = (0.0, 0.0, 0.0);
        for (rate, millis) in [
            (3.0, 2000),
            (9.0, 3000),
            (3.0, 5000),
            (6.0, 2000),
            (9.0, 2500),
            (3.0, 2000),
            (9.0, 4000),
            (4.0, 2000),
        ]
        .into_iter()
        .cycle()
        .take(24)
        {
            course.set_rate(mbit(rate));
            let figures = course.watch(ms(millis));
            println!("{round_trip:?}, {rate} Mbit/s for {millis} ms: {figures:?}");
            assert!(figures.carried > 0.75, "{figures:?}");
            (carried, queued, count) =
                (carried + figures.carried, queued + figures.queued.as_secs_f64(), count + 1.0);
        }
        println!("{round_trip:?}: {:.3} carried, {:.1} ms queued", carried / count, queued / count * 1e3);
        assert!(carried / count > 0.9 && queued / count < 0.1, "{carried} {queued} {count}");
    }
}

#[test]
fn other_traffic_beside_the_tunnel_gets_its_part_and_leaves_the_rest() {
    let mut course = modem(10.0, ms(50), ms(300));
    course.run_for(ms(4000));
    for _ in 0..4 {
        for cross in [Some(5.0), None] {
            course.set_cross(cross.map(mbit));
            course.run_for(ms(2000));
            let figures = course.watch(ms(4000));
            println!("{cross:?} Mbit/s beside it: {figures:?}");
            let left = 1.0 - cross.unwrap_or(0.0) / 10.0;
            assert!(figures.mean > left * 0.9 && figures.mean < left * 1.25, "{figures:?}");
            assert!(figures.carried > 0.9 && figures.queued < ms(80), "{figures:?}");
        }
    }
}

#[test]
fn loss_in_bursts_does_not_lower_the_rate() {
    for (loss, share) in [
        (LossModel::Uniform(0.01), 0.01),
        (LossModel::Uniform(0.03), 0.03),
        // Five in a row on average.
        (LossModel::Bursts { begin: 0.002, end: 0.2, lost: 1.0 }, 0.01),
        (LossModel::Bursts { begin: 0.006, end: 0.2, lost: 1.0 }, 0.03),
    ] {
        for rate in [2.0, 10.0] {
            let mut course = modem(rate, ms(100), ms(300));
            course.set_loss(loss);
            course.run_for(ms(10_000));
            let figures = course.watch(ms(30_000));
            let what = format!("{rate} Mbit/s, {loss:?}: {figures:?}");
            println!("{what}");
            assert!(is_near(figures, 0.08, 0.55) && figures.carried > 0.93 - share, "{what}");
            assert!(figures.queued < ms(30), "{what}");
        }
    }
}

#[test]
fn nothing_is_paced_where_no_limit_is_met() {
    for (jitter, stalls) in [(ms(0), None), (ms(10), None), (ms(0), Some(ms(60)))] {
        let mut course = modem(10.0, ms(20), ms(300));
        course.forth.settings.rate = None;
        (course.forth.settings.jitter, course.back.settings.jitter) = (jitter, jitter);
        course.set_traffic(Traffic::Steady(mbit(40.0)));
        for second in 0..60 {
            course.run_for(ms(1000));
            assert!(course.is_free(), "{jitter:?} {stalls:?}: paced after {second} s");
            stalls.into_iter().for_each(|span| course.stall(span));
        }
        assert_eq!((course.estimate().found(), course.estimate().limited_by()), (None, LimitedBy::Traffic));
    }
}

#[test]
fn limit_that_is_outgrown_is_forgotten() {
    let mut course = modem(10.0, ms(20), ms(300)).remembering(mbit(1.0));
    course.forth.settings.rate = None;
    course.set_traffic(Traffic::Steady(mbit(30.0)));
    course.run_for(ms(1000));
    assert!(course.is_free() && course.estimate().found().is_none());
}

#[test]
fn path_that_becomes_longer_costs_little() {
    for (rate, longer) in [(2.0, 40), (10.0, 40), (10.0, 300)] {
        let mut course = modem(rate, ms(50), ms(300));
        course.run_for(ms(5000));
        course.forth.settings.delay += ms(longer);
        let figures = course.watch(ms(10_000));
        let what = format!("{rate} Mbit/s, {longer} ms longer: {figures:?}");
        println!("{what}");
        assert!(is_near(figures, 0.15, 0.6) && figures.carried > 0.85, "{what}");
    }
}

#[test]
fn queue_that_others_fill_presses_the_rate_down_for_seconds_at_most() {
    let mut course = modem(10.0, ms(50), ms(300));
    course.set_traffic(Traffic::Steady(mbit(2.0)));
    course.run_for(ms(3000));
    assert!(course.is_free());
    // More than the link takes: its queue is full from now on.
    course.set_cross(Some(mbit(10.0)));
    let mut sent = Vec::new();
    for _ in 0..10 {
        let before = course.sent();
        course.run_for(ms(3000));
        sent.push((course.sent() - before) as f64 * 8.0 / 3e6 / 2.0);
    }
    println!("{sent:.2?}");
    // Until it is seen that the queue does not go when less is sent.
    assert!(sent.iter().skip(2).all(|share| *share > 0.8), "of what was to be sent: {sent:?}");
    assert!(sent.iter().skip(5).all(|share| *share > 0.95), "of what was to be sent: {sent:?}");
}
