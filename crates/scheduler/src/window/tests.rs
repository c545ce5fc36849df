use super::*;
use proptest::prelude::*;
use strait_clock::Random;

const OPEN: Limits = Limits { packets: 8, bytes: usize::MAX, wait: Duration::MAX };

fn window(limits: Limits, packets: &[(char, usize)]) -> Window<char, usize> {
    let mut window = Window::new(limits);
    for (number, (key, bytes)) in packets.iter().enumerate() {
        assert_eq!(window.push(*key, number, *bytes, Time::ZERO), Ok(()));
    }
    window
}

fn all(window: &mut Window<char, usize>) -> Vec<usize> {
    let mut sent = Vec::new();
    let count = window.take(usize::MAX, |item, _| {
        sent.push(item);
        None
    });
    assert_eq!(count, sent.len());
    sent
}

#[test]
fn first_packet_decides_group_of_aggregate() {
    let mut window = window(OPEN, &[('a', 1), ('b', 2), ('a', 3), ('c', 4), ('b', 5), ('a', 6)]);
    assert_eq!(window.aggregate().collect::<Vec<_>>(), [(&0, 1), (&2, 3), (&5, 6)]);
    assert_eq!(all(&mut window), [0, 2, 5]);
    assert_eq!((window.len(), window.bytes(), window.first()), (3, 11, Some((&'b', &1))));
    assert_eq!(all(&mut window), [1, 4]);
    assert_eq!(all(&mut window), [3]);
    assert_eq!(all(&mut window), [0; 0]);
    assert_eq!((window.len(), window.bytes(), window.first()), (0, 0, None));
}

#[test]
fn no_packet_overtakes_one_that_found_no_room() {
    let mut window = window(OPEN, &[('a', 10), ('a', 900), ('b', 7), ('a', 10)]);
    let mut sent = Vec::new();
    let count = window.take(usize::MAX, |item, bytes| {
        if bytes > 100 {
            return Some((item, bytes - 100));
        }
        sent.push(item);
        None
    });
    assert_eq!((count, sent), (1, vec![0]));
    assert_eq!((window.bytes(), window.first()), (817, Some((&'a', &1))));
    assert_eq!(window.aggregate().collect::<Vec<_>>(), [(&1, 800), (&3, 10)]);
    assert_eq!(window.take(usize::MAX, |item, bytes| Some((item, bytes))), 0, "not even the first");
    assert_eq!((window.len(), window.bytes(), window.first()), (3, 817, Some((&'a', &1))));
}

#[test]
fn a_bounded_take_leaves_the_rest_in_order() {
    let mut window = window(OPEN, &[('a', 1), ('b', 2), ('a', 3), ('c', 4), ('b', 5), ('a', 6)]);
    let mut sent = Vec::new();
    assert_eq!(
        window.take(2, |item, _| {
            sent.push(item);
            None
        }),
        2
    );
    assert_eq!((sent, window.bytes()), (vec![0, 2], 17));
    assert_eq!(window.take(0, |_, _| None), 0);
    assert_eq!(window.iter().map(|(_, item, _)| *item).collect::<Vec<_>>(), [1, 3, 4, 5]);
    assert_eq!((window.pop(), window.pop(), window.len(), window.bytes()), (Some(1), Some(3), 2, 11));
}

/// Time to take grows with the packets that are passed, not with the window: what is behind is not touched.
#[test]
fn one_packet_is_taken_out_of_the_largest_window_at_once() {
    let mut window = Window::new(Limits { packets: 100_000, ..OPEN });
    for number in 0..100_000 {
        assert_eq!(window.push(number % 7, number, 1, Time::ZERO), Ok(()));
    }
    let mut expected = 0..100_000_u64;
    while let Some(number) = window.pop() {
        assert_eq!(Some(number), expected.next());
    }
    assert!(expected.next().is_none() && window.bytes() == 0);
}

#[test]
fn full_in_packets_or_in_bytes() {
    let mut by_packets = window(Limits { packets: 2, ..OPEN }, &[('a', 1), ('b', 1)]);
    assert!(by_packets.is_full() && by_packets.is_due(Time::ZERO));
    assert_eq!(by_packets.push('c', 9, 1, Time::ZERO), Err(9));
    let by_bytes = window(Limits { bytes: 100, ..OPEN }, &[('a', 99), ('b', 1500)]);
    assert!(by_bytes.is_full() && by_bytes.is_due(Time::ZERO));
    let open = window(Limits { bytes: 100, ..OPEN }, &[('a', 99)]);
    assert!(!open.is_full() && !open.is_due(Time::from_millis(1_000_000)));
}

#[test]
fn an_empty_window_takes_one_whatever_its_limits() {
    let mut window = window(Limits { packets: 0, bytes: 0, wait: Duration::MAX }, &[]);
    assert!(!window.is_due(Time::MAX) && window.waits_until().is_none());
    assert_eq!(window.push('a', 0, 1500, Time::ZERO), Ok(()));
    assert!(window.is_due(Time::ZERO));
    assert_eq!(window.push('a', 1, 1500, Time::ZERO), Err(1));
}

#[test]
fn remaining_packet_keeps_its_arrival_time() {
    let limits = Limits { wait: Duration::from_millis(20), ..OPEN };
    let mut window = Window::new(limits);
    for (millis, key) in [(0, 'a'), (5, 'b'), (9, 'a')] {
        assert_eq!(window.push(key, 0, 40, Time::from_millis(millis)), Ok(()));
    }
    assert!(!window.is_due(Time::from_millis(19)) && window.is_due(Time::from_millis(20)));
    assert_eq!(window.take(usize::MAX, |_, _| None), 2);
    assert_eq!(window.waits_until(), Some(Time::from_millis(25)));
    window.set_limits(Limits { wait: Duration::ZERO, ..limits });
    assert!(window.is_due(Time::from_millis(5)));
}

