//! What a destination has after a transfer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::memory::*;
use super::pair::*;
use super::real::content_bytes;
use crate::message::FaultReason;
use crate::session::event::{Tally, TransferError, TransferEvent};

fn shared(nodes: BTreeMap<Names, Node>) -> Shared {
    Arc::new(Mutex::new(Tree { nodes, asides: BTreeMap::new() }))
}

fn file(bytes: impl Into<Vec<u8>>) -> Node {
    Node::File { bytes: bytes.into(), mode: 0o644, modified: 5 }
}

fn tree(nodes: &[(&str, Node)]) -> Shared {
    shared(nodes.iter().map(|(path, node)| (names(path.as_bytes()), node.clone())).collect())
}

fn folder() -> Node {
    Node::Folder { mode: 0o755, modified: 9 }
}

fn nodes(tree: &Shared) -> BTreeMap<Names, Node> {
    tree.lock().unwrap().nodes.clone()
}

/// Bytes that do not repeat.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_be_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

#[test]
fn a_tree_arrives_as_it_was_sent() {
    let sparse = [vec![0; 300_000], noise(5000, 1), vec![0; 1 << 20], noise(10, 2)].concat();
    let source = tree(&[
        ("", folder()),
        ("a", folder()),
        ("a/empty", file("")),
        ("a/large", file(noise(3_500_000, 3))),
        ("a/sparse", file(sparse)),
        ("a/x", folder()),
        ("a-b", file("beside")),
        ("link", Node::Symlink(b"a/large".to_vec())),
    ]);
    let target = tree(&[]);
    let run = run(MemoryOrigin::new(&source), MemoryDestination::new(&target), rules(), i64::MAX);
    assert_eq!(run.sender.unwrap(), Tally { whole: 8, failed: 0, removed: 0 });
    assert_eq!(run.receiver.unwrap(), Tally { whole: 8, failed: 0, removed: 0 });
    assert_eq!(nodes(&target), nodes(&source));
}

#[test]
fn ten_thousand_small_files_arrive_with_few_bytes_around_them() {
    let mut all: BTreeMap<Names, Node> = BTreeMap::from([(Vec::new(), folder())]);
    for number in 0..10_000 {
        all.insert(names(format!("file{number}").as_bytes()), file(noise(100, number)));
    }
    let (source, target) = (shared(all), tree(&[]));
    // Announcement, answer, end and receipt of a file: below 120 bytes before compression.
    let run = run(MemoryOrigin::new(&source), MemoryDestination::new(&target), rules(), 10_000 * 220);
    assert_eq!(run.sender.unwrap().whole, 10_001);
    assert_eq!(nodes(&target), nodes(&source));
}

#[test]
fn a_second_run_sends_no_content() {
    let source = tree(&[("", folder()), ("a", file(noise(900_000, 1))), ("b", file("x"))]);
    let target = tree(&[]);
    run(MemoryOrigin::new(&source), MemoryDestination::new(&target), rules(), i64::MAX).sender.unwrap();
    let again = run(MemoryOrigin::new(&source), MemoryDestination::new(&target), rules(), 1000);
    assert_eq!(again.sender.unwrap().whole, 3);
    let skipped = again.events.iter().filter(|event| matches!(event, TransferEvent::Skipped { .. }));
    assert_eq!(skipped.count(), 2);
}

#[test]
fn a_dry_run_changes_nothing_and_says_what_would_be() {
    let source = tree(&[("", folder()), ("new", file("1")), ("x", folder()), ("x/y", file("2"))]);
    let target = tree(&[("", folder()), ("old", file("3"))]);
    let before = nodes(&target);
    let rules = super::super::receiver::ReceiverRules { delete: true, dry_run: true, ..rules() };
    let run = run(MemoryOrigin::new(&source), MemoryDestination::new(&target), rules, i64::MAX);
    assert_eq!(run.sender.unwrap(), Tally { whole: 4, failed: 0, removed: 1 });
    assert_eq!(nodes(&target), before);
    assert!(run.events.contains(&TransferEvent::Removed { path: b"old".to_vec() }));
}

#[test]
fn a_source_that_changes_once_is_sent_again_and_one_that_always_changes_is_refused() {
    let source = tree(&[("once", file(noise(600_000, 1))), ("always", file("x")), ("steady", file("y"))]);
    let target = tree(&[("always", file("before")), ("gone", file("z"))]);
    let mut origin = MemoryOrigin::new(&source);
    origin.moving = BTreeMap::from([(names(b"once"), 1), (names(b"always"), 99)]);
    let run = run(origin, MemoryDestination::new(&target), rules(), i64::MAX);
    assert_eq!(run.sender.unwrap(), Tally { whole: 2, failed: 1, removed: 0 });
    let (after, sent) = (nodes(&target), nodes(&source));
    assert_eq!(after[&names(b"always")], file("before"), "the file that was there stays");
    let Node::File { bytes, .. } = &sent[&names(b"once")] else { panic!() };
    assert!(matches!(&after[&names(b"once")], Node::File { bytes: it, .. } if it == bytes));
    let changing = |event: &TransferEvent| matches!(event, TransferEvent::Failed { fault, .. } if fault.reason == FaultReason::Changing);
    assert_eq!(run.events.iter().filter(|event| changing(event)).count(), 1);
    assert_eq!(content_bytes(&run.events), bytes.len() as u64 + 1);
}

