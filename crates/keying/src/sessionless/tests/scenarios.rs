//! What has to hold, whatever the link and the clocks do.

use core::time::Duration;
use std::collections::BTreeSet;

use proptest::prelude::*;

use strait_clock::Time;
use strait_wire::Protocol;

use super::super::*;
use super::link::Quality;
use super::node::Disk;
use super::{Link, Node};

/// 2026-01-01 0:10 UTC, in the midst of an epoch.
const START: u64 = (1_767_225_600 - 788_918_400 + 600) * 1_000_000;

struct World {
    one: Node,
    other: Node,
    forth: Link,
    back: Link,
    now: Time,
    /// The clocks of both, in microseconds.
    walls: [u64; 2],
    sent: BTreeSet<Vec<u8>>,
    next: u32,
}

impl World {
    fn new(quality: Quality, path: ReturnPath, hybrid: bool) -> World {
        let keys = [Node::keys(1, hybrid), Node::keys(2, hybrid)];
        World {
            one: Node::new(&keys[0], &keys[1], path, Disk::default(), 1),
            other: Node::new(&keys[1], &keys[0], path, Disk::default(), 2),
            forth: Link::new(quality, 300, 7),
            back: Link::new(quality, 300, 8),
            now: Time::from_millis(1000),
            walls: [START; 2],
            sent: BTreeSet::new(),
            next: 0,
        }
    }

    fn times(&self) -> [Now; 2] {
        self.walls.map(|wall| Now { time: self.now, wall: WallTime(wall) })
    }

    /// One packet from `one` to `other`, each with a content of its own.
    fn send(&mut self) -> Vec<u8> {
        self.next += 1;
        let payload = [&[0x45, 0, 0, 0][..], &self.next.to_be_bytes(), &[0; 32]].concat();
        let now = self.times()[0];
        for datagram in self.one.send(now, Protocol::IPIP, &payload) {
            self.forth.send(self.now, datagram);
        }
        self.sent.insert(payload.clone());
        payload
    }

    /// Lets time pass, a millisecond at a time.
    fn pass(&mut self, millis: u64) {
        for _ in 0..millis {
            self.now += Duration::from_millis(1);
            self.walls = self.walls.map(|wall| wall + 1000);
            let [mine, theirs] = self.times();
            for datagram in self.forth.arrived(self.now) {
                self.other.receive(theirs, datagram);
            }
            for datagram in self.back.arrived(self.now) {
                self.one.receive(mine, datagram);
            }
            for answer in self.other.answers(theirs) {
                self.back.send(self.now, answer);
            }
            for answer in self.one.answers(mine) {
                self.forth.send(self.now, answer);
            }
        }
    }

    /// A packet every 20 ms for so long.
    fn flow(&mut self, millis: u64) {
        for _ in 0..millis / 20 {
            self.send();
            self.pass(20);
        }
    }

    /// Hours pass in which nothing is sent.
    fn sleep(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.walls = self.walls.map(|wall| wall + seconds * 1_000_000);
        let [mine, theirs] = self.times();
        self.one.time_passes(mine);
        self.other.time_passes(theirs);
        self.pass(1);
    }

    /// Everything that `one` ever sent comes once more.
    fn replay(&mut self) {
        let [_, theirs] = self.times();
        for datagram in self.forth.capture.clone() {
            self.other.receive(theirs, datagram);
        }
    }

    fn assert_each_at_most_once(&self) {
        let mut seen = BTreeSet::new();
        for payload in &self.other.delivered {
            assert!(self.sent.contains(payload), "what was delivered was sent");
            assert!(seen.insert(payload), "a packet was delivered twice");
        }
    }
}

#[test]
fn the_first_packet_is_delivered_without_a_round_trip() {
    for hybrid in [false, true] {
        for path in [ReturnPath::Answers, ReturnPath::OneWay] {
            let mut world = World::new(Quality::PERFECT, path, hybrid);
            let first = world.send();
            world.pass(299);
            assert!(world.other.delivered.is_empty());
            world.pass(2);
            assert_eq!(world.other.delivered, [first], "hybrid {hybrid}, {path:?}");
        }
    }
}

