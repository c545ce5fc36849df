//! What the byte cache makes of real data, and how long it takes: `cargo run --release -p strait-compress --example cache`.
//!
//! The data is that of `STRAIT_TEST_DATA`. Each block gets its receipt at once.

use std::time::Duration;

use strait_clock::Time;
use strait_compress::history::cache::{CACHED_MAX, CacheCapacity, CacheReceiver, CacheSender};
use strait_compress::{Codecs, Method};

/// Bytes of a block.
const BLOCK: usize = 25_000;

/// Both ends of one direction.
struct Pair {
    sender: CacheSender,
    receiver: CacheReceiver,
    room: Vec<u8>,
    back: Vec<u8>,
}

impl Pair {
    fn new(bytes: u64) -> Option<Pair> {
        let capacity = CacheCapacity::new(bytes)?;
        let (sender, receiver) = (CacheSender::new(capacity), CacheReceiver::new(capacity));
        Some(Pair { sender, receiver, room: vec![0; CACHED_MAX], back: vec![0; CACHED_MAX] })
    }
}

/// What of the test data is said.
const TEXTS: [&str; 12] = [
    "modern/citm_catalog.json",
    "modern/chinook-postgresql.sql",
    "modern/log-openstack-2k.log",
    "modern/log-hdfs-2k.log",
    "modern/urls-10k.txt",
    "calgary/book1",
    "calgary/book2",
    "calgary/news",
    "canterbury/alice29.txt",
    "modern/telemetry-weather-hourly.csv",
    "modern/log-linux-2k.log",
    "modern/page.html",
];

/// Bytes before and behind zstd, and time for a block: to encode, to keep and index, to decode and keep.
#[derive(Default)]
struct Cost {
    blocks: u32,
    coded: usize,
    compressed: usize,
    times: [Duration; 3],
}

#[allow(clippy::disallowed_methods, reason = "what it measures is time")]
fn timed<T>(total: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = std::time::Instant::now();
    let result = work();
    *total += start.elapsed();
    result
}

fn measure(pair: &mut Pair, what: &str, stream: &[u8]) {
    let (mut cost, mut codecs) = (Cost::default(), Codecs::new());
    let mut out = vec![0; CACHED_MAX];
    for block in stream.chunks(BLOCK) {
        let [encode, index, decode] = &mut cost.times;
        let coded = timed(encode, || pair.sender.encode(block, &mut pair.room));
        let kept = coded.is_none_or(|coded| coded.worth_keeping);
        let position = timed(index, || if kept { pair.sender.keep(block, Time::ZERO) } else { None });
        timed(decode, || {
            if let Some(coded) = coded {
                assert_eq!(pair.receiver.decode(&pair.room[..coded.len], &mut pair.back), Ok(block.len()));
                assert_eq!(&pair.back[..block.len()], block);
            }
            position.map(|position| pair.receiver.keep(position, block))
        });
        timed(index, || position.map(|position| pair.sender.acknowledged(position)));
        let left = coded.map_or(block, |coded| &pair.room[..coded.len]);
        cost.blocks += 1;
        cost.coded += left.len();
        cost.compressed += codecs.compress(Method::ZSTD, left, &mut out[..left.len()]).unwrap_or(left.len());
    }
    let [encode, index, decode] = cost.times.map(|time| time.as_secs_f64() * 1e6 / f64::from(cost.blocks));
    println!(
        "{what:24} {:8} -> {:8} -> zstd {:8}; us a block: encode {encode:5.1}, keep and index {index:5.1}, receive {decode:5.1}",
        stream.len(),
        cost.coded,
        cost.compressed
    );
}

fn main() {
    let texts = TEXTS.iter().filter_map(|name| strait_testdata::find(name));
    let stream: Vec<u8> = texts.flat_map(|path| std::fs::read(path).unwrap_or_default()).collect();
    let Some(mut pair) = Pair::new(64 << 20) else { return };
    measure(&mut pair, "first", &stream);
    measure(&mut pair, "again, shifted by 100", &[&[b'x'; 100][..], &stream].concat());
    let edited: Vec<u8> = stream
        .split_inclusive(|byte| *byte == b'\n')
        .enumerate()
        .flat_map(|(number, line)| if number % 200 == 7 { b"edited line\n" } else { line }.to_vec())
        .collect();
    measure(&mut pair, "one line in 200 edited", &edited);
    measure(&mut pair, "that again", &edited);
    let random: Vec<u8> = (0..4 << 20)
        .map({
            let mut random = strait_clock::Random::new(5);
            move |_| random.next_u64().to_be_bytes()[0]
        })
        .collect();
    measure(&mut pair, "random", &random);
    println!("memory of the sender: {} bytes for {} held", pair.sender.allocated(), pair.sender.held_bytes());
}
