//! Both ends stored what they had, and meet again.

use proptest::prelude::*;
use strait_wire::history::{CacheDigests, CacheQuestion};
use zeroize::Zeroizing;

use super::*;

const CAPACITY: CacheCapacity = CacheCapacity::new(8 << 20).unwrap();
const OWNER: CacheOwner<'_> = CacheOwner { domain: "office", peer: &[3; 32], role: CacheRole::Sender };

/// Segments as they are on disk.
type Disk = Vec<(u64, Vec<u8>)>;

/// Writes all that changed.
fn write(mut store: impl FnMut(&mut Vec<u8>) -> Option<u64>) -> Disk {
    let vault = SegmentVault::new(Zeroizing::new([1; 32]));
    let (mut disk, mut stored) = (Disk::new(), Vec::new());
    while let Some(number) = store(&mut stored) {
        assert!(stored.len() <= STORED_MAX);
        let seed = [number.to_be_bytes()[7]; SEED];
        disk.push((number, vault.seal(OWNER, number, &stored, seed).unwrap()));
        stored.clear();
    }
    disk
}

/// What the nodes of both ends store.
fn stored(pair: &mut Pair) -> [Disk; 2] {
    let Pair { sender, receiver, .. } = pair;
    [write(|out| sender.store_changed(out)), write(|out| receiver.store_changed(out))]
}

fn read(disk: &Disk, mut restore: impl FnMut(&[u8]) -> Result<(), RestoreError>) {
    let vault = SegmentVault::new(Zeroizing::new([1; 32]));
    for (number, sealed) in disk {
        restore(vault.open(OWNER, *number, &mut sealed.clone()).unwrap()).unwrap();
    }
}

/// A pair that said so many bytes of text in blocks, of which every `lost`th receipt was lost, and the text.
fn pair(bytes: usize, lost: usize) -> (Pair, Vec<u8>) {
    let (mut pair, text) = (Pair::new(CAPACITY.bytes()), lines(8, bytes));
    for (number, block) in text.chunks(BLOCK).enumerate() {
        let sent = pair.send(block);
        if let Some(position) = pair.deliver(&sent).unwrap()
            && number % lost != lost - 1
        {
            pair.sender.acknowledged(position);
        }
    }
    (pair, text)
}

/// Both ends end, and begin again with what was stored but for the last `missing` segments of the sender.
fn restart(pair: &mut Pair, missing: usize) {
    let [mut at_sender, at_receiver] = stored(pair);
    at_sender.truncate(at_sender.len() - missing);
    *pair = Pair::new(CAPACITY.bytes());
    read(&at_sender, |stored| pair.sender.restore(stored));
    read(&at_receiver, |stored| pair.receiver.restore(stored));
    assert_eq!(
        pair.sender.held_bytes(),
        0,
        "nothing is referred to before the receiver has said that it has it"
    );
}

/// The sender asks until there is nothing more; which segments both have, from the highest down.
fn meet(pair: &mut Pair) -> Vec<u64> {
    let (mut question, mut same) = (CacheQuestion { cache: 0, below: u64::MAX }, Vec::new());
    loop {
        let answer = pair.receiver.digests(question, 1_200);
        pair.sender.go_on_behind(answer.end);
        let Some(last) = answer.digests().last() else { return same };
        question.below = last.number;
        same.extend(
            answer.digests().filter(|digest| pair.sender.confirm(digest)).map(|digest| digest.number),
        );
    }
}

#[test]
fn ends_that_stored_everything_go_on() {
    let (mut pair, text) = pair(5_000_000, usize::MAX);
    restart(&mut pair, 0);
    assert_eq!(meet(&mut pair), [4, 3, 2, 1, 0]);
    assert_eq!(pair.sender.held_bytes(), 5_000_000);
    assert!(pair.stream(&text) < 2_200, "ten bytes for each of 200 blocks");
    assert_eq!(stored(&mut pair), [vec![], vec![]], "nothing new was kept");
}

#[test]
fn what_came_while_receipts_were_lost_is_found_again() {
    let (mut pair, text) = pair(3_000_000, 5);
    assert!(pair.sender.held_bytes() < 2_500_000);
    restart(&mut pair, 0);
    assert_eq!(meet(&mut pair), [2, 1, 0]);
    assert_eq!(pair.sender.held_bytes(), 3_000_000);
    assert!(pair.stream(&text) < 1_300);
}

#[test]
fn segments_that_one_end_lost_are_forgotten_and_their_positions_are_not_given_again() {
    let (mut pair, text) = pair(3_000_000, 7);
    restart(&mut pair, 1);
    assert_eq!(meet(&mut pair), [1, 0]);
    assert_eq!(pair.sender.end(), 3_000_000);
    let cost = pair.stream(&text);
    assert!((900_000..1_000_000).contains(&cost), "{cost} bytes");
}

