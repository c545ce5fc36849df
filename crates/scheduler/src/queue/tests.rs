use core::hash::{Hash, Hasher};
use std::collections::{BTreeMap, VecDeque};
use std::hash::DefaultHasher;

use proptest::prelude::*;

use super::*;
use crate::Rate;

const DATAGRAM: usize = 1_500;

/// An owner to whom a packet costs its length and more, and who keeps count.
#[derive(Default)]
struct Host {
    around: usize,
    marks: bool,
    marked: usize,
    lost: Vec<(u32, Loss)>,
}

impl PacketOwner<u32> for Host {
    fn predict(&self, packet: &Queued<u32>) -> usize {
        packet.bytes().len() + self.around
    }

    fn mark(&mut self, packet: &mut Queued<u32>) -> bool {
        if self.marks {
            self.marked += 1;
            packet.bytes_mut()[0] |= 0x80;
        }
        self.marks
    }

    fn lost(&mut self, note: u32, loss: Loss) {
        self.lost.push((note, loss));
    }
}

fn rate(bits: u64) -> Option<Rate> {
    Rate::from_bits(bits)
}

fn queue(capacity: usize, rate: Option<Rate>) -> FairQueue<u32> {
    FairQueue::new(
        capacity,
        capacity / 64,
        LinkProfile {
            rate,
            datagram: DATAGRAM,
            unit: DATAGRAM,
            shares: Shares::CAKE,
            round_trip: Duration::ZERO,
            lossless: false,
        },
    )
}

fn hash(flow: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    flow.hash(&mut hasher);
    hasher.finish()
}

fn push<F: Hash>(
    queue: &mut FairQueue<u32>,
    (flow, tin): (&F, Tin),
    bytes: &[u8],
    note: u32,
    at: Time,
    host: &mut Host,
) {
    let newcomer = Newcomer { hash: hash(flow), tin, len: bytes.len(), at, may_wait: false };
    queue.push(&newcomer, note, host, |room| room.copy_from_slice(bytes));
}

#[test]
fn greedy_flows_share_the_wire_whatever_the_sizes_of_their_packets() {
    for (large, small, around) in [(1_400, 1_400, 66), (1_400, 100, 66), (1_400, 52, 0), (9_000, 64, 66)] {
        let (mut queue, mut host) = (queue(1 << 20, rate(1_500_000)), Host { around, ..Host::default() });
        let mut wire = [0, 0];
        for _ in 0..20_000 {
            for (flow, len) in [(0_u32, large), (1, small)] {
                // Never empty, never so long that it is dropped for it.
                while queue.notes().filter(|note| **note == flow).count() < 3 {
                    push(&mut queue, (&flow, Tin::Normal), &vec![1; len], flow, Time::ZERO, &mut host);
                }
            }
            let packet = queue.pop(Time::ZERO, &mut host).expect("never empty");
            wire[packet.note as usize] += packet.receipt().predicted();
            queue.recycle(packet);
        }
        let apart = wire[0].abs_diff(wire[1]);
        assert!(apart <= 2 * (large + around) + 600, "{wire:?} with {large} and {small} bytes");
        assert!(host.lost.is_empty());
    }
}

#[test]
fn flows_are_charged_actual_wire_bytes() {
    let (mut queue, mut host) = (queue(1 << 20, rate(1_500_000)), Host::default());
    let mut wire = [0, 0];
    for _ in 0..20_000 {
        for flow in [0_u32, 1] {
            while queue.notes().filter(|note| **note == flow).count() < 3 {
                push(&mut queue, (&flow, Tin::Normal), &[1; 1_000], flow, Time::ZERO, &mut host);
            }
        }
        let packet = queue.pop(Time::ZERO, &mut host).expect("never empty");
        // The first flow's packets shrink to a fifth, which no estimate predicted.
        let actual = if packet.note == 0 { 200 } else { 1_000 };
        wire[packet.note as usize] += actual;
        queue.correct(&packet.receipt(), actual);
        queue.recycle(packet);
    }
    assert!(wire[0].abs_diff(wire[1]) <= 2_500, "{wire:?}");
}

