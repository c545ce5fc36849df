//! Two builds side by side: the benchmarks of both run in turn, and each figure becomes a ratio of neighbours in time.
//!
//! Each build is measured by its own `strait-bench`, with the `strait` beside that, so that a renamed key of the
//! configuration or of `show --json` is no obstacle. Figures belong together by their place: section, row, column.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use serde_json::Value;
use strait_lab::measure::RunValues;
use strait_testbed::interrupt;

use crate::error::Error;
use crate::report::aligned;
use crate::{BenchFlags, Benchmark};

/// What a change may cost at most: noise between two runs of one build stays within it on a quiet machine.
const LEAST: f64 = 0.97;

/// Words of a quantity or a column that is better when it is larger. All others are times, bytes, memory or losses.
const LARGER_IS_BETTER: [&str; 7] = ["bit/s", "B/s", "packets/s", "a second", "arrived", "times", "goodput"];

/// Ends of a quantity that is better when it is smaller, whatever rates and times name its row.
const SMALLER_IS_BETTER: [&str; 3] = [", ms", "bytes a packet", "bytes a byte"];

/// Quantities and columns that describe a run and are not a result.
const NO_RESULT: [&str; 6] = ["over plain link", "load", "sent", "bytes a frame", "before", "processors"];

/// One figure of both builds, a value a pair of runs.
#[derive(Debug, Default)]
struct Compared {
    section: String,
    quantity: String,
    column: String,
    old: RunValues,
    new: RunValues,
}

impl Compared {
    /// How many times as good the new build is, pair by pair.
    fn ratio(&self) -> RunValues {
        let larger = |word: &&str| self.quantity.contains(word) || self.column.contains(word);
        let smaller = SMALLER_IS_BETTER.iter().any(|end| self.quantity.ends_with(end));
        if !smaller && LARGER_IS_BETTER.iter().any(larger) {
            self.new.over(&self.old)
        } else {
            self.old.over(&self.new)
        }
    }
}

/// Runs the wanted benchmarks of this build and of the one whose `strait-bench` is `old`, in turn, and prints ratios.
///
/// # Errors
/// [`Error::Comparison`] when one of them cannot be run or says nothing that can be read.
pub(crate) fn run(flags: &BenchFlags, old: &Path) -> Result<(), Error> {
    let this = std::env::current_exe()
        .map_err(|error| Error::Comparison(format!("where this program lies is unknown: {error}")))?;
    let wanted =
        if flags.only.is_empty() { Benchmark::value_variants().to_vec() } else { flags.only.clone() };
    let mut all = Vec::new();
    for benchmark in wanted {
        let mut rows: Vec<Compared> = Vec::new();
        for pair in 1..=flags.pairs {
            interrupt::check()?;
            // Which of them goes first changes, so that neither always finds the warmer machine.
            let (first, second) = if pair % 2 == 1 { (old, this.as_path()) } else { (this.as_path(), old) };
            let one = measure(first, benchmark, flags, &this)?;
            let other = measure(second, benchmark, flags, &this)?;
            let (before, after) = if pair % 2 == 1 { (one, other) } else { (other, one) };
            add(&mut rows, &before, &after)?;
            eprintln!("  {}: pair {pair} of {}", benchmark.name(), flags.pairs);
        }
        print!("{}", text(benchmark, flags.pairs, &rows));
        all.extend(rows);
    }
    let medians = all.iter().filter_map(|row| Some(row.ratio().spread()?.median));
    let below = medians.clone().filter(|median| *median < LEAST).count();
    println!("{} figures, {below} of them with a median ratio below {LEAST}", medians.count());
    Ok(())
}

/// What one build's benchmark says, as JSON: its sections.
fn measure(program: &Path, benchmark: Benchmark, flags: &BenchFlags, this: &Path) -> Result<Value, Error> {
    // Attackers and paths have to be the same for both, and the other build may know fewer of them.
    let by_this = matches!(benchmark, Benchmark::Hostile | Benchmark::Paths);
    let mut command = Command::new(if by_this { this } else { program });
    command.args(["--json", "--only", benchmark.name()]).stdin(Stdio::null()).stderr(Stdio::null());
    if by_this {
        command.arg("--strait").arg(program.with_file_name("strait"));
    }
    if flags.quick {
        command.arg("--quick");
    }
    let failed = |why: String| Error::Comparison(format!("{}: {why}", program.display()));
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    let value: Value = serde_json::from_slice(&output.stdout).map_err(|error| {
        failed(format!("{} printed no JSON: {error}; run it by hand to see why", benchmark.name()))
    })?;
    match value["sections"].get(0) {
        Some(_) => Ok(value["sections"].clone()),
        None => Err(failed(format!("{} could not run: {}", benchmark.name(), value["failed"]))),
    }
}

