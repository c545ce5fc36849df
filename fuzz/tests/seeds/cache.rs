//! Seeds of the byte cache.

use strait_clock::Time;
use strait_compress::history::cache::{CachePosition, CacheReceiver, CacheSender};
use strait_fuzz::byte_cache::{capacity, digests, text};

use super::Seed;

/// Copies by hand, what both ends write, and payloads to be said.
pub fn byte_cache_seeds() -> Vec<Seed> {
    let decode = |cap: u16, coded: &[u8]| [&[0][..], &cap.to_be_bytes(), coded].concat();
    let mut receiver = CacheReceiver::new(capacity());
    receiver.keep(CachePosition(0), &text(0)).unwrap();
    receiver.keep(CachePosition(2_000), &text(1)[..100]).unwrap();
    let mut stored = vec![2];
    receiver.store(0, &mut stored);
    // From position 0, then across the edge of a segment.
    let edge = decode(700, &[2, 0, 0, 0, 1, 0xd6, 1, 0xa0, 0xfc, 0x7f, b'a', b'b']);
    vec![
        ("byte_cache", "decode-copy", decode(200, &[1, 2, 36, 0, b'a', b'b', b'c'])),
        ("byte_cache", "decode-edge", edge),
        ("byte_cache", "decode-gone", decode(200, &[1, 0, 0, 0xf2, 0x0f])),
        ("byte_cache", "decode-over-cap", decode(99, &[1, 2, 36, 0, b'a', b'b', b'c'])),
        (
            "byte_cache",
            "decode-long-number",
            decode(99, &[1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]),
        ),
        ("byte_cache", "decode-literals", decode(99, &[0, b'a', b'b'])),
        ("byte_cache", "digests", [&[1][..], &digests()].concat()),
        ("byte_cache", "stored", stored),
        ("byte_cache", "question", [&[3, 0xec, 0][..], &[0xff; 8]].concat()),
        ("byte_cache", "question-low", [&[3, 0xec, 0][..], &[0; 7], &[1]].concat()),
        ("byte_cache", "digests-none", [&[1][..], &digests()[..18]].concat()),
        ("byte_cache", "digests-short", [&[1][..], &digests()[..40]].concat()),
        ("byte_cache", "digests-far", [&[1][..], &digests()[..10], &[0xff; 8]].concat()),
        ("byte_cache", "stored-newer", [&[2, 9][..], &[0; 10]].concat()),
        (
            "byte_cache",
            "stored-beyond",
            [&[2, 1][..], &[0; 9], &[1], &[0, 0, 0, 0, 0, 0, 0, 9], b"short"].concat(),
        ),
        ("byte_cache", "said-twice", [&[4][..], &saying()].concat()),
    ]
}

/// Bytes that repeat within themselves, and have an anchor.
fn saying() -> Vec<u8> {
    let bytes = text(7);
    let mut sender = CacheSender::new(capacity());
    let position = sender.keep(&bytes, Time::ZERO).unwrap();
    sender.acknowledged(position);
    assert!(sender.encode(&bytes, &mut [0; 100]).is_some());
    [&bytes[..], &bytes[100..]].concat()
}
