//! Compressing any bytes into any room: what fits comes back whole, and nothing grows unasked.

use strait_compress::{Codec, Codecs, Method};

/// Methods tried: each codec at its ends, less the levels that are slow by design.
const METHODS: [&str; 11] = [
    "none",
    "deflate-1",
    "deflate-6",
    "deflate-9",
    "lz4",
    "zstd-fast-5",
    "zstd-1",
    "zstd-3",
    "zstd-9",
    "lzs-1",
    "lzs-2",
];

/// A method byte, a room of two bytes, then what to compress.
pub fn check(data: &[u8]) {
    let Some((&[method, high, low], input)) = data.split_first_chunk() else { return };
    let method: Method = METHODS[usize::from(method) % METHODS.len()].parse().unwrap();
    let room = usize::from(u16::from_be_bytes([high, low]));
    let mut codecs = Codecs::new();
    let mut compressed = vec![0; room];
    let mut back = vec![0; input.len()];
    match codecs.compress(method, input, &mut compressed) {
        Some(len) => {
            assert!(len <= room && !input.is_empty());
            assert_eq!(codecs.expand(method.codec, &compressed[..len], &mut back), Ok(input.len()));
            assert_eq!(back, input);
        }
        None => assert!(input.is_empty() || room < input.len() * 2 + 100, "no room in {room} bytes"),
    }
    // None of the codecs makes a block out of nothing.
    assert_eq!(codecs.compress(Method::of(Codec::Deflate), &[], &mut compressed), None);
}
