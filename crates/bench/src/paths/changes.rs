//! Rates that change, and how soon that is found: whole nodes in virtual time, on the scripted paths of `strait lab paths`.

use strait_lab::Effort;
use strait_lab::measure::RunValues;
use strait_lab::paths::{FoundAfter, PathLab, PathResult};

use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::BenchSetup;
use crate::target::Target;

/// Seconds and round trips within which nine tenths of a rate that doubled are to be found, whichever is longer; and of a fourfold
/// one.
const FOUND_WITHIN: [(f64, f64, f64); 2] = [(2.0, 0.3, 4.0), (4.0, 0.3, 8.0)];
/// Milliseconds that a datagram waits in the modem for 95 % of the time: a queue of 250 ms would stand, were it not let go.
const STANDING: Target = Target::AtMost(50.0);
/// The paths on which the rate changes at a time and stays, with nothing beside the tunnel.
const STEPS: [&str; 2] = ["doubles", "fourfold"];
const COLUMNS: [&str; 4] =
    ["rate used, %", "queue, median, ms", "queue, 95 of 100, ms", "too much for the modem, %"];

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let seeds = setting.effort.pick(3, 1);
    let title = format!(
        "scripted paths in virtual time, rate looked for; the median (min-max) of {seeds} seeds. Greedy: a quarter more than the \
         fastest rate of the path; TCP: one connection with CUBIC"
    );
    let mut section = BenchSection::new("paths: rate that changes", title, &COLUMNS);
    let runs = (1..=seeds).map(results).collect::<Result<Vec<_>, Error>>()?;
    let Some(first) = runs.first() else { return Ok(section) };
    for (place, result) in first.iter().enumerate() {
        let seen: Vec<&PathResult> = runs.iter().filter_map(|run| run.get(place)).collect();
        one(&mut section, &seen, &format!("{}, {}", result.title, result.source.name()));
    }
    Ok(section)
}

fn results(seed: u64) -> Result<Vec<PathResult>, Error> {
    let lab = PathLab { seed, effort: Effort::Full, record: None, only: Vec::new() };
    Ok(lab.run(&mut |_| {}).map_err(|error| Error::Simulation(error.into()))?.paths)
}

/// The rows of one path with one source, where each seed gives a value.
fn one(section: &mut BenchSection, seen: &[&PathResult], what: &str) {
    let each = |value: fn(&PathResult) -> f64| seen.iter().map(|result| value(result)).collect::<RunValues>();
    let queue = each(|result| result.queue_p95_ms);
    section.row(
        what,
        [each(|result| result.used * 100.0), each(|result| result.queue_median_ms), queue.clone()]
            .into_iter()
            .chain([each(|result| result.overflowed * 100.0)]),
    );
    let Some(result) = seen.first().filter(|result| STEPS.contains(&result.path)) else { return };
    section.judge(format!("{what}, queue, 95 of 100, ms"), queue, STANDING);
    for (times, seconds, round_trips) in FOUND_WITHIN {
        let is_such = |found: &&FoundAfter| found.change.factor().is_some_and(|it| (it - times).abs() < 0.01);
        let found = |result: &PathResult| {
            result.found.iter().find(is_such).map(|found| found.seconds.unwrap_or(f64::NAN))
        };
        let values: RunValues = seen.iter().filter_map(|result| found(result)).collect();
        if values.values().is_empty() {
            continue;
        }
        let within = Target::AtMost(seconds.max(round_trips * result.round_trip_ms / 1e3));
        section.judge(
            format!("{what}, {times} times the rate, seconds until 90 % are found"),
            values,
            within,
        );
    }
}
