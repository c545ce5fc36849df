//! Daily keys between two nodes: forward secrecy, midnight, clocks, restarts, keys that are missing, forged or old.

use core::time::Duration;
use std::sync::Arc;

use strait_clock::Time;
use strait_wire::Protocol;
use strait_wire::sessionless::Header;

use super::super::*;
use super::Node;
use super::node::{Disk, FROM};
use crate::PrivateKey;

const DAY: u64 = 86_400;
/// Noon of 2026-01-01 UTC.
const NOON: u64 = 20_454 * DAY + DAY / 2;
const HEAD: [u8; 4] = [0x45, 0, 0, 0];

fn at(unix: u64) -> Now {
    Now {
        time: Time::from_millis((unix - NOON + 2 * DAY) * 1000),
        wall: WallTime::from_unix(Duration::from_secs(unix)),
    }
}

/// A node's keys, with what its file has.
struct Keys {
    seed: u8,
    policy: DailyPolicy,
    file: Vec<u8>,
}

impl Keys {
    fn new(seed: u8, policy: DailyPolicy) -> Keys {
        Keys { seed, policy, file: vec![0; DAILY_FILE_LEN] }
    }

    fn identity(&self) -> PrivateKey {
        PrivateKey::generate(&[self.seed; 32])
    }

    /// What the node has after a start at `unix`, and what it publishes.
    fn start(&mut self, unix: u64) -> (OwnDailyKeys, DailyKeys) {
        let mut own = OwnDailyKeys::read(self.identity().public(), &self.file);
        for write in own.roll(unix, &[self.seed.wrapping_add(40); 32]) {
            let at = usize::try_from(write.at).unwrap();
            self.file[at..at + write.bytes.len()].copy_from_slice(write.bytes.as_slice());
        }
        let published = own.sign(&self.identity(), unix * 1_000_000);
        (own, published)
    }

    /// The node as it starts at `unix`, which knows what `others` published.
    fn node(&mut self, unix: u64, others: &[&DailyKeys]) -> Arc<NodeKeys> {
        let (own, _) = self.start(unix);
        let mut keys = NodeKeys::new(self.identity(), None).with_daily_keys(self.policy, own);
        for other in others {
            keys.daily.learn((*other).clone());
        }
        Arc::new(keys)
    }
}

/// Two nodes that know what the other published.
struct Pair {
    one: Node,
    other: Node,
    capture: Vec<Vec<u8>>,
}

fn joined(one: &Arc<NodeKeys>, other: &Arc<NodeKeys>) -> Pair {
    Pair {
        one: Node::new(one, other, ReturnPath::Answers, Disk::default(), 1),
        other: Node::new(other, one, ReturnPath::Answers, Disk::default(), 2),
        capture: Vec::new(),
    }
}

fn pair(policy: DailyPolicy, unix: u64) -> (Pair, [Keys; 2]) {
    let mut keys = [Keys::new(1, policy), Keys::new(2, policy)];
    let published = [keys[0].start(unix).1, keys[1].start(unix).1];
    let nodes = [keys[0].node(unix, &[&published[1]]), keys[1].node(unix, &[&published[0]])];
    (joined(&nodes[0], &nodes[1]), keys)
}

impl Pair {
    /// Sends a packet at once to the other, whose clock is `late` behind, and brings back what that answers.
    fn send(&mut self, unix: u64, late: u64, payload: u8) {
        let datagrams = self.one.send(at(unix), Protocol::IPIP, &[&HEAD[..], &[payload; 40]].concat());
        for datagram in datagrams {
            self.capture.push(datagram.clone());
            self.other.receive(at(unix - late), datagram);
        }
        for answer in self.other.answers(at(unix - late)) {
            self.one.receive(at(unix), answer);
        }
    }

    fn got(&self) -> Vec<u8> {
        self.other.delivered.iter().map(|payload| payload[4]).collect()
    }

    fn refused(&self, why: Refusal) -> u64 {
        self.other.receiver.counts().refusals.of(why)
    }
}

fn header(datagram: &[u8]) -> Header {
    Header::parse(datagram).unwrap().0
}

/// The packet key in a recorded header, by what a thief has.
fn opened(datagram: &[u8], kij: &Kij) -> bool {
    let header = header(datagram);
    let kijn = kij.epoch_key(Direction::Inbound, KijAlgorithm::default(), header.epoch, None);
    kijn.unwrap_key(&header.wrapped, header.spi, header.first, &datagram[..header.bound_len()]).is_some()
}

#[test]
fn a_capture_is_closed_to_both_long_term_keys_once_the_secrets_of_the_day_are_gone() {
    let (mut pair, mut keys) = pair(DailyPolicy::Require, NOON);
    pair.send(NOON, 0, 7);
    assert_eq!(pair.got(), [7]);
    let recorded = pair.capture[0].clone();
    // All that both nodes have on the same day opens it: so the test could tell.
    let thief = |keys: &mut [Keys; 2], unix| {
        let [one, other] = keys;
        let published = one.start(unix).1;
        let node = other.node(unix, &[&published]);
        let lasting = Kij::agree(&node.identity, &one.identity().public()).unwrap();
        let day = Day::of_epoch(header(&recorded).epoch, EpochLength::default()).unwrap();
        assert!(!opened(&recorded, &lasting), "the long-term keys are not enough on any day");
        node.daily.agree(&lasting, day).is_some_and(|kij| opened(&recorded, &kij))
    };
    assert!(thief(&mut keys, NOON + 60));
    let over = NOON - NOON % DAY + DAY + 2 * 3600;
    assert!(thief(&mut keys, over - 1));
    assert!(!thief(&mut keys, over));
    // Without daily keys they are enough on every day.
    let (mut pair, [one, other]) = self::pair(DailyPolicy::Off, NOON);
    pair.send(NOON, 0, 8);
    let lasting = Kij::agree(&other.identity(), &one.identity().public()).unwrap();
    assert!(opened(&pair.capture[0], &lasting));
}