#[test]
fn a_lone_packet_passes_a_standing_queue_at_once() {
    let (mut queue, mut host) = (queue(1 << 20, rate(1_500_000)), Host::default());
    for flow in 0..20 {
        for _ in 0..20 {
            push(&mut queue, (&flow, Tin::Normal), &[1; 1_000], flow, Time::ZERO, &mut host);
        }
    }
    for _ in 0..50 {
        queue.pop(Time::ZERO, &mut host).expect("there are many");
    }
    push(&mut queue, (&77, Tin::Normal), &[1; 64], 77, Time::ZERO, &mut host);
    assert_eq!(queue.pop(Time::ZERO, &mut host).map(|packet| packet.note), Some(77));
}

#[test]
fn interactive_goes_first_and_bulk_still_gets_something() {
    let (mut queue, mut host) = (queue(1 << 20, rate(1_500_000)), Host::default());
    let mut bytes = BTreeMap::from([(0_u32, 0), (1, 0), (2, 0)]);
    for round in 0..10_000 {
        for (note, tin) in [(0_u32, Tin::Bulk), (1, Tin::Normal), (2, Tin::Interactive)] {
            while queue.notes().filter(|other| **other == note).count() < 2 {
                push(&mut queue, (&note, tin), &[1; 1_000], note, Time::ZERO, &mut host);
            }
        }
        let packet = queue.pop(Time::ZERO, &mut host).expect("never empty");
        assert!(round > 0 || packet.note == 2);
        *bytes.entry(packet.note).or_default() += 1_000;
        queue.recycle(packet);
    }
    let share = |note| f64::from(bytes[&note]) / 1e7;
    assert!((share(2) - 0.25).abs() < 0.01 && (share(0) - 0.0625).abs() < 0.01, "{bytes:?}");
}

#[test]
fn overfull_queue_drops_head_of_largest_flow_only() {
    let (mut queue, mut host) = (queue(100_000, rate(1_500_000)), Host::default());
    for number in 0..1_000 {
        push(&mut queue, (&"fat", Tin::Interactive), &[1; 1_000], number, Time::ZERO, &mut host);
    }
    let before = host.lost.len();
    assert_eq!(host.lost, (0..before as u32).map(|number| (number, Loss::Overflow)).collect::<Vec<_>>());
    for number in 1_000..1_040 {
        push(&mut queue, (&number, Tin::Bulk), &[1; 1_000], number, Time::ZERO, &mut host);
    }
    assert!(host.lost.len() >= before + 30 && host.lost.iter().all(|(number, _)| *number < 1_000));
}

#[test]
fn a_packet_without_bytes_or_larger_than_the_queue_is_counted() {
    let (mut queue, mut host) = (queue(10_000, None), Host::default());
    push(&mut queue, (&1, Tin::Normal), &[], 1, Time::ZERO, &mut host);
    push(&mut queue, (&1, Tin::Normal), &[1; 10_001], 2, Time::ZERO, &mut host);
    push(&mut queue, (&1, Tin::Normal), &[1; 8_000], 3, Time::ZERO, &mut host);
    assert_eq!(host.lost, [(1, Loss::Overflow), (2, Loss::Overflow)]);
    queue.set(
        5_000,
        10,
        LinkProfile {
            rate: None,
            datagram: DATAGRAM,
            unit: DATAGRAM,
            shares: Shares::CAKE,
            round_trip: Duration::ZERO,
            lossless: false,
        },
    );
    push(&mut queue, (&1, Tin::Normal), &[1; 100], 4, Time::ZERO, &mut host);
    assert_eq!((host.lost.last(), queue.len()), (Some(&(3, Loss::Overflow)), 1));
}

#[test]
fn a_flood_of_distinct_flows_is_bounded() {
    let (mut queue, mut host) = (queue(1 << 20, rate(1_500_000)), Host::default());
    push(&mut queue, (&"thin", Tin::Normal), &[1; 64], u32::MAX, Time::ZERO, &mut host);
    for flow in 0..200_000 {
        push(&mut queue, (&flow, Tin::Normal), &[1; 64], flow, Time::ZERO, &mut host);
    }
    assert!(queue.len() <= (1 << 20) / 64 && queue.flows.get(BUCKETS as u32).is_none());
    assert_eq!(queue.len() + host.lost.len(), 200_001);
    let mut left = 0;
    while let Some(packet) = queue.pop(Time::ZERO, &mut host) {
        left += 1;
        queue.recycle(packet);
    }
    assert_eq!(left + host.lost.len(), 200_001);
}

