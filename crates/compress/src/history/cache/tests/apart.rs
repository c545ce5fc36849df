//! Both ends stored what they had, and meet again.

use proptest::prelude::*;
use zeroize::Zeroizing;

use super::super::stored::positions;
use super::*;

const CAPACITY: CacheCapacity = CacheCapacity::new(8 << 20).unwrap();
const OWNER: CacheOwner<'_> = CacheOwner { domain: "office", peer: &[3; 32], role: CacheRole::Sender };

/// Segments as they are on disk.
type Disk = Vec<(u64, Vec<u8>)>;

fn write(numbers: impl Iterator<Item = u64>, store: impl Fn(u64, &mut Vec<u8>) -> bool) -> Disk {
    let vault = SegmentVault::new(Zeroizing::new([1; 32]));
    let seal = |number| {
        let mut stored = Vec::new();
        assert!(store(number, &mut stored) && stored.len() <= STORED_MAX);
        (number, vault.seal(OWNER, number, &stored, [number.to_be_bytes()[7]; SEED]).unwrap())
    };
    numbers.map(seal).collect()
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
    let (sender, receiver) = (&pair.sender, &pair.receiver);
    let mut at_sender = write(sender.segments(), |number, out| sender.store(number, out));
    let at_receiver = write(receiver.segments(), |number, out| receiver.store(number, out));
    at_sender.truncate(at_sender.len() - missing);
    *pair = Pair::new(CAPACITY.bytes());
    read(&at_sender, |stored| pair.sender.restore(stored));
    read(&at_receiver, |stored| pair.receiver.restore(stored));
}

/// They compare; what the receiver said and was answered.
fn meet(pair: &mut Pair) -> (Manifest, Agreed) {
    let manifest = pair.receiver.manifest();
    let arrived = Manifest::parse(&manifest.message(), CAPACITY).unwrap();
    assert_eq!((&arrived, arrived.root()), (&manifest, manifest.root()));
    let agreed = pair.sender.agree(&arrived);
    assert_eq!(Agreed::parse(agreed.message(), &manifest), Ok(agreed.clone()));
    pair.receiver.agree(&manifest, &agreed);
    assert_eq!(pair.sender.held_bytes(), pair.receiver.held_bytes());
    assert_eq!(pair.sender.manifest(), pair.receiver.manifest());
    (manifest, agreed)
}

#[test]
fn ends_that_stored_everything_have_the_same_root_and_go_on() {
    let (mut pair, text) = pair(3_000_000, usize::MAX);
    let root = pair.sender.manifest().root();
    restart(&mut pair, 0);
    assert_eq!((pair.sender.manifest().root(), pair.receiver.manifest().root()), (root, root));
    assert!(pair.stream(&text) < 1_300, "ten bytes for each of 120 blocks");
}

#[test]
fn lost_receipts_cost_a_comparison_and_no_segment() {
    let (mut pair, text) = pair(3_000_000, 5);
    restart(&mut pair, 0);
    assert_ne!(pair.sender.manifest().root(), pair.receiver.manifest().root());
    let (manifest, agreed) = meet(&mut pair);
    assert_eq!(agreed, Agreed::of(manifest.segments.iter().map(|_| true)));
    assert_eq!(pair.sender.held_bytes(), 3_000_000);
    assert!(pair.stream(&text) < 1_300);
}

#[test]
fn segments_that_one_end_lost_are_forgotten_and_their_positions_are_not_given_again() {
    let (mut pair, text) = pair(3_000_000, 7);
    restart(&mut pair, 1);
    let (manifest, agreed) = meet(&mut pair);
    assert_eq!(manifest.segments.len(), 3);
    assert_eq!(agreed.message(), [0b011]);
    assert_eq!(pair.sender.keep(&text[..BLOCK], Time::ZERO), Some(CachePosition(3 << 20)));
    let cost = pair.stream(&text);
    assert!((900_000..1_000_000).contains(&cost), "{cost} bytes");
}

#[test]
fn segments_that_differ_are_forgotten() {
    let (mut ours, _) = pair(3_000_000, usize::MAX);
    let mut other = Pair::new(CAPACITY.bytes());
    other.stream(&lines(9, 3_000_000));
    other.sender.acknowledged(CachePosition(0));
    ours.receiver = other.receiver;
    let (_, agreed) = meet(&mut ours);
    assert_eq!((agreed.message(), ours.sender.held_bytes()), (&[0][..], 0));
    ours.stream(&lines(9, 500_000));
}

#[test]
fn rings_that_went_round_store_what_was_not_overwritten() {
    let (mut pair, text) = pair(19_000_000, usize::MAX);
    assert_eq!(pair.sender.segments().next(), Some(11));
    restart(&mut pair, 0);
    meet(&mut pair);
    let cost = pair.stream(&text[14_000_000..]);
    assert!(cost < 2_500, "{cost} bytes");
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

#[test]
fn manifest_beyond_the_capacity_is_refused() {
    assert_eq!(Manifest::parse(&[9], CAPACITY), Err(HistoryError::OverBudget { most: 8 }));
    assert_eq!(Manifest::parse(&[0], CAPACITY), Ok(Manifest::default()));
    assert_eq!(Manifest::parse(&[0, 0], CAPACITY), Err(HistoryError::Malformed));
    assert_eq!(positions(u64::MAX), u64::MAX..u64::MAX);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn messages_that_nobody_wrote_are_refused_or_mean_something(bytes: Vec<u8>, at: usize, with: u8) {
        let (mut pair, _) = pair(100_000, 3);
        let manifest = pair.receiver.manifest();
        let mut message = manifest.message();
        for len in 0..message.len() {
            prop_assert!(Manifest::parse(&message[..len], CAPACITY).is_err());
        }
        let len = message.len();
        message[at % len] ^= with;
        for message in [&message, &bytes] {
            if let Ok(parsed) = Manifest::parse(message, CAPACITY) {
                prop_assert_eq!(Manifest::parse(&parsed.message(), CAPACITY), Ok(parsed.clone()));
                let agreed = pair.sender.agree(&parsed);
                pair.receiver.agree(&parsed, &agreed);
            }
            let _ = Agreed::parse(message, &manifest);
        }
        let mut stored = Vec::new();
        if pair.receiver.store(0, &mut stored) {
            stored[at % 60] ^= with;
            let _ = CacheReceiver::new(CAPACITY).restore(&stored);
        }
        let _ = CacheReceiver::new(CAPACITY).restore(&[&[1][..], &bytes].concat());
    }
}
