//! Each sentence with its reading.

use strait_sim::MachineOutcome;

use super::tally;
use crate::claim::{ClaimRule, Finding};
use crate::sched::figures::{BUNDLE, LARGEST, NONE, TRACE_BUNDLE, merged};
use crate::sched::gateway::{ACCELERATED, ACCELERATOR, CPU, RATIOS, SHOWN_RATIO};
use crate::sched::grid::{RunCell, RunGrid, cpu_use, latency};
use crate::sched::pattern::{LARGE, TRACE};

/// "Does not grow": by no more than this part.
const GROWTH: f64 = 0.05;
/// "Usually": in more than this share.
const USUALLY: f64 = 0.5;
/// How near a figure that was read from random numbers is to the paper's.
const NEAR: f64 = 0.01;
/// Mbit/s that the paper says both processors can do.
const CAPABILITY: f64 = 500.0;
/// The same for one that depends on which trace was taken, or is a round number.
const NEAR_TRACE: f64 = 0.1;
/// "Considerably slower": these places of `T_enc-ratio`.
const SLOWER: core::ops::Range<usize> = SHOWN_RATIO..RATIOS.len();

/// What each of [`RULES`] says, in a few words.
pub(super) const LABELS: [&str; RULES.len()] = [
    "1.33 packets a multi-packet",
    "2.57 with a recorded trace",
    "CPU use falls with T_enc-ratio",
    "and faster for fixed sizes",
    "and on average",
    "merged packets to the accelerator",
    "where that is faster",
    "single ones to the CPU, usually",
    "where that is slower",
    "the more so the slower it is",
    "small ones to the CPU",
    "less CPU use",
    "more throughput",
    "most gain for small packets",
    "500 Mbit/s",
    "throughput falls with T_enc-ratio",
    "latency grows by 5 % at most",
    "by less than throughput falls",
    "latency rises with W",
    "the more so for large packets",
];