#[test]
fn smaller_limits_lose_nothing() {
    let mut window = window(OPEN, &[('a', 1), ('b', 1), ('a', 1)]);
    window.set_limits(Limits { packets: 1, ..OPEN });
    assert_eq!(window.push('a', 9, 1, Time::ZERO), Err(9));
    assert_eq!(all(&mut window), [0, 2]);
    assert!(window.is_due(Time::ZERO));
    assert_eq!(all(&mut window), [1]);
}

/// The paper's section IV-B: W = 30 and 100 equiprobable associations make multi-packets of 1.33 packets on average.
#[test]
fn the_papers_mean_multi_packet() {
    let mut window = Window::new(Limits { packets: 30, ..OPEN });
    let mut random = Random::new(1);
    let (mut sent, mut jobs) = (0_usize, 0_usize);
    while sent < 200_000 {
        while !window.is_full() {
            assert_eq!(window.push(random.below(100), (), 40, Time::ZERO), Ok(()));
        }
        sent += window.take(usize::MAX, |(), _| None);
        jobs += 1;
    }
    let mean = sent as f64 / jobs as f64;
    assert!((mean - 1.33).abs() < 0.01, "{mean}");
}

/// The same by the words of the paper, on a list.
#[derive(Default)]
struct Naive(Vec<(u8, u32, usize, Time)>);

impl Naive {
    fn take(&mut self, room: usize) -> Vec<u32> {
        let Some(&(reference, ..)) = self.0.first() else { return Vec::new() };
        let goes: Vec<u32> =
            self.0.iter().filter(|packet| packet.0 == reference).map(|packet| packet.1).take(room).collect();
        self.0.retain(|packet| !goes.contains(&packet.1));
        goes
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push { key: u8, bytes: usize, gap: u64 },
    Take { room: usize },
    Limits { packets: usize, bytes: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u8..5, 0_usize..2000, 0_u64..5).prop_map(|(key, bytes, gap)| Step::Push { key, bytes, gap }),
        2 => (0_usize..6).prop_map(|room| Step::Take { room }),
        1 => (0_usize..12, 0_usize..9000).prop_map(|(packets, bytes)| Step::Limits { packets, bytes }),
    ]
}

proptest! {
    #[test]
    fn agrees_with_naive_model(steps in prop::collection::vec(step(), 0..200)) {
        let limits = Limits { packets: 6, bytes: 6000, wait: Duration::from_millis(10) };
        let (mut window, mut naive) = (Window::new(limits), Naive::default());
        let (mut now, mut number) = (Time::ZERO, 0_u32);
        for step in steps {
            match step {
                Step::Push { key, bytes, gap } => {
                    now += Duration::from_millis(gap);
                    number += 1;
                    let full = window.is_full();
                    prop_assert_eq!(window.push(key, number, bytes, now).is_err(), full);
                    if !full {
                        naive.0.push((key, number, bytes, now));
                    }
                }
                Step::Take { room } => {
                    let mut sent = Vec::new();
                    let count = window.take(usize::MAX, |item, bytes| {
                        if sent.len() == room {
                            return Some((item, bytes));
                        }
                        sent.push(item);
                        None
                    });
                    prop_assert_eq!(count, sent.len());
                    prop_assert_eq!(sent, naive.take(room));
                }
                Step::Limits { packets, bytes } => window.set_limits(Limits { packets, bytes, ..limits }),
            }
            let bytes: usize = naive.0.iter().map(|packet| packet.2).sum();
            let Limits { packets: most, bytes: heaviest, wait } = window.limits();
            prop_assert_eq!((window.len(), window.bytes()), (naive.0.len(), bytes));
            prop_assert_eq!(window.is_full(), !naive.0.is_empty() && (naive.0.len() >= most || bytes >= heaviest));
            let late = naive.0.first().is_some_and(|packet| packet.3 + wait <= now);
            prop_assert_eq!(window.is_due(now), window.is_full() || late);
            prop_assert_eq!(window.first(), naive.0.first().map(|packet| (&packet.0, &packet.1)));
        }
    }

    #[test]
    fn nothing_is_lost_nothing_is_doubled(keys in prop::collection::vec(0_u8..6, 0..300), packets in 1_usize..40) {
        let mut window = Window::new(Limits { packets, ..OPEN });
        let mut jobs: Vec<Vec<usize>> = Vec::new();
        let mut job = |window: &mut Window<u8, usize>| {
            let mut sent = Vec::new();
            window.take(usize::MAX, |item, _| { sent.push(item); None });
            jobs.push(sent);
        };
        for (number, key) in keys.iter().enumerate() {
            if window.is_full() {
                job(&mut window);
            }
            prop_assert_eq!(window.push(*key, number, 1, Time::ZERO), Ok(()));
        }
        while !window.is_empty() {
            job(&mut window);
        }
        prop_assert!(jobs.iter().all(|job| job.iter().all(|number| keys[*number] == keys[job[0]])));
        prop_assert!(jobs.windows(2).all(|two| two[0][0] < two[1][0]), "who names the reference came first");
        for key in 0..6 {
            let order: Vec<usize> = jobs.iter().flatten().copied().filter(|number| keys[*number] == key).collect();
            let expected: Vec<usize> = (0..keys.len()).filter(|number| keys[*number] == key).collect();
            prop_assert_eq!(order, expected);
        }
    }
}
