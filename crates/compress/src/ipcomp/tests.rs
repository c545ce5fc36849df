//! What is tried, what is refused, how far it refers back, and that others can read it.

mod inflate;

use std::io::Write;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use strait_clock::Random;
use strait_testdata::skip::{Need, skip};

use super::*;
use crate::Codec;
use inflate::inflate;

/// The longest payload of an IP packet.
const LONGEST: usize = 65_535;

/// Lines with a number of several digits in each.
fn log(random: &mut Random, len: usize) -> Vec<u8> {
    let line =
        |_| format!("request {} served in {} us\n", random.below(10_000), random.below(900)).into_bytes();
    let mut log: Vec<u8> = (0..=len / 20).flat_map(line).collect();
    log.truncate(len);
    log
}

/// The same noise again and again, `apart` bytes apart: nothing nearer can be referred to.
fn echo(random: &mut Random, apart: usize, len: usize) -> Vec<u8> {
    let noise: Vec<u8> = (0..apart).map(|_| random.next_u64().to_le_bytes()[0]).collect();
    noise.into_iter().cycle().take(len).collect()
}

fn compressed(ipcomp: &mut Ipcomp, algorithm: IpcompAlgorithm, input: &[u8]) -> Option<Vec<u8>> {
    let mut output = vec![0; LONGEST];
    let len = ipcomp.compress(algorithm, input, &mut output)?;
    output.truncate(len);
    Some(output)
}

fn expanded(ipcomp: &mut Ipcomp, algorithm: IpcompAlgorithm, input: &[u8]) -> Result<Vec<u8>, ExpandError> {
    let mut output = vec![0; LONGEST];
    let len = ipcomp.expand(algorithm, input, &mut output)?;
    output.truncate(len);
    Ok(output)
}

#[test]
fn numbers_and_names() {
    for number in 0..=u16::MAX {
        let known = IpcompAlgorithm::from_number(number).map(|algorithm| u16::from(algorithm.number()));
        assert_eq!(known, (2..=3).contains(&number).then_some(number));
    }
    assert_eq!(IpcompAlgorithm::ALL.map(IpcompAlgorithm::name), ["deflate", "lzs"]);
    assert_eq!(format!("{:>8}", IpcompAlgorithm::Lzs), "     lzs");
    assert_eq!(format!("{:?}", Ipcomp::new()), "Ipcomp { .. }");
}

#[test]
fn payloads_of_every_length_come_back() {
    let (mut random, mut ipcomp) = (Random::new(1), Ipcomp::new());
    for algorithm in IpcompAlgorithm::ALL {
        for len in (130..3_000).step_by(7).chain([2_047, 2_048, 2_049, 9_000, 64_512, LONGEST]) {
            let input = log(&mut random, len);
            let output = compressed(&mut ipcomp, algorithm, &input).unwrap();
            assert!(output.len() + HEADER_LEN < len);
            assert_eq!(expanded(&mut ipcomp, algorithm, &output), Ok(input), "{algorithm} of {len} bytes");
        }
    }
}

#[test]
fn what_would_not_be_smaller_with_its_header_is_sent_as_it_was() {
    let (mut random, mut ipcomp) = (Random::new(2), Ipcomp::new());
    for algorithm in IpcompAlgorithm::ALL {
        for len in [THRESHOLD, 1_400, 2_049, 9_000, LONGEST] {
            let noise = echo(&mut random, len, len);
            assert_eq!(compressed(&mut ipcomp, algorithm, &noise), None, "{algorithm} of {len} bytes");
        }
        let zeros = [0; THRESHOLD];
        assert!(compressed(&mut ipcomp, algorithm, &zeros).is_some());
        assert_eq!(compressed(&mut ipcomp, algorithm, &zeros[1..]), None, "below the threshold");
        assert_eq!(compressed(&mut ipcomp, algorithm, &[]), None);
        // Ever more noise between zeros: from some length on it is not worth its header.
        let mut shrank = 0;
        for noisy in 0..200 {
            let input = [vec![0; 200 - noisy], echo(&mut random, noisy.max(1), noisy)].concat();
            if let Some(output) = compressed(&mut ipcomp, algorithm, &input) {
                assert!(output.len() + HEADER_LEN < input.len(), "{algorithm} of {noisy} random bytes");
                shrank += 1;
            }
        }
        assert!((100..200).contains(&shrank), "{algorithm}: {shrank}");
    }
}

#[test]
fn the_output_bounds_what_is_written() {
    let (mut random, mut ipcomp) = (Random::new(3), Ipcomp::new());
    for (algorithm, len) in IpcompAlgorithm::ALL.into_iter().zip([1_400, 9_000]) {
        let input = log(&mut random, len);
        let exact = compressed(&mut ipcomp, algorithm, &input).unwrap().len();
        for room in [0, 1, exact / 2, exact - 1] {
            assert_eq!(ipcomp.compress(algorithm, &input, &mut vec![0; room]), None, "{algorithm} in {room}");
        }
        let output = compressed(&mut ipcomp, algorithm, &input).unwrap();
        for cap in [0, 1, len / 2, len - 1] {
            let result = ipcomp.expand(algorithm, &output, &mut vec![0; cap]);
            assert_eq!(result, Err(ExpandError::TooLong { cap }), "{algorithm} into {cap}");
        }
    }
}

