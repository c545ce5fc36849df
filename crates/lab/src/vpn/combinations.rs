//! Table 7 and Figures 6 to 9: every combination of algorithms, payload, benchmark and network, and where compression
//! pays.

mod break_even;
mod claims;
mod combination;
mod counts;
mod figures;
mod here;
mod measured;
mod parameters;
mod pipelined;

use serde::Serialize;

use super::{PAPER, codecs, crypto, slowdown};
use crate::claim::{Claim, FigureSource};
use crate::corpus::Corpus;
use crate::error::Error;
use crate::figure::Figure;
use crate::report::LabReport;
use crate::steps::{Effort, StepNote};
pub use combination::{Combination, Times};
use here::USUAL;
pub use measured::{
    FormSpeedup, HubCell, MOST_CLIENTS, MeasuredCell, MeasuredFigures, MeasuredHub, Transaction, VpnMeasure,
    figures_measured, hub,
};
use parameters::{NULL, ParameterCell, Parameters};
pub use pipelined::PipelineSize;

/// A report, with every combination behind it and with charts.
#[derive(Clone, Debug, Serialize)]
pub struct Combinations {
    /// What a person wants of them.
    #[serde(flatten)]
    pub report: LabReport,
    /// All of them.
    pub combinations: Vec<Combination>,
    /// Figures 6 to 9, and where each codec breaks even.
    #[serde(skip)]
    pub figures: Vec<Figure>,
}

/// Every combination of Table 7, from the figures that the paper prints: with stages one after another, or in a pipeline.
#[must_use]
pub fn combinations(pipeline: Option<PipelineSize>) -> Combinations {
    let parameters = Parameters { pipeline, ..Parameters::printed() };
    let source = "Computed from the rates and ratios of McGregor and Lee, Tables 1 and 4 to 6: headers and fragments \
                  counted, 80 % of the link's rate used. DEFLATE on the two slow networks, LZS on the others.";
    let mut made = Combinations::new(LabReport::computed(PAPER), &parameters, &parameters, source, |_| true);
    made.report.claims = claims(pipeline, &[(FigureSource::Computed, &parameters)]);
    let source = "Computed from Tables 1 and 4 to 6 of McGregor and Lee: the inequality of section 6.2, headers left \
                  aside, with the median rates over the benchmarks. Where a line leaves at the top it pays on any link.";
    made.break_evens(&parameters, &figures::protections(&parameters), "the paper's algorithms", source);
    made
}

/// The same from this machine's rates: with the paper's algorithms, and with today's, for links that came later too.
///
/// # Errors
/// [`Error::Refused`] when an algorithm does not do what it should, [`Error::NoLoad`].
pub fn combinations_here(
    effort: Effort,
    corpus: &Corpus,
    pipeline: Option<PipelineSize>,
    tell: &mut dyn FnMut(StepNote<'_>),
) -> Result<Combinations, Error> {
    let (report, measured) = here::measured(effort, corpus, tell)?;
    let parameters = Parameters { pipeline, ..measured };
    let papers = parameters.of_the_paper();
    let source = "From this machine's rates and ratios: headers and fragments counted, 80 % of the link's rate used. \
                  DEFLATE (deflate-6) on the two slow networks, LZS on the others.";
    let mut made = Combinations::new(report, &papers, &parameters, source, |class| class == USUAL);
    let printed = Parameters { pipeline, ..Parameters::printed() };
    made.report.claims =
        claims(pipeline, &[(FigureSource::Computed, &printed), (FigureSource::Here, &papers)]);
    let today = |cell: &ParameterCell| {
        cell.protection >= papers.protections.len() || parameters.protection(*cell).class == NULL
    };
    made.report.tables.push(counts::best_codecs(&parameters, "today's algorithms and none", today));
    let usual: Vec<usize> = parameters.place(USUAL, NULL).into_iter().collect();
    made.figures.extend(usual.iter().map(|place| figures::best(&parameters, *place)));
    let source = "From this machine's rates: the inequality of section 6.2 of McGregor and Lee, headers left aside, \
                  with each codec's median rates over the files. Where a line leaves at the top it pays on any link.";
    made.break_evens(&parameters, &usual, USUAL, source);
    Ok(made)
}

impl Combinations {
    /// Figures 6 to 9 from the paper's part of the parameters, counts and combinations from all of them; of `detailed`
    /// classes for each codec.
    fn new(
        report: LabReport,
        papers: &Parameters,
        all: &Parameters,
        source: &str,
        detailed: impl Fn(&str) -> bool,
    ) -> Combinations {
        let mut made = Combinations { report, combinations: combination::all(all), figures: Vec::new() };
        for (table, figure) in figures::papers(papers, source) {
            made.report.tables.push(table);
            made.figures.push(figure);
        }
        made.report.tables.push(counts::where_it_pays(all, detailed));
        match all.pipeline {
            None => made.report.tables.extend(counts::where_they_differ(all)),
            Some(size) => made.report.tables.extend(pipelined::tables(all, size)),
        }
        made.report.notes.extend(notes(all, made.combinations.len()));
        made
    }

    /// Up to which rate of a link each codec pays, under each of some protections by ratio and by file: by the inequality, which
    /// is not a pipeline's.
    fn break_evens(&mut self, parameters: &Parameters, protections: &[usize], under: &str, source: &str) {
        if parameters.pipeline.is_some() {
            return;
        }
        let pairings = break_even::pairings(parameters, protections);
        self.report.tables.push(break_even::by_ratio(&pairings, under));
        self.report.tables.extend(protections.iter().map(|place| break_even::by_file(parameters, *place)));
        let fastest = parameters.networks.iter().map(|(_, megabits)| *megabits).fold(0.0, f64::max);
        self.figures.push(break_even::figure(&pairings, fastest, under, source));
    }
}

/// Judges what the paper says, section by section: of all combinations by these figures, and of Tables 1, 2 and 4 to 6, with which a pipeline
/// has nothing to do, by its own.
fn claims(pipeline: Option<PipelineSize>, sets: &[(FigureSource, &Parameters)]) -> Vec<Claim> {
    let mut claims = Vec::new();
    if pipeline.is_none() {
        claims.extend(crypto::claims(None));
        claims.extend(slowdown::claims(None));
        claims.extend(codecs::claims(None));
    }
    claims.extend(claims::judged(sets));
    // Some need measurements that are made elsewhere.
    claims.retain(|claim| !claim.judgements.is_empty());
    claims.sort_by_key(|claim| claim.section);
    claims
}

fn notes(parameters: &Parameters, combinations: usize) -> Vec<String> {
    let Some(size) = parameters.pipeline else {
        return vec![
            format!(
                "{combinations} combinations; the speedup is the time without compression over the time with it, so 1 \
                 without (section 6.1)"
            ),
            counts::note(parameters),
            "what does not shrink is compressed in vain and sent as it was, so its speedup is below 1 on every network"
                .to_owned(),
        ];
    };
    vec![
        format!(
            "{combinations} combinations in {}: stages work at the same time on different packets, and the slowest of client, \
             link and server sets the pace (section 2); the speedup is how many times as many packets pass with compression. It \
             is a model: no packet passes anything",
            size.words()
        ),
        "clients are alike, and share the link and the server; packets are assigned to processors one by one, and processors \
         share nothing else, so what memory and locks cost is left aside"
            .to_owned(),
        "what does not shrink is compressed in vain, which costs nothing while the link sets the pace anyway: its speedup is 1 there"
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests;
