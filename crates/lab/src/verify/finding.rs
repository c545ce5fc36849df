//! What came of it: every cell measured and predicted, and the two verdicts.

use serde::Serialize;
use serde_json::Value;
use strait_compress::Method;
use strait_model::PipelineSegment;

use super::Rounds;
use super::content::Content;
use super::grid::{GridPlace, VerifyGrid};
use super::predict::{MethodTimes, PlainTunnelTimes};
use super::run::{AverageBlocks, StreamResult, Work};
use crate::measure::{MachineInfo, RunValues};

/// Beside others that use more of the processors than this, figures mean little.
pub(super) const DISTURBED: f64 = 0.05;
/// Errors of the model's speedups, at most, at the median.
const ERROR: f64 = 0.10;
/// A choice this near the best is right: what two runs of the same differ by on a busy machine.
const NEAR: f64 = 0.05;
/// The share of the choices that are to be right.
const RIGHT: f64 = 0.95;

/// The whole grid.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    /// Where.
    pub machine: MachineInfo,
    /// What the tunnel takes for each byte at its fastest, without compression: on unshaped links, and on those that
    /// carry no super-packets.
    pub work: [Work; 2],
    /// By block, link and content.
    pub cells: Vec<FindingCell>,
    /// What all of it comes to.
    pub all: FindingSummary,
    /// What those cells come to beside which the machine did little else.
    pub undisturbed: FindingSummary,
    /// What errors should be at most, at the median.
    pub error_target: f64,
    /// What share of choices should at least be right.
    pub right_target: f64,
    /// How far below the best a choice may be to be right.
    pub near: f64,
}

/// Errors and choices of some cells; not-a-number where there are none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FindingSummary {
    /// How many cells.
    pub cells: usize,
    /// Errors of predicted speedups where the processors limit, by the model. This is what tries it.
    pub processors: PredictionErrors,
    /// Where the link does: how far the data shrank is given, so only headers are left to be wrong about.
    pub link: PredictionErrors,
    /// The share of the tunnel's choices that were the best or near it.
    pub right: f64,
}

/// Errors of some predicted speedups, as shares of the measured ones. What was not compressed is not among them: that
/// it is as fast as without is no prediction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PredictionErrors {
    /// How many.
    pub count: usize,
    /// The median; not-a-number of none.
    pub median: f64,
}

/// One link, cap and content.
#[derive(Clone, Debug, Serialize)]
pub struct FindingCell {
    /// Mbit/s of the link; none when it is unshaped.
    pub link: Option<f64>,
    /// Most bytes of a block.
    pub block: u32,
    /// What was sent.
    pub content: &'static str,
    /// Mbit/s of content without compression.
    pub without: RunValues,
    /// The share of the processors that others used in the run that was disturbed most.
    pub others: f64,
    /// Whether that counts: it does not where nothing but the link decides.
    pub disturbed: bool,
    /// With each method.
    pub tried: Vec<MethodResult>,
    /// As the tunnel chose.
    pub pick: Pick,
}

/// One method.
#[derive(Clone, Debug, Serialize)]
pub struct MethodResult {
    /// Which.
    pub method: String,
    /// Mbit/s of content.
    pub goodput: RunValues,
    /// Of that, times what it is without.
    pub speedup: f64,
    /// What the model says to that.
    pub predicted: f64,
    /// What limits, by the model; none where nothing was compressed.
    pub limit: Option<&'static str>,
    /// Bytes of a block on average.
    pub block: Option<f64>,
    /// How far blocks shrank.
    pub ratio: Option<f64>,
}

/// The tunnel's choice.
#[derive(Clone, Debug, Serialize)]
pub struct Pick {
    /// What stood decided at the end of each round, with the figures that decided it.
    pub decisions: Vec<Option<Value>>,
    /// Mbit/s of content.
    pub goodput: RunValues,
    /// The best of the others.
    pub best: String,
    /// How far below that the choice is, as a share; negative above.
    pub short: f64,
}

impl MethodResult {
    /// The predicted speedup's error, as a share of the measured one.
    #[must_use]
    pub const fn error(&self) -> f64 {
        self.predicted / self.speedup - 1.0
    }
}

impl Pick {
    /// What it was, in every round.
    pub fn methods(&self) -> impl Iterator<Item = &str> {
        self.decisions.iter().map(|it| it.as_ref().and_then(|it| it["choice"].as_str()).unwrap_or("none"))
    }

    /// Whether it is the best or near it.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.short <= NEAR
    }
}

