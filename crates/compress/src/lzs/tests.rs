//! Both encoders and the decoder against the grammar.

mod grammar;

use grammar::Token;
use proptest::prelude::*;

use super::*;
use crate::{Codec, ExpandError};

const LEVELS: [i8; 2] = [1, 2];

fn compressed(level: i8, input: &[u8]) -> Vec<u8> {
    let mut stream = vec![0; most(input.len())];
    let len = Lzs::default().compress(level, input, &mut stream).unwrap();
    stream.truncate(len);
    stream
}

/// Bytes that anything of `len` bytes fits in: nine bits each and the end marker.
fn most(len: usize) -> usize {
    ((len + 1) * 9).div_ceil(8)
}

fn expanded(stream: &[u8], cap: usize) -> Result<Vec<u8>, ExpandError> {
    let mut data = vec![0; cap];
    let len = expand(stream, &mut data)?;
    data.truncate(len);
    Ok(data)
}

/// A round trip at both levels, and decoding by the grammar.
fn check(input: &[u8]) {
    for level in LEVELS {
        let stream = compressed(level, input);
        assert_eq!(grammar::read(&stream).as_deref(), Some(input), "level {level} of {} bytes", input.len());
        assert_eq!(
            expanded(&stream, input.len()).as_deref(),
            Ok(input),
            "level {level} of {} bytes",
            input.len()
        );
    }
}

const MALFORMED: Result<Vec<u8>, ExpandError> = Err(ExpandError::Malformed { codec: Codec::Lzs });

#[test]
fn lengths_have_the_codes_of_the_table() {
    // RFC 2395 section 2.2, lengths 2 to 24 in order.
    let table = "00 01 10 1100 1101 1110 11110000 11110001 11110010 11110011 11110100 11110101 11110110 11110111 \
        11111000 11111001 11111010 11111011 11111100 11111101 11111110 111111110000 111111110001";
    for (code, length) in table.split(' ').zip(2..) {
        assert_eq!(grammar::length_code(length), code, "length {length}");
    }
}

fn unhex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(|digit| *digit != b' ').collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

#[test]
fn streams_by_hand() {
    let table: [(&str, &str, &[u8]); 6] = [
        ("the end marker alone", "c000", b""),
        ("a literal", "30e000", b"a"),
        ("a string over itself", "30e07c7000", b"aaaaaaaaaa"),
        ("a near offset", "30e05c00", b"aaaa"),
        ("the same offset in 11 bits", "30c005c000", b"aaaa"),
        ("bits and bytes after the end marker", "30e01fff", b"a"),
    ];
    for (what, stream, data) in table {
        assert_eq!(grammar::read(&unhex(stream)).as_deref(), Some(data), "{what}");
        assert_eq!(expanded(&unhex(stream), 100).as_deref(), Ok(data), "{what}");
    }
}

#[test]
fn streams_that_break_the_grammar() {
    let table = [
        ("nothing", ""),
        ("no end marker", "3080"),
        ("half an end marker", "30e0"),
        ("an offset of zero in 11 bits", "30c001c000"),
        ("an offset before the start", "30e09c00"),
        ("an offset of what is not there yet", "c09800"),
        ("a length without end", "30e07fffffffffff"),
    ];
    for (what, stream) in table {
        assert_eq!(grammar::read(&unhex(stream)), None, "{what}");
        assert_eq!(expanded(&unhex(stream), 1_000), MALFORMED, "{what}");
    }
}

#[test]
fn another_implementations_stream() {
    let Some(path) = strait_testdata::find_or_skip("vectors/lzs-cmcqueen.json") else { return };
    let json = std::fs::read_to_string(path).unwrap();
    let field = |name: &str| {
        let value = json.split_once(&format!("\"{name}\": \"")).unwrap().1;
        value.split_once('"').unwrap().0
    };
    let (stream, data) = (unhex(field("compressed_hex")), field("plaintext").as_bytes());
    assert_eq!(data.len(), 507);
    assert_eq!(grammar::read(&stream).as_deref(), Some(data));
    assert_eq!(expanded(&stream, data.len()).as_deref(), Ok(data));
    assert!(compressed(1, data).len() <= stream.len() * 11 / 10);
    assert!(compressed(2, data).len() < stream.len());
    check(data);
}

