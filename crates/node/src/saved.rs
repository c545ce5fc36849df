//! What a tunnel saved, kept across restarts: bytes before and on the wire for each peer, rule, service and class, by second for 15
//! minutes, by minute for a day and by hour for 400 days, in a file of fixed size for each of them.
//!
//! Time is an argument, in seconds since 1970. [`SavedSeries`] adds up; [`SavedFile`] is the file, which the daemon writes once a minute
//! and `strait saved` reads, also while no daemon runs.

mod block;
mod figures;
mod file;
mod quality;
mod short;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use block::{BLOCK, Block};
pub use figures::{SavedDay, SavedFigures, by_date};
pub use file::{SavedFile, SavedFileError, read};
pub use quality::{SavedPeriod, SavedRange, SavedStep};
use short::Short;

/// Seconds of a minute, an hour and a day.
const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;
const DAY: u64 = 86_400;
/// Samples in a block.
const SAMPLES: u64 = 10;
/// Samples of seconds: 15 minutes of them.
const SECOND_RING: Ring = Ring { step: 1, first: 1, blocks: 90 };
/// Samples of minutes: a day of them.
const MINUTE_RING: Ring = Ring { step: MINUTE, first: SECOND_RING.end(), blocks: 144 };
/// Hours in a block, and blocks of them: 400 days.
const HOURS: u64 = 24;
const DAY_BLOCKS: u64 = 400;
/// Where the blocks of hours begin, and blocks of a series: its name, seconds, minutes, hours.
const DAYS_AT: u64 = MINUTE_RING.end();
const BLOCKS: usize = (DAYS_AT + DAY_BLOCKS) as usize;
/// Bytes of a series in the file.
const SERIES_LEN: usize = BLOCKS * BLOCK;
/// Bytes of a sample and of an hour in their blocks.
const SAMPLE_LEN: usize = 24;
const HOUR_LEN: usize = 8;
/// Bytes of a name at most.
const NAME_MAX: usize = 200;

/// Where the figures of the tunnel of this interface are; nothing where there is no folder for them.
#[must_use]
pub fn path(interface: &str) -> Option<PathBuf> {
    crate::folders::state_folder().map(|folder| folder.join(format!("{interface}.saved")))
}

/// What a series is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SavedKind {
    /// A peer: all traffic to it and from it.
    Peer,
    /// A rule: what was sent in blocks by it, before and after compression.
    Rule,
    /// A service: what was sent of it, before and on the wire, to all peers.
    Service,
    /// A class of the queue: what was sent of it, likewise.
    Class,
    /// What keeps the tunnel up and belongs to no packets: handshakes, probes, conditions. Wire bytes of both directions count as sent.
    Control,
}

impl SavedKind {
    /// Whether series of this kind, all together, have what crosses the link, and each byte once.
    #[must_use]
    pub const fn is_of_link(self) -> bool {
        matches!(self, SavedKind::Peer | SavedKind::Control)
    }
}

/// Whose figures they are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SavedName {
    /// What it is.
    pub kind: SavedKind,
    /// The peer's name, or what the rule says.
    pub name: String,
}

/// Bytes before and on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SavedAmounts {
    /// Bytes of packets sent.
    pub sent_bytes: u64,
    /// Wire bytes sent, outer IP headers included; for a rule, bytes of compressed blocks.
    pub sent_wire_bytes: u64,
    /// Bytes of packets received.
    pub received_bytes: u64,
    /// Wire bytes received.
    pub received_wire_bytes: u64,
}

impl SavedAmounts {
    /// In the order of the file.
    const fn all(self) -> [u64; 4] {
        [self.sent_bytes, self.sent_wire_bytes, self.received_bytes, self.received_wire_bytes]
    }

    const fn of(
        [sent_bytes, sent_wire_bytes, received_bytes, received_wire_bytes]: [u64; 4],
    ) -> SavedAmounts {
        SavedAmounts { sent_bytes, sent_wire_bytes, received_bytes, received_wire_bytes }
    }

    /// What came after `before`.
    #[must_use]
    pub fn since(self, before: SavedAmounts) -> SavedAmounts {
        let mut all = self.all();
        all.iter_mut().zip(before.all()).for_each(|(now, before)| *now = now.saturating_sub(before));
        SavedAmounts::of(all)
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: SavedAmounts) -> SavedAmounts {
        let mut all = self.all();
        all.iter_mut().zip(other.all()).for_each(|(one, other)| *one = one.saturating_add(other));
        SavedAmounts::of(all)
    }

    /// Bytes of packets of both directions.
    #[must_use]
    pub const fn before(self) -> u64 {
        self.sent_bytes.saturating_add(self.received_bytes)
    }