#[test]
fn deflate_refers_no_farther_back_than_2_kib() {
    let (mut random, mut ipcomp) = (Random::new(4), Ipcomp::new());
    let mut near = 0;
    for apart in [300, 1_000, 1_500, 1_780, 1_786, 1_787, 2_047, 2_048, 2_049, 3_000, 9_000, 32_767] {
        for len in [1_400, 2_048, 2_049, 4_096, 9_000, LONGEST] {
            for input in [echo(&mut random, apart, len), log(&mut random, len)] {
                let Some(output) = compressed(&mut ipcomp, IpcompAlgorithm::Deflate, &input) else {
                    continue;
                };
                let (data, farthest) = inflate(&output).unwrap();
                assert_eq!(data, input);
                assert!(farthest <= 2_048, "{farthest} bytes back in {len}, {apart} apart");
                near = near.max(farthest);
            }
        }
    }
    assert!(near > 1_700, "no farther than {near} back: the inputs show nothing");
}

#[test]
fn decoder_accepts_references_beyond_encoder_window() {
    let (mut random, mut ipcomp) = (Random::new(5), Ipcomp::new());
    let input = echo(&mut random, 30_000, LONGEST);
    let mut deflate = Deflate::default();
    let mut output = vec![0; LONGEST];
    let len = deflate.compress(6, &input, &mut output).unwrap();
    assert!(inflate(&output[..len]).unwrap().1 > 29_000);
    assert_eq!(expanded(&mut ipcomp, IpcompAlgorithm::Deflate, &output[..len]), Ok(input));
}

/// zlib itself, with a window of 2 KiB that the data leaves piece by piece: for each line of a stream and
/// its data in hexadecimal digits, whether it reads the one from the other.
const READER: &str = "
import sys, zlib
for line in sys.stdin:
    stream, data = map(bytes.fromhex, line.split())
    reader, read = zlib.decompressobj(wbits=-11), bytearray()
    try:
        while not reader.eof and len(read) < len(data):
            read += reader.decompress(stream, 100)
            stream = reader.unconsumed_tail
        reader.decompress(stream)
    except zlib.error:
        pass
    print(reader.eof and read == data and not reader.unused_data)
";

/// What zlib says to each stream and its data; nothing when there is no Python to run it.
fn read_by_zlib(streams: &[(Vec<u8>, Vec<u8>)]) -> Option<String> {
    let mut python = Command::new("python3");
    let python = python.args(["-c", READER]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let missing = |error: &std::io::Error| {
        let _ = skip(Need::Python, &format!("python3 does not start: {error}"));
    };
    let mut python = python.spawn().inspect_err(missing).ok()?;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let line = |(stream, data): &(Vec<u8>, Vec<u8>)| format!("{} {}\n", hex(stream), hex(data));
    let lines: String = streams.iter().map(line).collect();
    python.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    Some(String::from_utf8(python.wait_with_output().unwrap().stdout).unwrap())
}

#[test]
fn zlib_with_a_window_of_2_kib_reads_it() {
    let (mut random, mut ipcomp) = (Random::new(6), Ipcomp::new());
    let mut streams = Vec::new();
    for len in [100, 576, 1_400, 2_048, 2_049, 4_000, 9_000, LONGEST] {
        for input in [log(&mut random, len), echo(&mut random, 1_700, len), echo(&mut random, 40, len)] {
            streams.extend(
                compressed(&mut ipcomp, IpcompAlgorithm::Deflate, &input).map(|stream| (stream, input)),
            );
        }
    }
    let Some(said) = read_by_zlib(&streams) else { return };
    assert!(streams.len() > 15, "{} streams", streams.len());
    assert_eq!(said, "True\n".repeat(streams.len()));
    // It would tell: distances of 3,000 it does not follow.
    let far = echo(&mut random, 3_000, 9_000);
    let mut stream = vec![0; 9_000];
    let len = Deflate::default().compress(6, &far, &mut stream).unwrap();
    stream.truncate(len);
    assert_eq!(read_by_zlib(&[(stream, far)]).unwrap(), "False\n");
}

#[test]
fn malformed_payloads_are_refused() {
    let (mut random, mut ipcomp) = (Random::new(7), Ipcomp::new());
    for (algorithm, codec) in IpcompAlgorithm::ALL.into_iter().zip([Codec::Deflate, Codec::Lzs]) {
        let malformed = Err(ExpandError::Malformed { codec });
        assert_eq!(expanded(&mut ipcomp, algorithm, &[]), malformed);
        let output = compressed(&mut ipcomp, algorithm, &log(&mut random, 1_400)).unwrap();
        for len in 0..output.len() {
            assert_eq!(
                expanded(&mut ipcomp, algorithm, &output[..len]),
                malformed,
                "{algorithm} cut to {len}"
            );
        }
    }
}

proptest! {
    #[test]
    fn whatever_is_compressed_comes_back(
        piece in prop::collection::vec(any::<u8>(), 1..3_000),
        times in 1..12_usize,
        algorithm in prop::sample::select(&IpcompAlgorithm::ALL),
    ) {
        let (mut ipcomp, input) = (Ipcomp::new(), piece.repeat(times));
        if let Some(output) = compressed(&mut ipcomp, algorithm, &input) {
            if algorithm == IpcompAlgorithm::Deflate {
                prop_assert!(inflate(&output).unwrap().1 <= 2_048);
            }
            prop_assert_eq!(expanded(&mut ipcomp, algorithm, &output), Ok(input));
        }
    }
}
