//! Figures 3 to 6 as tables and as bars, and the figures behind them.

use strait_chart::{Axis, Bars, Chart, Cluster, Plot};
use strait_sim::MachineOutcome;

use super::gateway::{ACCELERATOR, CPU, RATIOS, SHOWN_RATIO, WINDOWS};
use super::grid::{RunCell, RunGrid, cpu_use, latency};
use crate::figure::Figure;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};

/// The place of W = 30, and of none.
pub(super) const LARGEST: usize = WINDOWS.len() - 1;
pub(super) const NONE: usize = 0;

/// Packets a multi-packet with W = 30: 100 equally likely associations, and the trace (section IV-B).
pub(super) const BUNDLE: f64 = 1.33;
pub(super) const TRACE_BUNDLE: f64 = 2.57;

const SOURCE: &str = "Simulated from the parameters of Taddeo, Ferrante and Piuri, section IV-A, with Strait's window and \
                      dispatcher; what they leave open is in the report's notes.";

/// A figure of the paper: its number, what it shows, in which unit, what its columns are, and a value a cell.
struct PaperFigure<'a> {
    number: u8,
    title: &'static str,
    unit: FigureUnit,
    y: Axis,
    columns: Vec<(String, RunCell)>,
    value: &'a dyn Fn(&RunGrid, RunCell) -> f64,
}

/// Figures 3 to 6.
pub(super) fn papers(grid: &RunGrid) -> Vec<(LabTable, Figure)> {
    let relative = |number, title, y: &str, value| PaperFigure {
        number,
        title,
        unit: FigureUnit::Relative,
        y: Axis::logarithmic(y).at(1.0),
        columns: windows(),
        value,
    };
    let shown = [
        PaperFigure {
            number: 3,
            title: "packets processed by the CPU, W = 30",
            unit: FigureUnit::Share,
            y: Axis::linear("% of the packets"),
            columns: ratios(LARGEST),
            value: &|grid, cell| cpu_use(grid.at(cell)) * 100.0,
        },
        relative(4, "CPU use, T_enc-ratio 3", "CPU use over that without a window", &|grid, cell| {
            grid.relative(cell, cpu_use)
        }),
        relative(5, "throughput, T_enc-ratio 3", "throughput over that without a window", &|grid, cell| {
            grid.relative(cell, MachineOutcome::throughput)
        }),
        relative(6, "average latency, T_enc-ratio 3", "latency over that without a window", &|grid, cell| {
            grid.relative(cell, latency)
        }),
    ];
    shown.iter().map(|shown| (table(grid, shown), chart(grid, shown))).collect()
}

/// The tables of Figures 3 to 6 with the other rule for full queues.
pub(super) fn with_next(grid: &RunGrid) -> impl Iterator<Item = LabTable> {
    papers(grid).into_iter().map(|(mut table, _)| {
        table.subject.push_str(", full queues: the next processor with room");
        table
    })
}

/// The figures behind those, and what the statements are about.
pub(super) fn others(grid: &RunGrid) -> Vec<LabTable> {
    let section = |subject: &str, unit| (Exhibit::Section("IV-B"), subject.to_owned(), unit);
    let mut tables = vec![bundles(grid)];
    for (window, name) in [(NONE, "no window"), (LARGEST, "W = 30")] {
        let subject = format!("throughput, {name}");
        tables.push(rows(
            grid,
            section(&subject, FigureUnit::MegabitsPerSecond),
            &ratios(window),
            &|grid, cell| grid.at(cell).throughput() / 1e6,
        ));
        let subject = format!("average latency, {name}");
        let value = |grid: &RunGrid, cell| latency(grid.at(cell));
        tables.push(rows(grid, section(&subject, FigureUnit::Microseconds), &ratios(window), &value));
    }
    for (processor, name) in [(CPU, "the CPU"), (ACCELERATOR, "the accelerator")] {
        let subject = format!("packets that were merged, of those on {name}, W = 30");
        tables.push(rows(grid, section(&subject, FigureUnit::Share), &ratios(LARGEST), &|grid, cell| {
            merged(grid.at(cell), processor) * 100.0
        }));
    }
    tables
}

