//! How fast a file goes, by algorithm.
//!
//! - `memory`, `wire`, `tunnel`: both ends in memory; over a real interface or link; through a tunnel of two daemons;
//! - `variants`, `share`: lengths of keys and Kij algorithms; a processor of which others have a share;
//! - `tables`, `figures`, `claims`, `notes`: what is made of it.

mod claims;
mod figures;
mod memory;
mod notes;
mod share;
mod tables;
pub(super) mod tunnel;
mod variants;
mod wire;

use std::time::Duration;

use super::EnskipLab;
use super::algorithm::Combination;
use super::content::EnskipFile;
use super::packet::SkipSettings;
use crate::claim::{self, FigureSource};
use crate::error::Error;
use crate::figure::Figure;
use crate::measure::{RepeatTimer, RunValues};
use crate::rate;
use crate::report::LabReport;
use crate::steps::{Effort, StepCounter, StepNote};
use claims::EnskipFigures;
use memory::MemoryRun;
use share::ShareRuns;
use tunnel::TunnelRuns;
use variants::Variants;
use wire::{Wire, WireRuns};

/// Runs of each cell, and how long one takes at least: with two files in memory, the loopback interface, a link and a tunnel, a
/// combination has nearly 2 s, and the whole some 45.
const RUNS: (usize, Duration) = (5, Duration::from_millis(45));
/// How long RC4 has beside rivals, and the transfers of an algorithm through a tunnel: some turns of the kernel's scheduler, and
/// some dozen files.
const SHARE: Duration = Duration::from_millis(300);
pub(super) const TUNNEL: Duration = Duration::from_millis(600);
/// A combination with a fifth of the link's rate leaves the kernel a fifth of the time.
const PROCESSOR_DECIDES: f64 = 0.2;
/// Runs beside rivals.
const SHARE_RUNS: usize = 3;
/// A quick look: that long a share, and that much of the files.
pub(super) const QUICK: (Duration, usize) = (Duration::from_millis(20), 64 * 1024);

/// How often and how long each cell is measured.
pub(super) const fn timer(effort: Effort) -> RepeatTimer {
    effort.stopwatch(RUNS.0, RUNS.1)
}

/// Everything that was measured; rates in kbytes/s, by the places of combinations.
pub(super) struct Throughput {
    /// The file that stands for the C source.
    source: EnskipFile,
    /// In memory: random bytes, and the source.
    memory: [Vec<RunValues>; 2],
    loopback: Vec<WireRuns>,
    /// Over a link, or why there is none.
    link: Result<Vec<WireRuns>, String>,
    /// Through tunnels, or why there are none.
    tunnel: Result<TunnelRuns, String>,
    variants: Variants,
    shares: Vec<ShareRuns>,
}

