//! What was measured of each way over one path, and its rows.

use std::sync::Arc;
use std::time::Duration;

use strait_lab::measure::{RunValues, settle};

use super::stage::{PathPrograms, PathRun, PathStage, PathWay, ThinPath, side_by_side};
use crate::content::{generated, noise};
use crate::error::Error;
use crate::report::{BenchSection, progress};

/// What runs side by side.
const WAYS: [PathWay; 4] = [PathWay::Plain, PathWay::WireGuard, PathWay::Told, PathWay::Auto];
/// Each of them sends twice: with nothing remembered, and again.
const COLUMNS: [&str; 6] =
    ["plain", "wireguard-go", "Strait, rate told, first", "rate told, again", "auto, first", "auto, again"];

/// Two kinds of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathContent {
    Random,
    Text,
}

impl PathContent {
    pub(super) const ALL: [PathContent; 2] = [PathContent::Random, PathContent::Text];

    pub(super) const fn name(self) -> &'static str {
        match self {
            PathContent::Random => "random",
            PathContent::Text => "text",
        }
    }

    pub(super) fn bytes(self) -> Arc<[u8]> {
        match self {
            PathContent::Random => noise(),
            PathContent::Text => generated(1).bytes,
        }
    }
}

/// Goodput and pings of one way in one phase, a value a run.
#[derive(Clone, Debug, Default)]
pub(super) struct WayRuns {
    /// Mbit/s.
    pub(super) goodput: RunValues,
    /// Milliseconds: what 95 of 100 pings beside the stream stayed within, above an idle one.
    pub(super) above: RunValues,
}

impl WayRuns {
    fn push(&mut self, run: Option<&PathRun>) {
        self.goodput.push(run.map_or(f64::NAN, |run| run.goodput));
        self.above.push(run.map_or(f64::NAN, |run| run.beside - run.idle));
    }
}

/// Everything of one path and one content.
#[derive(Clone, Debug, Default)]
pub(super) struct PathTable {
    /// By phase, first and again, and by way.
    runs: [[WayRuns; WAYS.len()]; 2],
}

impl PathTable {
    /// A section whose rows such tables give.
    pub(super) fn section(
        name: &'static str,
        title: impl Into<String>,
        programs: &PathPrograms,
    ) -> BenchSection {
        let mut section = BenchSection::new(name, title, &COLUMNS);
        section.notes.push(programs.note.clone());
        section.notes.push(
            "the ways send at the same time, each over a path of its own; every tunnel is new in every run and sends twice"
                .to_owned(),
        );
        section
    }

    /// Measures, and adds the rows.
    pub(super) fn measure(
        section: &mut BenchSection,
        programs: &PathPrograms,
        path: ThinPath,
        content: PathContent,
        (runs, window): (u64, Duration),
    ) -> Result<PathTable, Error> {
        let mut table = PathTable::default();
        let bytes = content.bytes();
        for run in 1..=runs {
            section.before.push(settle()?);
            let set = |way: &PathWay| PathStage::set(programs, path, *way, "", run).transpose();
            let stages: Vec<PathStage> = WAYS.iter().filter_map(set).collect::<Result<_, _>>()?;
            for (phase, measured) in ["first", "again"].into_iter().zip(&mut table.runs) {
                let done = side_by_side(&stages, &bytes, window)?;
                for (way, measured) in WAYS.into_iter().zip(measured) {
                    let found =
                        stages.iter().zip(&done).find(|(stage, _)| stage.way == way).map(|(_, run)| run);
                    measured.push(found);
                    let subject = format!("{path}, {}, {}, {phase}", content.name(), way.name());
                    let number = usize::try_from(run).unwrap_or(0);
                    progress("paths", number, &subject, found.map_or(f64::NAN, |run| run.goodput), "Mbit/s");
                }
            }
        }
        let name = content.name();
        section.row(format!("{path}, {name}, Mbit/s"), table.cells(|runs| &runs.goodput));
        section.row("  95 of 100 pings above idle, ms", table.cells(|runs| &runs.above));
        Ok(table)
    }

    /// In the order of the columns.
    fn cells(&self, of: fn(&WayRuns) -> &RunValues) -> Vec<RunValues> {
        let both = |way| -> RunValues {
            let values = [self.first(way), self.again(way)].map(|runs| of(runs).values().to_vec());
            values.concat().into_iter().collect()
        };
        let told = [self.first(PathWay::Told), self.again(PathWay::Told)].map(|runs| of(runs).clone());
        let auto = [self.first(PathWay::Auto), self.again(PathWay::Auto)].map(|runs| of(runs).clone());
        [both(PathWay::Plain), both(PathWay::WireGuard)].into_iter().chain(told).chain(auto).collect()
    }

    /// With nothing remembered.
    pub(super) fn first(&self, way: PathWay) -> &WayRuns {
        let [first, _] = &self.runs;
        &first[way as usize]
    }

    /// With what the stream before found.
    pub(super) fn again(&self, way: PathWay) -> &WayRuns {
        let [_, again] = &self.runs;
        &again[way as usize]
    }
}