pub(in crate::sched) const RULES: [ClaimRule<RunGrid>; 20] = [
    ClaimRule {
        section: "IV-B",
        words: "The average number of multi-packets per window that have been obtained for W = 30 is [...] 1.33 for all \
                other patterns",
        reading: "packets a multi-packet, within 0.01 for each of the six",
        judge: |it| {
            let cells = shown(it, LARGEST).filter(|cell| cell.pattern != TRACE);
            tally(it, cells, |cell| it.at(cell).packets_a_bundle(), |found| (found - BUNDLE).abs() <= NEAR)
                .every()
        },
    },
    ClaimRule {
        section: "IV-B",
        words: "The average number of multi-packets per window that have been obtained for W = 30 is 2.57 for the real \
                trace",
        reading: "packets a multi-packet with the trace that was given, within a tenth",
        judge: |it| {
            it.patterns.get(TRACE)?.recorded.then_some(())?;
            let found =
                it.at(RunCell { pattern: TRACE, ratio: SHOWN_RATIO, window: LARGEST }).packets_a_bundle();
            Some(((found / TRACE_BUNDLE - 1.0).abs() <= NEAR_TRACE, format!("{found:.2}")))
        },
    },
    ClaimRule {
        section: "IV-B",
        words: "CPU usage decreases for increasing values of T_enc-ratio",
        reading: "with W = 30 every pattern's bar in Figure 3 is lower than the one before",
        judge: |it| falls(it, |cell| cell.window == LARGEST, cpu_use),
    },
    ClaimRule {
        section: "IV-B",
        words: "and it does it faster for fix dimension patterns",
        reading: "from T_enc-ratio 1 to 7 Figure 3's bars of every fixed payload fall to a smaller part than those of any other \
                  pattern",
        judge: faster_for_fixed,
    },
    ClaimRule {
        section: "IV-B",
        words: "and it does it faster for fix dimension patterns",
        reading: "the same, for both kinds of patterns on average",
        judge: faster_for_fixed_on_average,
    },
    ClaimRule {
        section: "IV-B",
        words: "the scheduler always tries to assign merged packets to the accelerator",
        reading: "in every run with a window a greater share of the accelerator's packets than of the CPU's was merged",
        judge: |it| to_the_accelerator(it, it.cells()),
    },
    ClaimRule {
        section: "IV-B",
        words: "the scheduler always tries to assign merged packets to the accelerator",
        reading: "the same for T_enc-ratio 3 to 7, where blocks take the CPU longer",
        judge: |it| to_the_accelerator(it, slower(it)),
    },
    ClaimRule {
        section: "IV-B",
        words: "Only single small packets are usually sent to the CPU",
        reading: "in every run with a window more than half of the CPU's packets are single",
        judge: |it| single(it, it.cells()),
    },
    ClaimRule {
        section: "IV-B",
        words: "Only single small packets are usually sent to the CPU",
        reading: "the same for T_enc-ratio 3 to 7",
        judge: |it| single(it, slower(it)),
    },
    ClaimRule {
        section: "IV-B",
        words: "especially when it is considerably slower than the accelerator",
        reading: "with W = 30 the share of the CPU's packets that are merged falls from one T_enc-ratio to the next",
        judge: |it| falls(it, |cell| cell.window == LARGEST, |outcome| merged(outcome, CPU)),
    },
    ClaimRule {
        section: "IV-B",
        words: "Only single small packets are usually sent to the CPU",
        reading: "for T_enc-ratio 3 to 7, with patterns of several sizes, the CPU's packets are shorter on average than the \
                  accelerator's",
        judge: |it| {
            let cells = slower(it).filter(|cell| !it.patterns[cell.pattern].fixed);
            let mean = |cell, processor: usize| {
                let share = &it.at(cell).shares[processor];
                share.bytes as f64 / share.packets as f64
            };
            tally(it, cells, |cell| mean(cell, CPU) / mean(cell, ACCELERATOR), |quotient| quotient < 1.0)
                .every()
        },
    },
    ClaimRule {
        section: "IV-B",
        words: "Our algorithm allows to save CPU usage by dispatching merged packets to the accelerator",
        reading: "every bar of Figure 4 is below 1",
        judge: |it| tally(it, bars(it), |cell| it.relative(cell, cpu_use), |relative| relative < 1.0).every(),
    },
    ClaimRule {
        section: "IV-B",
        words: "The sliding window system improves the overall system throughput",
        reading: "every bar of Figure 5 is above 1",
        judge: |it| {
            tally(
                it,
                bars(it),
                |cell| it.relative(cell, MachineOutcome::throughput),
                |relative| relative > 1.0,
            )
            .every()
        },
    },
    ClaimRule {
        section: "IV-B",
        words: "The greater throughput increment is for small packets",
        reading: "with W = 10 and with W = 30 a fixed payload's bar in Figure 5 is below that of the next shorter one",
        judge: |it| by_size(it, MachineOutcome::throughput, |step| step < 0.0),
    },
    ClaimRule {
        section: "IV-B",
        words: "an overloaded system is considered (network rate is 1Gbit/s, while processing capability is of 500Mbit/s)",
        reading: "the fastest CPU and the accelerator together carry 500 Mbit/s of the largest fixed payload, with some window or none, \
                  within a tenth",
        judge: |it| {
            let fastest = |cell: &RunCell| cell.pattern == LARGE && cell.ratio == 0;
            let rates = it.cells().filter(fastest).map(|cell| it.at(cell).throughput() / 1e6);
            let most = rates.fold(0.0, f64::max);
            let blocks = 2.0 * ACCELERATED / 1e6;
            let holds = (most / CAPABILITY - 1.0).abs() <= NEAR_TRACE;
            Some((holds, format!("{most:.0} Mbit/s; without set-ups and transfers both do {blocks:.0}")))
        },
    },
    ClaimRule {
        section: "IV-B",
        words: "throughput decreases for increasing values of the T_enc-ratio",
        reading: "for every pattern, with every window and with none",
        judge: |it| falls(it, |_| true, MachineOutcome::throughput),
    },
    ClaimRule {
        section: "IV-B",
        words: "the latency does not grow with increasing values of T_enc-ratio",
        reading: "at a T_enc-ratio of 7 it is at most 5 % above that at 1, for every pattern, with every window and with none",
        judge: |it| {
            tally(it, ends(it), |cell| change(it, cell, latency), |grown| grown <= 1.0 + GROWTH).every()
        },
    },
    ClaimRule {
        section: "IV-B",
        words: "In opposition with throughput, the latency does not grow with increasing values of T_enc-ratio",
        reading: "from T_enc-ratio 1 to 7 latency grows by a smaller factor than throughput falls by: fewer packets are in the \
                  machine",
        judge: |it| {
            let both = |cell| change(it, cell, latency) * change(it, cell, MachineOutcome::throughput);
            tally(it, ends(it), both, |product| product < 1.0).every()
        },
    },
    ClaimRule {
        section: "IV-B",
        words: "Average processing latency increases due to the time that is needed to fill the sliding window",
        reading: "every bar of Figure 6 is above 1, and those of W = 30 are above those of W = 10",
        judge: |it| {
            let before = |cell: RunCell| RunCell { window: cell.window - 1, ..cell };
            let rise = |cell| it.relative(cell, latency) / it.relative(before(cell), latency);
            tally(it, bars(it), rise, |times| times > 1.0).every()
        },
    },
    ClaimRule {
        section: "IV-B",
        words: "The bad influence of the sliding window on this parameter is higher when traces with big average sizes of the \
                packets are considered",
        reading: "with W = 10 and with W = 30 a fixed payload's bar in Figure 6 is above that of the next shorter one",
        judge: |it| by_size(it, latency, |step| step > 0.0),
    },
];

