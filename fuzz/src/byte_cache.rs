//! The byte cache: copies, manifests and stored segments that are not ours; and any payload said by what is held.

use std::sync::LazyLock;

use strait_clock::Time;
use strait_compress::history::HistoryError;
use strait_compress::history::cache::{
    Agreed, CacheCapacity, CachePosition, CacheReceiver, CacheSender, Manifest, SEGMENT,
};

/// Bytes behind the output that must stay as they are.
const BEYOND: usize = 64;
/// What they hold.
const UNTOUCHED: u8 = 0xa5;
/// Bytes of each payload that is held.
const PAYLOAD: usize = 1_000;
/// A gap behind the first, none behind the second, then one across the edge of a segment.
const POSITIONS: [u64; 4] = [0, 2_000, 3_000, SEGMENT as u64 - 500];

static HELD: LazyLock<CacheReceiver> = LazyLock::new(|| {
    let mut receiver = CacheReceiver::new(capacity());
    for position in POSITIONS {
        receiver.keep(CachePosition(position), &text(position)).unwrap();
    }
    receiver
});

/// The capacity of the target's cache.
#[must_use]
pub fn capacity() -> CacheCapacity {
    CacheCapacity::new(CacheCapacity::MIN).unwrap()
}

/// What is held at a position.
#[must_use]
pub fn text(position: u64) -> Vec<u8> {
    let mut random = strait_clock::Random::new(position);
    (0..PAYLOAD).map(|_| random.next_u64().to_be_bytes()[0]).collect()
}

/// What the target's receiver holds.
#[must_use]
pub fn manifest() -> Manifest {
    HELD.manifest()
}

/// A byte that says what follows.
pub fn check(data: &[u8]) {
    match data.split_first() {
        Some((0, coded)) => decode(coded),
        Some((1, message)) => agree(message),
        Some((2, stored)) => restore(stored),
        Some((3, answer)) => answered(answer),
        Some((_, payload)) => round_trip(payload),
        None => {}
    }
}

/// A cap of two bytes, then a coded payload.
fn decode(data: &[u8]) {
    let Some((&cap, coded)) = data.split_first_chunk() else { return };
    let cap = usize::from(u16::from_be_bytes(cap));
    let mut memory = vec![UNTOUCHED; cap + BEYOND];
    let (output, beyond) = memory.split_at_mut(cap);
    let decoded = HELD.decode(coded, output);
    assert!(beyond.iter().all(|byte| *byte == UNTOUCHED));
    match decoded {
        Ok(len) => assert!(len <= cap),
        Err(HistoryError::TooLong { cap: said }) => assert_eq!(said, cap),
        Err(error) => assert!(matches!(error, HistoryError::Gone | HistoryError::Malformed)),
    }
}

fn agree(message: &[u8]) {
    let Ok(manifest) = Manifest::parse(message, capacity()) else { return };
    assert_eq!(Manifest::parse(&manifest.message(), capacity()).as_ref(), Ok(&manifest));
    let mut sender = CacheSender::new(capacity());
    let agreed = sender.agree(&manifest);
    assert_eq!(Agreed::parse(agreed.message(), &manifest).as_ref(), Ok(&agreed));
    assert!(sender.held_bytes() <= capacity().bytes());
    let _ = sender.keep(&text(0), Time::ZERO);
}

/// A segment as a receiver stored it: what it says is held is held then, and stored the same again.
fn restore(stored: &[u8]) {
    let mut receiver = CacheReceiver::new(capacity());
    if receiver.restore(stored).is_err() {
        return;
    }
    let numbers: Vec<u64> = receiver.segments().collect();
    for number in numbers {
        let mut again = Vec::new();
        assert!(receiver.store(number, &mut again));
        assert_eq!(again, stored);
    }
}

fn answered(answer: &[u8]) {
    let manifest = manifest();
    if let Ok(agreed) = Agreed::parse(answer, &manifest) {
        assert_eq!(agreed.message(), answer);
        let mut receiver = CacheReceiver::new(capacity());
        receiver.agree(&manifest, &agreed);
        assert!(receiver.held_bytes() <= HELD.held_bytes());
    }
}

/// A payload that is said twice comes back.
fn round_trip(payload: &[u8]) {
    let (mut sender, mut receiver) = (CacheSender::new(capacity()), CacheReceiver::new(capacity()));
    let mut coded = vec![0; payload.len()];
    assert_eq!(sender.encode(payload, &mut coded), None);
    let Some(position) = sender.keep(payload, Time::ZERO) else { return };
    receiver.keep(position, payload).unwrap();
    sender.acknowledged(position);
    if let Some(made) = sender.encode(payload, &mut coded) {
        let mut output = vec![0; payload.len()];
        assert_eq!(receiver.decode(&coded[..made.len], &mut output), Ok(payload.len()));
        assert_eq!(output, payload);
    }
}
