//! Every message reads as it was written, and nothing else does.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::path::MAX_NAME_LEN;
use crate::pieces::Subtree;

fn name() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![1..=46_u8, 48..=255_u8], 1..20)
        .prop_filter("not a dot", |name| name != b"." && name != b"..")
}

fn path() -> impl Strategy<Value = Vec<u8>> {
    vec(name(), 1..5).prop_map(|names| names.join(&b'/'))
}

fn place() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(Vec::new()), path()]
}

fn fault() -> impl Strategy<Value = FileFault> {
    (prop::sample::select(FaultReason::ALL), vec(any::<u8>(), 0..40))
        .prop_map(|(reason, text)| FileFault { reason, text })
}

fn options() -> impl Strategy<Value = TransferOptions> {
    (any::<[bool; 4]>(), vec(vec(any::<u8>(), 0..9), 0..4), place()).prop_map(
        |([delete, dry_run, xattrs, checksum], patterns, like)| TransferOptions {
            delete,
            dry_run,
            xattrs,
            checksum,
            patterns,
            like,
        },
    )
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        (name(), place(), options()).prop_map(|(folder, place, options)| Asked::Push {
            folder,
            place,
            options
        }),
        (name(), vec(place(), 1..4), options()).prop_map(|(folder, paths, options)| Asked::Pull {
            folder,
            paths,
            options
        }),
        (place(), place(), any::<bool>()).prop_map(|(folder, place, deep)| Asked::List {
            folder,
            place,
            deep
        }),
    ]
}

fn kind() -> impl Strategy<Value = EntryKind> {
    prop_oneof![
        any::<Option<u64>>().prop_map(|size| EntryKind::File { size }),
        Just(EntryKind::Folder),
        path().prop_map(|target| EntryKind::Symlink { target }),
        path().prop_map(|to| EntryKind::HardLink { to }),
    ]
}

fn entry() -> impl Strategy<Value = EntryMessage> {
    let about =
        (0..0o10000_u32, any::<i64>(), any::<(u32, u32)>(), vec((name(), vec(any::<u8>(), 0..9)), 0..3));
    let kept = any::<Option<(u64, [u8; 32])>>();
    (any::<u64>(), any::<bool>(), path(), kind(), about, any::<[u8; 8]>(), kept).prop_map(
        |(index, eager, path, kind, (mode, modified, owner, xattrs), version, kept)| {
            let file = matches!(kind, EntryKind::File { .. });
            let version = if file { version } else { [0; 8] };
            let eager = eager && file;
            let waits = !eager && matches!(kind, EntryKind::File { size: Some(_) });
            let kept = kept.filter(|_| waits).map(|(size, root)| KeptVersion { size, root });
            let holes = index % 2 == 1 && matches!(kind, EntryKind::File { size: Some(_) });
            EntryMessage { index, eager, path, kind, holes, mode, modified, owner, xattrs, version, kept }
        },
    )
}

fn held() -> impl Strategy<Value = Vec<Subtree>> {
    vec((0..9_u8, 0..3_u64, any::<[u8; 32]>()), 1..6).prop_map(|parts| {
        let mut next = 0_u64;
        let place = |(level, gap, value): (u8, u64, [u8; 32])| {
            let size = 1_u64 << level;
            let first = (next.div_ceil(size) + gap) * size;
            next = first + size;
            Subtree::new(first, level, value).unwrap()
        };
        parts.into_iter().map(place).collect()
    })
}

fn want() -> impl Strategy<Value = FileMessage> {
    let simple = prop_oneof![Just(HowWanted::Skip), Just(HowWanted::Whole), Just(HowWanted::Hash)];
    let single = prop_oneof![
        Just(HowWanted::Fresh),
        Just(HowWanted::Patch),
        Just(HowWanted::Kept),
        (any::<bool>(), held()).prop_map(|(same_version, held)| HowWanted::Pieces { same_version, held }),
    ];
    prop_oneof![
        (ordered(), simple).prop_map(|((first, last), how)| FileMessage::Want { first, last, how }),
        (any::<u64>(), single).prop_map(|(first, how)| FileMessage::Want { first, last: first, how }),
    ]
}

fn ordered() -> impl Strategy<Value = (u64, u64)> {
    any::<(u64, u64)>().prop_map(|(one, other)| (one.min(other), one.max(other)))
}