#[test]
fn packets_flow_over_midnight_with_clocks_an_epoch_apart_and_keys_published_days_ahead() {
    let midnight = NOON - NOON % DAY + DAY;
    for late in [0, 1, 3599] {
        let (mut pair, _) = pair(DailyPolicy::Require, NOON);
        for (payload, unix) in [midnight - 30, midnight + 1, midnight + 70].into_iter().enumerate() {
            pair.send(unix, late, u8::try_from(payload).unwrap());
        }
        // Nothing was published for six days.
        pair.send(midnight + 5 * DAY, late, 9);
        assert_eq!(pair.got(), [0, 1, 2, 9], "{late} s late");
    }
}

#[test]
fn a_node_that_restarts_within_a_day_reads_its_secrets_again() {
    let (mut pair, mut keys) = pair(DailyPolicy::Require, NOON);
    pair.send(NOON, 0, 1);
    let [one, other] = &mut keys;
    let published = one.start(NOON).1;
    let again = other.node(NOON + 5, &[&published]);
    let disk = pair.other.disk.clone();
    pair.other = Node::new(&again, &pair.one.own, ReturnPath::Answers, disk, 9);
    pair.send(NOON + 100, 0, 2);
    assert_eq!(pair.got(), [2]);
    // One that lost its file has other keys: nothing opens until what it publishes is known.
    let mut own = OwnDailyKeys::new(other.identity().public());
    own.roll(NOON + 6, &[99; 32]);
    let mut lost = NodeKeys::new(other.identity(), None).with_daily_keys(DailyPolicy::Require, own);
    lost.daily.learn(published);
    let disk = pair.other.disk.clone();
    pair.other = Node::new(&Arc::new(lost), &pair.one.own, ReturnPath::Answers, disk, 10);
    pair.send(NOON + 200, 0, 3);
    assert_eq!(pair.got(), [0_u8; 0]);
    assert_eq!(pair.refused(Refusal::Forged), 1);
}

#[test]
fn where_a_key_of_the_day_is_missing_the_policy_decides() {
    for (policy, expected) in [(DailyPolicy::Prefer, vec![2_u8]), (DailyPolicy::Require, vec![])] {
        let mut keys = [Keys::new(1, policy), Keys::new(2, policy)];
        let published = keys[1].start(NOON).1;
        // The other has not heard what the one published.
        let nodes = [keys[0].node(NOON, &[&published]), keys[1].node(NOON, &[])];
        let mut pair = joined(&nodes[0], &nodes[1]);
        pair.send(NOON, 0, 1);
        assert_eq!(pair.refused(Refusal::NoDailyKey), 1);
        let n = header(&pair.capture[0]).epoch;
        if policy == DailyPolicy::Prefer {
            assert_eq!(pair.one.unknown_day, Some(n), "it is told, authenticated");
        }
        pair.send(NOON + 1, 0, 2);
        assert_eq!(pair.got(), expected, "{policy:?}");
    }
    // One that requires them takes nothing without.
    let mut keys = [Keys::new(1, DailyPolicy::Off), Keys::new(2, DailyPolicy::Require)];
    let nodes = [keys[0].node(NOON, &[]), keys[1].node(NOON, &[])];
    let mut pair = joined(&nodes[0], &nodes[1]);
    pair.send(NOON, 0, 1);
    assert_eq!((pair.got(), pair.refused(Refusal::NoDailyKey)), (vec![], 1));
}

#[test]
fn what_is_forged_or_older_replaces_nothing() {
    let (pair, mut keys) = pair(DailyPolicy::Require, NOON);
    let known = keys[0].start(NOON).1;
    let mut ring = DailyRing::new(DailyPolicy::Require, OwnDailyKeys::new(pair.other.own.identity.public()));
    assert!(ring.learn(known.clone()));
    assert!(!ring.learn(known.clone()), "once is enough");
    let first = known.days().0;
    let older = DailyKeys::sign(&keys[0].identity(), known.number() - 1, first, &[[9; 32]]);
    assert!(!ring.learn(older));
    let newer = DailyKeys::sign(&keys[0].identity(), known.number() + 1, first, &[[9; 32]]);
    assert!(ring.learn(newer));
    // A thief of another node's key can say nothing of this one.
    let mut forged =
        DailyKeys::sign(&keys[1].identity(), known.number() + 2, first, &[[8; 32]]).as_bytes().to_vec();
    forged[1..33].copy_from_slice(keys[0].identity().public().as_bytes());
    assert_eq!(DailyKeys::from_bytes(&forged), Err(BadDailyKeys::Signature));
}

#[test]
fn secrets_that_are_derived_are_wiped_with_those_of_the_day() {
    let (mut pair, _) = pair(DailyPolicy::Require, NOON);
    pair.send(NOON, 0, 1);
    let counts = pair.other.receiver.counts();
    assert_eq!(counts.epoch_keys.entries, 1);
    pair.other.receiver.forget_days();
    assert_eq!(pair.other.receiver.counts().epoch_keys.entries, 0);
    // A header that comes meanwhile is derived for anew.
    pair.send(NOON + 100, 0, 2);
    assert_eq!(pair.got(), [1, 2]);
    let from: std::net::SocketAddr = FROM.parse().unwrap();
    let refused = pair.other.receiver.look(at(NOON + 100), &pair.one.own, from, &pair.capture[0]);
    assert!(matches!(refused, Verdict::Refused(_) | Verdict::Known { .. }), "{refused:?}");
}
