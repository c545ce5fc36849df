//! A sender that lies: what the receiver makes of single messages.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::memory::*;
use super::pair::{key, rules};
use crate::folder::{FolderRules, SymlinkRule};
use crate::message::{EntryKind, EntryMessage, FaultReason, FileMessage, HowWanted};
use crate::session::event::{Tally, TransferError, Watch};
use crate::session::receiver::{ReceiverRules, ReceiverState};
use crate::session::{DiskDestination, patterns};
use crate::testing::TestFolder;

fn file(index: u64, path: &str, size: u64, eager: bool) -> FileMessage {
    let kind = EntryKind::File { size: Some(size) };
    let entry = EntryMessage::new(path.as_bytes().to_vec(), kind, 0, 0);
    FileMessage::Entry(EntryMessage { index, eager, ..entry })
}

fn data(entry: u64, offset: u64, bytes: &[u8]) -> FileMessage {
    FileMessage::Data { entry, offset, bytes: bytes.to_vec() }
}

fn end(entry: u64, bytes: &[u8]) -> FileMessage {
    FileMessage::End { entry, size: bytes.len() as u64, root: *blake3::hash(bytes).as_bytes() }
}

fn same(entry: u64) -> FileMessage {
    FileMessage::Same { entry, root: [7; 32] }
}

/// Hands messages to a receiver until one ends the transfer: how it ends, what is answered, and what is there then.
fn hear(
    rules: ReceiverRules,
    messages: Vec<FileMessage>,
) -> (Result<Option<Tally>, TransferError>, Vec<FileMessage>, Tree) {
    let tree = Arc::new(Mutex::new(Tree::default()));
    let cancel = AtomicBool::new(false);
    let watch = Watch { event: &|_| (), cancel: &cancel, hang_up: &|| () };
    let mut receiving = ReceiverState::new(MemoryDestination::new(&tree), rules, key(), watch);
    let mut ended = Ok(None);
    for message in messages {
        ended = receiving.message(message);
        if !matches!(ended, Ok(None)) {
            break;
        }
    }
    let answers = receiving.take_answers();
    receiving.abandon();
    let tree = tree.lock().unwrap().clone();
    (ended, answers, tree)
}

fn reason(answers: &[FileMessage], index: u64) -> Option<FaultReason> {
    answers.iter().find_map(|answer| match answer {
        FileMessage::Failed { entry, fault } if *entry == index => Some(fault.reason),
        _ => None,
    })
}

#[test]
fn a_file_with_another_hash_or_size_than_announced_never_has_its_name() {
    let cases = [
        (vec![file(0, "a", 3, true), data(0, 0, b"abc"), end(0, b"abd")], FaultReason::WrongHash),
        (vec![file(0, "a", 3, true), data(0, 0, b"ab"), end(0, b"ab")], FaultReason::WrongSize),
        (vec![file(0, "a", 3, true), data(0, 0, b"abcd"), end(0, b"abcd")], FaultReason::WrongSize),
        (
            vec![file(0, "a", 70_000, true), data(0, 65_536, b"abcd"), end(0, &[0; 70_000])],
            FaultReason::WrongHash,
        ),
        (
            vec![file(0, "a", 1 << 40, true), FileMessage::Hole { entry: 0, offset: 0, length: 1 << 41 }],
            FaultReason::WrongSize,
        ),
    ];
    for (messages, expected) in cases {
        let (ended, answers, tree) = hear(rules(), messages.clone());
        assert!(matches!(ended, Ok(None)), "{messages:?}");
        assert_eq!(reason(&answers, 0), Some(expected), "{messages:?}");
        assert_eq!(tree.nodes.len(), 0);
    }
}

#[test]
fn what_cannot_come_now_ends_the_transfer() {
    let done = [file(0, "a", 1, true), data(0, 0, b"x"), end(0, b"x")];
    let cases: Vec<Vec<FileMessage>> = vec![
        vec![file(1, "a", 1, true)],
        vec![file(0, "a", 1, true), file(0, "b", 1, true)],
        vec![data(7, 0, b"x")],
        vec![FileMessage::Left { folder: 0, complete: true }],
        vec![FileMessage::Finish { entries: 3 }],
        vec![file(0, "a", 1, true), FileMessage::Finish { entries: 1 }],
        vec![FileMessage::Welcome { nonce: [0; 32] }],
        [&done[..], &[data(0, 0, b"x")]].concat(),
        [&done[..], &[end(0, b"x")]].concat(),
        vec![file(0, "a", 9, true), data(0, 4, b"x")],
        vec![file(0, "a", 1 << 20, true), data(0, 9, b"x"), data(0, 3, b"x")],
        vec![file(0, "a", 1 << 20, true), data(0, 0, b"x"), same(0)],
        [&done[..], &[same(0)]].concat(),
        vec![same(0)],
    ];
    for messages in cases {
        let (ended, _, tree) = hear(rules(), messages.clone());
        assert!(matches!(ended, Err(TransferError::Protocol(_))), "{messages:?} {ended:?}");
        assert!(
            tree.nodes.keys().all(|path| *path == names(b"a")),
            "what was whole before stays: {messages:?}"
        );
    }
}