#[test]
fn a_source_that_vanishes_fails_alone() {
    let source = tree(&[("a", file("1")), ("b", file("2"))]);
    let target = tree(&[]);
    let origin = MemoryOrigin::new(&source);
    source.lock().unwrap().nodes.remove(&names(b"a"));
    let run = run(origin, MemoryDestination::new(&target), rules(), i64::MAX);
    assert_eq!(run.sender.unwrap(), Tally { whole: 1, failed: 1, removed: 0 });
    assert!(nodes(&target).contains_key(&names(b"b")));
}

#[test]
fn a_full_disk_fails_the_files_that_do_not_fit() {
    let source = tree(&[("large", file(noise(2_000_000, 1))), ("small", file("2"))]);
    let target = tree(&[]);
    let destination = MemoryDestination { room: 1_000_000, ..MemoryDestination::new(&target) };
    let run = run(MemoryOrigin::new(&source), destination, rules(), i64::MAX);
    assert_eq!(run.sender.unwrap(), Tally { whole: 1, failed: 1, removed: 0 });
    assert_eq!(run.receiver.unwrap().failed, 1);
    assert!(!nodes(&target).contains_key(&names(b"large")));
}

fn any_node() -> impl Strategy<Value = Node> {
    prop_oneof![
        (0..3_u64, prop_oneof![Just(0_usize), 1..2000_usize, Just(70_000), Just(1_100_000)], 0..3_i64)
            .prop_map(|(seed, length, modified)| Node::File {
                bytes: noise(length, seed),
                mode: 0o600,
                modified
            }),
        vec(97..100_u8, 1..4).prop_map(Node::Symlink),
        Just(folder()),
    ]
}

/// A place with names in folders; what is below something that is no folder is left out.
fn any_tree() -> impl Strategy<Value = BTreeMap<Names, Node>> {
    btree_map(vec(vec(97..100_u8, 1..2), 1..4), any_node(), 0..12).prop_map(|mut all| {
        all.insert(Vec::new(), folder());
        let kept = |path: &Names, all: &BTreeMap<Names, Node>| {
            (0..path.len()).all(|depth| matches!(all.get(&path[..depth]), Some(Node::Folder { .. })))
        };
        let whole = all.clone();
        all.retain(|path, _| kept(path, &whole));
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_transfer_is_what_a_model_says(source in any_tree(), target in any_tree(), delete in any::<bool>()) {
        let expected = model(&source, &target, delete);
        let (from, to) = (shared(source), shared(target));
        let rules = super::super::receiver::ReceiverRules { delete, ..rules() };
        let run = run(MemoryOrigin::new(&from), MemoryDestination::new(&to), rules, i64::MAX);
        let tally = run.sender.unwrap();
        prop_assert_eq!(run.receiver.unwrap(), tally);
        let failed = run.events.iter().filter(|event| matches!(event, TransferEvent::Failed { .. })).count() as u64;
        prop_assert_eq!(tally.failed, failed);
        prop_assert_eq!(tally.whole + tally.failed, nodes(&from).len() as u64);
        prop_assert_eq!(nodes(&to), expected);
        if failed == 0 {
            let size = |node: &Node| if let Node::File { bytes, .. } = node { bytes.len() as u64 } else { 0 };
            prop_assert_eq!(content_bytes(&run.events), nodes(&from).values().map(size).sum::<u64>());
        }
    }

    #[test]
    fn runs_that_are_cut_end_whole_and_no_file_is_wrong_meanwhile(source in any_tree(), cuts in vec(1..400_000_i64, 10)) {
        let (from, to) = (shared(source.clone()), tree(&[]));
        for cut in cuts {
            let run = run(MemoryOrigin::new(&from), MemoryDestination::new(&to), rules(), cut);
            prop_assert!(matches!(run.sender, Ok(_) | Err(TransferError::Interrupted(_))), "{:?}", run.sender);
            for (path, node) in nodes(&to) {
                if !matches!(node, Node::Folder { .. }) {
                    prop_assert_eq!(&node, &source[&path]);
                }
            }
        }
        run(MemoryOrigin::new(&from), MemoryDestination::new(&to), rules(), i64::MAX).sender.unwrap();
        prop_assert_eq!(nodes(&to), source);
    }
}

/// What a destination has after a transfer: of both what the source has, but where a folder and something else meet, what was there.
fn model(
    source: &BTreeMap<Names, Node>,
    target: &BTreeMap<Names, Node>,
    delete: bool,
) -> BTreeMap<Names, Node> {
    let is_folder = |node: Option<&Node>| matches!(node, Some(Node::Folder { .. }));
    let mut after = target.clone();
    if delete {
        // Names are removed where both have the folder.
        after.retain(|path, _| {
            (0..path.len()).all(|depth| {
                let (parent, name) = (&path[..depth], &path[..=depth]);
                !(is_folder(source.get(parent)) && is_folder(target.get(parent))) || source.contains_key(name)
            })
        });
    }
    for (path, node) in source {
        let fits = |depth: usize| is_folder(after.get(&path[..depth])) || depth == path.len();
        if !(0..path.len()).all(fits) {
            continue;
        }
        match after.get(path) {
            Some(there) if is_folder(Some(there)) != is_folder(Some(node)) => {}
            // Of the same size and time: not looked at.
            Some(Node::File { bytes: old, modified: then, .. }) if matches!(node, Node::File { bytes, modified, .. } if (bytes.len(), modified) == (old.len(), then)) =>
                {}
            _ => drop(after.insert(path.clone(), node.clone())),
        }
    }
    after
}
