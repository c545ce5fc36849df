//! Runs for real: from disk to disk, and what a transfer costs its two ends; many combinations in turn, so that all see the same
//! machine.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Instant;
use std::{fs, mem};

use strait_testbed::interrupt;

use super::chain::Chain;
use super::layer::{Below, Sink};
use super::payload::BrokerPayload;
use super::pipeline::{CHUNK, StageSeconds};
use crate::error::Error;
use crate::measure::{RunValues, ThreadMoment};
use crate::steps::StepCounter;

/// Nanoseconds of a second, in which times a byte are kept.
const NANOS: f64 = 1e9;

/// One chain over one payload: times in nanoseconds a byte of the payload, a value a run.
#[derive(Clone, Debug)]
pub(super) struct ChainRuns {
    pub(super) chain: Chain,
    /// Processor time from disk to disk.
    pub(super) disk: RunValues,
    /// The same by the clock on the wall.
    pub(super) wall: RunValues,
    /// Processor time of the sender: from disk to the socket.
    pub(super) sender: RunValues,
    /// Processor time of the broker's end: from the socket to disk.
    pub(super) receiver: RunValues,
    /// Bytes on the wire for each of the payload.
    pub(super) wire: f64,
    /// Bytes that the broker stores for each of the payload.
    pub(super) stored: f64,
}

/// Where a rate is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// From disk to disk.
    Disk,
    /// Over a link of so many bit/s of payload.
    Link(f64),
    /// Over a link that is as fast as both ends.
    AnyLink,
}

impl ChainRuns {
    fn new(chain: Chain) -> ChainRuns {
        let none = RunValues::default;
        ChainRuns {
            chain,
            disk: none(),
            wall: none(),
            sender: none(),
            receiver: none(),
            wire: 1.0,
            stored: 1.0,
        }
    }

    /// Mbit/s of the payload, a value a run; none from disk to disk for TLS, which needs two ends.
    pub(super) fn rate(&self, place: Place) -> Option<RunValues> {
        match place {
            Place::Disk => self.chain.records.is_none().then(|| self.disk.map(|nanos| 8e3 / nanos)),
            Place::Link(bits) => Some(self.each(|stages| stages(bits).rate() / 1e6)),
            Place::AnyLink => Some(self.each(|stages| stages(f64::INFINITY).rate() / 1e6)),
        }
    }

    /// Shares of a core over a link, in parts of a hundred, a value a run: of the sender's and of the receiver's.
    pub(super) fn loads(&self, bits: f64) -> [RunValues; 2] {
        [0, 1].map(|end| self.each(|stages| stages(bits).loads()[end] * 100.0))
    }

    /// A figure of each run, from its stages over a link.
    fn each(&self, of: impl Fn(&dyn Fn(f64) -> StageSeconds) -> f64) -> RunValues {
        let ends = self.sender.values().iter().zip(self.receiver.values());
        let one = |(sender, receiver): (&f64, &f64)| {
            of(&|link| StageSeconds::of([sender / NANOS, receiver / NANOS], self.wire, link))
        };
        ends.map(one).collect()
    }
}

/// Runs each chain so often, all of them in turn, after a turn that does not count.
pub(super) fn measured(
    chains: &[Chain],
    payload: &BrokerPayload,
    folder: &Path,
    runs: usize,
    steps: &mut StepCounter<'_>,
) -> Result<Vec<ChainRuns>, Error> {
    let (input, output) = (folder.join("payload"), folder.join("stored"));
    fs::write(&input, &payload.bytes).map_err(Error::doing(format!("write {}", input.display())))?;
    let mut all: Vec<ChainRuns> = chains.iter().map(|chain| ChainRuns::new(*chain)).collect();
    let mut wire = Vec::new();
    for run in 0..=runs {
        steps.next(&format!("{}, run {run} of {runs}", payload.name));
        for it in &mut all {
            // The folder is to be gone after a signal, too.
            interrupt::check()?;
            let one = one_run(it, &input, &output, payload.bytes.len() as f64, &mut wire);
            let [disk, wall, sender, receiver] =
                one.map_err(Error::doing(format!("move {} through {}", input.display(), it.chain)))?;
            if run > 0 {
                it.disk.push(disk);
                it.wall.push(wall);
                it.sender.push(sender);
                it.receiver.push(receiver);
            }
        }
    }
    Ok(all)
}

/// The four times of a run in nanoseconds a byte; lengths are noted in `it`.
fn one_run(
    it: &mut ChainRuns,
    input: &Path,
    output: &Path,
    len: f64,
    wire: &mut Vec<u8>,
) -> io::Result<[f64; 4]> {
    let chain = it.chain;
    // Not counted: making a name and dropping what an older file had.
    let fresh = || fs::remove_file(output).or_else(none_there).and_then(|()| File::create(output));
    let (mut disk, mut wall) = (f64::NAN, f64::NAN);
    if chain.records.is_none() {
        let file = fresh()?;
        let (start, clock) = (ThreadMoment::now(), Instant::now());
        pump(File::open(input)?, chain.sender(Sink::File(file, 0))?)?;
        disk = start.elapsed().as_secs_f64() * NANOS / len;
        wall = clock.elapsed().as_secs_f64() * NANOS / len;
    }
    wire.clear();
    let start = ThreadMoment::now();
    let sent = pump(File::open(input)?, chain.sender(Sink::Memory(mem::take(wire)))?)?;
    let sender = start.elapsed().as_secs_f64() * NANOS / len;
    let Sink::Memory(sent) = sent else { return Err(io::ErrorKind::InvalidData.into()) };
    *wire = sent;
    let file = fresh()?;
    let start = ThreadMoment::now();
    let stored = pump(&wire[..], chain.receiver(Sink::File(file, 0))?)?;
    let receiver = start.elapsed().as_secs_f64() * NANOS / len;
    (it.wire, it.stored) = (wire.len() as f64 / len, stored.len() as f64 / len);
    Ok([disk, wall, sender, receiver])
}

fn none_there(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Everything that can be read goes through the layers.
pub(super) fn pump(mut from: impl Read, mut to: Below) -> io::Result<Sink> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match from.read(&mut buffer)? {
            0 => return to.finish(),
            count => to.write_all(&buffer[..count])?,
        }
    }
}
