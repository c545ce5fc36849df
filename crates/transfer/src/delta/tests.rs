//! Whole deltas: what the receiver makes is the new file, or an error.

mod keeping;

use proptest::prelude::*;
use strait_clock::Random;

use super::*;

fn key() -> ChunkKey {
    ChunkKey::agree(&[1; 32], &[2; 32])
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..len).map(|_| random.next_u64() as u8).collect()
}

/// The whole of `bytes` as one range.
fn all(bytes: &[u8]) -> impl Iterator<Item = std::ops::Range<u64>> + use<> {
    let end = bytes.len() as u64;
    (end > 0).then_some(0..end).into_iter()
}

fn signature(old: &[u8]) -> Signature {
    Signature::of(&mut &*old, old.len() as u64, all(old), key()).unwrap().unwrap()
}

/// The signature's ids, as they arrive.
fn sent_ids(signature: &Signature) -> SignatureIds {
    let mut messages = (0..).map_while(|number| signature.message(number));
    let mut ids = SignatureIds::begin(&messages.next().unwrap()).unwrap();
    messages.for_each(|message| ids.go_on(&message).unwrap());
    assert!(ids.is_whole());
    ids
}

/// Bytes of a conversation by direction, and what the receiver made.
struct Outcome {
    made: Vec<u8>,
    to_sender: usize,
    to_receiver: usize,
}

/// The whole conversation, with every message written and parsed.
fn patched(old: &[u8], new: &[u8]) -> Outcome {
    let signature = signature(old);
    let (mut made, mut to_sender, mut to_receiver) = (Vec::new(), signature.len() * 8, 0);
    let mut planner =
        DeltaPlanner::new(DeltaKnown::Ids(sent_ids(&signature)), key(), new.len() as u64, all(new));
    while let Some(plan) = planner.next_window(&mut &*new, &mut SentChunks::default(), None).unwrap() {
        assert_eq!(plan.range().start, made.len() as u64);
        let ask = FineAsk::parse(&plan.ask().message()).unwrap();
        assert_eq!(&ask, plan.ask());
        let answer = signature.fine(&ask, &mut &*old).unwrap();
        let heard = FineIds::parse(&answer.message()).unwrap();
        let patch = planner.patch(&plan, &heard, &mut &*new).unwrap();
        let message = patch.message();
        assert!(message.len() <= PatchWindow::MESSAGE_MAX);
        let parsed = PatchWindow::parse(&message).unwrap();
        assert!(parsed == patch);
        to_sender += answer.message().len();
        to_receiver += message.len() + ask.message().len();
        made.extend(parsed.apply(Some(&signature), &answer, &key(), &mut &*old).unwrap());
    }
    Outcome { made, to_sender, to_receiver }
}

/// The same against a kept copy, with no question.
fn patched_kept(old: &[u8], new: &[u8]) -> Outcome {
    patched_kept_in(WINDOW, old, new)
}

/// The same in windows with at most so many new bytes.
fn patched_kept_in(most_new: usize, old: &[u8], new: &[u8]) -> Outcome {
    let (mut made, mut to_receiver) = (Vec::new(), 0);
    let known = DeltaKnown::Kept(signature(old));
    let mut planner = DeltaPlanner::new(known, key(), new.len() as u64, all(new));
    planner.set_most_new(most_new);
    while let Some(plan) = planner.next_window(&mut &*new, &mut SentChunks::default(), None).unwrap() {
        let patch = planner.patch_kept(&plan, &mut &*new, &mut &*old).unwrap();
        let message = patch.message();
        to_receiver += message.len();
        let parsed = PatchWindow::parse(&message).unwrap();
        made.extend(parsed.apply(None, &FineIds::NONE, &key(), &mut &*old).unwrap());
    }
    Outcome { made, to_sender: 0, to_receiver }
}

