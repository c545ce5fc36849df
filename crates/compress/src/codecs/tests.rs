//! Every codec at every level, both ways, with good data, too much data and malformed data.

mod known;

use strait_clock::Random;

use super::*;

/// The longest block: what one IP packet can hold.
const CAP: usize = 65_535;

fn random_bytes(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| random.next_u64().to_le_bytes()[0]).collect()
}

/// Words of a small vocabulary, the commoner ones more often, as in prose.
fn text(random: &mut Random, len: usize) -> Vec<u8> {
    let vocabulary: Vec<Vec<u8>> = (0..800)
        .map(|_| (0..2 + random.below(8)).map(|_| b'a' + random.next_u64().to_le_bytes()[0] % 26).collect())
        .collect();
    let mut text = Vec::with_capacity(len + 12);
    while text.len() < len {
        let word = (0..2).fold(random.below(800), |below, _| random.below(1 + below));
        text.extend_from_slice(&vocabulary[usize::try_from(word).unwrap()]);
        text.push(if random.below(12) == 0 { b'\n' } else { b' ' });
    }
    text.truncate(len);
    text
}

/// Data of several kinds in `len` bytes.
fn kinds(random: &mut Random, len: usize) -> [Vec<u8>; 4] {
    let mut mixed = text(random, len);
    let noise = random_bytes(random, len / 3);
    mixed[..noise.len()].copy_from_slice(&noise);
    [vec![0; len], text(random, len), mixed, random_bytes(random, len)]
}

/// Every method that exists.
fn every_method() -> impl Iterator<Item = Method> {
    let levelled = |codec| (i8::MIN..=i8::MAX).filter_map(move |level| Method::at_level(codec, level));
    Codec::ALL.into_iter().flat_map(levelled)
}

/// `input` compressed with room to spare.
fn compressed(codecs: &mut Codecs, method: Method, input: &[u8]) -> Vec<u8> {
    let mut output = vec![0; input.len() * 2 + 100];
    let len = codecs.compress(method, input, &mut output).expect("room to spare");
    output.truncate(len);
    output
}

/// Expands into exactly `cap` bytes that lie before others, which must stay as they are.
fn expanded(codecs: &mut Codecs, codec: Codec, input: &[u8], cap: usize) -> Result<Vec<u8>, ExpandError> {
    let mut memory = vec![0xa5; cap + 64];
    let (output, beyond) = memory.split_at_mut(cap);
    let result = codecs.expand(codec, input, output);
    assert!(beyond.iter().all(|byte| *byte == 0xa5), "{codec} wrote past its cap of {cap}");
    let len = result?;
    memory.truncate(len);
    Ok(memory)
}

#[test]
fn every_method_round_trips_every_kind_of_data() {
    let mut random = Random::new(1);
    let mut codecs = Codecs::new();
    for len in [1, 2, 11, 12, 13, 64, 90, 576, 1_400, 9_000] {
        for input in kinds(&mut random, len) {
            for method in every_method() {
                let sealed = compressed(&mut codecs, method, &input);
                let back = expanded(&mut codecs, method.codec, &sealed, input.len());
                assert_eq!(back.as_ref(), Ok(&input), "{method} of {len} bytes");
            }
        }
    }
}

#[test]
fn random_lengths_round_trip() {
    let mut random = Random::new(2);
    let mut codecs = Codecs::new();
    let methods =
        ["deflate-1", "deflate", "lz4", "zstd-fast-5", "zstd-1", "zstd", "zstd-9", "lzs-1", "lzs-2"];
    for method in methods.map(|name| name.parse::<Method>().unwrap()) {
        for _ in 0..60 {
            let len = 1 + usize::try_from(random.below(CAP as u64)).unwrap();
            for input in kinds(&mut random, len) {
                let sealed = compressed(&mut codecs, method, &input);
                assert_eq!(expanded(&mut codecs, method.codec, &sealed, CAP), Ok(input), "{method}");
            }
        }
    }
}

