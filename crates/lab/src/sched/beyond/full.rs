//! Full queues in the tunnel: which rule is better where packets leave in the order in which they came, as those of a peer do, and
//! three jobs an engine are under way.

use strait_compress::Method;
use strait_compress::calibrate::Calibration;
use strait_model::Cost;
use strait_scheduler::{Price, WhenFull};
use strait_sim::{BusSettings, MachineSettings, ProcessorSettings, simulate};

use crate::parallel;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};
use crate::sched::gateway::{BLOCK, STATED, window};
use crate::sched::grid::latency;
use crate::sched::pattern::{self, EXPONENTIAL, LARGE, Pattern};

/// Jobs under way for each engine, as in the tunnel's pool.
const JOBS_AN_ENGINE: usize = 3;
/// The share of what all engines could do with which packets come when latency is looked at.
const LOAD: f64 = 0.5;
/// Units of today are this much fewer than the paper's packets: they are so much longer.
const FEWER: usize = 4;

/// A rule, and how many jobs an engine is full with.
const RULES: [(&str, WhenFull, usize); 4] = [
    ("next, 3 jobs", WhenFull::Next, 3),
    ("wait, 3 jobs", WhenFull::Wait, 3),
    ("next, 6 jobs", WhenFull::Next, 6),
    ("wait, 6 jobs", WhenFull::Wait, 6),
];

/// Engines by their speeds.
const MACHINES: [(&str, &[f64]); 6] = [
    ("2 alike", &[1.0; 2]),
    ("4 alike", &[1.0; 4]),
    ("2, one half as fast", &[1.0, 0.5]),
    ("2, one a quarter as fast", &[1.0, 0.25]),
    ("4, one a quarter as fast", &[1.0, 1.0, 1.0, 0.25]),
    ("4, three a quarter as fast", &[1.0, 0.25, 0.25, 0.25]),
];

/// Packets, and what an engine of speed 1 takes for them.
struct Traffic<'a> {
    pattern: &'a Pattern,
    price: Price,
    block: usize,
}

/// By traffic and machine; then by rule: as fast as packets go, and with gaps between them.
pub(super) struct FullQueues(Vec<(String, Vec<RuleOutcome>)>);

/// The outcome of a rule.
struct RuleOutcome {
    /// Work that was done over what all engines could do in the time.
    used: f64,
    /// Microseconds at [`LOAD`], on average.
    latency: f64,
}

impl FullQueues {
    pub(super) fn simulate(patterns: &[Pattern]) -> FullQueues {
        let units = pattern::units(patterns[LARGE].arrivals.len() / FEWER);
        let compress = Calibration::assumed().of(Method::ZSTD).map(|figures| figures.compress);
        let papers = [EXPONENTIAL, LARGE].map(|place| Traffic {
            pattern: &patterns[place],
            price: STATED.accelerator(),
            block: BLOCK,
        });
        let today = compress.map(|cost: Cost| Traffic { pattern: &units, price: cost.into(), block: 1 });
        let traffic: Vec<Traffic<'_>> = papers.into_iter().chain(today).collect();
        let rows: Vec<_> = traffic.iter().flat_map(|it| MACHINES.map(|machine| (it, machine))).collect();
        FullQueues(parallel::map(&rows, |(traffic, (name, speeds))| {
            (format!("{}, {name}", traffic.pattern.name), traffic.outcomes(speeds))
        }))
    }

    pub(super) fn tables(&self) -> [LabTable; 2] {
        let table = |subject: &str, unit, figure: fn(&RuleOutcome) -> f64| {
            let subject = format!("{subject}, packets in order, by rule for full engines");
            let columns = RULES.map(|(name, ..)| name);
            let mut table =
                LabTable::new(Exhibit::Section("III-B"), subject, unit, Comparison::Quotient, columns);
            for (name, outcomes) in &self.0 {
                table.row(name.clone(), outcomes.iter().map(|it| (computed(figure(it)), None)));
            }
            table
        };
        let half = format!("average latency at {LOAD} of what all engines can do");
        [
            table(
                "throughput over what all engines can do, as fast as packets go",
                FigureUnit::Share,
                |it| it.used * 100.0,
            ),
            table(&half, FigureUnit::Microseconds, |it| it.latency),
        ]
    }
}