#[test]
fn a_file_of_which_every_chunk_changed_is_compressed_with_what_stood_there_in_every_window() {
    let old = noise(11, 9 << 20);
    let mut new = old.clone();
    new.iter_mut().step_by(4000).for_each(|byte| *byte ^= 1);
    for most_new in [64 << 10, 256 << 10, WINDOW] {
        let outcome = patched_kept_in(most_new, &old, &new);
        assert!(outcome.made == new);
        assert!(outcome.to_receiver < 70_000, "{} bytes in windows of {most_new}", outcome.to_receiver);
    }
}

/// A change of a file.
#[derive(Clone, Debug)]
enum Edit {
    Insert(usize, u64, usize),
    Remove(usize, usize),
    Overwrite(usize, u64, usize),
    Move(usize, usize, usize),
    Duplicate(usize, usize),
    Zeros(usize, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = 0_usize..400_000;
    let len = prop_oneof![1_usize..40, 1_usize..5_000, 1_usize..90_000];
    prop_oneof![
        (at.clone(), any::<u64>(), len.clone()).prop_map(|(at, seed, len)| Edit::Insert(at, seed, len)),
        (at.clone(), len.clone()).prop_map(|(at, len)| Edit::Remove(at, len)),
        (at.clone(), any::<u64>(), len.clone()).prop_map(|(at, seed, len)| Edit::Overwrite(at, seed, len)),
        (at.clone(), len.clone(), at.clone()).prop_map(|(at, len, to)| Edit::Move(at, len, to)),
        (at.clone(), len.clone()).prop_map(|(at, len)| Edit::Duplicate(at, len)),
        (at, len).prop_map(|(at, len)| Edit::Zeros(at, len)),
    ]
}

fn edited(old: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut new = old.to_vec();
    for edit in edits {
        let size = new.len();
        let within = |at: usize, len: usize| at.min(size)..(at + len).min(size).max(at.min(size));
        match *edit {
            Edit::Insert(at, seed, len) => drop(new.splice(within(at, 0), noise(seed, len))),
            Edit::Remove(at, len) => drop(new.drain(within(at, len))),
            Edit::Overwrite(at, seed, len) => {
                let range = within(at, len);
                let bytes = noise(seed, range.len());
                new[range].copy_from_slice(&bytes);
            }
            Edit::Move(at, len, to) => {
                let moved: Vec<u8> = new.drain(within(at, len)).collect();
                let to = to.min(new.len());
                drop(new.splice(to..to, moved));
            }
            Edit::Duplicate(at, len) => {
                let copy = new[within(at, len)].to_vec();
                new.extend(copy);
            }
            Edit::Zeros(at, len) => drop(new.splice(within(at, 0), vec![0; len])),
        }
    }
    new
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_patch_of_any_edits_makes_the_new_file(
        seed: u64, len in 0_usize..500_000, edits in prop::collection::vec(edit(), 0..6),
    ) {
        let old = noise(seed, len);
        let new = edited(&old, &edits);
        prop_assert!(patched(&old, &new).made == new);
        prop_assert!(patched_kept(&old, &new).made == new);
    }

    #[test]
    fn a_changed_patch_gives_an_error_or_the_same_bytes(at in any::<prop::sample::Index>(), bits in 1_u8..) {
        let old = noise(1, 60_000);
        let new = edited(&old, &[Edit::Insert(20_000, 2, 500)]);
        let signature = signature(&old);
        let mut planner =
            DeltaPlanner::new(DeltaKnown::Ids(signature.ids()), key(), new.len() as u64, all(&new));
        let plan = planner.next_window(&mut &new[..], &mut SentChunks::default(), None).unwrap().unwrap();
        let fine = signature.fine(plan.ask(), &mut &old[..]).unwrap();
        let mut message = planner.patch(&plan, &fine, &mut &new[..]).unwrap().message();
        let at = at.index(message.len());
        message[at] ^= bits;
        if let Ok(patch) = PatchWindow::parse(&message)
            && let Ok(made) = patch.apply(Some(&signature), &fine, &key(), &mut &old[..])
        {
            prop_assert!(made == new && patch.offset() == 0);
        }
    }

    #[test]
    fn noise_is_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = SignatureIds::begin(&bytes);
        let _ = FineIds::parse(&bytes);
        if let Ok(ask) = FineAsk::parse(&bytes) {
            prop_assert_eq!(FineAsk::parse(&ask.message()), Ok(ask));
        }
        if let Ok(patch) = PatchWindow::parse(&bytes) {
            let _ = patch.apply(None, &FineIds::NONE, &key(), &mut &bytes[..]);
        }
    }
}

