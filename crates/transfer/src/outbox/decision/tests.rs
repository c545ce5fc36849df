use proptest::prelude::*;
use strait_keying::PrivateKey;

use super::super::record::{BrokerCopy, DaySpent, FailedTries, QueuedState, TransferLimits, TransferOrder};
use strait_scheduler::calendar::DailyWindow;

use super::super::PathBytes;
use super::*;

const NOW: i64 = 1_700_000_000;

fn berlin() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

fn peer(seed: u8) -> PublicKey {
    PrivateKey::generate(&[seed; 32]).public()
}

fn queued(number: u8, to: u8, limits: TransferLimits) -> QueuedTransfer {
    QueuedTransfer {
        id: TransferId::from_bytes([number; 16]),
        serial: number.into(),
        accepted: NOW,
        order: TransferOrder {
            peer: peer(to),
            name: String::new(),
            folder: "inbox".to_owned(),
            below: PathBytes::default(),
            paths: Vec::new(),
            patterns: Vec::new(),
            xattrs: false,
            spooled: false,
        },
        limits,
        state: QueuedState::Waiting,
        spent: DaySpent::default(),
        tries: FailedTries::default(),
        copy: None,
    }
}

fn class(priority: TransferPriority) -> TransferLimits {
    TransferLimits { priority, ..TransferLimits::default() }
}

fn decide(queue: &[QueuedTransfer], now: i64) -> QueueDecision {
    next(queue, &BTreeSet::from([peer(1), peer(2)]).into(), now, &berlin())
}

fn numbers(decision: &QueueDecision) -> Vec<u8> {
    decision.run.iter().map(|run| run.id.as_bytes()[0]).collect()
}

use TransferPriority::{Bulk, Normal, Now};

#[test]
fn the_first_of_each_class_runs_at_each_peer_that_is_there() {
    let queue = [
        queued(1, 1, class(Bulk)),
        queued(2, 1, class(Normal)),
        queued(3, 1, class(Normal)),
        queued(4, 2, class(Normal)),
        queued(5, 1, class(Now)),
        queued(6, 3, class(Now)),
    ];
    assert_eq!(numbers(&decide(&queue, NOW)), [5, 2, 4, 1]);
    assert!(next(&queue, &ReachablePeers::default(), NOW, &berlin()).run.is_empty());
}

fn by_broker(queue: &[QueuedTransfer], there: &[u8], now: i64) -> Vec<(u8, Option<PublicKey>)> {
    let reachable = ReachablePeers {
        there: there.iter().map(|seed| peer(*seed)).collect(),
        brokers: BTreeMap::from([(peer(1), peer(9)), (peer(2), peer(9))]),
        urgent_only: BTreeMap::new(),
    };
    let run = next(queue, &reachable, now, &berlin()).run;
    run.iter().map(|order| (order.id.as_bytes()[0], order.broker)).collect()
}

#[test]
fn a_broker_takes_what_is_for_peers_that_are_away_one_of_a_class_at_a_time_and_once() {
    let queue = [
        queued(1, 1, class(Normal)),
        queued(2, 2, class(Normal)),
        queued(3, 1, class(Now)),
        queued(4, 5, class(Now)),
    ];
    let broker = Some(peer(9));
    assert_eq!(by_broker(&queue, &[], NOW), [(3, broker), (1, broker)], "peer 5 has none");
    assert_eq!(by_broker(&queue, &[1], NOW), [(3, None), (1, None), (2, broker)]);
    let copy = BrokerCopy { broker: peer(9), name: "store".to_owned(), at: NOW, until: NOW + 100 };
    let mut queue = queue;
    queue[0].copy = Some(copy);
    assert_eq!(by_broker(&queue, &[], NOW), [(3, broker), (2, broker)]);
    assert_eq!(by_broker(&queue, &[1, 2], NOW), [(3, None), (1, None), (2, None)], "the peer is faster");
    assert_eq!(by_broker(&queue[..1], &[], NOW + 100), [(1, broker)], "the broker keeps it no longer");
    let decision = next(&queue[..1], &ReachablePeers::default(), NOW, &berlin());
    assert_eq!(decision.wake, Some(NOW + 100));
}

#[test]
fn a_metered_link_takes_what_is_urgent_and_says_when_the_rest_may_go() {
    let queue = [
        queued(1, 1, class(Bulk)),
        queued(2, 1, class(Normal)),
        queued(3, 1, class(Now)),
        queued(4, 2, class(Bulk)),
    ];
    let mut reachable = ReachablePeers::from(BTreeSet::from([peer(1), peer(2)]));
    reachable.urgent_only.insert(peer(1), NOW + 500);
    let decision = next(&queue, &reachable, NOW, &berlin());
    assert_eq!((numbers(&decision), decision.wake), (vec![3, 4], Some(NOW + 500)));
}

