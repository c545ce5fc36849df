use super::*;
use strait_clock::Random;
use strait_scheduler::Price;

/// A cycle a nanosecond, a byte a cycle: 40 bytes take 41 ns.
const BUS: BusSettings = BusSettings { hertz: 1_000_000_000, width: 1, address: 1 };

/// Nanoseconds to set up and a block of 16.
fn processor(set_up: f64, per_block: f64) -> ProcessorSettings {
    let price = Price::from(strait_model::Cost {
        set_up: strait_model::Seconds(set_up * 1e-9),
        per_byte: strait_model::Seconds(per_block / 16.0 * 1e-9),
    });
    ProcessorSettings { price, slowdown: 1.0, on_bus: true }
}

fn machine(processors: Vec<ProcessorSettings>, packets: usize) -> MachineSettings {
    MachineSettings {
        bus: BUS,
        processors,
        depth: 16,
        when_full: WhenFull::Wait,
        in_order: None,
        window: Limits { packets, bytes: usize::MAX, wait: Duration::MAX },
        tuned: false,
        block: 16,
        source_waits: true,
        learns: false,
    }
}

fn arrival(at: u64, bytes: u32, association: u32) -> PacketArrival {
    PacketArrival { at: Time::from_nanos(at), bytes, association }
}

/// Packets of 40 to 1,500 bytes of 20 associations, one every so many nanoseconds.
fn traffic(count: u64, gap: u64) -> Vec<PacketArrival> {
    let mut random = Random::new(5);
    let mut one = |number| arrival(number * gap, 40 + random.below(1461) as u32, random.below(20) as u32);
    (0..count).map(&mut one).collect()
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

#[test]
fn one_packet_by_hand() {
    let outcome = simulate(&machine(vec![processor(1000.0, 100.0)], 1), [arrival(7, 40, 0)]);
    // In 41, set-up 1000 and three blocks, out 41.
    assert_eq!((outcome.latency, outcome.worst, outcome.span), (nanos(1382), nanos(1382), nanos(1389)));
    let share = ProcessorUse { jobs: 1, packets: 1, bytes: 40, merged: 0, busy: nanos(1300) };
    assert_eq!((outcome.packets, outcome.jobs, &outcome.shares[..]), (1, 1, &[share][..]));
}

#[test]
fn aggregation_spares_set_ups_and_addresses() {
    let arrivals = [arrival(0, 40, 0), arrival(0, 20, 1), arrival(0, 40, 0)];
    let outcome = simulate(&machine(vec![processor(1000.0, 100.0)], 3), arrivals);
    // 81 in, 1000 and six blocks, 81 out; then 21, 1000 and two, 21.
    assert_eq!((outcome.span, outcome.jobs), (nanos(1762 + 1242), 2));
    assert_eq!((outcome.shares[0].packets, outcome.shares[0].merged), (3, 2));
    let alone = simulate(&machine(vec![processor(1000.0, 100.0)], 1), arrivals);
    assert_eq!((alone.span, alone.jobs), (nanos(1382 + 1242 + 1382), 3));
}

#[test]
fn the_bus_is_had_in_the_order_of_requests() {
    let arrivals = [arrival(0, 40, 0), arrival(0, 40, 1)];
    let outcome = simulate(&machine(vec![processor(1000.0, 100.0); 2], 1), arrivals);
    // The second waits 41 for its transfer in; both are encrypted at the same time, the first is written back first.
    assert_eq!((outcome.span, outcome.latency), (nanos(1382 + 41), nanos(1382 + 20)));
    let mut apart = machine(vec![processor(1000.0, 100.0); 2], 1);
    apart.processors[0].on_bus = false;
    let outcome = simulate(&apart, arrivals);
    assert_eq!((outcome.span, outcome.latency), (nanos(1382), nanos((1300 + 1382) / 2)));
}

#[test]
fn dispatch_rule_ignores_transfer_times() {
    // With a bus that takes a second a byte, the processor on it is still thought the faster.
    let mut settings = machine(vec![processor(2.0, 0.0), processor(1.0, 0.0)], 1);
    settings.bus.hertz = 1;
    settings.processors[0].on_bus = false;
    assert_eq!(simulate(&settings, [arrival(0, 40, 0)]).shares[1].jobs, 1);
}

#[test]
fn an_overloaded_machine_holds_few_packets_while_its_source_waits() {
    let mut settings = machine(vec![processor(1000.0, 0.0)], 1);
    settings.processors[0].on_bus = false;
    let arrivals: Vec<PacketArrival> = (0..1000).map(|_| arrival(0, 16, 0)).collect();
    let outcome = simulate(&settings, arrivals.iter().copied());
    // Each takes 1000; one is worked on, 16 wait, the scheduler holds one, the window another.
    assert_eq!((outcome.span, outcome.worst), (nanos(1_000_000), nanos(19_000)));
    settings.source_waits = false;
    let outcome = simulate(&settings, arrivals);
    assert_eq!(
        (outcome.span, outcome.worst, outcome.latency),
        (nanos(1_000_000), nanos(1_000_000), nanos(500_500))
    );
}

#[test]
fn full_queue_is_waited_for_or_passed_by() {
    // The second takes 100 a job, the first 1000; one waits in front of each.
    let mut settings = machine(vec![processor(1000.0, 0.0), processor(100.0, 0.0)], 1);
    settings.depth = 1;
    settings.processors.iter_mut().for_each(|it| it.on_bus = false);
    let arrivals = [arrival(0, 16, 0); 5];
    let waits = simulate(&settings, arrivals);
    assert_eq!((waits.span, waits.shares[0].jobs), (nanos(500), 0));
    settings.when_full = WhenFull::Next;
    let next = simulate(&settings, arrivals);
    // Two to the second, two to the first, and the fifth to the second when its first is done.
    assert_eq!((next.span, next.shares[0].jobs), (nanos(2000), 2));
}

#[test]
fn packets_leave_in_the_order_in_which_they_were_scheduled() {
    let mut settings = machine(vec![processor(1000.0, 0.0), processor(100.0, 0.0)], 1);
    (settings.depth, settings.when_full) = (0, WhenFull::Next);
    settings.processors.iter_mut().for_each(|it| it.on_bus = false);
    // One to the second, one to the first, and the others behind the first one.
    let arrivals = [arrival(0, 16, 0); 4];
    let free = simulate(&settings, arrivals);
    assert_eq!((free.span, free.latency), (nanos(1000), nanos((100 + 1000 + 200 + 200) / 4)));
    settings.in_order = Some(10);
    let ordered = simulate(&settings, arrivals);
    // The third is in the window from the beginning, the fourth from 100 on, and both leave with the second at 1000.
    assert_eq!((ordered.span, ordered.latency), (nanos(1000), nanos((100 + 1000 + 1000 + 900) / 4)));
    settings.in_order = Some(2);
    let bounded = simulate(&settings, arrivals);
    // The fourth waits until the second has left.
    assert_eq!((bounded.packets, bounded.span), (4, nanos(1100)));
}

#[test]
fn a_window_waits_no_longer_than_it_may() {
    let mut settings = machine(vec![processor(1000.0, 0.0)], 30);
    settings.processors[0].on_bus = false;
    settings.source_waits = false;
    let arrivals = [arrival(0, 16, 0), arrival(5_000_000, 16, 1), arrival(20_000_000, 16, 0)];
    let filled = simulate(&settings, arrivals);
    assert_eq!((filled.jobs, filled.worst), (2, nanos(20_001_000)));
    settings.window.wait = Duration::from_millis(3);
    let waited = simulate(&settings, arrivals);
    assert_eq!((waited.jobs, waited.worst), (3, nanos(3_001_000)));
    settings.window.wait = Duration::ZERO;
    assert_eq!(simulate(&settings, arrivals).worst, nanos(1_000));
    settings.window.wait = Duration::MAX;
    settings.window.bytes = 32;
    let weighed = simulate(&settings, arrivals);
    assert_eq!((weighed.jobs, weighed.worst), (3, nanos(15_001_000)));
}

#[test]
fn every_packet_is_done_once_whatever_the_machine() {
    let arrivals = traffic(3_000, 2_000);
    let bytes: u64 = arrivals.iter().map(|packet| u64::from(packet.bytes)).sum();
    let rules = [(WhenFull::Wait, None), (WhenFull::Next, Some(7)), (WhenFull::Wait, Some(1))];
    for packets in [1, 10, 30] {
        for processors in 1..4 {
            for (tuned, depth, wait) in [(false, 16, Duration::MAX), (true, 0, Duration::from_micros(9))] {
                let mut settings = machine(vec![processor(900.0, 500.0); processors], packets);
                (settings.when_full, settings.in_order) = rules[processors - 1];
                settings.processors[0].slowdown = 3.0;
                (settings.tuned, settings.depth, settings.window.wait) = (tuned, depth, wait);
                settings.learns = tuned;
                let outcome = simulate(&settings, arrivals.iter().copied());
                let sum = |of: fn(&ProcessorUse) -> u64| outcome.shares.iter().map(of).sum::<u64>();
                assert_eq!((outcome.packets, outcome.bytes), (3_000, bytes));
                assert_eq!((sum(|it| it.packets), sum(|it| it.bytes)), (3_000, bytes));
                assert_eq!(sum(|it| it.jobs), outcome.jobs);
                assert!(outcome.latency <= outcome.worst && outcome.worst <= outcome.span);
                assert!(outcome.shares.iter().all(|share| share.busy <= outcome.span));
                assert_eq!(outcome, simulate(&settings, arrivals.iter().copied()), "the same again");
            }
        }
    }
}

#[test]
fn slow_processor_is_detected() {
    let mut settings = machine(vec![processor(1000.0, 500.0); 2], 1);
    settings.processors[0].slowdown = 4.0;
    let arrivals = traffic(20_000, 30_000);
    let believed = simulate(&settings, arrivals.iter().copied());
    settings.learns = true;
    let learned = simulate(&settings, arrivals);
    assert!(learned.latency * 10 < believed.latency * 9, "{:?} {:?}", learned.latency, believed.latency);
}

#[test]
fn a_tuned_window_is_small_on_an_idle_machine_and_large_on_a_busy_one() {
    let run = |gap, tuned| {
        let mut settings = machine(vec![processor(3000.0, 20.0)], 30);
        (settings.tuned, settings.source_waits) = (tuned, false);
        simulate(&settings, traffic(20_000, gap))
    };
    assert!(run(10_000, true).latency * 5 < run(10_000, false).latency);
    assert!(run(10_000, true).packets_a_bundle() < 1.05);
    let (tuned, fixed) = (run(0, true), run(0, false));
    assert!(
        tuned.packets_a_bundle() > fixed.packets_a_bundle() * 0.98,
        "{} {}",
        tuned.packets_a_bundle(),
        fixed.packets_a_bundle()
    );
}