#[test]
fn empty_files_and_files_of_one_byte() {
    for (old, new) in [(&b""[..], &b""[..]), (b"", b"a"), (b"a", b""), (b"a", b"a"), (b"a", b"b")] {
        assert_eq!(patched(old, new).made, new);
        assert_eq!(patched_kept(old, new).made, new);
    }
}

#[test]
fn one_inserted_byte_costs_little() {
    let old = noise(1, 20 << 20);
    let mut new = old.clone();
    new.insert(9 << 20, 7);
    let outcome = patched(&old, &new);
    assert!(outcome.made == new);
    assert!(
        outcome.to_sender < 20 * 1024 && outcome.to_receiver < 4_000,
        "{} {}",
        outcome.to_sender,
        outcome.to_receiver
    );
    let kept = patched_kept(&old, &new);
    assert!(kept.made == new && kept.to_receiver < 300, "{}", kept.to_receiver);
}

#[test]
fn a_renamed_and_changed_file_of_the_same_transfer_is_found_by_its_chunks() {
    let first = noise(1, 3 << 20);
    let second = edited(&first, &[Edit::Insert(1 << 20, 5, 100)]);
    let mut sent = SentChunks::default();
    let (mut literals, mut made) = (Vec::new(), Vec::new());
    for (number, file) in [&first, &second].into_iter().enumerate() {
        let mut planner = DeltaPlanner::new(DeltaKnown::Nothing, key(), file.len() as u64, all(file));
        while let Some(plan) = planner.next_window(&mut &file[..], &mut sent, Some(number as u32)).unwrap() {
            assert_eq!(plan.is_new(), number == 0);
            let patch = planner.patch(&plan, &FineIds::NONE, &mut &file[..]).unwrap();
            literals.push(patch.literals());
            let patch = PatchWindow::parse(&patch.message()).unwrap();
            made.push(patch.apply(None, &FineIds::NONE, &key(), &mut Transfer(&first)).unwrap());
        }
    }
    assert!(made.concat() == [first, second].concat());
    assert!(literals[0] == 3 << 20 && literals[1..].iter().sum::<usize>() < 140_000, "{literals:?}");
}

/// A base with the first file of a transfer.
struct Transfer<'a>(&'a [u8]);

impl PatchBase for Transfer<'_> {
    fn read(&mut self, source: u32, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        assert_eq!(source, 0);
        self.0.read_exact_at(offset, into)
    }
}

#[test]
fn holes_are_neither_read_nor_referred_to() {
    let data = noise(1, 600_000);
    let ranges = || [0..200_000_u64, 300_000..500_000].into_iter();
    let signature = Signature::of(&mut &data[..], 600_000, ranges(), key()).unwrap().unwrap();
    let new = [&data[..200_000], &data[300_000..500_000]].concat();
    let mut planner = DeltaPlanner::new(DeltaKnown::Ids(signature.ids()), key(), 600_000, ranges());
    let mut windows = Vec::new();
    while let Some(plan) = planner.next_window(&mut &data[..], &mut SentChunks::default(), None).unwrap() {
        let fine = signature.fine(plan.ask(), &mut &data[..]).unwrap();
        let patch = planner.patch(&plan, &fine, &mut &data[..]).unwrap();
        assert_eq!(patch.literals(), 0);
        windows.push((patch.offset(), patch.apply(Some(&signature), &fine, &key(), &mut &data[..]).unwrap()));
    }
    let offsets: Vec<u64> = windows.iter().map(|(offset, _)| *offset).collect();
    assert_eq!(offsets, [0, 300_000], "a window does not cross a hole");
    assert!(windows.into_iter().flat_map(|(_, bytes)| bytes).eq(new));
}