#[test]
fn what_is_over_neither_runs_nor_expires() {
    let states = [
        QueuedState::Cancelled { at: 0 },
        QueuedState::Expired { at: 0 },
        QueuedState::Failed { at: 0, reason: String::new() },
        QueuedState::Delivered { at: 0, entries: 0, bytes: 0, failed: 0, reason: None },
    ];
    let over = states.map(|state| QueuedTransfer {
        state,
        ..queued(1, 1, TransferLimits { expires: Some(0), ..TransferLimits::default() })
    });
    assert_eq!(decide(&over, NOW), QueueDecision::default());
    let carried = QueuedTransfer { state: QueuedState::Carried { at: 0 }, ..queued(1, 1, class(Now)) };
    assert_eq!(numbers(&decide(&[carried], NOW)), [1], "the network may be faster than a stick");
}

#[test]
fn a_closed_window_lets_the_next_one_go_first_and_says_when_to_ask_again() {
    let between: DailyWindow = "01:00-06:00".parse().unwrap();
    let queue = [
        queued(1, 1, TransferLimits { between: Some(between), ..TransferLimits::default() }),
        queued(2, 1, TransferLimits::default()),
    ];
    let decision = decide(&queue, NOW);
    assert_eq!(numbers(&decision), [2]);
    let opens = decision.wake.unwrap();
    assert_eq!(numbers(&decide(&queue, opens)), [1]);
    let closes = decide(&queue, opens).wake.unwrap();
    assert_eq!(closes - opens, 5 * 3600);
    assert_eq!(numbers(&decide(&queue, closes)), [2]);
}

#[test]
fn used_up_bytes_come_back_at_midnight_and_a_failed_try_after_its_pause() {
    let (today, midnight) = day(NOW, &berlin());
    let limits = TransferLimits { max_bytes: Some(100), max_rate: Some(7), ..TransferLimits::default() };
    let mut transfer = QueuedTransfer { spent: DaySpent { day: today, bytes: 100 }, ..queued(1, 1, limits) };
    let decision = decide(&[transfer.clone()], NOW);
    assert_eq!((numbers(&decision).len(), decision.wake), (0, Some(midnight)));
    let run = decide(&[transfer.clone()], midnight).run[0];
    assert_eq!((run.allowance, run.max_rate), (Some(100), Some(7)));
    transfer.spent.bytes = 60;
    assert_eq!(decide(&[transfer.clone()], NOW).run[0].allowance, Some(40));
    transfer.tries.retry_at = NOW + 30;
    assert_eq!(decide(&[transfer.clone()], NOW).wake, Some(NOW + 30));
    assert_eq!(numbers(&decide(&[transfer], NOW + 30)), [1]);
}

#[test]
fn expiry_counts_also_for_peers_that_are_away() {
    let queue = [queued(1, 9, TransferLimits { expires: Some(NOW + 5), ..TransferLimits::default() })];
    let decision = decide(&queue, NOW);
    assert_eq!((decision.run.len(), decision.wake), (0, Some(NOW + 5)));
    let decision = decide(&queue, NOW + 5);
    assert_eq!((decision.expired, decision.wake), (vec![queue[0].id], None));
}

#[test]
fn at_most_so_many_run_at_once_and_the_more_urgent_ones_first() {
    let queue: Vec<_> =
        (0..40).map(|number| queued(number, number, class(if number < 20 { Bulk } else { Now }))).collect();
    let there = (0..40).map(peer).collect::<BTreeSet<_>>().into();
    let decision = next(&queue, &there, NOW, &berlin());
    assert_eq!(numbers(&decision), (20..36).collect::<Vec<u8>>());
}

fn limits() -> impl Strategy<Value = TransferLimits> {
    let windows =
        proptest::option::of((0..24_u8, 1..24_u8).prop_map(|(from, hours)| {
            format!("{from:02}:00-{:02}:00", (from + hours) % 24).parse().unwrap()
        }));
    let priority = prop_oneof![Just(Now), Just(Normal), Just(Bulk)];
    let expires = proptest::option::weighted(0.3, NOW - 1000..NOW + 500_000);
    let max_bytes = proptest::option::of(1_000..50_000_u64);
    (priority, windows, expires, max_bytes).prop_map(|(priority, between, expires, max_bytes)| {
        TransferLimits { priority, between, expires, max_rate: None, max_bytes }
    })
}

fn queues() -> impl Strategy<Value = Vec<QueuedTransfer>> {
    proptest::collection::vec((1..4_u8, limits(), 0..60_000_u64, 0..3_000_i64), 0..25).prop_map(|all| {
        let (today, _) = day(NOW, &berlin());
        let all = (0_u8..).zip(all).map(|(number, (to, limits, spent, pause))| {
            let tries = FailedTries { retry_at: NOW + pause - 2_000, ..FailedTries::default() };
            QueuedTransfer {
                spent: DaySpent { day: today, bytes: spent },
                tries,
                ..queued(number, to, limits)
            }
        });
        all.collect()
    })
}

