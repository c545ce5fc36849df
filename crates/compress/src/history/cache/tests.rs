use strait_clock::Time;

use super::super::HistoryError;
use super::*;

mod apart;
mod losses;

/// Bytes of a block.
const BLOCK: usize = 25_000;

/// Both ends of one direction.
struct Pair {
    sender: CacheSender,
    receiver: CacheReceiver,
    now: Time,
    room: Vec<u8>,
    back: Vec<u8>,
}

/// A unit on its way.
#[derive(Clone)]
struct Sent {
    coded: Option<Vec<u8>>,
    position: Option<CachePosition>,
    payload: Vec<u8>,
}

impl Pair {
    fn new(bytes: u64) -> Pair {
        let capacity = CacheCapacity::new(bytes).unwrap();
        Pair {
            sender: CacheSender::new(capacity),
            receiver: CacheReceiver::new(capacity),
            now: Time::ZERO,
            room: vec![0; CACHED_MAX],
            back: vec![0; CACHED_MAX],
        }
    }

    fn send(&mut self, payload: &[u8]) -> Sent {
        self.now += core::time::Duration::from_millis(40);
        let coded = self.sender.encode(payload, &mut self.room);
        let worth = coded.is_none_or(|coded| coded.worth_keeping);
        let position = if worth { self.sender.keep(payload, self.now) } else { None };
        let coded = coded.map(|coded| self.room[..coded.len].to_vec());
        Sent { coded, position, payload: payload.to_vec() }
    }

    /// Delivers it: never anything else than was sent. The position that a receipt is due for.
    fn deliver(&mut self, sent: &Sent) -> Result<Option<CachePosition>, HistoryError> {
        if let Some(coded) = &sent.coded {
            let len = self.receiver.decode(coded, &mut self.back)?;
            assert!(self.back[..len] == sent.payload[..]);
        }
        Ok(sent.position.filter(|position| self.receiver.keep(*position, &sent.payload).is_ok()))
    }

    /// Sends a stream in blocks whose receipts come at once; gives the bytes of all, before a codec.
    fn stream(&mut self, bytes: &[u8]) -> usize {
        bytes.chunks(BLOCK).map(|block| self.exchange(block)).sum()
    }

    fn exchange(&mut self, block: &[u8]) -> usize {
        let sent = self.send(block);
        if let Some(position) = self.deliver(&sent).unwrap() {
            self.sender.acknowledged(position);
        }
        sent.coded.map_or(block.len(), |coded| coded.len())
    }
}

/// Lines that are all different, some 60 bytes each.
fn lines(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = strait_clock::Random::new(seed);
    let mut text = Vec::with_capacity(bytes + 100);
    while text.len() < bytes {
        let line = format!("{:016x} valve {:>6} open\n", random.next_u64(), random.next_u64() % 999_983);
        text.extend_from_slice(line.as_bytes());
    }
    text.truncate(bytes);
    text
}

#[test]
fn stream_that_repeats_shifted_costs_ten_bytes_a_block() {
    let mut pair = Pair::new(16 << 20);
    let stream = lines(1, 4_000_000);
    assert!(pair.stream(&stream) > 3_900_000);
    let again = pair.stream(&[&[b'x'; 100][..], &stream].concat());
    assert!(again <= stream.len() / 1_000, "{again} bytes");
    assert_eq!(pair.sender.encode(&stream[..BLOCK], &mut pair.room).unwrap().len, 6);
}

#[test]
fn stream_with_one_line_in_200_edited_costs_a_hundredth() {
    let mut pair = Pair::new(16 << 20);
    let stream = lines(1, 4_000_000);
    pair.stream(&stream);
    let mut edited = Vec::new();
    for (number, line) in stream.split_inclusive(|byte| *byte == b'\n').enumerate() {
        edited.extend_from_slice(if number % 200 == 7 { b"closed by hand\n" } else { line });
    }
    let cost = pair.stream(&edited);
    assert!(cost <= edited.len() / 100, "{cost} bytes");
}

