//! Packets with gaps between them, at loads that the gateway carries and at one that it does not carry without a window.

use core::time::Duration;

use strait_chart::{Axis, Chart, ChartLine, Lines, Plot};
use strait_scheduler::Limits;
use strait_sim::{MachineOutcome, MachineSettings, simulate};

use crate::claim::Finding;
use crate::figure::Figure;
use crate::parallel;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};
use crate::sched::gateway::{RATIOS, SHOWN_RATIO, STATED, window};
use crate::sched::grid::{RunCell, RunGrid, latency};
use crate::sched::pattern::{Pattern, SMALL};

/// Shares of what the gateway carries without a window; the last is more than that, and less than a window makes of it.
const LOADS: [f64; 6] = [0.1, 0.2, 0.5, 0.8, 0.95, 1.05];
const OVERLOAD: usize = LOADS.len() - 1;
/// How long a window waits that is bounded in time.
const WAIT: Duration = Duration::from_micros(100);
/// "Near": by no more than this part.
const NEAR: f64 = 0.1;

/// A way to go about it.
#[derive(Clone, Copy, Debug)]
struct Policy {
    name: &'static str,
    window: Limits,
    tuned: bool,
}

const fn fixed(name: &'static str, window: Limits) -> Policy {
    Policy { name, window, tuned: false }
}

/// Places: none, W = 30, that with a bound in time, tuned.
const NONE: usize = 0;
const LARGEST: usize = 2;
const TIMED: usize = 3;
const TUNED: usize = 4;
const POLICIES: [Policy; 6] = [
    fixed("no window", window(1)),
    fixed("W = 10", window(10)),
    fixed("W = 30", window(30)),
    fixed("W = 30, 100 µs", Limits { wait: WAIT, ..window(30) }),
    Policy { tuned: true, ..fixed("tuned up to 30", window(30)) },
    // A packet goes at once while queues have room, and is aggregated only when they have none.
    fixed("W = 30, 0 µs", Limits { wait: Duration::ZERO, ..window(30) }),
];

/// By policy and by load.
pub(super) struct Gaps(pub(super) Vec<Vec<MachineOutcome>>);

impl Gaps {
    /// Small packets, whose gain is large.
    pub(super) fn simulate(patterns: &[Pattern], grid: &RunGrid) -> Gaps {
        let capacity = grid.at(RunCell { pattern: SMALL, ratio: SHOWN_RATIO, window: 0 }).throughput();
        let cells: Vec<(Policy, f64)> =
            POLICIES.iter().flat_map(|policy| LOADS.map(|load| (*policy, load))).collect();
        let outcomes = parallel::map(&cells, |(policy, load)| {
            let machine = MachineSettings {
                tuned: policy.tuned,
                source_waits: false,
                ..STATED.machine(RATIOS[SHOWN_RATIO], 1, policy.window)
            };
            simulate(&machine, patterns[SMALL].with_gaps(load * capacity))
        });
        Gaps(outcomes.chunks(LOADS.len()).map(<[MachineOutcome]>::to_vec).collect())
    }

    pub(super) fn tables(&self) -> [LabTable; 3] {
        let worst = |outcome: &MachineOutcome| outcome.worst.as_secs_f64() * 1e6;
        [
            self.table("average latency", FigureUnit::Microseconds, latency),
            self.table("latency of the last packet", FigureUnit::Microseconds, worst),
            self.table("multi-packets", FigureUnit::Packets, MachineOutcome::packets_a_bundle),
        ]
    }

    fn table(&self, what: &str, unit: FigureUnit, figure: fn(&MachineOutcome) -> f64) -> LabTable {
        let subject =
            format!("{what}, 24 bytes, exponential gaps, by load over what is carried without a window");
        let columns = LOADS.map(|load| format!("{load}"));
        let mut table = LabTable::new(Exhibit::Section("V"), subject, unit, Comparison::Quotient, columns);
        for (policy, outcomes) in POLICIES.iter().zip(&self.0) {
            table.row(policy.name, outcomes.iter().map(|outcome| (computed(figure(outcome)), None)));
        }
        table
    }

    pub(super) fn figure(&self) -> Figure {
        let line = |(policy, outcomes): (&Policy, &Vec<MachineOutcome>)| ChartLine {
            name: policy.name.to_owned(),
            points: LOADS.into_iter().zip(outcomes.iter().map(|it| latency(it) / 1e6)).collect(),
        };
        let chart = Chart {
            title: "Average latency by load, 24-byte payloads with gaps between them".to_owned(),
            source: "Simulated on the gateway of Taddeo, Ferrante and Piuri, T_enc-ratio 3; load 1 is what it carries without a \
                     window."
                .to_owned(),
            y: Axis::logarithmic("average latency, s").prefixed("s"),
            plot: Plot::Lines(Lines {
                x: Axis::linear("offered load").between(0.0, 1.1),
                lines: POLICIES.iter().zip(&self.0).map(line).collect(),
            }),
        };
        Figure::new("latency-by-load", chart)
    }

    fn latency(&self, policy: usize, load: usize) -> f64 {
        latency(&self.0[policy][load])
    }

    /// Whether a bound in time bounds what a window adds.
    pub(super) fn bounded_in_time(&self) -> Option<Finding> {
        let bound = WAIT.as_secs_f64() * 1e6;
        let added = |load, policy| self.latency(policy, load) - self.latency(NONE, load);
        let loads = 0..OVERLOAD;
        let holds = loads
            .clone()
            .all(|load| added(load, TIMED) <= bound && added(load, LARGEST) > added(load, TIMED));
        let words = loads.map(|load| {
            format!("{:.0} and {:.0} µs at {}", added(load, TIMED), added(load, LARGEST), LOADS[load])
        });
        Some((holds, format!("with and without the bound {}", words.collect::<Vec<_>>().join(", "))))
    }

    /// Whether the tuned window does as well as whichever fixed one does best.
    pub(super) fn tuned_is_near_the_best(&self) -> Option<Finding> {
        let best =
            |load| (NONE..=LARGEST).map(|policy| self.latency(policy, load)).fold(f64::INFINITY, f64::min);
        let over = |load| self.latency(TUNED, load) / best(load);
        let holds = (0..LOADS.len()).all(|load| over(load) <= 1.0 + NEAR);
        let words = (0..LOADS.len()).map(|load| format!("{:.2} at {}", over(load), LOADS[load]));
        Some((holds, format!("over the best of none, 10 and 30: {}", words.collect::<Vec<_>>().join(", "))))
    }
}