    /// Bytes of packets less wire bytes, of both directions; less than 0 where headers cost more than was saved.
    #[must_use]
    pub fn saved(self) -> i64 {
        let [before, wire] =
            [self.before(), self.wire()].map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        before - wire
    }

    /// Wire bytes of both directions.
    #[must_use]
    pub const fn wire(self) -> u64 {
        self.sent_wire_bytes.saturating_add(self.received_wire_bytes)
    }
}

/// What a second or a minute was like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedSample {
    /// Bytes.
    pub amounts: SavedAmounts,
    /// Packets sent and received.
    pub packets: [u64; 2],
    /// Packets that the queue dropped.
    pub dropped: u64,
    /// The rate of the link in bit/s of wire bytes, mean queue delay and round-trip time in microseconds; 0 while unknown.
    pub rate: u64,
    /// See `rate`.
    pub queue_delay: u64,
    /// See `rate`.
    pub round_trip: u64,
    /// Share of datagrams lost, in parts of 65,535.
    pub loss: u16,
}

/// The figures of one peer, rule, service or class.
#[derive(Clone, Debug)]
pub struct SavedSeries {
    name: SavedName,
    /// Those with anything in them, by their place.
    blocks: BTreeMap<usize, Block>,
    /// What rounding left of seconds, minutes and hours: it counts later, so that sums are right.
    rest: [Rest; 2],
    hours_rest: [u64; 4],
}

/// What rounding left of samples.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    amounts: [u64; 4],
    counts: [u64; 3],
}

/// Blocks with ten samples each, the newest in place of the oldest.
#[derive(Clone, Copy, Debug)]
struct Ring {
    /// Seconds of a sample.
    step: u64,
    /// The first of its blocks in the series, and how many there are.
    first: u64,
    blocks: u64,
}

impl Ring {
    /// The first block that is not one of these.
    const fn end(self) -> u64 {
        self.first + self.blocks
    }

    /// How long a sample is kept, in seconds.
    const fn kept(self) -> u64 {
        self.step * SAMPLES * self.blocks
    }

    /// The block that has the time `at`, its number, and which of its samples is of that time.
    const fn place(self, at: u64) -> (usize, u64, u64) {
        let sample = at / self.step;
        let number = sample / SAMPLES;
        ((self.first + number % self.blocks) as usize, number, sample % SAMPLES)
    }
}

impl SavedSeries {
    /// A series without figures. A name is cut to 200 bytes.
    #[must_use]
    pub fn new(kind: SavedKind, name: &str) -> SavedSeries {
        let name = SavedName { kind, name: name.get(..kept_of(name)).unwrap_or_default().to_owned() };
        let mut first = Block::default();
        first.put_name(&name);
        let blocks = BTreeMap::from([(0, first)]);
        SavedSeries { name, blocks, rest: Default::default(), hours_rest: Default::default() }
    }

    /// Whether it is of this name.
    fn is(&self, kind: SavedKind, name: &str) -> bool {
        self.name.kind == kind && Some(self.name.name.as_str()) == name.get(..kept_of(name))
    }

    /// A series as the file has it; nothing where it has no name. Blocks that are damaged or missing have no figures.
    #[must_use]
    pub fn stored(bytes: &[u8]) -> Option<SavedSeries> {
        let stored = bytes.chunks_exact(BLOCK).take(BLOCKS).map(Block::stored).enumerate();
        let blocks: BTreeMap<usize, Block> =
            stored.filter_map(|(place, block)| Some((place, block?))).collect();
        let name = blocks.get(&0)?.name()?;
        Some(SavedSeries { name, blocks, rest: Default::default(), hours_rest: Default::default() })
    }

