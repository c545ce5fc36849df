//! A. Kallio, *Performance comparison of streamed encryption and compression* (CSC blogs, 2011): what it costs to compress and encrypt
//! files on their way to a file broker.
//!
//! - `chain` and `layer`: what is done to a payload on its way, in constant memory; `table_aes`: AES as Java had it then;
//! - `run`: real runs from disk to disk, and what both ends of a transfer take; `pipeline`: the transfer in virtual time;
//! - `stages`: each stage by itself, keys and levels; `machine`: the table that they give, here and on machines as slow as the post's;
//! - `payload`, `printed`, `today`: what is stored, the post's figures, what one would take now;
//! - `product`: the same combinations with `strait put`, a broker and `strait fetch` between hosts;
//! - `tables`, `figures`, `claims`, `notes`: what is made of it.

mod chain;
mod claims;
mod figures;
mod layer;
mod machine;
mod notes;
mod payload;
mod pipeline;
pub mod printed;
mod product;
mod run;
mod stages;
mod table_aes;
mod tables;
mod today;

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use strait_testbed::Workdir;

use crate::claim::{self, Claim, FigureSource};
use crate::error::Error;
use crate::figure::Figure;
use crate::measure::{RepeatTimer, RunValues};
use crate::rate;
use crate::report::{LabReport, LabTable};
use crate::steps::{Effort, StepCounter, StepNote};
use chain::Chain;
use claims::BrokerFigures;
use machine::{PlaceTable, StageNanos};
pub use payload::BrokerPayload;
use printed::COMBINATIONS;
use product::NetworkRuns;
pub use product::{BrokerMeasure, BrokerNetwork};
use run::ChainRuns;
use stages::{BEST, DEFAULT, FASTEST, StageCosts};

/// As reports name it.
const PAPER: &str = "Kallio, Performance comparison of streamed encryption and compression";
/// Runs that count, as in the post.
const RUNS: usize = 5;
/// Bytes of a generated payload: a run of all combinations takes a second or two.
const LEN: usize = 8 * 1024 * 1024;
/// For a quick look.
const QUICK: (usize, usize) = (2, 512 * 1024);
/// How often and how long each stage is measured.
const STOPWATCH: (usize, Duration) = (5, Duration::from_millis(20));
/// The place of the payload that shrinks as the post's did,
const COUNTS: usize = 0;
/// of the one that shrinks less, and of the one that does not.
const LESS: usize = 1;
const RANDOM: usize = 2;

/// A report, and charts.
#[derive(Clone, Debug, Serialize)]
pub struct Broker {
    /// Tables, claims and notes.
    #[serde(flatten)]
    pub report: LabReport,
    /// Speeds by place, load, and rates by link.
    #[serde(skip)]
    pub figures: Vec<Figure>,
}

/// Everything that was measured.
struct BrokerRuns {
    payloads: Vec<BrokerPayload>,
    /// By payload: the post's combinations, then those that it advises; of the first payload also today's.
    runs: Vec<Vec<ChainRuns>>,
    costs: StageCosts,
    /// The measured values of the product's networks; empty if none was to be measured.
    product: Vec<NetworkRuns>,
}