/// An offset and a length, within 2^63 - 1.
fn range() -> impl Strategy<Value = (u64, u64)> {
    (0..1_u64 << 62, 1..1_u64 << 62)
}

fn content() -> impl Strategy<Value = FileMessage> {
    prop_oneof![
        any::<(u64, bool)>().prop_map(|(folder, complete)| FileMessage::Left { folder, complete }),
        (any::<u64>(), 0..1_u64 << 62, vec(any::<u8>(), 1..99))
            .prop_map(|(entry, offset, bytes)| FileMessage::Data { entry, offset, bytes }),
        (any::<u64>(), range()).prop_map(|(entry, (offset, length))| FileMessage::Hole {
            entry,
            offset,
            length
        }),
        (any::<u64>(), vec(any::<u8>(), 0..99)).prop_map(|(entry, bytes)| FileMessage::Ask { entry, bytes }),
        (any::<(u64, bool, bool)>(), vec(any::<u8>(), 1..99))
            .prop_map(|((entry, last, asked), bytes)| FileMessage::Patch { entry, last, asked, bytes }),
        any::<(u64, u64, [u8; 32])>().prop_map(|(entry, size, root)| FileMessage::End { entry, size, root }),
        any::<(u64, [u8; 32])>().prop_map(|(entry, root)| FileMessage::Same { entry, root }),
        any::<(u64, Option<u64>, i64, [u8; 8])>().prop_map(|(entry, size, modified, version)| {
            FileMessage::Again { entry, size, modified, version }
        }),
        (any::<u64>(), fault()).prop_map(|(entry, fault)| FileMessage::Gone { entry, fault }),
        (vec(any::<u8>(), 0..40), fault()).prop_map(|(path, fault)| FileMessage::Missing { path, fault }),
        any::<u64>().prop_map(|entries| FileMessage::Finish { entries }),
    ]
}

/// Any message that an end may write.
pub(crate) fn any_message() -> impl Strategy<Value = FileMessage> {
    prop_oneof![
        (any::<[u8; 16]>(), any::<[u8; 32]>(), asked())
            .prop_map(|(transfer, nonce, asked)| FileMessage::Hello(Hello { transfer, nonce, asked })),
        any::<[u8; 32]>().prop_map(|nonce| FileMessage::Welcome { nonce }),
        fault().prop_map(FileMessage::Refused),
        fault().prop_map(FileMessage::Stopped),
        Just(FileMessage::Alive),
        entry().prop_map(FileMessage::Entry),
        content(),
        want(),
        (any::<u64>(), vec(any::<u8>(), 0..99)).prop_map(|(entry, bytes)| FileMessage::Ids { entry, bytes }),
        (any::<u64>(), vec(any::<u8>(), 0..99)).prop_map(|(entry, bytes)| FileMessage::Fine { entry, bytes }),
        ordered().prop_map(|(first, last)| FileMessage::Receipt { first, last }),
        (any::<u64>(), fault()).prop_map(|(entry, fault)| FileMessage::Failed { entry, fault }),
        path().prop_map(|path| FileMessage::Removed { path }),
        any::<(u64, u64, u64)>().prop_map(|(whole, failed, removed)| FileMessage::Done {
            whole,
            failed,
            removed
        }),
    ]
}