/// Adds the medians of a pair of runs to the figures.
fn add(rows: &mut Vec<Compared>, old: &Value, new: &Value) -> Result<(), Error> {
    let (before, after) = (figures(old), figures(new));
    if before.len() != after.len() {
        let (old, new) = (before.len(), after.len());
        return Err(Error::Comparison(format!("they have {old} and {new} figures")));
    }
    rows.resize_with(after.len(), Compared::default);
    for ((row, (_, old)), (names, new)) in rows.iter_mut().zip(before).zip(after) {
        [row.section, row.quantity, row.column] = names;
        row.old.push(old);
        row.new.push(new);
    }
    Ok(())
}

/// Section, quantity and column of each figure, with its median; not-a-number where nothing was measured.
fn figures(sections: &Value) -> Vec<([String; 3], f64)> {
    sections.as_array().into_iter().flatten().flat_map(of_section).collect()
}

fn of_section(section: &Value) -> Vec<([String; 3], f64)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rows = section["rows"].as_array().into_iter().flatten();
    let is_result = |name: &Value| !NO_RESULT.iter().any(|it| word(name).contains(it));
    let results = rows.filter(|row| is_result(&row["quantity"]));
    let cells = results.flat_map(|row| {
        let cells = row["cells"].as_array().into_iter().flatten().enumerate();
        let cells = cells.filter(move |(column, _)| is_result(&section["columns"][*column]));
        cells.map(move |(column, cell)| {
            let names = [&section["name"], &row["quantity"], &section["columns"][column]].map(word);
            (names, cell["spread"]["median"].as_f64().unwrap_or(f64::NAN))
        })
    });
    cells.collect()
}

fn text(benchmark: Benchmark, pairs: usize, rows: &[Compared]) -> String {
    let mut out = format!(
        "{}: old and new build in turn, {pairs} pairs, median (min-max); a ratio above 1 says that the new one is better\n",
        benchmark.name()
    );
    let head = ["", "", "old", "new", "ratio"].map(str::to_owned).to_vec();
    // A build that measured nothing, or nought, has no ratio, and is shown nevertheless.
    let measured = rows.iter().filter(|row| row.old.spread().is_some() || row.new.spread().is_some());
    let lines = measured.map(|row| {
        let ratio = row.ratio();
        vec![
            row.quantity.clone(),
            row.column.clone(),
            row.old.to_string(),
            row.new.to_string(),
            ratio.to_string(),
        ]
    });
    let table: Vec<Vec<String>> = std::iter::once(head).chain(lines).collect();
    let _ = writeln!(out, "{}", aligned(&table));
    out
}

/// The other build's program, checked before anything runs.
///
/// # Errors
/// [`Error::Comparison`] when it is not there.
pub(crate) fn program(path: &Path) -> Result<PathBuf, Error> {
    let path = if path.is_dir() { path.join("strait-bench") } else { path.to_owned() };
    path.canonicalize().map_err(|error| {
        Error::Comparison(format!(
            "{}: {error}; name the other build's strait-bench or its folder",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sections(gigabits: f64, nanos: f64) -> Value {
        json!([{
            "name": "throughput",
            "columns": ["plain link", "Strait"],
            "rows": [
                { "quantity": "Gbit/s", "cells": [{ "spread": null }, { "spread": { "median": gigabits } }] },
                { "quantity": "ns a packet", "cells": [{ "spread": { "median": nanos } }] },
                { "quantity": "10 Mbit/s, voice, ms", "cells": [{ "spread": { "median": nanos } }] },
                { "quantity": "Gbit/s over plain link", "cells": [{ "spread": { "median": 1.0 } }] },
            ],
        }])
    }

    #[test]
    fn ratios_say_how_many_times_as_good_the_new_build_is() {
        let mut rows = Vec::new();
        add(&mut rows, &sections(4.0, 200.0), &sections(5.0, 100.0)).unwrap();
        add(&mut rows, &sections(4.0, 100.0), &sections(2.0, 100.0)).unwrap();
        let ratios: Vec<RunValues> = rows.iter().map(Compared::ratio).collect();
        assert!(ratios[0].spread().is_none(), "the plain link was not measured");
        assert_eq!(ratios[1].values(), [1.25, 0.5], "more Gbit/s is better");
        assert_eq!(ratios[2].values(), [2.0, 1.0], "fewer nanoseconds are better");
        assert_eq!(ratios[3].values(), [2.0, 1.0], "and fewer milliseconds, on whatever link");
        assert_eq!(rows.len(), 4, "what describes the run is left out");
    }

    #[test]
    fn builds_with_other_figures_are_refused() {
        let mut other = sections(1.0, 1.0);
        other[0]["rows"].as_array_mut().unwrap().pop();
        other[0]["rows"].as_array_mut().unwrap().pop();
        let error = add(&mut Vec::new(), &sections(1.0, 1.0), &other).unwrap_err();
        assert_eq!(error.to_string(), "the builds cannot be compared: they have 4 and 3 figures");
    }

    #[test]
    fn a_build_that_is_not_there_is_named() {
        let error = program(Path::new("/nowhere/strait-bench")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/strait-bench: "), "{error}");
    }
}
