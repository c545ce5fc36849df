//! Processors of today, with today's algorithms: is a set-up still worth sparing?

use std::time::Duration;

use strait_compress::{Codecs, Method};
use strait_crypto::Suite;
use strait_model::{Bytes, Cost, Seconds};
use strait_sim::{BusSettings, MachineOutcome, MachineSettings, PacketArrival, ProcessorSettings, simulate};

use crate::corpus::Corpus;
use crate::error::Error;
use crate::measure::{RepeatTimer, RunValues};
use crate::parallel;
use crate::rate;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};
use crate::sched::gateway::{STATED, window};
use crate::sched::pattern::Pattern;

/// Bytes of a small and of a large packet whose sealing is measured.
const SEALED: [usize; 2] = [64, 1_400];
/// The same of a packet and of a bundle that are compressed.
const COMPRESSED: [usize; 2] = [1_400, 16_384];
/// The number of measurements, and the time of each.
pub(in crate::sched) const STOPWATCH: (usize, Duration) = (7, Duration::from_millis(20));
/// Cores.
const CORES: [usize; 2] = [1, 4];
/// The window that is compared with none.
const PACKETS: usize = 30;

/// A row: what is done, on how many cores, and whether all packets have one association.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    cost: Cost,
    cores: usize,
    joined: bool,
}

/// The times of a small and a large job on a core of this machine: bytes and nanoseconds.
struct JobTimes {
    name: &'static str,
    jobs: [(usize, RunValues); 2],
}

/// By case and pattern: without a window and with it.
pub(super) struct Today {
    times: [JobTimes; 2],
    patterns: Vec<String>,
    cases: Vec<(Case, Vec<[MachineOutcome; 2]>)>,
}

impl Today {
    /// Measures costs here, and simulates machines that have them.
    pub(super) fn simulate(patterns: &[Pattern], stopwatch: RepeatTimer) -> Result<Today, Error> {
        let times = measured(stopwatch)?;
        let cases: Vec<Case> = times.iter().flat_map(cases).collect();
        let outcomes = parallel::map(&cases, |case| patterns.iter().map(|it| case.simulate(it)).collect());
        let patterns = patterns.iter().map(|pattern| pattern.name.clone()).collect();
        Ok(Today { times, patterns, cases: cases.into_iter().zip(outcomes).collect() })
    }

    /// A table of what was measured.
    fn times(&self) -> LabTable {
        let (subject, unit) = ("jobs on one core of this machine", FigureUnit::Microseconds);
        let mut table = LabTable::new(Exhibit::Section("V"), subject, unit, Comparison::Quotient, ["time"]);
        for JobTimes { name, jobs } in &self.times {
            for (bytes, nanos) in jobs {
                table.row(format!("{name}, {bytes} bytes"), [(nanos.map(|it| it / 1e3), None)]);
            }
        }
        table
    }

    pub(super) fn tables(&self) -> [LabTable; 3] {
        let table = |what: &str, unit, figure: fn(&[MachineOutcome; 2]) -> f64| {
            let subject = format!("{what}, cores like one of this machine, packets as fast as they go");
            let columns = self.patterns.iter().cloned();
            let mut table =
                LabTable::new(Exhibit::Section("V"), subject, unit, Comparison::Quotient, columns);
            for (case, outcomes) in &self.cases {
                table.row(case.to_string(), outcomes.iter().map(|pair| (computed(figure(pair)), None)));
            }
            table
        };
        [
            self.times(),
            table("throughput with W = 30", FigureUnit::MegabitsPerSecond, |[_, with]| {
                with.throughput() / 1e6
            }),
            table("throughput over that without a window", FigureUnit::Relative, |[without, with]| {
                with.throughput() / without.throughput()
            }),
        ]
    }
}

/// Measures how long a core of this machine takes to seal packets and to compress bundles of text.
fn measured(stopwatch: RepeatTimer) -> Result<[JobTimes; 2], Error> {
    rate::calibrate();
    let sealing = JobTimes::of("AES-128-GCM", SEALED, |bytes| {
        let [seal, _] = rate::aead(stopwatch, Suite::Aes128Gcm, &vec![0x5a; bytes])?;
        Ok(seal)
    })?;
    let (corpus, mut codecs) = (Corpus::generated(), Codecs::new());
    let text = corpus.files.first().map_or(&[][..], |file| &file.front);
    let compressing = JobTimes::of("zstd-3", COMPRESSED, |bytes| {
        let blocks: Vec<&[u8]> = text.chunks_exact(bytes).collect();
        Ok(rate::compress(stopwatch, &mut codecs, Method::ZSTD, &blocks))
    })?;
    Ok([sealing, compressing])
}

impl JobTimes {
    /// From nanoseconds a byte at each of two sizes.
    fn of(
        name: &'static str,
        sizes: [usize; 2],
        mut nanos: impl FnMut(usize) -> Result<RunValues, Error>,
    ) -> Result<JobTimes, Error> {
        let mut job = |bytes: usize| Ok::<_, Error>((bytes, nanos(bytes)?.map(|it| it * bytes as f64)));
        Ok(JobTimes { name, jobs: [job(sizes[0])?, job(sizes[1])?] })
    }

    fn cost(&self) -> Cost {
        let [small, large] = self.jobs.each_ref().map(|(bytes, nanos)| {
            let nanos = nanos.spread().map_or(f64::NAN, |it| it.median);
            (Bytes(*bytes as u64), Seconds(nanos * 1e-9))
        });
        Cost::through(small, large)
    }
}

fn cases(times: &JobTimes) -> impl Iterator<Item = Case> + use<> {
    let (name, cost) = (times.name, times.cost());
    let joined = [false, true].into_iter();
    joined.flat_map(move |joined| CORES.map(|cores| Case { name, cost, cores, joined }))
}

impl Case {
    fn simulate(&self, pattern: &Pattern) -> [MachineOutcome; 2] {
        let core = ProcessorSettings { price: self.cost.into(), slowdown: 1.0, on_bus: false };
        let association = |packet: PacketArrival| {
            let association = if self.joined { 0 } else { packet.association };
            PacketArrival { association, ..packet }
        };
        [1, PACKETS].map(|packets| {
            let machine = MachineSettings {
                // It is idle.
                bus: BusSettings { hertz: 1, width: 1, address: 0 },
                processors: vec![core; self.cores],
                depth: STATED.depth,
                when_full: STATED.when_full,
                in_order: None,
                window: window(packets),
                tuned: false,
                block: 1,
                source_waits: true,
                learns: false,
            };
            simulate(&machine, pattern.at_once().map(association))
        })
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cores = if self.cores == 1 { "1 core".to_owned() } else { format!("{} cores", self.cores) };
        write!(f, "{}, {cores}{}", self.name, if self.joined { ", one association" } else { "" })
    }
}
