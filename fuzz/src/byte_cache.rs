//! The byte cache: copies, what a receiver says it holds, and stored segments that are not ours; and any payload said by what is held.

use std::sync::LazyLock;

use strait_clock::Time;
use strait_compress::history::HistoryError;
use strait_compress::history::cache::{CacheCapacity, CachePosition, CacheReceiver, CacheSender, SEGMENT};
use strait_wire::history::{CacheDigests, CacheQuestion};

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

/// What the target's receiver says that it holds.
#[must_use]
pub fn digests() -> Vec<u8> {
    let answer = HELD.digests(CacheQuestion { cache: 0, below: u64::MAX }, 1_200);
    let mut message = vec![0; answer.wire_len()];
    answer.emit(&mut message).unwrap();
    message
}

/// A byte that says what follows.
pub fn check(data: &[u8]) {
    match data.split_first() {
        Some((0, coded)) => decode(coded),
        Some((1, message)) => compare(message),
        Some((2, stored)) => restore(stored),
        Some((3, question)) => ask(question),
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

fn compare(message: &[u8]) {
    let Ok(answer) = CacheDigests::parse(message) else { return };
    let mut again = vec![0; answer.wire_len()];
    answer.emit(&mut again).unwrap();
    assert_eq!(again, message);
    let mut sender = CacheSender::new(capacity());
    sender.go_on_behind(answer.end);
    for digest in answer.digests() {
        sender.confirm(digest);
    }
    assert!(sender.held_bytes() <= capacity().bytes());
    let _ = sender.keep(&text(0), Time::ZERO);
}

/// A segment as a receiver stored it: what it says is held is held then, and stored the same again.
fn restore(stored: &[u8]) {
    let mut receiver = CacheReceiver::new(capacity());
    if receiver.restore(stored).is_err() {
        return;
    }
    let [a, b, c, d, e, f, g, h] = *stored[1..].first_chunk().unwrap();
    let mut again = Vec::new();
    if receiver.store(u64::from_be_bytes([a, b, c, d, e, f, g, h]), &mut again) {
        // What would be in more pieces than a ring may have is forgotten.
        assert!(again == stored || again.len() < stored.len());
    }
}

/// What is asked for is answered within the room.
fn ask(question: &[u8]) {
    let Ok(question) = CacheQuestion::parse(question) else { return };
    let answer = HELD.digests(question, 100);
    assert!(answer.wire_len() <= 100 && answer.question == question);
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