#[test]
fn what_was_not_asked_for_is_refused() {
    let rules = ReceiverRules { tops: Some(vec![b"asked".to_vec()]), ..rules() };
    let messages =
        vec![file(0, "asked", 1, false), file(1, "other", 1, false), file(2, "other/asked", 1, false)];
    let (_, answers, _) = hear(rules, messages);
    assert_eq!(
        [0, 1, 2].map(|index| reason(&answers, index)),
        [None, Some(FaultReason::Escapes), Some(FaultReason::Escapes)]
    );
}

#[test]
fn a_symlink_that_the_sender_made_leads_it_nowhere() {
    let (inside, outside) = (TestFolder::new("in"), TestFolder::new("out"));
    std::fs::write(outside.join("f"), "before").unwrap();
    let way = |index, path: &str, target: &Path| {
        let FileMessage::Entry(entry) = file(index, path, 0, false) else { panic!() };
        let kind = EntryKind::Symlink { target: target.as_os_str().as_bytes().to_vec() };
        FileMessage::Entry(EntryMessage { kind, ..entry })
    };
    let none = patterns(&[]).unwrap();
    let any = FolderRules { symlinks: SymlinkRule::Any, ..FolderRules::default() };
    let destination = DiskDestination::open(inside.open_with(any), None, [1; 16], none, false).unwrap();
    let cancel = AtomicBool::new(false);
    let watch = Watch { event: &|_| (), cancel: &cancel, hang_up: &|| () };
    let mut receiving = ReceiverState::new(destination, rules(), key(), watch);
    let target = outside.join("f");
    let messages = [
        way(0, "way", outside.path()),
        way(1, "file", &target),
        file(2, "way/f", 1, false),
        file(3, "way/new", 1, false),
        file(4, "file", 1, true),
        data(4, 0, b"x"),
        end(4, b"x"),
    ];
    for message in messages {
        assert!(matches!(receiving.message(message), Ok(None)));
        // What is made so far has its name before the next comes.
        receiving.settle(true).unwrap();
    }
    let answers = receiving.take_answers();
    assert!([2, 3].iter().all(|index| reason(&answers, *index).is_some()), "{answers:?}");
    assert_eq!(std::fs::read(&target).unwrap(), b"before");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    // A symlink is replaced by the file of its name, and not written through.
    assert!(inside.join("file").symlink_metadata().unwrap().is_file());
}

#[test]
fn limits_of_bytes_and_entries_hold_for_what_is_announced() {
    let rules = ReceiverRules { max_bytes: 10, max_entries: 3, ..rules() };
    let messages =
        vec![file(0, "a", 6, false), file(1, "b", 6, false), file(2, "c", 4, false), file(3, "d", 0, false)];
    let (_, answers, _) = hear(rules, messages);
    let over = Some(FaultReason::OverLimit);
    assert_eq!([0, 1, 2, 3].map(|index| reason(&answers, index)), [None, over, None, over]);
}

#[test]
fn a_sender_that_ignores_the_windows_is_cut_off() {
    let messages = (0..200_000).map(|index| file(index, &format!("f{index}"), 1, false)).collect();
    let (ended, _, _) = hear(rules(), messages);
    assert!(matches!(ended, Err(TransferError::Protocol(_))), "{ended:?}");
}

#[test]
fn many_small_files_without_an_end_do_not_fill_the_memory() {
    let mut messages = Vec::new();
    for index in 0..200 {
        messages.extend([file(index, &format!("f{index}"), 60_000, true), data(index, 0, &[1; 60_000])]);
    }
    let (ended, _, _) = hear(rules(), messages);
    assert!(matches!(ended, Err(TransferError::Protocol("too many files at once"))), "{ended:?}");
}

#[test]
fn a_hash_that_nothing_here_has_is_answered_with_the_wish_for_the_content() {
    let messages = vec![file(0, "a", 20_000, true), same(0), file(1, "b", 100_000, false), same(1)];
    let (ended, answers, tree) = hear(rules(), messages.clone());
    assert!(matches!(ended, Ok(None)), "{ended:?}");
    let whole = |first, last| FileMessage::Want { first, last, how: HowWanted::Whole };
    assert_eq!(answers, [whole(0, 1), whole(1, 1)], "the second was asked for in any case");
    assert_eq!(tree.nodes.len(), 0);
    // What is dropped until the content comes again is dropped, and a second hash is no content.
    let again = [&messages[..2], &[data(0, 0, b"x")]].concat();
    assert!(matches!(hear(rules(), again).0, Ok(None)));
    let twice = [&messages[..2], &[same(0)]].concat();
    assert!(matches!(hear(rules(), twice).0, Err(TransferError::Protocol(_))));
}