    /// The series as it is in the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; SERIES_LEN];
        for (room, place) in bytes.as_chunks_mut::<BLOCK>().0.iter_mut().zip(0..) {
            if let Some(block) = self.blocks.get(&place) {
                *room = block.to_bytes();
            }
        }
        bytes
    }

    /// Whose it is.
    #[must_use]
    pub const fn name(&self) -> &SavedName {
        &self.name
    }

    /// Adds what came in the second of `at`, to its minute and its hour too. What is there of a time that is not within what is kept,
    /// because it is older or because the clock was wrong, makes room.
    pub fn add(&mut self, at: u64, sample: &SavedSample) {
        for (ring, rest) in [SECOND_RING, MINUTE_RING].into_iter().zip(&mut self.rest) {
            let (block, number, slot) = ring.place(at);
            let block = self.blocks.entry(block).or_default();
            if let Some(room) = block.slot::<SAMPLE_LEN>(number, slot) {
                put_sample(room, sample, rest);
            }
        }
        let day = at / DAY;
        let block = self.blocks.entry(day_block(day)).or_default();
        if let Some(room) = block.slot::<HOUR_LEN>(day, at / HOUR % HOURS) {
            put_amounts(room, sample.amounts, &mut self.hours_rest);
        }
    }

    /// What came in the hour of `at`.
    #[must_use]
    pub fn hour(&self, at: u64) -> SavedAmounts {
        let day = at / DAY;
        let block = self.blocks.get(&day_block(day));
        let stored = block.and_then(|block| block.get::<HOUR_LEN>(day, at / HOUR % HOURS));
        stored.map_or_else(SavedAmounts::default, |stored| amounts(stored))
    }

    /// What came in the second of `at`; nothing where none of it is kept.
    #[must_use]
    pub fn second(&self, at: u64) -> Option<SavedSample> {
        self.sample(SECOND_RING, at)
    }

    /// What came in the minute of `at`; nothing where none of it is kept.
    #[must_use]
    pub fn minute(&self, at: u64) -> Option<SavedSample> {
        self.sample(MINUTE_RING, at)
    }

    fn sample(&self, ring: Ring, at: u64) -> Option<SavedSample> {
        let (block, number, slot) = ring.place(at);
        sample_of(self.blocks.get(&block)?.get::<SAMPLE_LEN>(number, slot)?)
    }

    /// What came from the hour of `from` to that of `to`.
    #[must_use]
    pub fn between(&self, from: u64, to: u64) -> SavedAmounts {
        let first = (from / HOUR).max((to / HOUR).saturating_sub(DAY_BLOCKS * HOURS));
        let hours = first..=to / HOUR;
        hours.map(|hour| self.hour(hour * HOUR)).fold(SavedAmounts::default(), SavedAmounts::plus)
    }
}

/// Where in a series the block of this day is.
const fn day_block(day: u64) -> usize {
    (DAYS_AT + day % DAY_BLOCKS) as usize
}

/// How many bytes of a name are kept.
fn kept_of(name: &str) -> usize {
    (0..=NAME_MAX.min(name.len())).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0)
}

/// Adds to four numbers that are stored in short; `rest` has what rounding left of each.
fn put_amounts(room: &mut [u8], added: SavedAmounts, rest: &mut [u64; 4]) {
    for ((room, added), rest) in room.as_chunks_mut().0.iter_mut().zip(added.all()).zip(rest) {
        put(room, added, rest);
    }
}

/// Adds to one.
fn put(room: &mut [u8; 2], added: u64, rest: &mut u64) {
    let sum = Short::from_bytes(*room).get().saturating_add(added).saturating_add(*rest);
    let short = Short::of(sum);
    *rest = sum - short.get();
    *room = short.to_bytes();
}

fn amounts(stored: &[u8]) -> SavedAmounts {
    let mut all = [0; 4];
    for (amount, stored) in all.iter_mut().zip(stored.as_chunks().0) {
        *amount = Short::from_bytes(*stored).get();
    }
    SavedAmounts::of(all)
}

/// A sample is four amounts, three counts, three measures, the loss, and 1 where there is anything.
fn put_sample(room: &mut [u8; SAMPLE_LEN], sample: &SavedSample, rest: &mut Rest) {
    let SavedSample { amounts, packets: [sent, received], dropped, rate, queue_delay, round_trip, loss } =
        *sample;
    put_amounts(room, amounts, &mut rest.amounts);
    let (pairs, _) = room.as_chunks_mut::<2>();
    let counts = [sent, received, dropped];
    for ((room, added), rest) in pairs.iter_mut().skip(4).zip(counts).zip(&mut rest.counts) {
        put(room, added, rest);
    }
    for (room, measured) in pairs.iter_mut().skip(7).zip([rate, queue_delay, round_trip]) {
        *room = Short::of(measured).to_bytes();
    }
    for (room, value) in pairs.iter_mut().skip(10).zip([loss, 1]) {
        *room = value.to_be_bytes();
    }
}

fn sample_of(stored: &[u8; SAMPLE_LEN]) -> Option<SavedSample> {
    let pair = |at: usize| stored.as_chunks::<2>().0.get(at).copied().unwrap_or_default();
    let short = |at: usize| Short::from_bytes(pair(at)).get();
    (u16::from_be_bytes(pair(11)) == 1).then(|| SavedSample {
        amounts: amounts(stored),
        packets: [short(4), short(5)],
        dropped: short(6),
        rate: short(7),
        queue_delay: short(8),
        round_trip: short(9),
        loss: u16::from_be_bytes(pair(10)),
    })
}

#[cfg(test)]
mod tests;
