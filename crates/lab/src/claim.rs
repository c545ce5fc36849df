//! What a paper says of its figures, and whether the figures say so.

mod tally;

use serde::Serialize;

pub(crate) use tally::ClaimTally;

/// Whose figures a claim is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureSource {
    /// The paper's, as it prints them.
    Printed,
    /// Computed by the model from the paper's own rates.
    Computed,
    /// This machine's, as if it were as slow as the paper's.
    Slowed,
    /// This machine's.
    Here,
    /// Those of `strait put` on this machine.
    Put,
    /// Those of tunnels on this machine as slow as the paper's, with packets in flight.
    Tunnel,
    /// The same, with stages one after another.
    Stages,
}

impl FigureSource {
    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FigureSource::Printed => "printed",
            FigureSource::Computed => "computed",
            FigureSource::Slowed => "slowed",
            FigureSource::Here => "here",
            FigureSource::Put => "put",
            FigureSource::Tunnel => "tunnel",
            FigureSource::Stages => "stages",
        }
    }
}

/// A sentence of a paper.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// The section it stands in.
    pub section: &'static str,
    /// Its words, or what it says where the report does not quote.
    pub words: &'static str,
    /// What they are taken to mean, in figures.
    pub reading: &'static str,
    /// What each set of figures says to that.
    pub judgements: Vec<Judgement>,
}

/// What one set of figures says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// Whose figures.
    pub figures: FigureSource,
    /// Whether the claim holds on them.
    pub holds: bool,
    /// The figures that decide.
    pub because: String,
}

/// Whether a claim holds, and the figures that decide.
pub(crate) type Finding = (bool, String);

/// A sentence and the rule it is judged by, on figures of kind `F`.
pub(crate) struct ClaimRule<F: ?Sized> {
    pub(crate) section: &'static str,
    pub(crate) words: &'static str,
    pub(crate) reading: &'static str,
    /// Nothing, when these figures say nothing to it.
    pub(crate) judge: fn(&F) -> Option<Finding>,
}

/// Judges each sentence by each set of figures.
pub(crate) fn judged<F: ?Sized>(rules: &[ClaimRule<F>], sets: &[(FigureSource, &F)]) -> Vec<Claim> {
    let one = |rule: &ClaimRule<F>| {
        let judgement = |(figures, set): &(FigureSource, &F)| {
            let (holds, because) = (rule.judge)(set)?;
            Some(Judgement { figures: *figures, holds, because })
        };
        Claim {
            section: rule.section,
            words: rule.words,
            reading: rule.reading,
            judgements: sets.iter().filter_map(judgement).collect(),
        }
    };
    rules.iter().map(one).collect()
}

/// The least of some figures with its name; not-a-number and no name where there are none.
pub(crate) fn least(figures: impl Iterator<Item = (String, f64)>) -> (String, f64) {
    let smaller = |a: (String, f64), b: (String, f64)| if b.1 < a.1 { b } else { a };
    figures.reduce(smaller).unwrap_or((String::new(), f64::NAN))
}

/// The greatest, likewise.
pub(crate) fn greatest(figures: impl Iterator<Item = (String, f64)>) -> (String, f64) {
    let (name, value) = least(figures.map(|(name, value)| (name, -value)));
    (name, -value)
}

/// A finding that holds if all figures are in a range; the least and the greatest decide.
pub(crate) fn within(
    cells: impl Iterator<Item = (String, f64)>,
    range: core::ops::RangeInclusive<f64>,
) -> Option<Finding> {
    let cells: Vec<(String, f64)> = cells.collect();
    let ((low, least), (high, most)) = (least(cells.iter().cloned()), greatest(cells.into_iter()));
    let holds = range.contains(&least) && range.contains(&most);
    Some((holds, format!("{least:.2} ({low}) to {most:.2} ({high})")))
}