/// The runs that Figures 4 to 6 are about, with one window.
fn shown(it: &RunGrid, window: usize) -> impl Iterator<Item = RunCell> {
    it.cells().filter(move |cell| cell.ratio == SHOWN_RATIO && cell.window == window)
}

/// The bars of Figures 4 to 6.
fn bars(it: &RunGrid) -> impl Iterator<Item = RunCell> {
    it.cells().filter(|cell| cell.ratio == SHOWN_RATIO && cell.window != NONE)
}

/// Runs whose CPU is slower than the accelerator.
fn slower(it: &RunGrid) -> impl Iterator<Item = RunCell> {
    it.cells().filter(|cell| SLOWER.contains(&cell.ratio))
}

/// Whether the accelerator's packets are merged more often than the CPU's.
fn to_the_accelerator(it: &RunGrid, cells: impl Iterator<Item = RunCell>) -> Option<Finding> {
    let more = |cell| merged(it.at(cell), ACCELERATOR) - merged(it.at(cell), CPU);
    tally(it, cells.filter(|cell| cell.window != NONE), more, |more| more > 0.0).every()
}

/// Whether most of the CPU's packets are single.
fn single(it: &RunGrid, cells: impl Iterator<Item = RunCell>) -> Option<Finding> {
    let share = |cell| 1.0 - merged(it.at(cell), CPU);
    tally(it, cells.filter(|cell| cell.window != NONE), share, |share| share > USUALLY).every()
}

/// Whether a figure falls from each ratio to the next.
fn falls(it: &RunGrid, belongs: fn(&RunCell) -> bool, figure: fn(&MachineOutcome) -> f64) -> Option<Finding> {
    let quotient =
        |cell: RunCell| figure(it.at(cell)) / figure(it.at(RunCell { ratio: cell.ratio - 1, ..cell }));
    let cells = it.cells().filter(|cell| cell.ratio > 0 && belongs(cell));
    tally(it, cells, quotient, |quotient| quotient < 1.0).every()
}

/// Runs with the slowest CPU.
fn ends(it: &RunGrid) -> impl Iterator<Item = RunCell> {
    it.cells().filter(|cell| cell.ratio == RATIOS.len() - 1)
}

/// A figure with this CPU over that with the fastest.
fn change(it: &RunGrid, cell: RunCell, figure: fn(&MachineOutcome) -> f64) -> f64 {
    figure(it.at(cell)) / figure(it.at(RunCell { ratio: 0, ..cell }))
}

/// What is left of the CPU's use at the slowest CPU, of the fixed patterns or of the others.
fn left(it: &RunGrid, fixed: bool) -> impl Iterator<Item = (RunCell, f64)> {
    let cells =
        ends(it).filter(move |cell| cell.window == LARGEST && it.patterns[cell.pattern].fixed == fixed);
    cells.map(|cell| (cell, change(it, cell, cpu_use)))
}

fn faster_for_fixed(it: &RunGrid) -> Option<Finding> {
    let least = left(it, false).map(|(_, left)| left).fold(f64::INFINITY, f64::min);
    let fixed = left(it, true).map(|(cell, _)| cell);
    let (holds, words) = tally(it, fixed, |cell| change(it, cell, cpu_use), |left| left < least).every()?;
    Some((holds, format!("{words}; the others fall to {least:.3} at least")))
}

fn faster_for_fixed_on_average(it: &RunGrid) -> Option<Finding> {
    let mean = |fixed| {
        let (count, sum) =
            left(it, fixed).fold((0.0, 0.0), |(count, sum), (_, left)| (count + 1.0, sum + left));
        sum / count
    };
    let [fixed, others] = [true, false].map(mean);
    Some((fixed < others, format!("to {fixed:.3} of what it was, the others to {others:.3}")))
}

/// Whether a figure, relative to no window, changes so from each fixed payload to the next longer one.
fn by_size(it: &RunGrid, figure: fn(&MachineOutcome) -> f64, so: fn(f64) -> bool) -> Option<Finding> {
    let shorter = |cell: RunCell| RunCell { pattern: cell.pattern - 1, ..cell };
    let cells = bars(it).filter(|cell| cell.pattern > 0 && it.patterns[cell.pattern].fixed);
    tally(it, cells, |cell| it.relative(cell, figure) - it.relative(shorter(cell), figure), so).every()
}
