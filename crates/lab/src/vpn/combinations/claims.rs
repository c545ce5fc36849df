//! What sections 6 to 8 say of all combinations.

mod codecs;
mod networks;

use super::parameters::{ParameterCell, Parameters, SLOW_NETWORKS};
use super::pipelined;
use crate::claim::{self, Claim, ClaimTally, FigureSource, Finding};

/// Judges each sentence by each set of figures.
pub(super) fn judged(sets: &[(FigureSource, &Parameters)]) -> Vec<Claim> {
    let mut claims = claim::judged(&codecs::RULES, sets);
    claims.extend(claim::judged(&networks::RULES, sets));
    claims.extend(claim::judged(&networks::CHANGES, sets));
    claims.extend(claim::judged(&pipelined::RULES, sets));
    claims.sort_by_key(|claim| claim.section);
    claims
}

/// Judges the sentences about speedups with the recommended codec only, which may have been measured.
pub(super) fn of_speedups(sets: &[(FigureSource, &Parameters)]) -> Vec<Claim> {
    let mut claims = claim::judged(&networks::RULES, sets);
    claims.retain(|claim| !claim.judgements.is_empty());
    claims
}

/// "Usually": in more than this share of the cells.
const USUALLY: f64 = 0.5;
/// "Almost always", "in almost every case": in more than this share of the cells.
const ALMOST: f64 = 0.9;
/// Places of the paper's codecs.
const DEFLATE: usize = 0;
const LZS: usize = 1;
/// The network of 10 Mbit/s among the paper's; those before it are slower, those behind it faster.
const TEN: usize = SLOW_NETWORKS;

/// The speedup with the codec that section 7 recommends.
fn gain(it: &Parameters, cell: ParameterCell) -> f64 {
    it.gain(cell, Parameters::recommended(cell))
}

/// The ratio of that codec.
fn ratio(it: &Parameters, cell: ParameterCell) -> f64 {
    it.compression(cell, Parameters::recommended(cell)).ratio.get()
}

/// Counts cells: whether a figure meets a sentence.
fn tally(
    it: &Parameters,
    cells: impl Iterator<Item = ParameterCell>,
    figure: impl Fn(ParameterCell) -> f64,
    meets: impl Fn(f64) -> bool,
) -> ClaimTally {
    counted(it, cells.map(|cell| (cell, it.rest_of_name(cell), figure(cell))), meets)
}

/// The same of cells with a codec.
fn tally_of_both(
    it: &Parameters,
    cells: impl Iterator<Item = (ParameterCell, usize)>,
    figure: impl Fn(ParameterCell, usize) -> f64,
    meets: impl Fn(f64) -> bool,
) -> ClaimTally {
    let named = |cell, codec: usize| format!("{}, {}", it.codecs[codec].name, it.rest_of_name(cell));
    counted(it, cells.map(|(cell, codec)| (cell, named(cell, codec), figure(cell, codec))), meets)
}

/// Counts cells with the rest of their names and their figures.
fn counted(
    it: &Parameters,
    figures: impl Iterator<Item = (ParameterCell, String, f64)>,
    meets: impl Fn(f64) -> bool,
) -> ClaimTally {
    let mut tally = ClaimTally::default();
    for (cell, rest, figure) in figures {
        let (file, network) = (&it.files[cell.file], it.networks[cell.network].0);
        tally.count([file, network, &rest], figure, meets(figure));
    }
    tally
}

/// Cells with each of the paper's codecs.
fn both(cells: impl Iterator<Item = ParameterCell>) -> impl Iterator<Item = (ParameterCell, usize)> {
    cells.flat_map(|cell| [(cell, DEFLATE), (cell, LZS)])
}

/// Whether more than a share of the cells meet a sentence; no finding where there are none.
fn more_than(share: f64, tally: &ClaimTally) -> Option<Finding> {
    (tally.all() > 0).then(|| (tally.share() > share, tally.to_string()))
}