/// Makes the post's table and what it says in words, with a file of one's own beside the generated ones, and with the product if
/// `measure` says which.
///
/// # Errors
/// [`Error`] when files or hosts cannot be made, an algorithm or a command refuses, or a signal asks for the end.
pub fn broker(
    effort: Effort,
    given: Option<BrokerPayload>,
    measure: Option<&BrokerMeasure>,
    tell: &mut dyn FnMut(StepNote<'_>),
) -> Result<Broker, Error> {
    let (runs, len) = if effort == Effort::Full { (RUNS, LEN) } else { QUICK };
    let stopwatch = effort.stopwatch(STOPWATCH.0, STOPWATCH.1);
    let mut report = LabReport::begin(PAPER, stopwatch)?;
    if let Some(measured) = &mut report.measured {
        measured.method = format!(
            "median and min-max of {runs} runs of all combinations in turn after one that does not count, and of {}",
            measured.method.trim_start_matches("median and min-max of ")
        );
    }
    rate::calibrate();
    let payloads: Vec<BrokerPayload> = BrokerPayload::generated(len).into_iter().chain(given).collect();
    let folder = Workdir::create()?;
    let more = measure.map_or(0, |measure| measure.steps(effort));
    let mut steps = StepCounter::new(more + payloads.len() * (runs + 2) + StageCosts::STEPS, tell);
    // First, as most can be lacking for it.
    let product = measure.map(|measure| measure.run(effort, &mut steps)).transpose()?.unwrap_or_default();
    let made = BrokerRuns::measured(stopwatch, payloads, folder.path(), runs, &mut steps)?;
    Ok(BrokerRuns { product, ..made }.reported(report))
}

impl BrokerRuns {
    fn measured(
        stopwatch: RepeatTimer,
        payloads: Vec<BrokerPayload>,
        folder: &Path,
        runs: usize,
        steps: &mut StepCounter<'_>,
    ) -> Result<BrokerRuns, Error> {
        let mut all = Vec::new();
        for (place, payload) in payloads.iter().enumerate() {
            let mut chains: Vec<Chain> = Chain::papers().into_iter().chain(Chain::advised()).collect();
            if place == COUNTS {
                chains.extend(today::chains());
            }
            all.push(run::measured(&chains, payload, folder, runs, steps)?);
        }
        let costs = StageCosts::measured(stopwatch, &payloads, folder, steps)?;
        Ok(BrokerRuns { payloads, runs: all, costs, product: Vec::new() })
    }

    fn reported(&self, mut report: LabReport) -> Broker {
        let (slow, factor) = self.stages(COUNTS).slowed();
        report.tables = self.tables(&slow, factor);
        report.claims = self.claims(&slow, factor);
        report.notes.extend(notes::all(&self.payloads, &slow, factor));
        let mut machines = vec![
            ("as slow as the post's", slow.table()),
            ("from the post's row for disks", self.stages(COUNTS).of_the_post().table()),
        ];
        if !self.product.is_empty() {
            report.notes.extend(product::notes::all());
            machines.push(("with strait put", product::speeds(&self.product)));
        }
        let figures = figures::all(&self.payloads[COUNTS].name, self.papers(COUNTS), &machines);
        Broker { report, figures }
    }

    /// The post's combinations with a payload.
    fn papers(&self, payload: usize) -> &[ChainRuns] {
        &self.runs[payload][..COMBINATIONS.len()]
    }

    /// This machine's stages with a payload.
    fn stages(&self, payload: usize) -> StageNanos {
        StageNanos::here(&self.costs, &self.costs.levels[payload][FASTEST])
    }

    fn tables(&self, slow: &StageNanos, factor: f64) -> Vec<LabTable> {
        let names: Vec<&str> = self.payloads.iter().map(|payload| payload.name.as_str()).collect();
        let (first, name) = (self.papers(COUNTS), names[COUNTS]);
        // A given file is beside the post's figures as well: it may be of its kind.
        let beside = |place: usize| !(LESS..=RANDOM).contains(&place);
        let speeds = |(place, name): (usize, &&str)| tables::speeds(name, self.papers(place), beside(place));
        let mut all: Vec<LabTable> = names.iter().enumerate().map(speeds).collect();
        all.push(tables::rates(name, first));
        if !self.product.is_empty() {
            all.extend(product::tables::all(&self.product, first));
        }
        all.push(tables::in_proportion(name, first));
        let subject = "speeds computed from four cells of the post's row from disk to disk";
        all.push(tables::computed_from(subject, &self.stages(COUNTS).of_the_post().table()));
        let subject = format!(
            "speeds of a machine as slow as the post's: computing takes {factor:.0} times as long as here"
        );
        all.push(tables::computed_from(&subject, &slow.table()));
        all.push(tables::loads(name, first));
        all.push(tables::rc4_loads(first));
        let rows = names.iter().enumerate().map(|(place, name)| (*name, self.papers(place)));
        all.push(tables::saved("space saved at the broker", COMBINATIONS.map(str::to_owned), rows));
        all.push(tables::keys(&self.costs));
        all.extend(tables::levels(&names, &self.costs));
        let (papers, more) = self.runs[COUNTS].split_at(COMBINATIONS.len());
        let (advised, today) = more.split_at(Chain::advised().len());
        let subject = format!("TLS that only authenticates, with AES inside, {name}");
        all.push(tables::beside(&subject, papers, papers.iter().skip(2).chain(advised)));
        let subject = format!("suites and codecs of today, {name}");
        all.push(tables::beside(&subject, papers, today.iter()));
        all.push(tables::today_saved(name, today));
        all
    }

    fn claims(&self, slow: &StageNanos, factor: f64) -> Vec<Claim> {
        let (printed, here, post) =
            (BrokerFigures::printed(), self.here(), self.stages(COUNTS).of_the_post());
        let networks = [printed::FAST, printed::SLOW];
        let load = |machine: &StageNanos| Some(networks.map(|place| machine.rc4_load(place)));
        let computed = BrokerFigures { rc4_load: load(&post), ..BrokerFigures::of(post.table()) };
        let [_, by_tables] = &self.costs.aes;
        let slower = |keys| medians(keys).map(|nanos| nanos * factor);
        let slowed = BrokerFigures {
            less: Some(self.stages(LESS).slowed().0.table()),
            rc4_load: load(slow),
            keys: Some([slower(&self.costs.rc4), slower(by_tables)]),
            ..BrokerFigures::of(slow.table())
        };
        let put = BrokerFigures::of(product::speeds(&self.product));
        let sets = [
            (FigureSource::Printed, &printed),
            (FigureSource::Computed, &computed),
            (FigureSource::Slowed, &slowed),
            (FigureSource::Here, &here),
            // Says nothing where nothing was measured.
            (FigureSource::Put, &put),
        ];
        claim::judged(&claims::rules::RULES, &sets)
    }

    /// This machine's figures.
    fn here(&self) -> BrokerFigures {
        let levels = &self.costs.levels[COUNTS];
        let [by_instructions, _] = &self.costs.aes;
        BrokerFigures {
            table: medians_of(self.papers(COUNTS)),
            less: Some(medians_of(self.papers(LESS))),
            rc4_load: Some(tables::rc4_added(self.papers(COUNTS)).map(|added| median(&added))),
            keys: Some([medians(&self.costs.rc4), medians(by_instructions)]),
            levels: Some([FASTEST, DEFAULT, BEST].map(|at| (levels[at].ratio, median(&levels[at].nanos)))),
        }
    }
}

fn median(values: &RunValues) -> f64 {
    values.spread().map_or(f64::NAN, |spread| spread.median)
}

fn medians(keys: &[RunValues; 3]) -> [f64; 3] {
    core::array::from_fn(|place| median(&keys[place]))
}

/// Medians in the form of the post's table.
fn medians_of(runs: &[ChainRuns]) -> PlaceTable {
    tables::HERE.map(|place| {
        core::array::from_fn(|column| {
            tables::relative(place, runs, &runs[column]).map(|figures| median(&figures))
        })
    })
}

#[cfg(test)]
mod tests;