#[test]
fn wrong_ids_of_a_peer_are_found_out() {
    // The receiver says that it has what the sender has; it does not.
    let (old, new) = (noise(1, 400_000), noise(2, 400_000));
    let lie = signature(&new);
    let mut planner = DeltaPlanner::new(DeltaKnown::Ids(lie.ids()), key(), 400_000, all(&new));
    let plan = planner.next_window(&mut &new[..], &mut SentChunks::default(), None).unwrap().unwrap();
    let patch = planner.patch(&plan, &FineIds::NONE, &mut &new[..]).unwrap();
    assert_eq!(patch.literals(), 0);
    for signature in [Some(&signature(&old)), Some(&lie), None] {
        let applied = patch.apply(signature, &FineIds::NONE, &key(), &mut &old[..]);
        assert!(matches!(applied, Err(PatchError::Wrong)));
    }
}

#[test]
fn every_truncated_message_is_refused_or_found_out() {
    let old = noise(1, 50_000);
    let new = edited(&old, &[Edit::Insert(20_000, 2, 300), Edit::Move(1_000, 3_000, 30_000)]);
    let signature = signature(&old);
    let ids = signature.message(0).unwrap();
    let mut planner = DeltaPlanner::new(DeltaKnown::Ids(signature.ids()), key(), new.len() as u64, all(&new));
    let plan = planner.next_window(&mut &new[..], &mut SentChunks::default(), None).unwrap().unwrap();
    let ask = plan.ask().message();
    let fine = signature.fine(plan.ask(), &mut &old[..]).unwrap();
    let patch = planner.patch(&plan, &fine, &mut &new[..]).unwrap().message();
    for len in 0..ids.len() {
        assert!(
            SignatureIds::begin(&ids[..len]).is_ok_and(|ids| !ids.is_whole())
                || SignatureIds::begin(&ids[..len]).is_err()
        );
    }
    for len in 0..ask.len() {
        assert!(
            FineAsk::parse(&ask[..len]).is_ok_and(|shorter| shorter != *plan.ask())
                || FineAsk::parse(&ask[..len]).is_err()
        );
    }
    for len in 0..patch.len() {
        if let Ok(patch) = PatchWindow::parse(&patch[..len]) {
            let applied = patch.apply(Some(&signature), &fine, &key(), &mut &old[..]);
            assert!(matches!(applied, Err(PatchError::Wrong)), "{len}");
        }
    }
}

#[test]
fn a_message_cannot_claim_more_than_a_window() {
    let number = |number: u64| {
        let mut bytes = Vec::new();
        number::write_number(number, &mut bytes);
        bytes
    };
    let window = [number(0), number(WINDOW as u64 + 1), vec![0; 60]].concat();
    assert_eq!(PatchWindow::parse(&window), Err(BadDelta::TooMany { what: "bytes" }));
    let far = [number(u64::MAX), number(1), vec![0; 60]].concat();
    assert_eq!(PatchWindow::parse(&far), Err(BadDelta::TooLarge));
    // Literals as long as the window, and one more byte.
    let list = [number((WINDOW as u64) << 3), number(1 << 3 | 3), number(0)].concat();
    let counted = |list: &[u8]| number(list.len() as u64);
    let more = [number(0), number(WINDOW as u64), vec![0; 16], counted(&list), counted(&list), list].concat();
    assert_eq!(PatchWindow::parse(&more), Err(BadDelta::Impossible { what: "length" }));
    let chunks = [number(16_384), number(1 << 40)].concat();
    assert_eq!(SignatureIds::begin(&chunks).err(), Some(BadDelta::TooMany { what: "chunks" }));
    let more_ids = [number(16_384), number(1), vec![0; 16]].concat();
    assert_eq!(SignatureIds::begin(&more_ids).err(), Some(BadDelta::TooMany { what: "ids" }));
}