#[test]
fn nothing_is_expanded_when_the_output_is_shorter_than_the_input() {
    let mut random = Random::new(3);
    let mut codecs = Codecs::new();
    for method in every_method().filter(|method| method.codec != Codec::None && method.level < 10) {
        for len in [1, 12, 90, 1_400, 65_535] {
            let noise = random_bytes(&mut random, len);
            let mut output = vec![0; len - 1];
            assert_eq!(codecs.compress(method, &noise, &mut output), None, "{method} of {len} random bytes");
            let words = text(&mut random, len);
            if let Some(shorter) = codecs.compress(method, &words, &mut output) {
                assert!(shorter < len);
                let back = expanded(&mut codecs, method.codec, &output[..shorter], len);
                assert_eq!(back, Ok(words), "{method} of {len} bytes");
            } else {
                assert!(len < 1_400, "{method} did not shrink {len} bytes of text");
            }
        }
        assert_eq!(codecs.compress(method, &[], &mut [0; 100]), None);
        assert_eq!(codecs.compress(method, &[1, 2, 3], &mut []), None);
    }
}

#[test]
fn the_output_is_used_to_the_last_byte() {
    let mut random = Random::new(4);
    let mut codecs = Codecs::new();
    let input = text(&mut random, 1_400);
    for method in [Method::DEFLATE, Method::LZ4, Method::ZSTD, Method::LZS] {
        let exact = compressed(&mut codecs, method, &input).len();
        let fits = |codecs: &mut Codecs, room| codecs.compress(method, &input, &mut vec![0; room]).is_some();
        assert!(!fits(&mut codecs, exact - 1), "{method} in one byte too few");
        // Some libraries want a few bytes of slack; LZ4's room and the others' ends cost at most this.
        assert!(fits(&mut codecs, exact + 16), "{method} in {exact} bytes and 16");
    }
}

#[test]
fn codecs_move_between_threads() {
    const fn sent<T: Send>(_: &T) {}
    sent(&Codecs::new());
    assert_eq!(format!("{:?}", Codecs::new()), "Codecs { .. }");
}

#[test]
fn codec_none_copies() {
    let mut codecs = Codecs::new();
    let mut output = [0; 4];
    assert_eq!(codecs.compress(Method::NONE, &[1, 2, 3], &mut output), Some(3));
    assert_eq!(output, [1, 2, 3, 0]);
    assert_eq!(codecs.compress(Method::NONE, &[1, 2, 3], &mut output[..2]), None);
    assert_eq!(codecs.expand(Codec::None, &[9, 8], &mut output), Ok(2));
    assert_eq!(output, [9, 8, 3, 0]);
    assert_eq!(codecs.expand(Codec::None, &[], &mut []), Ok(0));
    assert_eq!(codecs.expand(Codec::None, &[9, 8], &mut output[..1]), Err(ExpandError::TooLong { cap: 1 }));
}

#[test]
fn ratios_are_those_of_the_codec() {
    let mut random = Random::new(5);
    let mut codecs = Codecs::new();
    let input = text(&mut random, 60_000);
    let mut size = |name: &str| compressed(&mut codecs, name.parse().unwrap(), &input).len();
    let (fast, usual, best) = (size("deflate-1"), size("deflate-6"), size("deflate-12"));
    assert!(best < usual && usual < fast, "deflate: {fast}, {usual}, {best}");
    let (fast, usual, best) = (size("zstd-fast-5"), size("zstd-3"), size("zstd-19"));
    assert!(best < usual && usual < fast, "zstd: {fast}, {usual}, {best}");
    let (fast, thorough) = (size("lzs-1"), size("lzs-2"));
    assert!(thorough < fast, "lzs: {fast}, {thorough}");
    let lz4 = size("lz4");
    assert!(lz4 > usual, "lz4 {lz4} without entropy coding, zstd {usual} with it");
    assert!(lz4 * 10 < input.len() * 8 && usual * 2 < input.len(), "lz4 {lz4}, zstd {usual}");
}