impl Traffic<'_> {
    fn outcomes(&self, speeds: &[f64]) -> Vec<RuleOutcome> {
        let all: f64 = speeds.iter().sum();
        let one = |(_, when_full, jobs)| {
            let machine = self.machine(speeds, when_full, jobs);
            let fast = simulate(&machine, self.pattern.at_once());
            let capacity = self.capacity() * all;
            let gaps = MachineSettings { source_waits: false, ..machine };
            let slow = simulate(&gaps, self.pattern.with_gaps(LOAD * capacity));
            RuleOutcome { used: fast.throughput() / capacity, latency: latency(&slow) }
        };
        RULES.map(one).into()
    }

    /// Engines without a bus between them, and without a window: what is left to compare is the rule.
    fn machine(&self, speeds: &[f64], when_full: WhenFull, jobs: usize) -> MachineSettings {
        let engine = |speed: &f64| ProcessorSettings {
            price: self.price.ratios(1.0 / speed, 1.0 / speed),
            slowdown: 1.0,
            on_bus: false,
        };
        MachineSettings {
            // It is idle.
            bus: BusSettings { hertz: 1, width: 1, address: 0 },
            processors: speeds.iter().map(engine).collect(),
            // One that it is at is a job, too.
            depth: jobs - 1,
            when_full,
            in_order: Some(JOBS_AN_ENGINE * speeds.len()),
            window: window(1),
            tuned: false,
            block: self.block,
            source_waits: true,
            learns: false,
        }
    }

    /// Bits a second that an engine of speed 1 does.
    fn capacity(&self) -> f64 {
        let bytes = |packet: &strait_sim::PacketArrival| packet.bytes as usize;
        let arrivals = || self.pattern.arrivals.iter();
        let seconds: f64 =
            arrivals().map(|packet| self.price.of(bytes(packet).next_multiple_of(self.block)).0).sum();
        arrivals().map(bytes).sum::<usize>() as f64 * 8.0 / seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::PacketTrace;

    /// Packets a pattern.
    const SOME: usize = 8_000;
    /// With equal jobs and three slow engines of four, most jobs wait for the fast one: a twentieth later.
    const LATER: f64 = 1.1;
    /// Differences that a pattern's end makes.
    const NEAR: f64 = 0.01;

    fn simulated() -> FullQueues {
        FullQueues::simulate(&pattern::all(SOME, &PacketTrace::generated()))
    }

    /// The reason for the tunnel to wait, at queues of six.
    #[test]
    fn no_rule_does_more_work_than_waiting_at_six_jobs() {
        for (name, outcomes) in simulated().0 {
            let used = |rule: usize| outcomes[rule].used;
            let best = (0..RULES.len()).map(used).fold(0.0, f64::max);
            assert!(used(3) > best - NEAR, "{name}: {} {best}", used(3));
            assert!(outcomes[3].latency < outcomes[0].latency * LATER, "{name}");
        }
    }

    #[test]
    fn the_rule_matters_with_unequal_engines_and_with_equal_ones_if_jobs_differ() {
        let all = simulated().0;
        let gain = |name: &str| {
            let (_, outcomes) = all.iter().find(|(row, _)| row == name).unwrap();
            outcomes[3].used / outcomes[0].used
        };
        assert!((gain("984 bytes, 4 alike") - 1.0).abs() < NEAR, "equal jobs, equal engines");
        assert!(gain("exponential, 4 alike") > 1.03);
        assert!(gain("exponential, 2, one a quarter as fast") > 1.3);
        assert!(gain("1,400 bytes and 64 KiB, 4, one a quarter as fast") > 1.1);
    }
}
