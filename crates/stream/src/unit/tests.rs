//! Whole streams: what goes in comes out, and nothing else.

mod unlimited;

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use strait_clock::{Random, Time};
use strait_compress::Calibration;
use strait_model::BitRate;

use super::encoder::UnitEncoder;
use super::ladder::LADDER;
use super::*;

/// A clock that goes on by a microsecond a look.
fn clock() -> impl UnitClock + 'static {
    let ticks = AtomicU64::new(0);
    move || Time::from_nanos(ticks.fetch_add(1_000, Ordering::Relaxed))
}

fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let words = [&b"fn "[..], b"unit", b"(self) -> ", b"u64 ", b"{\n", b"}\n", b"return ", b"history"];
    let mut text = Vec::new();
    while text.len() < len {
        text.extend(words[random.below(8) as usize]);
        text.push(random.below(64) as u8 + 32);
    }
    text.truncate(len);
    text
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..len).map(|_| random.next_u64() as u8).collect()
}

/// What a caller does with a writer.
#[derive(Clone, Debug)]
enum WriterStep {
    Text(u64, usize),
    Noise(u64, usize),
    Begin,
    Control,
    Data,
    Flush,
    Rate(Option<f64>),
}

fn step() -> impl Strategy<Value = WriterStep> {
    prop_oneof![
        6 => (any::<u64>(), 0_usize..90_000).prop_map(|(seed, len)| WriterStep::Text(seed, len)),
        2 => (any::<u64>(), 0_usize..90_000).prop_map(|(seed, len)| WriterStep::Noise(seed, len)),
        1 => Just(WriterStep::Begin),
        1 => Just(WriterStep::Control),
        1 => Just(WriterStep::Data),
        1 => Just(WriterStep::Flush),
        2 => prop::option::of(0.05_f64..40_000.0).prop_map(WriterStep::Rate),
    ]
}

/// Does `steps`, flushes, and returns the bytes that were written.
fn drive(writer: &mut UnitWriter<Vec<u8>>, steps: &[WriterStep]) -> Vec<u8> {
    let mut written = Vec::new();
    let mut bytes = |writer: &mut UnitWriter<Vec<u8>>, bytes: Vec<u8>| {
        writer.write_all(&bytes).unwrap();
        written.extend(bytes);
    };
    for step in steps {
        match *step {
            WriterStep::Text(seed, len) => bytes(writer, text(seed, len)),
            WriterStep::Noise(seed, len) => bytes(writer, noise(seed, len)),
            WriterStep::Begin => writer.begin_history().unwrap(),
            WriterStep::Control => writer.control().unwrap(),
            WriterStep::Data => writer.data().unwrap(),
            WriterStep::Flush => writer.flush().unwrap(),
            WriterStep::Rate(megabits) => writer.set_limit(megabits.and_then(BitRate::megabits)),
        }
    }
    writer.flush().unwrap();
    written
}

fn read_back(units: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut read = Vec::new();
    UnitReader::new(units).read_to_end(&mut read)?;
    Ok(read)
}

/// Units of every coding, with and without history.
fn sample() -> (Vec<u8>, Vec<u8>) {
    let mut writer = UnitWriter::new(Vec::new(), clock(), Calibration::assumed());
    let steps = [
        WriterStep::Text(1, 700),
        WriterStep::Flush,
        WriterStep::Text(2, 700),
        WriterStep::Flush,
        WriterStep::Noise(3, 300),
        WriterStep::Control,
        WriterStep::Text(4, 300),
        WriterStep::Data,
        WriterStep::Begin,
        WriterStep::Text(5, 500),
    ];
    let written = drive(&mut writer, &steps);
    (written, writer.into_inner())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_is_read(steps in prop::collection::vec(step(), 0..12)) {
        let mut writer = UnitWriter::new(Vec::new(), clock(), Calibration::assumed());
        let written = drive(&mut writer, &steps);
        let totals = writer.totals();
        let units = writer.into_inner();
        prop_assert_eq!((totals.raw, totals.wire), (written.len() as u64, units.len() as u64));
        prop_assert!(units.len() <= written.len() + totals.units as usize * UNIT_HEADER_LEN);
        prop_assert!(read_back(&units).unwrap() == written);
    }

    #[test]
    fn a_worker_writes_the_same_bytes_in_order(steps in prop::collection::vec(step(), 0..8)) {
        let (mut writer, worker) = UnitWriter::with_worker(Vec::new(), clock(), Calibration::assumed());
        let written = std::thread::scope(|scope| {
            scope.spawn(move || worker.run());
            let written = drive(&mut writer, &steps);
            (written, writer.into_inner())
        });
        prop_assert!(read_back(&written.1).unwrap() == written.0);
    }

    #[test]
    fn a_changed_byte_gives_an_error_or_as_many_bytes(at in any::<prop::sample::Index>(), bits in 1_u8..) {
        let (written, mut units) = sample();
        let at = at.index(units.len());
        units[at] ^= bits;
        if let Ok(read) = read_back(&units) {
            prop_assert!(read.len() <= written.len() + UNIT_MAX);
        }
    }

    #[test]
    fn noise_is_never_more_than_units_say(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        if let Ok(read) = read_back(&bytes) {
            prop_assert!(read.len() <= UNIT_MAX * bytes.len());
        }
    }
}