#[test]
fn headers_stop_once_they_are_acknowledged_and_nothing_is_sent_while_idle() {
    let mut world = World::new(Quality::PERFECT, ReturnPath::Answers, true);
    world.flow(10_000);
    world.pass(1000);
    assert_eq!(world.other.delivered.len(), 500);
    // Until the acknowledgement after some 600 ms, then every second.
    assert!((35..=50).contains(&world.one.headers_sent), "{}", world.one.headers_sent);
    assert!(world.one.key_packets_sent <= 3, "{}", world.one.key_packets_sent);
    let sent = (world.forth.capture.len(), world.back.capture.len());
    assert!(sent.1 < 15, "{} answers and key packets", sent.1);
    world.sleep(86_400);
    world.pass(10_000);
    assert_eq!((world.forth.capture.len(), world.back.capture.len()), sent);
    world.send();
    world.pass(301);
    assert_eq!(
        world.other.delivered.len(),
        501,
        "and a day later the first packet is delivered at once again"
    );
}

#[test]
fn over_a_bad_link_each_packet_comes_at_most_once_and_most_do() {
    for hybrid in [false, true] {
        let mut world = World::new(Quality::BAD, ReturnPath::Answers, hybrid);
        world.flow(150_000);
        world.pass(4000);
        world.assert_each_at_most_once();
        let (delivered, sent) = (world.other.delivered.len(), world.sent.len());
        // 20 % are lost, and one is as good as two where it was repeated; key packets take some more.
        assert!(delivered * 100 > sent * 76, "{delivered} of {sent}, hybrid {hybrid}");
    }
}

#[test]
fn one_way_every_packet_explains_itself() {
    for hybrid in [false, true] {
        let mut world = World::new(Quality { repeated: 0, ..Quality::BAD }, ReturnPath::OneWay, hybrid);
        world.flow(90_000);
        world.pass(1000);
        world.assert_each_at_most_once();
        assert_eq!(world.one.headers_sent, 4500);
        assert!(world.back.capture.is_empty(), "nothing goes back");
        let (delivered, sent) = (world.other.delivered.len(), world.sent.len());
        assert!(delivered * 100 > sent * 60, "{delivered} of {sent}, hybrid {hybrid}");
    }
}

#[test]
fn a_receiver_that_restarts_is_deaf_for_a_second_and_takes_no_replay() {
    for hybrid in [false, true] {
        let mut world = World::new(Quality::PERFECT, ReturnPath::Answers, hybrid);
        world.flow(10_000);
        world.pass(400);
        let before = world.other.delivered.len();
        world.other.restart();
        world.replay();
        assert_eq!(world.other.delivered.len(), before, "nothing of the whole capture is taken");
        world.assert_each_at_most_once();
        // A header within a second, the refusal back, a new key forth: 300 ms each.
        world.flow(1_000 + 620 + 20);
        let back = world.other.delivered.len();
        world.flow(1000);
        assert!(world.other.delivered.len() >= back + 49, "hybrid {hybrid}: all are delivered from then on");
        world.replay();
        world.assert_each_at_most_once();
        assert!(world.one.refused_to_send.is_empty());
    }
}

#[test]
fn one_way_a_receiver_that_restarts_is_deaf_for_one_packet_key_at_most() {
    let mut world = World::new(Quality::PERFECT, ReturnPath::OneWay, true);
    world.flow(10_000);
    world.other.restart();
    let before = world.other.delivered.len();
    world.replay();
    assert_eq!(world.other.delivered.len(), before);
    world.flow(60_000);
    let back = world.other.delivered.len();
    world.flow(2000);
    world.pass(400);
    assert!(world.other.delivered.len() >= back + 100);
    world.assert_each_at_most_once();
}

#[test]
fn a_sender_that_restarts_goes_on_at_once() {
    for hybrid in [false, true] {
        let mut world = World::new(Quality::PERFECT, ReturnPath::Answers, hybrid);
        for _ in 0..4 {
            world.flow(3000);
            world.pass(400);
            let before = world.other.delivered.len();
            world.one.restart();
            world.flow(100);
            world.pass(301);
            assert_eq!(world.other.delivered.len(), before + 5, "hybrid {hybrid}");
        }
        world.replay();
        world.assert_each_at_most_once();
    }
}

#[test]
fn both_restart_again_and_again_and_nothing_is_taken_twice() {
    let mut world = World::new(Quality::BAD, ReturnPath::Answers, true);
    for round in 0..12 {
        world.flow(2500);
        match round % 3 {
            0 => world.one.restart(),
            1 => world.other.restart(),
            _ => world.replay(),
        }
    }
    world.replay();
    world.sleep(600);
    world.replay();
    world.assert_each_at_most_once();
    let before = world.other.delivered.len();
    world.flow(5000);
    assert!(world.other.delivered.len() > before + 100, "and packets still come");
}

