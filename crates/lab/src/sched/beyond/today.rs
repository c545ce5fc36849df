//! Processors of today, with today's algorithms: is a set-up still worth sparing?

use strait_compress::Method;
use strait_compress::calibrate::Calibration;
use strait_model::{Bytes, Cost, Seconds};
use strait_sim::{BusSettings, MachineOutcome, MachineSettings, PacketArrival, ProcessorSettings, simulate};

use crate::parallel;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};
use crate::sched::gateway::{STATED, window};
use crate::sched::pattern::Pattern;

/// Sealing with AES-128-GCM: bytes and nanoseconds of a small and of a large packet, aws-lc-rs 1.19 on one core of an AMD EPYC
/// (Zen 3, 2.45 GHz), median.
const SEALED: [(u64, f64); 2] = [(64, 209.0), (1_400, 612.0)];
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

/// By case and pattern: without a window and with it.
pub(super) struct Today {
    patterns: Vec<String>,
    cases: Vec<(Case, Vec<[MachineOutcome; 2]>)>,
}

impl Today {
    pub(super) fn simulate(patterns: &[Pattern]) -> Today {
        let cases: Vec<Case> = costs().into_iter().flat_map(cases).collect();
        let outcomes = parallel::map(&cases, |case| patterns.iter().map(|it| case.simulate(it)).collect());
        let patterns = patterns.iter().map(|pattern| pattern.name.clone()).collect();
        Today { patterns, cases: cases.into_iter().zip(outcomes).collect() }
    }

    pub(super) fn tables(&self) -> [LabTable; 2] {
        let table = |what: &str, unit, figure: fn(&[MachineOutcome; 2]) -> f64| {
            let subject = format!("{what} of one core of an EPYC Zen 3, W = 30, packets as fast as they go");
            let columns = self.patterns.iter().cloned();
            let mut table =
                LabTable::new(Exhibit::Section("V"), subject, unit, Comparison::Quotient, columns);
            for (case, outcomes) in &self.cases {
                table.row(case.to_string(), outcomes.iter().map(|pair| (computed(figure(pair)), None)));
            }
            table
        };
        [
            table("throughput", FigureUnit::MegabitsPerSecond, |[_, with]| with.throughput() / 1e6),
            table("throughput", FigureUnit::Relative, |[without, with]| {
                with.throughput() / without.throughput()
            }),
        ]
    }
}

/// What packets are sealed with, and what bundles are compressed with.
fn costs() -> Vec<(&'static str, Cost)> {
    let [small, large] = SEALED.map(|(bytes, nanos)| (Bytes(bytes), Seconds(nanos * 1e-9)));
    let mut costs = vec![("AES-128-GCM", Cost::through(small, large))];
    costs.extend(Calibration::assumed().of(Method::ZSTD).map(|figures| ("zstd-3", figures.compress)));
    costs
}

fn cases((name, cost): (&'static str, Cost)) -> impl Iterator<Item = Case> {
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