#[test]
fn a_thousand_to_one_is_legal_under_the_cap_and_refused_over_it() {
    let mut codecs = Codecs::new();
    let (legal, bomb) = (vec![0; CAP], vec![0; 16 << 20]);
    for (method, most) in
        [(Method::DEFLATE, 100), (Method::LZ4, 300), (Method::ZSTD, 65), (Method::LZS, 2_200)]
    {
        let sealed = compressed(&mut codecs, method, &legal);
        assert!(sealed.len() <= most, "{method}: {} bytes", sealed.len());
        assert_eq!(expanded(&mut codecs, method.codec, &sealed, CAP).as_ref(), Ok(&legal), "{method}");
        let refused = |cap| Err(ExpandError::TooLong { cap });
        assert_eq!(expanded(&mut codecs, method.codec, &sealed, CAP - 1), refused(CAP - 1), "{method}");

        let sealed = compressed(&mut codecs, method, &bomb);
        for cap in [0, 1, 1_400, CAP] {
            assert_eq!(expanded(&mut codecs, method.codec, &sealed, cap), refused(cap), "{method}");
        }
        // The context is as good as before.
        let sealed = compressed(&mut codecs, method, &legal);
        assert_eq!(expanded(&mut codecs, method.codec, &sealed, CAP).as_ref(), Ok(&legal), "{method}");
    }
}

#[test]
fn every_cap_short_of_the_data_is_refused() {
    let mut random = Random::new(6);
    let mut codecs = Codecs::new();
    for input in kinds(&mut random, 700) {
        for method in [Method::NONE, Method::DEFLATE, Method::LZ4, Method::ZSTD, Method::LZS] {
            let sealed = compressed(&mut codecs, method, &input);
            for cap in 0..input.len() {
                let result = expanded(&mut codecs, method.codec, &sealed, cap);
                assert_eq!(result, Err(ExpandError::TooLong { cap }), "{method} in {cap} bytes");
            }
        }
    }
}

#[test]
fn a_block_cut_short_never_passes_for_whole() {
    let mut random = Random::new(7);
    let mut codecs = Codecs::new();
    for input in kinds(&mut random, 1_400) {
        for method in [Method::DEFLATE, Method::LZ4, Method::ZSTD, Method::LZS] {
            let sealed = compressed(&mut codecs, method, &input);
            for len in 0..sealed.len() {
                let result = expanded(&mut codecs, method.codec, &sealed[..len], CAP);
                assert_ne!(result.as_ref(), Ok(&input), "{method} cut to {len} of {}", sealed.len());
                if len == 0 || method.codec != Codec::Lz4 {
                    let malformed = ExpandError::Malformed { codec: method.codec };
                    assert_eq!(result, Err(malformed), "{method} cut to {len}");
                }
            }
        }
    }
}

#[test]
fn malformed_data_never_panics_nor_exceeds_its_cap() {
    let mut random = Random::new(8);
    let mut codecs = Codecs::new();
    let mut refused = 0;
    for round in 0..20_000 {
        let len = usize::try_from(random.below(300)).unwrap();
        let malformed = random_bytes(&mut random, len);
        let cap = usize::try_from(random.below(2_000)).unwrap();
        for codec in [Codec::Deflate, Codec::Lz4, Codec::Zstd, Codec::Lzs] {
            match expanded(&mut codecs, codec, &malformed, cap) {
                Ok(data) => assert!(data.len() <= cap, "{codec} in round {round}"),
                Err(ExpandError::TooLong { cap: said }) => assert_eq!(said, cap),
                Err(ExpandError::Malformed { codec: said }) => {
                    assert_eq!(said, codec);
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 20_000, "only {refused} of 80,000 random inputs were malformed");
}

#[test]
fn damaged_blocks_never_panic_nor_spoil_the_context() {
    let mut random = Random::new(9);
    let mut codecs = Codecs::new();
    let input = text(&mut random, 2_000);
    for method in [Method::DEFLATE, Method::LZ4, Method::ZSTD, Method::LZS] {
        let sealed = compressed(&mut codecs, method, &input);
        for _ in 0..5_000 {
            let mut damaged = sealed.clone();
            for _ in 0..=random.below(3) {
                let place = usize::try_from(random.below(damaged.len() as u64)).unwrap();
                damaged[place] = random.next_u64().to_le_bytes()[0];
            }
            if let Ok(data) = expanded(&mut codecs, method.codec, &damaged, 3_000) {
                assert!(data.len() <= 3_000);
            }
        }
        assert_eq!(expanded(&mut codecs, method.codec, &sealed, 2_000).as_ref(), Ok(&input), "{method}");
    }
}
