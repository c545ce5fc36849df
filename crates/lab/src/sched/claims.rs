//! What section IV-B says of Figures 3 to 6.

pub(super) mod rules;

use super::beyond::{self, Beyond};
use super::gateway::{RATIOS, WINDOWS};
use super::grid::{RunCell, RunGrid};
use crate::claim::{self, Claim, ClaimTally, FigureSource};
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable};
use rules::{LABELS, RULES};

/// Judges each sentence that these figures say something to.
pub(super) fn judged(grid: &RunGrid, beyond: &Beyond) -> Vec<Claim> {
    let mut claims = claim::judged(&RULES, &[(FigureSource::Computed, grid)]);
    claims.extend(claim::judged(&beyond::rules::RULES, &[(FigureSource::Computed, beyond)]));
    // The trace's own need one that was recorded.
    claims.retain(|claim| !claim.judgements.is_empty());
    claims
}

/// Whether each statement holds when something that the paper leaves open is taken otherwise.
pub(super) fn variations(stated: &RunGrid, varied: &[RunGrid]) -> LabTable {
    let grids = || std::iter::once(stated).chain(varied);
    let names = grids().map(|grid| grid.gateway.name);
    let subject = "whether the statements below hold when what is left open is taken otherwise (see notes)";
    let mut table =
        LabTable::new(Exhibit::Section("IV-B"), subject, FigureUnit::Holds, Comparison::Difference, names);
    for (label, rule) in LABELS.iter().zip(&RULES) {
        let verdict = |grid| (rule.judge)(grid).map(|(holds, _)| f64::from(u8::from(holds)));
        if verdict(stated).is_some() {
            table.row(*label, grids().map(|grid| (verdict(grid).into_iter().collect(), None)));
        }
    }
    table
}

/// Counts cells: whether a figure meets a sentence.
fn tally(
    grid: &RunGrid,
    cells: impl Iterator<Item = RunCell>,
    figure: impl Fn(RunCell) -> f64,
    meets: impl Fn(f64) -> bool,
) -> ClaimTally {
    let mut tally = ClaimTally::default();
    for cell in cells {
        let window = match WINDOWS[cell.window] {
            1 => "no window".to_owned(),
            packets => format!("W = {packets}"),
        };
        let ratio = format!("T_enc-ratio {}", RATIOS[cell.ratio]);
        let figure = figure(cell);
        tally.count([&grid.patterns[cell.pattern].name, &window, &ratio], figure, meets(figure));
    }
    tally
}