fn body(message: &FileMessage) -> Vec<u8> {
    let mut body = Vec::new();
    message.emit(&mut body);
    body
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same(message in any_message()) {
        prop_assert_eq!(FileMessage::parse(message.kind(), &body(&message)), Ok(message));
    }

    #[test]
    fn what_reads_is_written_the_same(kind in any::<u8>(), bytes in vec(any::<u8>(), 0..80)) {
        if let Ok(message) = FileMessage::parse(kind, &bytes) {
            prop_assert_eq!(message.kind(), kind);
            prop_assert_eq!(body(&message), bytes);
        }
    }

    #[test]
    fn every_cut_is_an_error_or_a_shorter_message(message in any_message()) {
        let whole = body(&message);
        for cut in 0..whole.len() {
            if let Ok(shorter) = FileMessage::parse(message.kind(), &whole[..cut]) {
                // Bytes at the end have no length of their own: the message's length counts them.
                let open = [0x12, 0x14, 0x1a, 0x25, 0x26];
                prop_assert!(open.contains(&message.kind()));
                prop_assert_ne!(shorter, message.clone());
            }
        }
    }

    #[test]
    fn a_stream_of_messages_reads_in_order_and_every_cut_ends_it(messages in vec(any_message(), 1..5)) {
        let (mut stream, mut ends) = (Vec::new(), vec![0]);
        for message in &messages {
            frame(message, &mut stream);
            ends.push(stream.len());
        }
        for cut in 0..=stream.len() {
            let mut reader = MessageReader::new(&stream[..cut]);
            let whole = ends.iter().filter(|end| **end > 0 && **end <= cut).count();
            for message in &messages[..whole] {
                prop_assert_eq!(reader.next_message().unwrap(), Some(message.clone()));
            }
            let last = reader.next_message::<FileMessage>();
            if ends.contains(&cut) {
                prop_assert_eq!(last.unwrap(), None);
            } else {
                prop_assert_eq!(last.unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
            }
        }
    }
}

#[test]
fn a_length_beyond_the_bound_is_refused_before_its_body_is_read() {
    // 2^21 - 1.
    let mut reader = MessageReader::new(&[0x12, 0xff, 0xff, 0x7f][..]);
    let error = reader.next_message::<FileMessage>().unwrap_err();
    assert_eq!(error.to_string(), MessageFault::Bound.to_string());
}

#[test]
fn malformed_bodies_are_refused_with_their_reason() {
    let root_entry =
        |path: &[u8]| [&[0x02, 0, path.len() as u8][..], path, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    assert!(FileMessage::parse(0x10, &root_entry(b"a/b")).is_ok());
    assert!(FileMessage::parse(0x10, &root_entry(b"")).is_ok(), "the place itself is a folder");
    for escaping in [&b"/a"[..], b"a/", b"a//b", b"..", b"a/../b", b"a/..", b".", b"a/./b", b"a\0b"] {
        assert_eq!(FileMessage::parse(0x10, &root_entry(escaping)), Err(MessageFault::Path), "{escaping:?}");
    }
    let long = vec![b'a'; MAX_NAME_LEN + 1];
    assert_eq!(fields::checked_path(&long), Err(MessageFault::Path));
    let cases: [(u8, &[u8], MessageFault); 12] = [
        (0x00, &[], MessageFault::Unknown),
        (0x18, &[], MessageFault::Short),
        (0x18, &[1, 0], MessageFault::Long),
        (0x18, &[0x80, 0], MessageFault::Number),
        (0x18, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], MessageFault::Number),
        (0x12, &[1, 0], MessageFault::Bound),
        (0x13, &[1, 0, 0], MessageFault::Bound),
        (0x13, &[0, 255, 255, 255, 255, 255, 255, 255, 255, 127, 1], MessageFault::Bound),
        (0x21, &[2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], MessageFault::Bound),
        (0x20, &[1, 1, 2], MessageFault::Bound),
        (0x22, &[1, 0, 0], MessageFault::Unknown),
        (0x22, &[1, 99, 0], MessageFault::Unknown),
    ];
    for (kind, bytes, fault) in cases {
        assert_eq!(FileMessage::parse(kind, bytes), Err(fault), "{kind:#x} {bytes:?}");
    }
}

#[test]
fn subtrees_that_overlap_or_are_not_aligned_are_refused() {
    let want = |held: &[(u64, u8)]| {
        let mut bytes = vec![3, 0, 7, 1, held.len() as u8];
        for (first, level) in held {
            fields::put_number(&mut bytes, *first);
            bytes.push(*level);
            bytes.extend([7; 32]);
        }
        FileMessage::parse(0x20, &bytes)
    };
    assert!(want(&[(0, 2), (4, 1), (6, 0)]).is_ok());
    for wrong in [&[][..], &[(1, 1)], &[(0, 1), (1, 0)], &[(4, 0), (0, 0)], &[(0, 48)], &[(1 << 48, 0)]] {
        assert_eq!(want(wrong), Err(MessageFault::Bound), "{wrong:?}");
    }
}

#[test]
fn every_reason_has_a_number_of_its_own_and_words() {
    let mut numbers: Vec<u8> = FaultReason::ALL.iter().map(|reason| *reason as u8).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), FaultReason::ALL.len());
    assert!(FaultReason::ALL.iter().all(|reason| !reason.says().is_empty() && !reason.remedy().is_empty()));
}
