//! `lab paths`: the estimated rate beside the true one over time.

use std::fmt::Write;
use std::fs;

use strait_lab::Effort;
use strait_lab::paths::{FoundAfter, PathLab, PathLabReport, PathResult};

use super::{csv, in_form, written};
use crate::failure::{CommandResult, Failure};
use crate::flags;
use crate::progress::Progress;
use crate::table::{Side, TextTable};

/// Changes that are listed one by one; of more, the median and the longest are told.
const LISTED: usize = 6;

/// Runs the paths, prints a line for each with each source, and draws them.
pub(super) fn run(flags: &flags::LabPaths) -> CommandResult {
    let record =
        match &flags.trace {
            Some(path) => {
                let text =
                    fs::read_to_string(path).map_err(Failure::doing(format!("read {}", path.display())))?;
                let record = text.parse();
                Some(record.map_err(|error| {
                    Failure::new(format!("{} is no recorded rate: {error}", path.display()))
                })?)
            }
            None => None,
        };
    let effort = if flags.quick { Effort::Quick } else { Effort::Full };
    let lab = PathLab { seed: flags.seed, effort, record, only: flags.paths.clone() };
    let mut progress = Progress::new("{pos} of {len}");
    let report = lab.run(&mut |step| {
        let line = || format!("{}, {} of {}", step.what, step.done, step.of);
        progress.at(step.done as u64, step.of as u64, step.what, line);
    });
    progress.finish();
    let report = report.map_err(|error| Failure::new(format!("cannot set a node up: {error}")))?;
    if let Some(folder) = &flags.out {
        written(folder, &report.figures)?;
    }
    in_form(&flags.form, &report, lines, render)
}

const HEAD: &str = "path,source,round_trip_ms,used,received_mbit,found_over_true,queue_median_ms,queue_p95_ms,overflowed,\
    at_s,from_mbit,to_mbit,seconds,round_trips";

/// A line for each rate of each path with each source, of which the first is there from the beginning.
fn lines(report: &PathLabReport) -> String {
    let rates = report.paths.iter().flat_map(|it| {
        let figures = [
            Some(it.round_trip_ms),
            Some(it.used),
            Some(it.received_mbit),
            it.found_over_true,
            Some(it.queue_median_ms),
            Some(it.queue_p95_ms),
            Some(it.overflowed),
        ];
        it.found.iter().map(move |found| {
            let change = &found.change;
            let rate = [Some(change.at), change.from, Some(change.to), found.seconds, found.round_trips];
            let names = [it.path, it.source.name()].map(str::to_owned);
            names.into_iter().chain(figures.into_iter().chain(rate).map(csv::number))
        })
    });
    csv::lines(HEAD, rates)
}

fn render(report: &PathLabReport) -> String {
    let mut table = TextTable::new([
        "path",
        "source",
        "used",
        "payload",
        "found/true",
        "queue p50",
        "p95",
        "overflow",
        "90 % of each rate found after",
    ])
    .side(1, Side::Left)
    .side(8, Side::Left);
    for result in &report.paths {
        table.row([
            result.path.to_owned(),
            result.source.name().to_owned(),
            format!("{:.1} %", result.used * 100.0),
            format!("{:.2} Mbit/s", result.received_mbit),
            result.found_over_true.map_or_else(|| "-".to_owned(), |share| format!("{share:.2}")),
            format!("{:.1} ms", result.queue_median_ms),
            format!("{:.1} ms", result.queue_p95_ms),
            format!("{:.2} %", result.overflowed * 100.0),
            found(&result.found),
        ]);
    }
    let mut out = table.render(0);
    let mut titles: Vec<&PathResult> = report.paths.iter().collect();
    titles.dedup_by_key(|result| result.path);
    out.push('\n');
    for result in titles {
        let _ = writeln!(out, "{}: {}", result.path, result.title);
    }
    out
}

/// What was found when, in round trips: the beginning, then each change by its factor.
fn found(found: &[FoundAfter]) -> String {
    let round_trips = |found: &FoundAfter| {
        found.round_trips.map_or_else(|| "never".to_owned(), |count| format!("{count:.1} RTT"))
    };
    let (begin, changes) = found.split_at(found.len().min(1));
    let mut words: Vec<String> = begin.iter().map(|begin| format!("start {}", round_trips(begin))).collect();
    if changes.len() <= LISTED {
        let one = |found: &FoundAfter| {
            format!("x{:.2} {}", found.change.factor().unwrap_or(1.0), round_trips(found))
        };
        words.extend(changes.iter().map(one));
    } else {
        for (name, up) in [("up", true), ("down", false)] {
            let of: Vec<&FoundAfter> = changes.iter().filter(|found| found.change.is_up() == up).collect();
            let mut counts: Vec<f64> = of.iter().filter_map(|found| found.round_trips).collect();
            counts.sort_by(f64::total_cmp);
            let (middle, last) = (counts.get(counts.len() / 2), counts.last());
            if let (Some(middle), Some(last)) = (middle, last) {
                let (known, all) = (counts.len(), of.len());
                words.push(format!("{known} of {all} {name}, median {middle:.1} RTT, longest {last:.1}"));
            }
        }
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use strait_lab::paths::RateChange;

    use super::*;

    fn after(from: Option<f64>, to: f64, round_trips: Option<f64>) -> FoundAfter {
        FoundAfter { change: RateChange { at: 0.0, from, to }, seconds: round_trips, round_trips }
    }

    #[test]
    fn few_changes_are_listed_and_many_put_together() {
        let few =
            [after(None, 5.0, Some(9.04)), after(Some(5.0), 10.0, Some(3.0)), after(Some(10.0), 5.0, None)];
        assert_eq!(found(&few), "start 9.0 RTT, x2.00 3.0 RTT, x0.50 never");
        let many: Vec<FoundAfter> = (0..8)
            .map(|at| {
                let (from, to) = if at % 2 == 0 { (1.0, 2.0) } else { (2.0, 1.0) };
                after(Some(from), to, (at != 5).then_some(f64::from(at)))
            })
            .collect();
        let all = [&few[..1], &many[..]].concat();
        assert_eq!(
            found(&all),
            "start 9.0 RTT, 4 of 4 up, median 4.0 RTT, longest 6.0, 3 of 4 down, median 3.0 RTT, longest 7.0"
        );
        assert_eq!(found(&[]), "");
    }
}