/// Whether a transfer could run, told from the wall clock and not from the code under test.
fn eligible(transfer: &QueuedTransfer, now: i64) -> bool {
    let expired = transfer.limits.expires.is_some_and(|at| at <= now);
    let open = transfer
        .limits
        .between
        .is_none_or(|window| matches!(window.at(now, &berlin()), WindowState::Open(_)));
    let spent = if transfer.spent.day == day(now, &berlin()).0 { transfer.spent.bytes } else { 0 };
    let left = transfer.limits.max_bytes.is_none_or(|max| spent < max);
    !expired
        && open
        && left
        && transfer.tries.retry_at <= now
        && [peer(1), peer(2)].contains(&transfer.order.peer)
}

proptest! {
    #[test]
    fn what_runs_may_run_is_the_first_of_its_class_and_no_place_stays_empty(queue in queues(), later in 0..400_000_i64) {
        let now = NOW + later;
        let decision = decide(&queue, now);
        let mut places = BTreeSet::new();
        for run in &decision.run {
            let transfer = queue.iter().find(|it| it.id == run.id).unwrap();
            prop_assert!(eligible(transfer, now), "{transfer:?}");
            prop_assert!(places.insert((transfer.order.peer, run.priority)));
            let first = queue.iter().find(|it| {
                eligible(it, now) && it.order.peer == transfer.order.peer && it.limits.priority == run.priority
            });
            prop_assert_eq!(first.map(|it| it.id), Some(run.id));
        }
        prop_assert!(decision.run.is_sorted_by_key(|run| run.priority));
        for transfer in queue.iter().filter(|it| eligible(it, now)) {
            prop_assert!(places.contains(&(transfer.order.peer, transfer.limits.priority)));
        }
        for transfer in &queue {
            let expired = transfer.limits.expires.is_some_and(|at| at <= now);
            prop_assert_eq!(decision.expired.contains(&transfer.id), expired);
        }
    }

    #[test]
    fn nothing_changes_before_the_time_at_which_it_asks_to_be_called(queue in queues(), part in 0.0..1.0_f64) {
        let decision = decide(&queue, NOW);
        let wake = decision.wake.unwrap_or(NOW + 1_000_000);
        prop_assert!(wake > NOW);
        let between = NOW + ((wake - NOW - 1) as f64 * part) as i64;
        prop_assert_eq!(decide(&queue, between), decision);
    }

    #[test]
    fn every_transfer_that_does_not_expire_is_sent_in_the_end(queue in queues(), seed: u64) {
        // Each minute that a transfer runs sends 1,000 bytes of its 20,000; a new short one of the first class comes all the time.
        let mut queue: Vec<_> = queue;
        let mut left: Vec<u64> = vec![20_000; queue.len()];
        let mut chance = strait_clock::Random::new(seed);
        let count = queue.len();
        let mut now = NOW;
        for step in 0..20_000_u32 {
            if step % 7 == 0 {
                let extra = queued(200, 1 + u8::try_from(chance.below(2)).unwrap(), class(Now));
                queue.truncate(count);
                left.truncate(count);
                queue.push(extra);
                left.push(1_000);
            }
            let decision = decide(&queue, now);
            for id in decision.expired {
                let at = queue.iter().position(|it| it.id == id).unwrap();
                queue[at].state = QueuedState::Expired { at: now };
            }
            for run in decision.run {
                let at = queue.iter().position(|it| it.id == run.id).unwrap();
                let sent = run.allowance.unwrap_or(u64::MAX).min(1_000).min(left[at]);
                prop_assert!(sent > 0);
                let (today, _) = day(now, &berlin());
                let before = if queue[at].spent.day == today { queue[at].spent.bytes } else { 0 };
                queue[at].spent = DaySpent { day: today, bytes: before + sent };
                left[at] -= sent;
                if left[at] == 0 {
                    queue[at].state = QueuedState::Delivered { at: now, entries: 1, bytes: 1, failed: 0, reason: None };
                }
            }
            now += 60;
            if queue[..count].iter().all(|it| it.state.over().is_some() || it.order.peer == peer(3)) {
                return Ok(());
            }
            // Nothing but the short ones can run: go on when that changes.
            if queue[..count].iter().all(|it| it.state.over().is_some() || !eligible(it, now)) {
                now = decide(&queue[..count], now).wake.unwrap_or(now).max(now);
            }
        }
        let waiting: Vec<_> = queue[..count].iter().filter(|it| it.state.over().is_none()).collect();
        prop_assert!(waiting.is_empty(), "{waiting:?}");
    }
}

#[test]
fn a_clock_that_is_set_back_neither_stops_a_transfer_nor_forgets_its_expiry() {
    let limits = TransferLimits { expires: Some(NOW + 86_400), ..TransferLimits::default() };
    let mut transfer = queued(1, 1, limits);
    // The last try failed while the clock was 30 years ahead.
    transfer.tries.retry_at = NOW + 30 * 365 * 86_400;
    assert_eq!(numbers(&decide(&[transfer.clone()], NOW)), [1]);
    transfer.tries.retry_at = NOW + 3600;
    assert_eq!(decide(&[transfer.clone()], NOW).wake, Some(NOW + 3600), "the longest pause there is");
    assert_eq!(decide(&[transfer], NOW + 86_400).expired.len(), 1);
}
