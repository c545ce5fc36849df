//! The pattern that was recorded: lengths of packets and their destinations, each a security association.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use strait_advise::{CaptureKind, CaptureReader};
use strait_clock::Random;
use strait_wire::ip::{self, Version};

use super::PACKETS;
use super::pattern::{ASSOCIATIONS, HEADERS, below, exponential};
use crate::error::Error;

/// Table I: the trace's average and range. Its median and deviation are near those of an exponential distribution.
const AVERAGE: f64 = 256.0;
const RANGE: (f64, f64) = (0.0, 1_460.0);
/// Destinations of an hour's UDP at the Lawrence Berkeley Laboratory (LBL-PKT-4 of the Internet Traffic Archive).
const DESTINATIONS: usize = 1_504;
/// By what power a destination is the rarer the later it comes in order of their shares: the one with which W = 30 makes the
/// paper's 2.57 packets a multi-packet.
const RARER: f64 = 1.437;
/// A trace that is made is the same in each run.
const SEED: u64 = 256;
/// How much of a file tells whether it has columns, and a line that is none.
const FORMAT_PREFIX: usize = 4_096;
/// What is read of a file: 500,000 whole packets of a usual length are within it.
const BYTES: u64 = 1 << 30;

/// Packets: their bytes with headers, and whom they are for.
#[derive(Clone, Debug)]
pub struct PacketTrace {
    packets: Vec<(u32, u32)>,
    recorded: bool,
    about: String,
}

impl PacketTrace {
    /// As many packets as the paper took, with its average length, and destinations of which few have most packets.
    #[must_use]
    pub fn generated() -> PacketTrace {
        let mut random = Random::new(SEED);
        let mut shares = 0.0;
        let ends: Vec<f64> = (1..=DESTINATIONS)
            .map(|place| {
                shares += (place as f64).powf(-RARER);
                shares
            })
            .collect();
        let one = |_| {
            let drawn = random.unit() * shares;
            let destination = ends.partition_point(|end| *end <= drawn) as u32;
            (length(&mut random), destination)
        };
        let about = format!(
            "none was given, so one was made: lengths as Table I has them, and {DESTINATIONS} destinations whose shares fall so \
             that W = 30 makes the 2.57 packets a multi-packet that the paper found; so that figure proves nothing here"
        );
        PacketTrace { packets: (0..PACKETS).map(one).collect(), recorded: false, about }
    }

    /// The first packets of a file, as many as the paper took: a capture, comma-separated values with columns `size` and `dst`,
    /// or a text trace of the Internet Traffic Archive.
    ///
    /// # Errors
    /// [`Error::Trace`] when it cannot be read, or has no packets.
    pub fn read(path: &Path) -> Result<PacketTrace, Error> {
        let failed = |why: String| Error::Trace { path: path.to_owned(), why };
        let file = || File::open(path).map_err(|error| failed(format!("cannot be read: {error}")));
        let mut first = Vec::new();
        let read = file()?.take(FORMAT_PREFIX as u64).read_to_end(&mut first);
        read.map_err(|error| failed(format!("cannot be read: {error}")))?;
        let source = BufReader::new(file()?.take(BYTES));
        let trace = if let Some(columns) = TraceColumns::of(&first) {
            columns.read(source)
        } else if names_no_sizes(&first) {
            without_sizes(source)
        } else {
            captured(source)
        };
        let mut trace = trace.map_err(failed)?;
        if trace.packets.is_empty() {
            return Err(failed("has no packets".to_owned()));
        }
        trace.about = format!("{}, {} packets; {}", path.display(), trace.packets.len(), trace.about);
        Ok(trace)
    }

    pub(super) fn packets(&self) -> &[(u32, u32)] {
        &self.packets
    }

    /// Whether its destinations are real.
    pub(super) const fn is_recorded(&self) -> bool {
        self.recorded
    }

    pub(super) fn about(&self) -> &str {
        &self.about
    }

    fn recorded(packets: Vec<(u32, u32)>, about: impl Into<String>) -> PacketTrace {
        PacketTrace { packets, recorded: true, about: about.into() }
    }
}

/// A length with headers, as Table I's trace has them.
fn length(random: &mut Random) -> u32 {
    exponential(random, AVERAGE, RANGE) + HEADERS
}

/// Numbers for whatever tells destinations apart, in the order in which they come.
#[derive(Debug)]
struct DestinationNumbers<K>(BTreeMap<K, u32>);

impl<K: Ord> DestinationNumbers<K> {
    fn of(&mut self, key: K) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(key).or_insert(next)
    }
}

/// Where comma-separated values have what is looked for.
#[derive(Clone, Copy, Debug)]
struct TraceColumns {
    size: usize,
    destination: usize,
}