#[test]
fn without_receipts_nothing_is_referred_to() {
    let mut pair = Pair::new(16 << 20);
    let block = lines(1, BLOCK);
    for _ in 0..3 {
        let sent = pair.send(&block);
        assert!(sent.coded.is_none());
        pair.deliver(&sent).unwrap();
    }
    assert_eq!((pair.sender.pending(), pair.sender.held_bytes()), (3, 0));
    pair.sender.lost_before(CachePosition(BLOCK as u64 * 2));
    assert_eq!(pair.sender.pending(), 1);
    pair.sender.acknowledged(CachePosition(0));
    assert_eq!(pair.sender.held_bytes(), 0, "the receipt comes too late");
    pair.sender.acknowledged(CachePosition(BLOCK as u64 * 2));
    assert!(pair.send(&block).coded.is_some_and(|coded| coded.len() < 12));
}

#[test]
fn no_more_than_the_margin_waits_for_receipts() {
    let mut pair = Pair::new(CacheCapacity::MIN);
    let block = lines(1, BLOCK);
    let kept = (0..100).filter(|_| pair.sender.keep(&block, Time::ZERO).is_some()).count();
    assert_eq!(kept, SEGMENT / BLOCK);
    pair.sender.lost(CachePosition(0));
    assert!(pair.sender.keep(&block, Time::ZERO).is_some());
    assert!(pair.sender.keep(&block, Time::from_nanos(1_999_999_999)).is_none());
    assert!(pair.sender.keep(&block, Time::from_nanos(2_000_000_000)).is_some());
    for len in [0, COPY_MIN - 1, CACHED_MAX + 1] {
        pair.sender.clear();
        assert_eq!(pair.sender.keep(&vec![0; len], Time::ZERO), None);
    }
}

#[test]
fn what_is_old_is_kept_again_and_what_is_overwritten_is_not_referred_to() {
    let mut pair = Pair::new(CacheCapacity::MIN);
    let often = lines(1, BLOCK);
    let mut costs = Vec::new();
    for round in 0..600 {
        pair.exchange(&lines(10 + round, BLOCK));
        if round % 30 == 0 {
            costs.push(pair.exchange(&often));
        }
    }
    assert_eq!(costs.remove(0), BLOCK);
    assert!(costs.iter().all(|cost| *cost < 20), "{costs:?}");
    let seldom = lines(10, BLOCK);
    assert_eq!(pair.exchange(&seldom), BLOCK, "it was said 15 MB ago");
    assert!(pair.receiver.held_bytes() <= CacheCapacity::MIN);
    assert_eq!(pair.receiver.allocated() as u64, CacheCapacity::MIN);
}

#[test]
fn receiver_refuses_what_no_sender_says() {
    let mut receiver = CacheReceiver::new(CacheCapacity::new(CacheCapacity::MIN).unwrap());
    let keep = |receiver: &mut CacheReceiver, at, len| receiver.keep(CachePosition(at), &vec![1; len]);
    assert_eq!(keep(&mut receiver, 0, 63), Err(KeepError::Impossible { len: 63 }));
    assert_eq!(keep(&mut receiver, 0, 65_537), Err(KeepError::Impossible { len: 65_537 }));
    assert_eq!(keep(&mut receiver, u64::MAX - 9, 64), Err(KeepError::Impossible { len: 64 }));
    assert_eq!(keep(&mut receiver, 100, 100), Ok(()));
    assert_eq!(keep(&mut receiver, 100, 100), Ok(()));
    assert_eq!(keep(&mut receiver, 110, 100), Err(KeepError::Taken));
    let most = (CacheCapacity::MIN >> 14) as usize;
    for at in 1..most as u64 {
        assert_eq!(keep(&mut receiver, 1_000 * at, 64), Ok(()));
    }
    assert_eq!(keep(&mut receiver, 999_000, 64), Err(KeepError::TooManyPieces { most }));
    assert_eq!(keep(&mut receiver, 5 << 20, 64), Ok(()), "what it overwrites makes room");
    assert_eq!(keep(&mut receiver, 3 << 20, 64), Err(KeepError::Old));
    let mut out = [0; 200];
    assert_eq!(receiver.decode(&[1, 0, 0, 0], &mut out), Err(HistoryError::Gone));
    assert_eq!(receiver.decode(&[1, 0, 0], &mut out), Err(HistoryError::Malformed));
    assert_eq!(
        receiver.decode(&[2, 0, 0, 0, 0, 0, 0], &mut out[..127]),
        Err(HistoryError::TooLong { cap: 127 })
    );
}