#[test]
fn a_standing_queue_is_marked_or_dropped_until_it_is_gone() {
    for marks in [false, true] {
        let (mut queue, mut host) = (queue(4 << 20, rate(10_000_000)), Host { marks, ..Host::default() });
        let mut now = Time::ZERO;
        for number in 0..2_000 {
            push(&mut queue, (&1, Tin::Normal), &[1; 1_250], number, now, &mut host);
        }
        // One packet a millisecond comes, and one leaves.
        for number in 2_000..6_000 {
            now += Duration::from_millis(1);
            push(&mut queue, (&1, Tin::Normal), &[1; 1_250], number, now, &mut host);
            let packet = queue.pop(now, &mut host).expect("more than that wait");
            queue.recycle(packet);
        }
        let dropped = host.lost.iter().filter(|(_, loss)| *loss == Loss::Delay).count();
        assert_eq!((host.marked > 100, dropped > 100, host.lost.len()), (marks, !marks, dropped));
    }
}

#[test]
fn lossless_queue_drops_nothing_however_long_packets_wait() {
    let (mut queue, mut host) = (queue(4 << 20, rate(1_500_000)), Host::default());
    queue.set(
        4 << 20,
        4_000,
        LinkProfile {
            rate: rate(1_500_000),
            datagram: DATAGRAM,
            unit: DATAGRAM,
            shares: Shares::CAKE,
            round_trip: Duration::ZERO,
            lossless: true,
        },
    );
    for number in 0..2_000 {
        push(&mut queue, (&1, Tin::Normal), &[1; 1_000], number, Time::ZERO, &mut host);
    }
    for number in 0..2_000 {
        let now = Time::from_millis(1_000_000_u64 * u64::from(number));
        assert_eq!(queue.pop(now, &mut host).map(|packet| packet.note), Some(number));
    }
    assert!(host.lost.is_empty());
}

#[test]
fn newcomer_takes_place_turn_and_time_of_last_of_its_flow() {
    let (mut queue, mut host) = (queue(10_000, rate(1_500_000)), Host::default());
    let newcomer = |flow: u32, len, may_wait| Newcomer {
        hash: hash(&flow),
        tin: Tin::Normal,
        len,
        at: Time::from_millis(9),
        may_wait,
    };
    for (note, flow) in [(1, 1), (2, 1), (3, 2)] {
        push(
            &mut queue,
            (&flow, Tin::Normal),
            &[1; 100],
            note,
            Time::from_millis(u64::from(note)),
            &mut host,
        );
    }
    assert!(!queue.may_all_wait());
    let replaced =
        queue.replace_last(&newcomer(1, 400, true), 20, |last| last.note == 2, |room| room.fill(9));
    assert_eq!((replaced, queue.len(), queue.queued()), (Ok(2), 3, 600));
    // Another flow, one that may not be replaced, and one that has none.
    for (flow, note) in [(2, 2), (1, 1), (5, 20)] {
        let kept = queue.replace_last(&newcomer(flow, 40, true), 30, |last| last.note == note, |_| {});
        assert_eq!(kept, Err(30));
    }
    let mut left = Vec::new();
    while let Some(packet) = queue.pop(Time::from_millis(10), &mut host) {
        left.push((packet.note, packet.entered(), packet.bytes().to_vec()));
        // Which flow is next depends on the places that they got.
        let only_it_is_left = left.len() == 2 && left.iter().all(|(note, ..)| *note != 20);
        assert_eq!(queue.may_all_wait(), only_it_is_left, "{left:?}");
        queue.recycle(packet);
    }
    left.sort();
    let at = Time::from_millis;
    assert_eq!(left, [(1, at(1), vec![1; 100]), (3, at(3), vec![1; 100]), (20, at(2), vec![9; 400])]);
    assert!(host.lost.is_empty() && queue.queued() == 0);
}