impl Throughput {
    pub(super) fn measured(lab: &EnskipLab, tell: &mut dyn FnMut(StepNote<'_>)) -> Result<Throughput, Error> {
        let (timer, quick) = (timer(lab.effort), lab.effort == Effort::Quick);
        let len = if quick { QUICK.1 } else { usize::MAX };
        let source = lab.file.clone().unwrap_or_else(EnskipFile::source).front(len);
        let random = EnskipFile::random().front(len);
        rate::calibrate();
        let tunnels = usize::from(lab.tunnels().is_ok());
        let all = 2 * (1 + timer.repeats) + tunnels + Variants::STEPS + 1;
        let mut steps = StepCounter::new(all, tell);
        let memory = in_memory(timer, [&random, &source], &mut steps)?;
        let mut wires = vec![Wire::Loopback];
        if lab.hosts.is_ok() {
            wires.push(Wire::link()?);
        }
        let mut over = over(&wires, timer, &random, &mut steps)?.into_iter();
        let loopback = over.next().unwrap_or_default();
        let why = |why: &String| format!("no hosts can be made: {why}");
        let link = over.next().ok_or_else(|| lab.hosts.as_ref().err().map(why).unwrap_or_default());
        let tunnel = match lab.tunnels() {
            Ok(program) => {
                steps.next("tunnels");
                Ok(tunnel::measured(program, &random.bytes, if quick { QUICK.0 } else { TUNNEL })?)
            }
            Err(why) => Err(why.to_owned()),
        };
        let variants = Variants::measured(timer, &random.bytes, &mut steps)?;
        steps.next("RC4 with a share of the processor");
        let (runs, span) = if quick { (1, QUICK.0) } else { (SHARE_RUNS, SHARE) };
        let shares = share::measured(&random.bytes, runs, span)?;
        Ok(Throughput { source, memory, loopback, link, tunnel, variants, shares })
    }

    /// Puts tables, judgements and notes into a report.
    pub(super) fn reported(&self, report: &mut LabReport) {
        report.tables.extend(self.tables());
        let here = self.here();
        let sets = [(FigureSource::Printed, &EnskipFigures::printed()), (FigureSource::Here, &here)];
        report.claims.extend(claim::judged(&claims::rules::RULES, &sets));
        report.notes.extend(self.notes());
    }

    /// Its charts.
    pub(super) fn figures(&self) -> Vec<Figure> {
        figures::all(self)
    }

    /// Medians, as sentences are judged by them.
    fn here(&self) -> EnskipFigures {
        let wire = |runs: &[WireRuns]| tables::by_algorithm(|place| Some(median(&runs[place].processor)));
        let mut machines = vec![("loopback".to_owned(), wire(&self.loopback))];
        machines.extend(self.link.iter().map(|link| ("link".to_owned(), wire(link))));
        let [random, text] = &self.memory;
        let names = Combination::all().map(|combination| combination.to_string());
        let ratio = |(random, text): (&RunValues, &RunValues)| median(text) / median(random);
        let rates = |row: &variants::VariantRow| (row.name.clone(), row.rates.iter().map(median).collect());
        EnskipFigures {
            link: self.link.is_ok().then_some([1, 0]),
            processor_decides: PROCESSOR_DECIDES,
            machines,
            text: names.zip(random.iter().zip(text).map(ratio)).collect(),
            keys: self.variants.keys.iter().map(rates).collect(),
            kij: self.variants.kij.iter().map(rates).collect(),
            shares: self.shares.iter().map(|it| [median(&it.share), median(&it.rate)]).collect(),
        }
    }
}

/// Every combination with both files, in turn.
fn in_memory(
    timer: RepeatTimer,
    files: [&EnskipFile; 2],
    steps: &mut StepCounter<'_>,
) -> Result<[Vec<RunValues>; 2], Error> {
    let mut runs = Vec::new();
    // Both files of a combination stand beside each other, as they are compared.
    for combination in Combination::all() {
        for file in files {
            runs.push(MemoryRun::new(SkipSettings::of(combination), &file.bytes)?);
        }
    }
    let all = memory::in_turn(timer, &mut runs, |round| {
        steps.next(&format!("in memory, run {round} of {}", timer.repeats));
    })?;
    let of = |file: usize| all.iter().skip(file).step_by(files.len()).cloned().collect();
    Ok([of(0), of(1)])
}

/// Every combination over each interface, in turn; by interface.
fn over(
    wires: &[Wire],
    timer: RepeatTimer,
    file: &EnskipFile,
    steps: &mut StepCounter<'_>,
) -> Result<Vec<Vec<WireRuns>>, Error> {
    let mut all = vec![vec![WireRuns::default(); Combination::COUNT]; wires.len()];
    for round in 0..=timer.repeats {
        steps.next(&format!("over interfaces, run {round} of {}", timer.repeats));
        for (place, combination) in Combination::all().enumerate() {
            for (wire, runs) in wires.iter().zip(&mut all) {
                let counts = (round > 0).then_some(&mut runs[place]);
                wire.run(SkipSettings::of(combination), &file.bytes, timer.least, counts)?;
            }
        }
    }
    Ok(all)
}

fn median(values: &RunValues) -> f64 {
    values.spread().map_or(f64::NAN, |spread| spread.median)
}

#[cfg(test)]
mod tests;