#[test]
fn every_rung_is_expanded_and_continues_its_history() {
    let (first, second) = (text(1, 200_000), text(1, 100_000));
    for rung in [None].into_iter().chain(LADDER.iter().map(Some)) {
        let (mut encoder, mut decoder) = (UnitEncoder::default(), UnitDecoder::new());
        let (mut unit, mut raw, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        for part in [&first, &second] {
            encoder.encode(part, UnitContext::Data, rung, false, &mut unit);
            let header = UnitHeader::parse(unit.first_chunk().unwrap()).unwrap();
            assert_eq!(header.anew, sizes.is_empty() && header.coding == UnitCoding::Zstd);
            decoder.decode(&header, &unit[UNIT_HEADER_LEN..], &mut raw).unwrap();
            assert!(raw == *part, "{rung:?}");
            sizes.push(unit.len());
        }
        if rung.is_some_and(|rung| rung.method.codec == strait_compress::Codec::Zstd) {
            assert!(sizes[1] < sizes[0] / 50, "the second came before: {sizes:?} {rung:?}");
        }
    }
}

#[test]
fn every_truncated_stream_gives_a_prefix_or_an_error() {
    let (written, units) = sample();
    let mut ends = 0;
    for len in 0..units.len() {
        match read_back(&units[..len]) {
            Ok(read) => {
                assert!(written.starts_with(&read), "{len}");
                ends += 1;
            }
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{len}"),
        }
    }
    assert!(ends < 8, "only between units: {ends}");
}

#[test]
fn other_files_do_not_show_in_a_history_that_began_anew() {
    let secret = text(9, 50_000);
    let wire_of_second = |begin: bool| {
        let mut writer = UnitWriter::new(Vec::new(), clock(), Calibration::assumed());
        writer.write_all(&secret).unwrap();
        writer.flush().unwrap();
        let before = writer.totals().wire;
        if begin {
            writer.begin_history().unwrap();
        }
        writer.write_all(&secret).unwrap();
        writer.flush().unwrap();
        (before, writer.totals().wire - before)
    };
    let (first, again) = wire_of_second(true);
    assert!(again > first * 8 / 10, "{first} {again}");
    let (first, again) = wire_of_second(false);
    assert!(again < first / 10, "{first} {again}");
}

#[test]
fn a_bomb_is_refused_before_it_expands() {
    // A frame of one block of 128 KiB of one byte (RFC 8878 section 3.1.1.2: type RLE, not the last), which says 1,000.
    let frame: &[u8] = &[0x00, 0x40, 0x02, 0x00, 0x10, b'a'];
    for says in [1_000, 131_071, 131_073] {
        let header = UnitHeader {
            coding: UnitCoding::Zstd,
            anew: true,
            context: UnitContext::Data,
            payload: frame.len(),
            raw: says,
        };
        let mut raw = Vec::new();
        let refused = UnitDecoder::new().decode(&header, frame, &mut raw);
        assert_eq!(refused, Err(BadUnit::WrongLength { raw: says }), "{says}");
        assert!(raw.len() <= says + 1);
    }
    let long = UnitHeader::parse(&[1, 0, 0, 0, 9, 0xff, 0xff, 0xff]);
    assert_eq!(long, Err(BadUnit::Lengths { payload: 9, raw: 0xff_ffff }));
}

#[test]
fn a_frame_with_a_larger_window_is_refused() {
    // RFC 8878 section 3.1.1.1.2: the exponent is in the upper five bits, 2^(10 + exponent).
    for (context, largest) in [(UnitContext::Data, 22), (UnitContext::Control, 17)] {
        for log in 10..32_u8 {
            let frame = [0x00, (log - 10) << 3, 0x18, 0x00, 0x00, b'a', b'b', b'c'];
            let header =
                UnitHeader { coding: UnitCoding::Zstd, anew: true, context, payload: frame.len(), raw: 8 };
            let decoded = UnitDecoder::new().decode(&header, &frame, &mut Vec::new());
            let refused = decoded == Err(BadUnit::Malformed { codec: strait_compress::Codec::Zstd });
            assert_eq!(refused, log > largest, "{context:?} {log}: {decoded:?}");
        }
    }
}

#[test]
fn after_a_refused_unit_nothing_is_read() {
    let mut units = vec![7, 0, 0, 0, 1, 0, 0, 1, 9];
    units.extend([0, 0, 0, 0, 1, 0, 0, 1, 9]);
    let mut reader = UnitReader::new(&units[..]);
    for _ in 0..2 {
        let error = reader.read(&mut [0; 4]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    }
}