#[test]
fn replays_are_refused_after_their_keys_are_forgotten() {
    let mut world = World::new(Quality::PERFECT, ReturnPath::Answers, false);
    world.flow(3000);
    world.pass(400);
    let before = world.other.delivered.len();
    for seconds in [1, 89, 600, 1800] {
        world.sleep(seconds);
        world.replay();
        assert_eq!(world.other.delivered.len(), before, "{seconds} s later");
    }
    assert!(world.other.receiver.counts().refusals.of(Refusal::BelowMark) > 0);
    world.sleep(4 * 3600);
    world.replay();
    assert!(world.other.receiver.counts().refusals.of(Refusal::EpochFarOff) > 0);
}

#[test]
fn a_mark_file_from_a_backup_lets_through_once_what_came_after_it_for_two_epochs_at_most() {
    let mut world = World::new(Quality::PERFECT, ReturnPath::OneWay, false);
    world.flow(1000);
    world.pass(400);
    let backup = world.other.disk.clone();
    world.sleep(600);
    world.flow(1000);
    world.pass(400);
    assert_eq!(world.other.delivered.len(), 100);
    let mut restored = |after: u64| {
        world.sleep(after);
        world.other.disk = backup.clone();
        world.other.restart();
        let before = world.other.delivered.len();
        world.replay();
        world.replay();
        world.other.delivered.split_off(before)
    };
    // What the file does not know of comes again, and that once: what is as old as the file does not.
    assert_eq!(restored(0).len(), 50);
    assert_eq!(restored(2 * 3600).len(), 0, "no epoch of it is taken any more");
}

#[test]
fn a_mark_file_from_a_backup_makes_no_sender_with_a_right_clock_repeat_a_number() {
    let mut world = World::new(Quality::PERFECT, ReturnPath::Answers, false);
    world.flow(1000);
    world.pass(400);
    let backup = world.one.disk.clone();
    world.sleep(600);
    world.flow(1000);
    world.pass(400);
    world.sleep(10);
    world.one.disk = backup;
    world.one.restart();
    world.flow(1000);
    world.pass(400);
    assert_eq!(world.other.delivered.len(), 150, "each number was new to the receiver");
}

#[test]
fn epochs_change_without_a_loss() {
    for hybrid in [false, true] {
        let mut world = World::new(Quality::PERFECT, ReturnPath::Answers, hybrid);
        world.walls = [START + 2_990 * 1_000_000; 2];
        world.flow(20_000);
        world.pass(400);
        assert_eq!(world.other.delivered.len(), world.sent.len(), "hybrid {hybrid}");
        world.assert_each_at_most_once();
    }
}

#[test]
fn clocks_may_be_one_epoch_apart_and_more_is_counted() {
    for (ahead, taken) in [(-2_i64, false), (-1, true), (1, true), (2, false)] {
        let mut world = World::new(Quality::PERFECT, ReturnPath::Answers, true);
        world.walls[0] = START.wrapping_add_signed(ahead * 3_600_000_000);
        world.flow(200);
        world.pass(700);
        assert_eq!(!world.other.delivered.is_empty(), taken, "{ahead} epochs");
        let counted = world.other.receiver.counts().refusals.of(Refusal::EpochFarOff);
        assert_eq!(counted > 0, !taken, "{ahead} epochs");
    }
}

#[test]
fn a_clock_that_goes_back_stops_the_sender_which_says_so() {
    let mut world = World::new(Quality::PERFECT, ReturnPath::Answers, false);
    world.flow(1000);
    for restart in [false, true] {
        world.walls[0] -= 600_000_000;
        world.sleep(61);
        if restart {
            world.one.restart();
        }
        let (sent, before) = (world.forth.capture.len(), world.other.delivered.len());
        world.send();
        assert_eq!(world.forth.capture.len(), sent, "nothing is sent");
        let why = world.one.refused_to_send.last().expect("it says so");
        assert!(matches!(why, CannotSend::ClockBelowMark { .. }), "{why:?}");
        world.walls[0] += 600_000_000;
        world.send();
        world.pass(400);
        assert_eq!(world.other.delivered.len(), before + 1, "restart {restart}");
    }
}

