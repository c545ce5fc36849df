//! Cells that are measured, and the length of their runs.

use std::time::Duration;

use super::super::figures;
use super::super::here::USUAL;
use super::super::parameters::{NULL, Parameters, SLOW_NETWORKS};
use crate::corpus::Corpus;
use crate::steps::Effort;
use crate::vpn::printed::NETWORKS;
use crate::vpn::transaction::TABLE7_PARTS;

/// All that is varied, but for files.
#[derive(Clone, Debug)]
pub(super) struct MeasureGrid {
    /// Places of protections: of the paper's four from the slowest to none, and of today's usual one.
    pub(super) protections: Vec<usize>,
    /// Places of networks.
    pub(super) networks: Vec<usize>,
    /// Places of payloads.
    pub(super) sizes: [usize; 2],
    /// The files, in number.
    pub(super) files: usize,
    pub(super) amount: RunAmount,
}

/// The length of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunAmount {
    /// Until stages are full.
    pub(super) warm_up: Duration,
    pub(super) window: Duration,
    /// Transactions that arrive in it, at least.
    pub(super) least: u64,
}

/// The warm-up has twenty periods of a quota of 2 %, the window forty.
const FULL: RunAmount =
    RunAmount { warm_up: Duration::from_millis(1_000), window: Duration::from_millis(2_000), least: 3 };
const QUICK: RunAmount =
    RunAmount { warm_up: Duration::from_millis(100), window: Duration::from_millis(250), least: 2 };
/// Networks of a quick look: 10 and 100 Mbit/s.
const QUICK_NETWORKS: [usize; 2] = [2, 3];

impl MeasureGrid {
    /// All of Figures 6 to 9, or a corner of Figure 9.
    pub(super) fn new(effort: Effort, rates: &Parameters) -> MeasureGrid {
        let mut papers = figures::protections(rates);
        papers.reverse();
        let networks = match effort {
            Effort::Full => (0..NETWORKS.len()).collect(),
            Effort::Quick => QUICK_NETWORKS.to_vec(),
        };
        if effort == Effort::Quick {
            papers.truncate(1);
        }
        let protections = papers.into_iter().chain(rates.place(USUAL, NULL)).collect();
        MeasureGrid {
            protections,
            networks,
            sizes: figures::SHOWN_SIZES,
            files: rates.files.len(),
            amount: amount(effort),
        }
    }

    /// Codecs, each with the networks for which section 7 recommends it.
    pub(super) fn codecs(&self) -> impl Iterator<Item = (usize, Vec<usize>)> + '_ {
        let of = |codec| {
            let networks = self.networks.iter().copied();
            (
                codec,
                networks
                    .filter(|network| usize::from(*network >= SLOW_NETWORKS) == codec)
                    .collect::<Vec<_>>(),
            )
        };
        [0, 1].map(of).into_iter().filter(|(_, networks)| !networks.is_empty())
    }

    /// Number of steps.
    pub(super) fn steps(&self) -> usize {
        let rows = self.networks.len() * self.sizes.len();
        self.protections.len() * (self.codecs().count() + rows * (1 + self.files))
    }
}

/// The length of a run.
pub(super) const fn amount(effort: Effort) -> RunAmount {
    match effort {
        Effort::Full => FULL,
        Effort::Quick => QUICK,
    }
}

/// The benchmarks that the paper shows, where a corpus has them; else its first ones, as many; one of them for a quick look.
pub(super) fn shown(corpus: &Corpus, effort: Effort) -> Corpus {
    let mut corpus = corpus.clone();
    let has = |name: &&str| corpus.files.iter().any(|file| file.name == **name);
    if figures::SHOWN.iter().all(has) {
        corpus.files.retain(|file| figures::SHOWN.contains(&file.name.as_str()));
    }
    corpus.files.truncate(if effort == Effort::Quick { 1 } else { figures::SHOWN.len() });
    corpus
}

/// True for a protection that is none of the paper's.
pub(super) const fn is_todays(protection: usize) -> bool {
    protection >= TABLE7_PARTS.len()
}