impl TraceColumns {
    /// By the names in the first line, if it has them.
    fn of(first: &[u8]) -> Option<TraceColumns> {
        let line = core::str::from_utf8(first.split(|byte| *byte == b'\n').next()?).ok()?;
        let place = |name: &str| line.split(',').position(|column| column.trim() == name);
        Some(TraceColumns { size: place("size")?, destination: place("dst")? })
    }

    fn read(self, source: impl BufRead) -> Result<PacketTrace, String> {
        let mut numbers = DestinationNumbers(BTreeMap::new());
        let mut packets = Vec::new();
        for (line, number) in source.lines().skip(1).take(PACKETS).zip(2..) {
            let line = line.map_err(|error| format!("cannot be read: {error}"))?;
            let column = |place: usize| line.split(',').nth(place).map(str::trim);
            let size = column(self.size).and_then(|size| size.parse().ok()).filter(|size| *size <= MOST);
            let (Some(size), Some(destination)) = (size, column(self.destination)) else {
                return Err(format!("is damaged: line {number} has no size of at most {MOST}, or no dst"));
            };
            packets.push((size, numbers.of(destination.to_owned())));
        }
        Ok(PacketTrace::recorded(packets, format!("{} destinations", numbers.0.len())))
    }
}

/// The longest IP packet there is (RFC 8200 section 4.5: a header of 40 bytes and 65,535 behind it).
const MOST: u32 = 65_575;

/// Whether this begins a text trace that tells times and hosts, and no sizes: of five columns, or of the eight that tell how
/// connections begin and end.
fn names_no_sizes(first: &[u8]) -> bool {
    let line = first.split(|byte| *byte == b'\n').next().and_then(|line| core::str::from_utf8(line).ok());
    let columns: Vec<&str> = line.unwrap_or_default().split_ascii_whitespace().collect();
    let time = columns.first().is_some_and(|time| time.contains('.') && time.parse::<f64>().is_ok());
    let hosts = columns.iter().skip(1).take(4).all(|column| column.parse::<u32>().is_ok());
    time && hosts && matches!(columns.len(), 5 | 8)
}

/// Destinations of a text trace, with lengths as Table I has them.
fn without_sizes(source: impl BufRead) -> Result<PacketTrace, String> {
    let mut random = Random::new(SEED);
    let mut numbers = DestinationNumbers(BTreeMap::new());
    let mut packets = Vec::new();
    for (line, number) in source.lines().take(PACKETS).zip(1..) {
        let line = line.map_err(|error| format!("cannot be read: {error}"))?;
        let destination = line.split_ascii_whitespace().nth(2).and_then(|host| host.parse::<u32>().ok());
        let Some(destination) = destination else {
            return Err(format!("is damaged: line {number} names no destination"));
        };
        packets.push((length(&mut random), numbers.of(destination)));
    }
    let about =
        format!("{} destinations; it names no sizes, so these are made as Table I has them", numbers.0.len());
    Ok(PacketTrace::recorded(packets, about))
}

/// Packets of anything that `advise` reads; what is no IP is left out.
fn captured(source: impl Read) -> Result<PacketTrace, String> {
    let mut reader = CaptureReader::open(source).map_err(|error| error.to_string())?;
    if reader.is_file() {
        return Err("is no capture and no trace".to_owned());
    }
    let text = reader.kind() == CaptureKind::Trace;
    let mut numbers = DestinationNumbers(BTreeMap::new());
    let mut packets = Vec::new();
    while packets.len() < PACKETS {
        let Some(frame) = reader.frame().map_err(|error| error.to_string())? else { break };
        let Some((bytes, len)) = frame.ip().map_err(|error| error.to_string())? else { continue };
        let Some(destination) = destination(bytes) else { continue };
        packets.push((u32::try_from(len).unwrap_or(MOST).min(MOST), numbers.of(destination)));
    }
    if text && numbers.0.len() == 1 {
        let mut random = Random::new(SEED);
        let equally = |(bytes, _)| (bytes, below(&mut random, ASSOCIATIONS));
        let packets = packets.into_iter().map(equally).collect();
        let about = format!("it names no hosts, so {ASSOCIATIONS} associations are equally likely");
        return Ok(PacketTrace { packets, recorded: false, about });
    }
    Ok(PacketTrace::recorded(packets, format!("{} destinations", numbers.0.len())))
}

/// The destination of an IP packet of which only the beginning may be there.
fn destination(bytes: &[u8]) -> Option<[u8; 16]> {
    let mut address = [0; 16];
    let found = match ip::version_of(bytes)? {
        Version::V4 => bytes.get(16..20)?,
        Version::V6 => bytes.get(24..40)?,
    };
    address.get_mut(..found.len())?.copy_from_slice(found);
    Some(address)
}

#[cfg(test)]
mod tests;
