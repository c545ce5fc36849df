//! Streams that nothing limits: no copy and no read more than needed, and no compression for nothing.

use core::time::Duration;

use strait_model::Seconds;

use super::super::choice::UnitChoice;
use super::super::drain::DrainRate;
use super::super::ladder::QUICKEST;
use super::*;

/// Keeps where the bytes came from, and refuses to take more than some of them at once.
#[derive(Default)]
struct PlacesSink {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

impl Write for PlacesSink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = &bytes[..bytes.len().min(100_000)];
        self.bytes.extend(taken);
        self.places.push(taken.as_ptr().addr());
        Ok(taken.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_is_stored_is_written_from_where_the_caller_has_it() {
    let written = noise(7, 3 << 20);
    let range = written.as_ptr_range();
    let mut writer = UnitWriter::new(PlacesSink::default(), clock(), Calibration::assumed());
    writer.set_limit(BitRate::megabits(50_000.0));
    // A few bytes, as of a message's head, come before each MiB.
    for part in written.chunks(1 << 20) {
        writer.write_all(b"head").unwrap();
        writer.write_all(part).unwrap();
    }
    writer.flush().unwrap();
    let (totals, sink) = (writer.totals(), writer.into_inner());
    let own = |place: &&usize| (range.start.addr()..range.end.addr()).contains(*place);
    let from_caller = sink.places.iter().filter(own).count();
    assert!(from_caller >= 30, "{from_caller} of {} writes", sink.places.len());
    assert_eq!(totals.wire, sink.bytes.len() as u64);
    let read = read_back(&sink.bytes).unwrap();
    let expected: Vec<u8> = written.chunks(1 << 20).flat_map(|part| [b"head", part].concat()).collect();
    assert!(read == expected);
}

/// Counts reads.
struct CountedReads<'a> {
    bytes: &'a [u8],
    reads: usize,
}

impl Read for CountedReads<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.reads += 1;
        self.bytes.read(bytes)
    }
}

#[test]
fn small_reads_of_a_stored_unit_are_few_reads_below() {
    let mut writer = UnitWriter::new(Vec::new(), clock(), Calibration::assumed());
    let written = noise(8, 1 << 20);
    writer.write_all(&written).unwrap();
    writer.flush().unwrap();
    let units = writer.into_inner();
    for (room, most) in [(1, 200), (1_000, 200), (1 << 20, 20)] {
        let mut reader = UnitReader::new(CountedReads { bytes: &units, reads: 0 });
        let (mut bytes, mut read) = (vec![0; room], Vec::new());
        loop {
            match reader.read(&mut bytes).unwrap() {
                0 => break,
                len => read.extend_from_slice(&bytes[..len]),
            }
        }
        assert!(read == written, "{room}");
        assert_eq!(reader.wire(), units.len() as u64);
        assert!(reader.get_ref().reads < most, "{room}: {} reads", reader.get_ref().reads);
    }
}

#[test]
fn a_sink_that_takes_everything_soon_gets_text_as_it_is() {
    // Codecs take what they are assumed to take, and a write takes nothing.
    let (mut choice, mut drain) = (UnitChoice::new(Calibration::assumed()), DrainRate::default());
    let raw = text(10, 1 << 18);
    let mut now = Time::ZERO;
    let compressed = (0..200).filter(|_| {
        let place = choice.choose(&raw, drain.rate(), now);
        let rung = place.map(|place| &LADDER[place]);
        let made = rung.map_or(raw.len(), |rung| (raw.len() as f64 / rung.ratio(1.0).get()) as usize);
        let took = rung.map_or(Seconds(3e-5), |rung| rung.due(&Calibration::assumed(), raw.len()));
        now += Duration::from_secs_f64(took.0);
        let might = if place == Some(QUICKEST) { raw.len() } else { made };
        drain.wrote(made, might, now, now + Duration::from_micros(1));
        if let Some(place) = place {
            choice.learn(place, raw.len(), made, took, now);
        }
        place.is_some()
    });
    // 1 MiB of output is 6 MiB of input, then some steps.
    assert!((20..48).contains(&compressed.count()));
    assert!(choice.stores());
}

#[test]
fn a_unit_takes_a_slow_link_two_seconds_or_is_short() {
    let longest = |kilobits: f64, written: &[u8]| {
        let mut writer = UnitWriter::new(Vec::new(), clock(), Calibration::assumed());
        writer.set_limit(BitRate::bits(kilobits * 1000.0));
        writer.write_all(written).unwrap();
        writer.flush().unwrap();
        let (mut rest, mut longest) = (&writer.into_inner()[..], (0, 0));
        while let Some((header, after)) = rest.split_first_chunk() {
            let header = UnitHeader::parse(header).unwrap();
            longest = longest.max((header.raw, header.payload));
            rest = &after[header.payload..];
        }
        longest
    };
    let (noise, text) = (noise(3, 1 << 20), text(4, 1 << 20));
    assert_eq!(longest(64.0, &noise), (16 << 10, 16 << 10));
    assert!((127_900..=128_000).contains(&longest(512.0, &noise).0));
    assert_eq!(longest(10_000.0, &noise).0, 256 << 10);
    let (raw, payload) = longest(64.0, &text);
    assert!(raw > 20_000 && payload < 17_000, "{raw} bytes of text in {payload}");
}