#[test]
fn replacing_stays_within_the_capacity() {
    let (mut queue, mut host) = (queue(1_000, rate(1_500_000)), Host::default());
    push(&mut queue, (&1, Tin::Normal), &[1; 100], 1, Time::ZERO, &mut host);
    push(&mut queue, (&2, Tin::Normal), &[1; 600], 2, Time::ZERO, &mut host);
    let newcomer = Newcomer { hash: hash(&1), tin: Tin::Normal, len: 600, at: Time::ZERO, may_wait: false };
    assert_eq!(queue.replace_last(&newcomer, 3, |_| true, |_| {}), Err(3));
    assert_eq!((queue.len(), queue.queued()), (2, 700));
}

#[derive(Clone, Debug)]
enum Step {
    Push { flow: u8, tin: usize, len: usize },
    Pop,
    Wait(u64),
    Correct(usize),
    Resize(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..12_u8, 0..3_usize, prop_oneof![1..100_usize, 1..2_000_usize, 1..70_000_usize])
            .prop_map(|(flow, tin, len)| Step::Push { flow, tin, len }),
        6 => Just(Step::Pop),
        2 => (0..60_u64).prop_map(Step::Wait),
        2 => (0..4_000_usize).prop_map(Step::Correct),
        1 => (10_000..200_000_usize).prop_map(Step::Resize),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_is_lost_uncounted_and_no_flow_is_reordered(
        steps in proptest::collection::vec(step(), 1..400),
        bits in prop_oneof![Just(None), Just(Some(64_000)), Just(Some(1_500_000)), Just(Some(1_000_000_000_u64))],
        marks in any::<bool>(),
    ) {
        let rate = bits.and_then(Rate::from_bits);
        let (mut queue, mut host) = (queue(120_000, rate), Host { marks, ..Host::default() });
        // What waits, by class and flow: numbers and lengths.
        let mut model: BTreeMap<(usize, u8), VecDeque<(u32, usize)>> = BTreeMap::new();
        let mut number = 0;
        let mut now = Time::from_millis(1);
        for step in steps {
            let mut popped = None;
            match step {
                Step::Push { flow, tin, len } => {
                    number += 1;
                    model.entry((tin, flow)).or_default().push_back((number, len));
                    push(&mut queue, (&flow, Tin::ALL[tin]), &vec![flow; len], number, now, &mut host);
                }
                Step::Pop => {
                    popped = queue.pop(now, &mut host);
                    prop_assert!(popped.is_some() || queue.is_empty());
                }
                Step::Wait(millis) => now += Duration::from_millis(millis),
                Step::Correct(actual) => {
                    if let Some(packet) = queue.pop(now, &mut host) {
                        queue.correct(&packet.receipt(), actual);
                        popped = Some(packet);
                    }
                }
                Step::Resize(capacity) => {
                    queue.set(capacity, capacity / 64, LinkProfile { rate, datagram: DATAGRAM, unit: DATAGRAM, shares: Shares::CAKE, round_trip: Duration::ZERO, lossless: false });
                }
            }
            for (note, _) in host.lost.drain(..) {
                // A flow loses what came first, or what does not fit at all.
                let flow = model.values_mut().find(|flow| flow.iter().any(|(number, _)| *number == note)).unwrap();
                let at = flow.iter().position(|(number, _)| *number == note).unwrap();
                prop_assert!(at == 0 || note == number);
                flow.remove(at);
            }
            if let Some(packet) = popped {
                let (of, flow) = model.iter_mut().find(|(_, flow)| flow.front().is_some_and(|first| first.0 == packet.note)).unwrap();
                let (_, len) = flow.pop_front().unwrap();
                let first = packet.bytes()[0] & 0x7f;
                prop_assert!(packet.bytes().len() == len && first == of.1 && packet.bytes()[1..].iter().all(|byte| *byte == of.1));
                queue.recycle(packet);
            }
            let waits = model.values().map(VecDeque::len).sum::<usize>();
            let bytes = model.values().flatten().map(|(_, len)| len).sum::<usize>();
            prop_assert_eq!((queue.len(), queue.queued(), queue.notes().count()), (waits, bytes, waits));
        }
    }
}