impl FindingSummary {
    fn of<'a>(cells: impl Iterator<Item = &'a FindingCell> + Clone) -> FindingSummary {
        let limited = |by_link: bool| {
            let tried = cells.clone().flat_map(|cell| &cell.tried);
            let tried = tried.filter(|it| {
                it.limit.is_some_and(|limit| (limit == PipelineSegment::Link.name()) == by_link)
            });
            let errors: RunValues = tried.map(|it| it.error().abs()).collect();
            PredictionErrors { count: errors.values().len(), median: median(&errors) }
        };
        let count = cells.clone().count();
        let right = cells.clone().filter(|cell| cell.pick.is_right()).count();
        FindingSummary {
            cells: count,
            processors: limited(false),
            link: limited(true),
            right: right as f64 / count as f64,
        }
    }
}

impl Verification {
    pub(super) fn new(machine: MachineInfo, work: [Work; 2], cells: Vec<FindingCell>) -> Verification {
        Verification {
            machine,
            work,
            all: FindingSummary::of(cells.iter()),
            undisturbed: FindingSummary::of(cells.iter().filter(|cell| !cell.disturbed)),
            error_target: ERROR,
            right_target: RIGHT,
            near: NEAR,
            cells,
        }
    }
}

impl FindingCell {
    /// What the rounds come to: each way's in the order of [`super::run::CompressionSetting::all`].
    pub(super) fn new(
        grid: &VerifyGrid,
        place: &GridPlace,
        content: &Content,
        codecs: &[MethodTimes],
        rounds: &Rounds,
        tunnel: &PlainTunnelTimes,
    ) -> FindingCell {
        let way = |number: usize| Runs(rounds.iter().map(|ways| &ways[number]).collect());
        let others = rounds.iter().flatten().map(|seen| seen.others).fold(0.0, f64::max);
        let without = way(0).goodput();
        let tried: Vec<MethodResult> = (grid.methods.iter().zip(codecs).zip(1..))
            .map(|((method, codec), number)| way(number).tried(*method, codec, &without, tunnel))
            .collect();
        let pick = way(1 + tried.len()).pick(&without, &tried);
        FindingCell {
            link: place.link.map(|rate| rate.bits() as f64 / 1e6),
            block: place.block,
            content: content.name,
            without,
            others,
            disturbed: others > DISTURBED && !place.is_slow(),
            tried,
            pick,
        }
    }
}

/// One way's runs.
struct Runs<'a>(Vec<&'a StreamResult>);

impl Runs<'_> {
    fn goodput(&self) -> RunValues {
        self.0.iter().map(|seen| seen.goodput * 8.0 / 1e6).collect()
    }

    /// The blocks of an average run; nothing where a run made none.
    fn blocks(&self) -> Option<AverageBlocks> {
        let all: Option<Vec<AverageBlocks>> = self.0.iter().map(|seen| seen.blocks).collect();
        let all = all?;
        let middle = |of: fn(&AverageBlocks) -> f64| median(&all.iter().map(of).collect());
        Some(AverageBlocks {
            before: middle(|it| it.before),
            after: middle(|it| it.after),
            beside: middle(|it| it.beside),
        })
    }

    fn tried(
        &self,
        method: Method,
        codec: &MethodTimes,
        without: &RunValues,
        tunnel: &PlainTunnelTimes,
    ) -> MethodResult {
        let goodput = self.goodput();
        let blocks = self.blocks();
        // What is left alone is sent as without a rule.
        let (predicted, limit) = blocks.map_or((1.0, None), |blocks| {
            let (predicted, limit) = tunnel.speedup(codec, blocks);
            (predicted, Some(limit))
        });
        MethodResult {
            method: method.to_string(),
            speedup: median(&goodput) / median(without),
            goodput,
            predicted,
            limit: limit.map(PipelineSegment::name),
            block: blocks.map(|it| it.before),
            ratio: blocks.map(|it| it.before / it.after),
        }
    }

    fn pick(&self, without: &RunValues, tried: &[MethodResult]) -> Pick {
        let goodput = self.goodput();
        let others = tried.iter().map(|it| (it.method.as_str(), median(&it.goodput)));
        let plain = ("none", median(without));
        let best = others.fold(plain, |best, other| if other.1 > best.1 { other } else { best });
        Pick {
            decisions: self.0.iter().map(|seen| seen.decision.clone()).collect(),
            short: 1.0 - median(&goodput) / best.1,
            goodput,
            best: best.0.to_owned(),
        }
    }
}

/// The middle; not-a-number of nothing.
fn median(sample: &RunValues) -> f64 {
    sample.spread().map_or(f64::NAN, |spread| spread.median)
}

#[cfg(test)]
mod tests;
