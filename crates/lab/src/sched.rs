//! A. V. Taddeo, A. Ferrante and V. Piuri, *Scheduling Small Packets in IPSec-based Systems*: what a window over packets of one
//! security association gives a gateway with a processor and an accelerator.
//!
//! The machine is `strait_sim`'s, with the tunnel's own window and dispatcher in it, and both rules for full queues that the
//! dispatcher has; the traffic is here ([`PacketTrace`] for the one pattern that comes from a file), with Figures 3 to 6, the
//! statements about them, and what the paper leaves to do.

mod beyond;
mod claims;
mod figures;
mod gateway;
mod grid;
mod pattern;
mod trace;

use serde::Serialize;

use crate::error::Error;
use crate::figure::Figure;
use crate::report::LabReport;
use crate::steps::{Effort, StepCounter, StepNote};
use beyond::Beyond;
use gateway::{Gateway, NEXT, STATED, VARIED};
pub use grid::GatewayRun;
use grid::RunGrid;
use pattern::Pattern;
pub use trace::PacketTrace;

/// As reports name it.
const PAPER: &str = "Taddeo, Ferrante and Piuri, Scheduling Small Packets in IPSec-based Systems";
/// Packets a pattern (section IV-A).
const PACKETS: usize = 500_000;
/// Of those, for a quick look.
const QUICK: usize = 5_000;
/// What is tried many times is tried with one packet in so many.
const PART: usize = 5;

/// A report, with every run behind it and with charts.
#[derive(Clone, Debug, Serialize)]
pub struct Scheduling {
    /// What a person wants of them.
    #[serde(flatten)]
    pub report: LabReport,
    /// Every pattern, window and processor of the paper.
    pub runs: Vec<GatewayRun>,
    /// Figures 3 to 6, and latency by load.
    #[serde(skip)]
    pub figures: Vec<Figure>,
}

/// Simulates the paper's gateway under its seven patterns, of which `trace` is one, and what it leaves to do.
///
/// # Errors
/// [`Error::Refused`] when packets cannot be sealed on this machine, [`Error::NoLoad`].
pub fn scheduling(
    effort: Effort,
    trace: &PacketTrace,
    tell: &mut dyn FnMut(StepNote<'_>),
) -> Result<Scheduling, Error> {
    let count = if effort == Effort::Full { PACKETS } else { QUICK };
    simulated(count, effort, trace, tell)
}

/// The same with so many packets a pattern.
fn simulated(
    count: usize,
    effort: Effort,
    trace: &PacketTrace,
    tell: &mut dyn FnMut(StepNote<'_>),
) -> Result<Scheduling, Error> {
    let stopwatch = effort.stopwatch(beyond::STOPWATCH.0, beyond::STOPWATCH.1);
    let report = LabReport::begin(PAPER, stopwatch)?;
    let patterns = pattern::all(count, trace);
    let few: Vec<Pattern> = patterns.iter().map(|pattern| pattern.first(count / PART)).collect();
    let mut steps = StepCounter::new(patterns.len() + VARIED.len() + beyond::STEPS, tell);
    let grid = RunGrid::simulate(&STATED, &patterns, |pattern| steps.next(&format!("packets of {pattern}")));
    let varied = VARIED.map(|gateway| {
        steps.next(gateway.name);
        RunGrid::simulate(&gateway, &few, |_| ())
    });
    let beyond = Beyond::simulate(&few, &grid, stopwatch, &mut steps)?;
    Ok(reported(report, trace, &grid, &varied, &beyond))
}

fn reported(
    mut report: LabReport,
    trace: &PacketTrace,
    grid: &RunGrid,
    varied: &[RunGrid],
    beyond: &Beyond,
) -> Scheduling {
    let mut charts = Vec::new();
    for (table, figure) in figures::papers(grid) {
        report.tables.push(table);
        charts.push(figure);
    }
    report.tables.extend(figures::others(grid));
    report.tables.push(claims::variations(grid, varied));
    report.tables.extend(varied.get(NEXT).into_iter().flat_map(figures::with_next));
    report.tables.extend(beyond.tables());
    charts.push(beyond.figure());
    report.claims = claims::judged(grid, beyond);
    report.notes.extend(notes(trace));
    Scheduling { report, runs: grid.runs(), figures: charts }
}

fn notes(trace: &PacketTrace) -> Vec<String> {
    let Gateway { set_up, depth, .. } = STATED;
    vec![
        "all is simulated and the same on every machine, but for the tables of cores like one of this machine: what sealing and \
         compressing take is measured"
            .to_owned(),
        "the paper prints no value of its Figures 3 to 6: 1.33 and 2.57 packets a multi-packet are all that figures can be \
         compared with, so what it says of them in words is judged instead"
            .to_owned(),
        format!(
            "what the paper leaves open: the accelerator's t_init is taken as {set_up} times its t_block, which is 16 bytes at \
             230 Mbit/s; both processors' data crosses the bus; at most {depth} multi-packets wait in front of a processor, as in \
             a FIFO of SystemC. A multi-packet whose processor has no room waits for it, and the source with it; scheduling itself \
             takes no time. The table of variations says which statements depend on that"
        ),
        "in the table of variations t_init is given in times of t_block; `rated` counts the set-up of a 512-byte packet in the \
         accelerator's 230 Mbit/s; `off bus` has the CPU's data on a bus of its own, as CPU and memory of that time had; `depth` is \
         the number of multi-packets that wait in front of a processor; with `next`, a multi-packet whose processor has no room takes \
         the one that ends first of those with room. Both rules are the tunnel's dispatcher's"
            .to_owned(),
        "how much there is to gain in Figures 4 and 5 depends on t_init most of all: what aggregation spares is a set-up and an \
         address"
            .to_owned(),
        "CPU use is its share of the packets, as Figure 3 has it: in an overloaded machine both processors are busy all the \
         time, with a window or without"
            .to_owned(),
        "packets of a multi-packet are padded to blocks one by one, and every packet is 40 bytes longer than its payload"
            .to_owned(),
        format!("the trace: {}", trace.about()),
    ]
}

#[cfg(test)]
mod tests;
