//! Streams that others wrote, and ours as others read them.

use super::*;

fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The opening of "A Tale of Two Cities" (Dickens, 1859).
const TALE: &[u8] = b"It was the best of times, it was the worst of times, it was the age of wisdom, \
it was the age of foolishness, it was the epoch of belief, it was the epoch of incredulity, \
it was the season of Light, it was the season of Darkness.";

#[test]
fn deflate_streams_of_each_block_type() {
    let table: [(&str, &[u8]); 7] = [
        // RFC 1951 section 3.2.4: final, stored, length 5 and its complement.
        ("010500faff68656c6c6f", b"hello"),
        // Two stored blocks.
        ("000200fdff6865010300fcff6c6c6f", b"hello"),
        ("010000ffff", b""),
        // zlib 1.3 at level 9: fixed codes, ...
        ("0300", b""),
        ("cb48cdc9c90700", b"hello"),
        ("4b4c840100", b"aaaaaaaaaa"),
        // ... and codes of the stream's own.
        (
            "75cdc10980301044d156b600b10a2f824d243a318b312bd99560f79293087a7e7f98d1a83a258b200f359240c6\
             3bb4237ea44af923b7a241655d64ff922092586386be8738648e2df0488cf06d9ce782e54c6cd72b503895dc8a\
             89d7683f36b8b2b5dffe06",
            TALE,
        ),
    ];
    let mut codecs = Codecs::new();
    for (stream, data) in table {
        let expanded = expanded(&mut codecs, Codec::Deflate, &unhex(stream), 300);
        assert_eq!(expanded.as_deref(), Ok(data), "{stream}");
    }
}

#[test]
fn deflate_streams_that_break_the_rules() {
    let table = [
        ("stored length and complement disagree", "010500fbff68656c6c6f"),
        ("block type 3 is reserved (RFC 1951 section 3.2.3)", "07"),
        ("distance before the start", "4b04220000"),
        ("no end", "cb48cdc9c907"),
    ];
    let mut codecs = Codecs::new();
    for (what, stream) in table {
        let malformed = Err(ExpandError::Malformed { codec: Codec::Deflate });
        assert_eq!(expanded(&mut codecs, Codec::Deflate, &unhex(stream), 300), malformed, "{what}");
    }
}

#[test]
fn lz4_blocks_by_hand() {
    // LZ4 block format: a token of literal and match lengths, literals, a distance, then the last five.
    let table: [(&[u8], &[u8]); 3] = [
        (b"\x50hello", b"hello"),
        (b"\x1aa\x01\x00\x50aaaaa", b"aaaaaaaaaaaaaaaaaaaa"),
        (b"\x40abcd\x04\x00\x50abcda", b"abcdabcdabcda"),
    ];
    let mut codecs = Codecs::new();
    for (block, data) in table {
        assert_eq!(expanded(&mut codecs, Codec::Lz4, block, 100).as_deref(), Ok(data));
    }
    let broken: [(&str, &[u8]); 4] = [
        ("fewer literals than said", b"\x50hell"),
        ("a distance of nothing", b"\x1aa\x00\x00\x50aaaaa"),
        ("a distance before the start", b"\x1aa\x02\x00\x50aaaaa"),
        ("half a distance", b"\x1aa\x01"),
    ];
    for (what, block) in broken {
        let malformed = Err(ExpandError::Malformed { codec: Codec::Lz4 });
        assert_eq!(expanded(&mut codecs, Codec::Lz4, block, 100), malformed, "{what}");
    }
}

#[test]
fn zstd_frames_are_standard_but_for_the_magic() {
    let mut codecs = Codecs::new();
    let mut random = Random::new(1);
    for level in [-5, -1, 1, 3, 19] {
        let method = Method::at_level(Codec::Zstd, level).unwrap();
        for input in kinds(&mut random, 5_000) {
            let magicless = compressed(&mut codecs, method, &input);
            // RFC 8878 section 3.1.1: the magic number, then what we send.
            let frame = [&0xfd2f_b528_u32.to_le_bytes(), magicless.as_slice()].concat();
            let mut back = vec![0; input.len()];
            let len = zstd_safe::decompress(back.as_mut_slice(), &frame).unwrap();
            assert_eq!((len, &back), (input.len(), &input), "{method}");
        }
    }
}