#[test]
fn sender_that_lost_everything_goes_on_behind_what_the_receiver_has() {
    let (mut pair, text) = pair(3_000_000, usize::MAX);
    pair.sender = CacheSender::new(CAPACITY);
    assert_eq!(meet(&mut pair), [0; 0]);
    assert_eq!(pair.sender.end(), 3_000_000);
    pair.stream(&text);
    assert!(pair.stream(&text) < 1_300);
}

#[test]
fn segments_that_differ_are_forgotten() {
    let (mut ours, _) = pair(3_000_000, usize::MAX);
    let mut other = Pair::new(CAPACITY.bytes());
    other.stream(&lines(9, 3_000_000));
    ours.receiver = other.receiver;
    ours.sender.clear();
    assert_eq!((meet(&mut ours), ours.sender.held_bytes()), (vec![], 0));
    ours.stream(&lines(9, 500_000));
}

#[test]
fn rings_that_went_round_store_what_was_not_overwritten() {
    let (mut pair, text) = pair(19_000_000, usize::MAX);
    let [at_sender, at_receiver] = stored(&mut pair);
    let numbers = |disk: &Disk| disk.iter().map(|(number, _)| *number).collect::<Vec<_>>();
    assert_eq!(numbers(&at_sender), (11..19).collect::<Vec<_>>());
    assert_eq!(numbers(&at_sender), numbers(&at_receiver));
    pair.sender.clear();
    assert_eq!(meet(&mut pair), [18, 17, 16, 15, 14, 13, 12, 11]);
    let cost = pair.stream(&text[14_000_000..]);
    assert!(cost < 2_500, "{cost} bytes");
}

#[test]
fn answer_is_as_short_as_the_room_and_says_no_more_than_is_compared() {
    let mut receiver = CacheReceiver::new(CAPACITY);
    for at in 0..100 {
        receiver.keep(CachePosition(at * 200), &[1; 64]).unwrap();
    }
    let question = CacheQuestion { cache: 1, below: u64::MAX };
    let answer = receiver.digests(question, 300);
    let ranges: Vec<usize> = answer.digests().map(|digest| digest.ranges().len()).collect();
    assert_eq!((answer.question, answer.end, ranges), (question, 99 * 200 + 64, vec![32]));
    assert_eq!(receiver.digests(question, 100).digests().count(), 0);
}

#[test]
fn restored_segments_come_in_order_and_as_they_were_stored() {
    let (pair, _) = pair(2_000_000, 3);
    let mut stored = [Vec::new(), Vec::new()];
    assert!(pair.receiver.store(0, &mut stored[0]) && pair.receiver.store(1, &mut stored[1]));
    assert!(!pair.receiver.store(2, &mut Vec::new()) && !pair.receiver.store(u64::MAX, &mut Vec::new()));
    let mut other = CacheReceiver::new(CAPACITY);
    other.restore(&stored[1]).unwrap();
    for (number, stored) in stored.iter().enumerate() {
        assert_eq!(other.restore(stored), Err(RestoreError::Order { number: number as u64 }));
    }
    for len in 0..100 {
        assert_eq!(CacheReceiver::new(CAPACITY).restore(&stored[0][..len]), Err(RestoreError::Malformed));
    }
    let far = [&[1][..], &u64::MAX.to_be_bytes(), &[0, 0]].concat();
    assert_eq!(other.restore(&far), Err(RestoreError::Malformed));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn messages_that_no_end_wrote_are_refused_or_mean_something(bytes: Vec<u8>, at: usize, with: u8) {
        let (mut pair, text) = pair(100_000, 3);
        let answer = pair.receiver.digests(CacheQuestion { cache: 0, below: u64::MAX }, 1_200);
        let mut message = vec![0; answer.wire_len()];
        answer.emit(&mut message).unwrap();
        let len = message.len();
        message[at % len] ^= with;
        for message in [&message, &bytes] {
            if let Ok(answer) = CacheDigests::parse(message) {
                pair.sender.clear();
                pair.sender.go_on_behind(answer.end);
                for digest in answer.digests() {
                    pair.sender.confirm(digest);
                }
                let sent = pair.send(&text[..BLOCK]);
                pair.deliver(&sent).unwrap();
            }
        }
        let mut stored = Vec::new();
        if pair.receiver.store(0, &mut stored) {
            stored[at % 60] ^= with;
            let _ = CacheReceiver::new(CAPACITY).restore(&stored);
        }
        let _ = CacheReceiver::new(CAPACITY).restore(&[&[1][..], &bytes].concat());
    }
}
