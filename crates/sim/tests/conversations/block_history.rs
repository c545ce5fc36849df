//! Blocks of one flow are compressed behind earlier ones that the receiver has acknowledged; whatever the path does, every packet is
//! delivered once or counted as lost.

use std::sync::Arc;

use strait_compress::history::HistoryScope;
use strait_compress::history::cache::{CacheCapacity, CacheReceiver, CacheRole, CacheSender};
use strait_ipsec::{CacheList, DomainCache, DomainTag, HistoryCounters, Padding, PeerCaches, Reason, Rule};
use strait_sim::{
    Conversation, Filler, LinkSettings, LinkSwitch, LossModel, NodeId, PairSettings, Reordering, SimNetwork,
    TcpSettings, TcpTransfer,
};

use crate::stage::{self, A, B, PATIENT, Seed, joined, millis, seconds, v4};

/// Packets of a case, where the variable does not say how many.
const PACKETS: u64 = 4_800;
const VARIABLE: &str = "STRAIT_BLOCK_PACKETS";
/// Packets that [`talk`] sends a second.
const A_SECOND: u64 = 400;

/// What a path does, and its name.
type Disturbance = (&'static str, fn(&mut LinkSettings));

fn rule(history: Option<HistoryScope>) -> Rule {
    Rule { history, ..stage::rule(80, "zstd-3") }
}

/// A byte cache of the least size, which the log goes around in some times.
const CACHE: DomainCache =
    DomainCache { domain: DomainTag(7), capacity: CacheCapacity::new(CacheCapacity::MIN).unwrap() };

/// Both ends have a byte cache, and blocks of A are of its domain.
fn cached(pair: &mut PairSettings) {
    pair.a.rules = vec![Rule { cache: Some(CACHE), ..rule(Some(HistoryScope::Flow)) }];
    for node in [&mut pair.a, &mut pair.b] {
        node.capabilities.history.caches = CacheList::of([CACHE]);
    }
}

/// Text of which every part is like the others, and none the same.
fn text(len: usize) -> Arc<[u8]> {
    let mut random = strait_clock::Random::new(1);
    let words: Vec<String> = (0..3_000).map(|_| format!("{:x}", random.next_u64() >> 28)).collect();
    let mut text = String::new();
    while text.len() < len {
        let at = (random.unit() * random.unit() * 3_000.0) as usize;
        text.push_str(words.get(at).map_or("", String::as_str));
        text.push(' ');
    }
    text.into_bytes().into()
}

fn link(pair: &mut PairSettings, change: impl Fn(&mut LinkSettings)) {
    pair.a.up = "1500kbit".parse().unwrap();
    pair.a.queueing = PATIENT;
    for link in [&mut pair.forth, &mut pair.back] {
        link.delay = millis(25);
        change(link);
    }
}

/// A transfer for so many seconds; how many bytes arrived.
fn transfer(network: &mut SimNetwork, span: u64) -> u64 {
    let mut transfers = [TcpTransfer::carrying([A, B], 80, TcpSettings::default(), text(4 << 20))];
    TcpTransfer::run(&mut transfers, network, (seconds(span), millis(5)), |_, _, _| {});
    transfers[0].receiver().received()
}

/// Text from A to B for so many seconds, with what is done to the network before each.
fn talk(network: &mut SimNetwork, span: u64, mut before: impl FnMut(&mut SimNetwork, u64)) -> Conversation {
    let mut talk = Conversation::new(v4(A, B, 80), Filler::Text);
    for second in 0..span {
        before(network, second);
        for _ in 0..100 {
            let packets: Vec<_> = (0..A_SECOND / 100).map(|_| talk.next_packet(1_200)).collect();
            network.send_all(A, &packets);
            network.run_for(millis(10));
            talk.note(&network.node_mut(B).take_delivered());
        }
    }
    network.run_for(seconds(3));
    talk.note(&network.node_mut(B).take_delivered());
    talk
}

/// Wire bytes for each 1,000 bytes of text.
fn cost(history: Option<HistoryScope>) -> u64 {
    let mut network = joined(3, |pair| {
        link(pair, |_| {});
        pair.a.rules = vec![rule(history)];
    });
    let arrived = transfer(&mut network, 15);
    assert!(arrived > 2_000_000, "{arrived}");
    let counters = network.node(A).peer_counters(B);
    let blocks = counters.history.out_blocks.get();
    assert_eq!(blocks > 100, history.is_some(), "{blocks} blocks with a history");
    assert_eq!(network.node(B).drops(Reason::HistoryGone), 0);
    (counters.out_wire.get() + counters.in_wire.get()) * 1_000 / arrived
}

#[test]
fn text_takes_fewer_bytes_with_history_counted_both_ways() {
    let _seed = Seed(3);
    let (without, with) = (cost(None), cost(Some(HistoryScope::Flow)));
    assert!(with * 100 < without * 92, "{with} with history, {without} without");
}

#[test]
fn nothing_wrong_arrives_whatever_the_path_does() {
    let packets = std::env::var(VARIABLE).ok().and_then(|count| count.parse().ok()).unwrap_or(PACKETS);
    let disturbances: [Disturbance; 3] = [
        ("loss", |link| link.loss = LossModel::Uniform(0.03)),
        ("bursts", |link| link.loss = LossModel::bursts(0.03, 5.0)),
        ("reordering", |link| link.reordering = Some(Reordering { share: 0.05, by: millis(20) })),
    ];
    for (name, change) in disturbances {
        for with_cache in [false, true] {
            let _seed = Seed(5);
            let mut network = joined(5, |pair| {
                link(pair, change);
                pair.a.rules = vec![rule(Some(HistoryScope::Flow))];
                if with_cache {
                    cached(pair);
                }
            });
            let tally = talk(&mut network, packets / A_SECOND, |_, _| {}).tally();
            assert_eq!((tally.damaged, tally.repeated), (0, 0), "{name}");
            assert!(tally.arrived * 10 > tally.sent * 8, "{name}: {tally:?}");
            let receiver = network.node(B);
            let gone = receiver.drops(Reason::HistoryGone);
            assert_eq!(receiver.drops(Reason::MalformedBlock), 0, "{name}");
            let counters = receiver.peer_counters(A);
            let (blocks, copies) = (counters.history.in_blocks.get(), counters.history.in_copies.get());
            println!("{name}: {blocks} blocks, {copies} with copies, {gone} gone");
            assert!(gone * 1_000 <= blocks, "{name}: {gone} blocks");
            // Requests for what was lost leave receipts their share.
            assert!(blocks > 30, "{name}: {blocks} blocks with a history");
            assert_eq!(copies > 30, with_cache, "{name}: {copies} blocks with copies");
        }
    }
}

/// What a node that stores its caches has of them after a restart.
fn stored(before: &PeerCaches) -> PeerCaches {
    let DomainCache { domain, capacity } = CACHE;
    let (mut sender, mut receiver) =
        (Box::new(CacheSender::new(capacity)), Box::new(CacheReceiver::new(capacity)));
    let mut segment = Vec::new();
    while before.store_changed((domain, CacheRole::Sender), &mut segment).is_some() {
        sender.restore(&segment).unwrap();
        segment.clear();
    }
    while before.store_changed((domain, CacheRole::Receiver), &mut segment).is_some() {
        receiver.restore(&segment).unwrap();
        segment.clear();
    }
    let after = PeerCaches::default();
    after.loaded(vec![(domain, sender)], vec![(domain, receiver)]);
    after
}

/// An archive from A to B, and again after a restart of one end that stored its caches, while the link loses this share.
fn again_after_a_restart(which: NodeId, loss: f64) -> (u64, u64) {
    let mut network = joined(9, |pair| {
        link(pair, |link| link.loss = LossModel::Uniform(loss));
        cached(pair);
    });
    let archive: Arc<[u8]> = {
        let mut random = strait_clock::Random::new(9);
        (0..125_000).flat_map(|_| random.next_u64().to_be_bytes()).collect()
    };
    let carry = |network: &mut SimNetwork| {
        let before = network.node(A).peer_counters(B).out_wire.get();
        let mut transfers = [TcpTransfer::carrying([A, B], 80, TcpSettings::default(), Arc::clone(&archive))];
        TcpTransfer::run(&mut transfers, network, (seconds(20), millis(5)), |_, _, _| {});
        assert_eq!(transfers[0].receiver().received(), 1_000_000);
        network.node(A).peer_counters(B).out_wire.get() - before
    };
    let first = carry(&mut network);
    network.restart_with(which, stored).unwrap();
    // Traffic beside it, outside the rule, shows that the other end is another process.
    let mut talk = Conversation::new(v4(A, B, 9), Filler::Text);
    for _ in 0..1_500 {
        let packet = talk.next_packet(100);
        network.send_all(A, &[packet]);
        network.run_for(millis(10));
    }
    let again = carry(&mut network);
    assert_eq!(network.node(B).drops(Reason::HistoryGone), 0);
    assert_eq!(network.node(B).drops(Reason::MalformedBlock), 0);
    (first, again)
}

#[test]
fn caches_that_were_stored_are_compared_after_a_restart_and_used_again() {
    let _seed = Seed(9);
    for (which, loss) in [(A, 0.0), (B, 0.0), (A, 0.03), (B, 0.03)] {
        let (first, again) = again_after_a_restart(which, loss);
        println!("{which:?}, loss {loss}: {first} wire bytes, and again {again}");
        assert!(first > 1_000_000 && again * 10 < first, "{which:?}, loss {loss}: {first}, again {again}");
    }
}

/// Text through an outage, a restart of either end, a rekey and new keys for a copied machine, where `change` says how blocks are made;
/// what `count` counts of those that came, before and between these and at the end.
fn through_faults(change: impl Fn(&mut PairSettings), count: impl Fn(&HistoryCounters) -> u64) -> Vec<u64> {
    let _seed = Seed(6);
    let mut network = joined(6, |pair| {
        link(pair, |_| {});
        change(pair);
        pair.a.lifetime.soft = seconds(60);
    });
    let counted = |network: &SimNetwork| count(&network.node(B).peer_counters(A).history);
    let mut counts = Vec::new();
    let tally = talk(&mut network, 80, |network, second| {
        if [9, 19, 29, 40].contains(&second) {
            counts.push(counted(network));
        }
        match second {
            10 => network.link(A, B).switch = LinkSwitch::Down,
            12 => network.link(A, B).switch = LinkSwitch::Up,
            20 => network.restart(B).unwrap(),
            30 => network.restart(A).unwrap(),
            45 => network.renew(A, false),
            55 => network.renew(B, true),
            _ => {}
        }
    })
    .tally();
    assert_eq!((tally.damaged, tally.repeated), (0, 0));
    assert!(tally.arrived * 2 > tally.sent, "{tally:?}");
    let receiver = network.node(B);
    assert_eq!((receiver.drops(Reason::MalformedBlock), receiver.drops(Reason::HistoryGone)), (0, 0));
    counts.push(counted(&network));
    counts
}

#[test]
fn an_outage_a_rekey_and_a_restart_forget_no_more_than_they_must() {
    let with_history = |pair: &mut PairSettings| pair.a.rules = vec![rule(Some(HistoryScope::Flow))];
    let blocks = through_faults(with_history, |history| history.in_blocks.get());
    assert!(blocks.last().is_some_and(|count| *count > 30), "after the restarts as well: {blocks:?}");
}

#[test]
fn an_outage_a_rekey_and_restarts_leave_caches_right() {
    let copies = through_faults(cached, |history| history.in_copies.get());
    assert!(copies.iter().all(|count| *count > 0), "{copies:?}");
    assert!(copies.last().is_some_and(|count| *count > 30), "after the restarts as well: {copies:?}");
}

#[test]
fn a_padded_rule_copies_nothing_also_of_what_does_not_shrink() {
    let _seed = Seed(8);
    let mut network = joined(8, |pair| {
        link(pair, |_| {});
        cached(pair);
        for rule in &mut pair.a.rules {
            rule.policy.padding = Padding::Padme;
        }
    });
    let archive: Arc<[u8]> = {
        let mut random = strait_clock::Random::new(8);
        (0..12_500).flat_map(|_| random.next_u64().to_be_bytes()).collect()
    };
    for _ in 0..2 {
        let mut transfers = [TcpTransfer::carrying([A, B], 80, TcpSettings::default(), Arc::clone(&archive))];
        TcpTransfer::run(&mut transfers, &mut network, (seconds(8), millis(5)), |_, _, _| {});
        assert_eq!(transfers[0].receiver().received(), 100_000);
    }
    assert_eq!(network.node(B).peer_counters(A).history.in_copies.get(), 0);
}

#[test]
fn a_sender_that_starts_anew_has_a_history_again() {
    let _seed = Seed(7);
    let mut network = joined(7, |pair| {
        link(pair, |_| {});
        pair.a.rules = vec![rule(Some(HistoryScope::Flow))];
    });
    let mut before = 0;
    let tally = talk(&mut network, 30, |network, second| {
        if second == 15 {
            before = network.node(B).peer_counters(A).history.in_blocks.get();
            network.restart(A).unwrap();
        }
    })
    .tally();
    assert_eq!((tally.damaged, tally.repeated), (0, 0));
    let receiver = network.node(B);
    let blocks = receiver.peer_counters(A).history.in_blocks.get();
    assert!(before > 30 && blocks > before + 30, "{before} before, {blocks} at the end");
    assert_eq!((receiver.drops(Reason::MalformedBlock), receiver.drops(Reason::HistoryGone)), (0, 0));
}