#[test]
fn a_clock_that_jumps_ahead_and_is_put_right_says_so_too() {
    let mut world = World::new(Quality::PERFECT, ReturnPath::Answers, false);
    world.flow(1000);
    world.walls[0] += 1_000_000_000;
    world.sleep(61);
    world.flow(1000);
    world.pass(400);
    let before = world.other.delivered.len();
    assert_eq!(before, 100, "within an epoch it is taken");
    world.walls[0] -= 1_000_000_000;
    world.sleep(61);
    world.send();
    assert!(matches!(world.one.refused_to_send.last(), Some(CannotSend::ClockBelowMark { .. })));
    world.sleep(1000);
    world.send();
    world.pass(400);
    assert_eq!(world.other.delivered.len(), before + 1, "until the clock is where its numbers are");
}

#[test]
fn the_first_packets_of_an_unknown_sender_wait_for_its_card() {
    let mut world = World::new(Quality::PERFECT, ReturnPath::Answers, true);
    world.other.forgets_peer();
    for _ in 0..5 {
        world.send();
    }
    world.pass(400);
    assert!(world.other.delivered.is_empty());
    let now = world.times()[1];
    world.other.learns_peer(now);
    assert_eq!(world.other.delivered.len(), 5, "all that waited, key packet included");
    world.flow(1000);
    world.pass(1000);
    world.assert_each_at_most_once();
    assert_eq!(world.other.delivered.len(), 55);
}

#[test]
fn only_what_cannot_be_a_replay_moves_a_peer() {
    let mut world = World::new(Quality::PERFECT, ReturnPath::Answers, false);
    world.flow(1000);
    world.pass(400);
    let moves = world.other.moves;
    assert!(moves >= 50, "each packet was the newest, acknowledgements too");
    world.replay();
    assert_eq!(world.other.moves, moves);
    world.other.restart();
    world.replay();
    assert_eq!(world.other.moves, 0, "of the new run");
    // A datagram that was held back is delivered, and is no reason to move.
    world.send();
    world.send();
    let held = world.forth.capture.len() - 2;
    world.pass(2000);
    let [_, theirs] = world.times();
    let late = world.forth.capture[held].clone();
    let before = world.other.moves;
    world.other.receive(theirs, late);
    assert_eq!(world.other.moves, before);
}

#[derive(Clone, Debug)]
enum Happening {
    Flow(u64),
    RestartSender,
    RestartReceiver,
    Replay,
    Sleep(u64),
    /// The clock of one end jumps by so many seconds.
    Jump(usize, i64),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (100..3000_u64).prop_map(Happening::Flow),
        Just(Happening::RestartSender),
        Just(Happening::RestartReceiver),
        Just(Happening::Replay),
        (1..4000_u64).prop_map(Happening::Sleep),
        (0..2_usize, -1200..1200_i64).prop_map(|(end, by)| Happening::Jump(end, by)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_happens_nothing_is_taken_twice_and_in_the_end_packets_pass(
        happenings in proptest::collection::vec(happening(), 1..12),
        hybrid: bool,
        one_way: bool,
        bad: bool,
    ) {
        let path = if one_way { ReturnPath::OneWay } else { ReturnPath::Answers };
        let quality = if bad { Quality::BAD } else { Quality::PERFECT };
        let mut world = World::new(quality, path, hybrid);
        for happening in happenings {
            match happening {
                Happening::Flow(millis) => world.flow(millis),
                Happening::RestartSender => world.one.restart(),
                Happening::RestartReceiver => world.other.restart(),
                Happening::Replay => world.replay(),
                Happening::Sleep(seconds) => world.sleep(seconds),
                Happening::Jump(end, by) => {
                    world.walls[end] = world.walls[end].saturating_add_signed(by * 1_000_000);
                }
            }
        }
        world.assert_each_at_most_once();
        // The clocks are put right, and what was ahead of them is over.
        world.walls = [START + world.now.as_nanos() / 1000; 2];
        world.sleep(16_000);
        world.forth.quality = Quality::PERFECT;
        world.back.quality = Quality::PERFECT;
        // One packet key, one way, or a header, a refusal and a key packet with a way back.
        world.flow(if one_way { 61_000 } else { 4000 });
        let before = world.other.delivered.len();
        world.flow(1000);
        world.pass(400);
        prop_assert!(world.other.delivered.len() >= before + 50);
        world.replay();
        world.assert_each_at_most_once();
    }
}