#[test]
fn every_length_at_the_offsets_that_matter() {
    // Noise, so that nothing but what is meant repeats.
    let noise: Vec<u8> =
        (0..5_000_u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 24) as u8 ^ at as u8).collect();
    for offset in [1, 2, 3, 7, 8, 9, 15, 16, 17, 126, 127, 128, 129, 2_046, 2_047] {
        for length in (2..=70).chain([81, 82, 83, 97, 98, 112, 113, 1_000, 2_047, 2_048, 2_050]) {
            let mut tokens: Vec<Token> = noise[..offset].iter().map(|byte| Token::Raw(*byte)).collect();
            tokens.push(Token::String { offset, length, far: false });
            tokens.push(Token::Raw(b'.'));
            let (stream, data) = (grammar::write(&tokens), grammar::data(&tokens));
            assert_eq!(expanded(&stream, data.len()).as_ref(), Ok(&data), "{length} bytes {offset} back");
            check(&data);
        }
    }
}

#[test]
fn a_string_as_far_as_the_window_is_found_and_one_farther_is_not() {
    let noise: Vec<u8> = (0..2_100_u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
    for (back, found) in [(2_047, true), (2_048, false)] {
        let mut input = b"0123456789abcdefghijklmnopqrstuvwxyz".to_vec();
        input.extend_from_slice(&noise[..back - 36]);
        let literals = input.len();
        input.extend_from_slice(b"0123456789abcdefghijklmnopqrstuvwxyz");
        for level in LEVELS {
            let shorter = compressed(level, &input).len() < compressed(level, &input[..literals]).len() + 10;
            assert_eq!(shorter, found, "{back} bytes back at level {level}");
        }
        check(&input);
    }
}

#[test]
fn blocks_of_every_small_length() {
    let phrase = b"to be or not to be, that is the question: whether 'tis nobler to be ";
    for len in 0..=phrase.len() {
        check(&phrase[..len]);
        check(&vec![b'x'; len]);
    }
}

#[test]
fn what_is_longer_than_a_stretch_and_than_16_bits() {
    for len in [4_095, 4_096, 4_097, 65_535, 65_536, 200_000] {
        let words: Vec<u8> = (0..)
            .flat_map(|number: u32| format!("{} ", number * number % 977).into_bytes())
            .take(len)
            .collect();
        let zeros = vec![0; len];
        for input in [words, zeros] {
            check(&input);
            assert!(compressed(2, &input).len() <= compressed(1, &input).len(), "{len} bytes");
        }
    }
}

#[test]
fn behind_every_run_the_whole_of_the_run_before_is_found() {
    // The last three zeros of the run before come first, then its last four, and only then all of it.
    let input: Vec<u8> = (1..100).flat_map(|byte| [&[0; 31][..], &[byte]].concat()).collect();
    check(&input);
    // For each run a near offset and a length of 31, 21 bits; for each byte between two of them 9.
    assert!(compressed(2, &input).len() <= 99 * 30 / 8 + 8);
}

#[test]
fn blocks_are_independent_of_earlier_blocks() {
    let [one, two] = [b"the first of two blocks that ", b"the first of two blocks with "];
    for level in LEVELS {
        let mut lzs = Lzs::default();
        let mut room = [0; 100];
        lzs.compress(level, one, &mut room).unwrap();
        // One that does not fit leaves its traces too.
        assert_eq!(lzs.compress(level, two, &mut room[..10]), None);
        let len = lzs.compress(level, two, &mut room).unwrap();
        assert_eq!(room[..len], compressed(level, two), "level {level}");
    }
}

#[test]
fn the_output_is_used_to_the_last_byte_and_no_further() {
    let input = b"a block of words, a block of words and some others, of which there are but few";
    for level in LEVELS {
        let exact = compressed(level, input).len();
        for room in 0..exact {
            assert_eq!(Lzs::default().compress(level, input, &mut vec![0; room]), None, "{room} of {exact}");
        }
        assert_eq!(Lzs::default().compress(level, input, &mut vec![0; exact]), Some(exact));
    }
}

#[test]
fn a_string_that_does_not_fit_is_too_long_however_long_it_says_it_is() {
    let string = |length| grammar::write(&[Token::Raw(7), Token::String { offset: 1, length, far: false }]);
    assert_eq!(expanded(&string(999), 1_000).map(|data| data.len()), Ok(1_000));
    for length in [1_000, 1_001, 1_007, 1_014, 100_000] {
        assert_eq!(expanded(&string(length), 1_000), Err(ExpandError::TooLong { cap: 1_000 }), "{length}");
    }
}

/// Streams that are legal: a string refers to what is there, and without any there is a literal instead.
fn tokens() -> impl Strategy<Value = Vec<Token>> {
    let length = prop_oneof![2..30_usize, 2..600_usize];
    let drawn = (any::<u8>(), any::<bool>(), any::<prop::sample::Index>(), length, any::<bool>());
    prop::collection::vec(drawn, 0..300).prop_map(|drawn| {
        let mut len = 0;
        let token = |(byte, string, back, length, far): (u8, bool, prop::sample::Index, usize, bool)| {
            if string && len > 0 {
                let offset = 1 + back.index(len.min(2_047));
                len += length;
                Token::String { offset, length, far }
            } else {
                len += 1;
                Token::Raw(byte)
            }
        };
        drawn.into_iter().map(token).collect()
    })
}

fn repetitive() -> impl Strategy<Value = Vec<u8>> {
    let piece =
        (prop::collection::vec(0..4_u8, 1..12), 1..40_usize).prop_map(|(piece, times)| piece.repeat(times));
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn random_bytes_round_trip(input in prop::collection::vec(any::<u8>(), 0..3_000)) {
        check(&input);
    }

    #[test]
    fn repetitive_bytes_round_trip(input in repetitive()) {
        check(&input);
    }

    #[test]
    fn whatever_the_grammar_writes_is_read(tokens in tokens()) {
        let (stream, data) = (grammar::write(&tokens), grammar::data(&tokens));
        prop_assert_eq!(expanded(&stream, data.len()), Ok(data.clone()));
        // In more room, where copies are wider than what is copied, and in less.
        prop_assert_eq!(expanded(&stream, data.len() + 100), Ok(data.clone()));
        if let Some(cap) = data.len().checked_sub(1) {
            prop_assert_eq!(expanded(&stream, cap), Err(ExpandError::TooLong { cap }));
        }
    }

    #[test]
    fn a_stream_cut_short_is_malformed(tokens in tokens(), cut in any::<prop::sample::Index>()) {
        let stream = grammar::write(&tokens);
        let cut = &stream[..cut.index(stream.len())];
        prop_assert_eq!(expanded(cut, 100_000), MALFORMED);
    }

    #[test]
    fn random_streams_agree_with_reference_grammar(stream in prop::collection::vec(any::<u8>(), 0..400)) {
        let read = grammar::read(&stream);
        prop_assert_eq!(expanded(&stream, 50_000).ok(), read);
    }

    #[test]
    fn damaged_streams_agree_with_reference_grammar(
        tokens in tokens(),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut stream = grammar::write(&tokens);
        for (place, byte) in hits {
            let place = place.index(stream.len());
            stream[place] = byte;
        }
        prop_assert_eq!(expanded(&stream, 400_000).ok(), grammar::read(&stream));
    }
}
