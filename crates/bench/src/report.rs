//! What the benchmarks found, as text for people, as JSON for programs and as a page for documentation.

mod markdown;

use std::fmt::Write;

use serde::Serialize;

use strait_lab::measure::{MachineInfo, MachineLoad, RunValues, short};

use crate::target::Target;
pub(crate) use markdown::ReportOrigin;

/// Everything a call of the program found.
#[derive(Debug, Serialize)]
pub(crate) struct BenchReport {
    /// Where.
    pub(crate) machine: MachineInfo,
    /// One a benchmark, in order.
    pub(crate) sections: Vec<BenchSection>,
    /// Benchmarks that could not run, with the reason.
    pub(crate) failed: Vec<Failed>,
}

/// A benchmark that could not run.
#[derive(Debug, Serialize)]
pub(crate) struct Failed {
    /// Its name.
    pub(crate) name: &'static str,
    /// Why.
    pub(crate) cause: String,
}

/// One benchmark: a table, and what its figures should reach.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BenchSection {
    /// Its name, as on the command line.
    pub(crate) name: &'static str,
    /// What was measured and how, in a line.
    pub(crate) title: String,
    /// What is compared.
    pub(crate) columns: Vec<String>,
    /// What was measured of each.
    pub(crate) rows: Vec<BenchRow>,
    /// What should have been reached.
    pub(crate) judgements: Vec<TargetResult>,
    /// What else is to be known, such as what was skipped.
    pub(crate) notes: Vec<String>,
    /// The machine just before each run, in the order of the runs.
    pub(crate) before: Vec<MachineLoad>,
}

/// One quantity, measured of each column.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BenchRow {
    /// What, and its unit.
    pub(crate) quantity: String,
    /// A sample a column; empty where it does not apply.
    pub(crate) cells: Vec<RunValues>,
}

/// A figure and what it should reach.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TargetResult {
    /// What the figure is.
    pub(crate) figure: String,
    /// Its values.
    pub(crate) sample: RunValues,
    /// What it should reach.
    pub(crate) target: Target,
}

impl BenchSection {
    /// A benchmark without figures yet.
    pub(crate) fn new(name: &'static str, title: impl Into<String>, columns: &[&str]) -> BenchSection {
        BenchSection {
            name,
            title: title.into(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows: Vec::new(),
            judgements: Vec::new(),
            notes: Vec::new(),
            before: Vec::new(),
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, quantity: impl Into<String>, cells: impl IntoIterator<Item = RunValues>) {
        self.rows.push(BenchRow { quantity: quantity.into(), cells: cells.into_iter().collect() });
    }

    /// Adds what a figure should reach.
    pub(crate) fn judge(&mut self, figure: impl Into<String>, sample: RunValues, target: Target) {
        self.judgements.push(TargetResult { figure: figure.into(), sample, target });
    }

    /// The benchmark for people.
    pub(crate) fn text(&self) -> String {
        let mut out = format!("{}: {}\n", self.name, self.title);
        let mut rows =
            vec![std::iter::once(String::new()).chain(self.columns.iter().cloned()).collect::<Vec<String>>()];
        rows.extend(self.rows.iter().map(|row| {
            let cells = row.cells.iter().map(ToString::to_string);
            std::iter::once(row.quantity.clone()).chain(cells).collect()
        }));
        out.push_str(&aligned(&rows));
        let judged = self.judgements.iter().map(|it| {
            vec![
                it.figure.clone(),
                it.sample.to_string(),
                format!("target {}", it.target),
                it.verdict().to_owned(),
            ]
        });
        out.push_str(&aligned(&judged.collect::<Vec<_>>()));
        for note in &self.notes {
            let _ = writeln!(out, "  note: {note}");
        }
        if !self.before.is_empty() {
            let _ = writeln!(out, "  before each run, load average and busy share: {}", loads(&self.before));
        }
        out
    }
}

impl TargetResult {
    /// In one word, by the median.
    pub(crate) fn verdict(&self) -> &'static str {
        match self.sample.spread() {
            None => "not measured",
            Some(spread) if self.target.is_met_by(spread.median) => "meets",
            Some(_) => "misses",
        }
    }
}

impl BenchReport {
    /// Everything, for programs.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).map_or_else(|error| error.to_string(), |text| text + "\n")
    }
}

fn loads(before: &[MachineLoad]) -> String {
    let each = before.iter().map(|load| format!("{:.2} {:.0}%", load.average, load.busy * 100.0));
    each.collect::<Vec<_>>().join(", ")
}

/// Rows as aligned columns, words left and figures right.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::from("  ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
            let parts = if column == 0 { [cell.as_str(), &gap] } else { [gap.as_str(), cell] };
            line.extend(parts.into_iter().chain(["   "]));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// A run's figure while the benchmark goes on.
pub(crate) fn progress(name: &str, run: usize, subject: &str, value: f64, unit: &str) {
    eprintln!("  {name}, run {run}: {subject} {} {unit}", short(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> BenchSection {
        let mut section = BenchSection::new("throughput", "one TCP stream", &["plain", "Strait"]);
        let fast: RunValues = [30.0, 32.0, 31.0].into_iter().collect();
        let ours: RunValues = [6.0, 6.4, 6.2].into_iter().collect();
        section.row("Gbit/s", [fast, ours.clone()]);
        section.row("CPU-s", [RunValues::default(), ours.clone()]);
        section.judge("Strait", ours.clone(), Target::AtLeast(3.5));
        section.judge("Strait again", ours, Target::AtMost(3.5));
        section.judge("others", RunValues::default(), Target::AtLeast(1.0));
        section.notes.push("others were skipped".to_owned());
        section.before.push(MachineLoad { average: 0.5, busy: 0.1 });
        section
    }

    #[test]
    fn text_says_what_meets_and_what_misses() {
        let expected = "\
throughput: one TCP stream
                      plain             Strait
  Gbit/s   31.0 (30.0-32.0)   6.20 (6.00-6.40)
  CPU-s                   -   6.20 (6.00-6.40)
  Strait         6.20 (6.00-6.40)   target >= 3.5          meets
  Strait again   6.20 (6.00-6.40)   target <= 3.5         misses
  others                        -     target >= 1   not measured
  note: others were skipped
  before each run, load average and busy share: 0.50 10%
";
        assert_eq!(section().text(), expected);
    }

    #[test]
    fn json_has_the_runs_and_their_spread() {
        let machine = MachineInfo { processor: "p".into(), cores: 2, kernel: "6".into(), governor: None };
        let report = BenchReport { machine, sections: vec![section()], failed: Vec::new() };
        let value: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        let cell = &value["sections"][0]["rows"][0]["cells"][0];
        assert_eq!(cell["spread"]["median"], 31.0);
        assert_eq!(cell["runs"][1], 32.0);
        assert_eq!(value["sections"][0]["judgements"][0]["target"]["at_least"], 3.5);
        assert!(value["sections"][0]["judgements"][2]["sample"]["spread"].is_null());
    }
}