/// Of the packets that a processor did, the share that was aggregated.
pub(super) fn merged(outcome: &MachineOutcome, processor: usize) -> f64 {
    let share = &outcome.shares[processor];
    share.merged as f64 / share.packets as f64
}

/// The anchors.
fn bundles(grid: &RunGrid) -> LabTable {
    let columns = windows();
    let names = columns.iter().map(|(name, _)| name.clone());
    let subject = "multi-packets, by pattern and window";
    let mut table =
        LabTable::new(Exhibit::Section("IV-B"), subject, FigureUnit::Packets, Comparison::Difference, names);
    for (pattern, known) in grid.patterns.iter().enumerate() {
        // A trace that was made to have the paper's figure is not to be compared with it.
        let equally = pattern != super::pattern::TRACE;
        let printed = if equally { Some(BUNDLE) } else { known.recorded.then_some(TRACE_BUNDLE) };
        let cells = columns.iter().map(|(_, cell)| {
            let ours = computed(grid.at(RunCell { pattern, ..*cell }).packets_a_bundle());
            (ours, printed.filter(|_| cell.window == LARGEST))
        });
        table.row(known.name.clone(), cells);
    }
    table
}

/// A column a ratio.
fn ratios(window: usize) -> Vec<(String, RunCell)> {
    let column = |(ratio, times): (usize, &u32)| {
        (format!("T_enc-ratio {times}"), RunCell { pattern: 0, ratio, window })
    };
    RATIOS.iter().enumerate().map(column).collect()
}

/// A column a window.
fn windows() -> Vec<(String, RunCell)> {
    let column = |(window, packets): (usize, &usize)| {
        (format!("W = {packets}"), RunCell { pattern: 0, ratio: SHOWN_RATIO, window })
    };
    WINDOWS.iter().enumerate().skip(1).map(column).collect()
}

fn table(grid: &RunGrid, shown: &PaperFigure<'_>) -> LabTable {
    let about = (Exhibit::Figure(shown.number), shown.title.to_owned(), shown.unit);
    rows(grid, about, &shown.columns, shown.value)
}

/// A row a pattern.
fn rows(
    grid: &RunGrid,
    (exhibit, subject, unit): (Exhibit, String, FigureUnit),
    columns: &[(String, RunCell)],
    value: &dyn Fn(&RunGrid, RunCell) -> f64,
) -> LabTable {
    let names = columns.iter().map(|(name, _)| name.clone());
    let mut table = LabTable::new(exhibit, subject, unit, Comparison::Quotient, names);
    for (pattern, known) in grid.patterns.iter().enumerate() {
        let value =
            |(_, cell): &(String, RunCell)| (computed(value(grid, RunCell { pattern, ..*cell })), None);
        table.row(known.name.clone(), columns.iter().map(value));
    }
    table
}

/// A cluster a pattern.
fn chart(grid: &RunGrid, shown: &PaperFigure<'_>) -> Figure {
    let cluster = |(pattern, known): (usize, &super::grid::PatternInfo)| Cluster {
        name: known.name.clone(),
        section: if known.fixed { "fixed payloads".to_owned() } else { "of many sizes".to_owned() },
        values: shown
            .columns
            .iter()
            .map(|(_, cell)| (shown.value)(grid, RunCell { pattern, ..*cell }))
            .collect(),
    };
    let chart = Chart {
        title: format!("Figure {}: {}", shown.number, shown.title),
        source: SOURCE.to_owned(),
        y: shown.y.clone(),
        plot: Plot::Bars(Bars {
            series: shown.columns.iter().map(|(name, _)| name.clone()).collect(),
            clusters: grid.patterns.iter().enumerate().map(cluster).collect(),
        }),
    };
    Figure::new(format!("figure-{}", shown.number), chart)
}
