//! What the paper leaves to do (section V), and its gateway elsewhere: bounds in bytes and in time, windows that are tuned, packets
//! with gaps between them, more or fewer associations, more engines, full queues in the tunnel, today's rates.

mod associations;
mod bounds;
mod engines;
mod full;
mod gaps;
pub(super) mod rules;
mod today;

use super::grid::RunGrid;
use super::pattern::Pattern;
use crate::claim::Finding;
use crate::error::Error;
use crate::figure::Figure;
use crate::measure::RepeatTimer;
use crate::report::LabTable;
use crate::steps::StepCounter;
use associations::AssociationGains;
use bounds::Bounds;
use engines::EngineRates;
use full::FullQueues;
use gaps::Gaps;
pub(super) use today::STOPWATCH;
use today::Today;

/// Steps that it takes.
pub(super) const STEPS: usize = 6;

/// What came of all of it.
pub(super) struct Beyond {
    bounds: Bounds,
    gaps: Gaps,
    associations: AssociationGains,
    engines: EngineRates,
    full: FullQueues,
    today: Today,
}

impl Beyond {
    /// Runs these patterns; `grid` says what the gateway can carry.
    ///
    /// # Errors
    /// [`Error::Refused`] when packets cannot be sealed here.
    pub(super) fn simulate(
        patterns: &[Pattern],
        grid: &RunGrid,
        stopwatch: RepeatTimer,
        steps: &mut StepCounter<'_>,
    ) -> Result<Beyond, Error> {
        steps.next("windows with bounds");
        let bounds = Bounds::simulate(patterns);
        steps.next("packets with gaps");
        let gaps = Gaps::simulate(patterns, grid);
        steps.next("other numbers of associations");
        let associations = AssociationGains::simulate(patterns);
        steps.next("more engines");
        let engines = EngineRates::simulate(patterns);
        steps.next("full queues in the tunnel");
        let full = FullQueues::simulate(patterns);
        steps.next("today's rates");
        let today = Today::simulate(patterns, stopwatch)?;
        Ok(Beyond { bounds, gaps, associations, engines, full, today })
    }

    pub(super) fn tables(&self) -> Vec<LabTable> {
        let mut tables = Vec::from(self.bounds.tables());
        tables.extend(self.gaps.tables());
        tables.extend(self.associations.tables());
        tables.push(self.engines.table());
        tables.extend(self.full.tables());
        tables.extend(self.today.tables());
        tables
    }

    /// Latency by load.
    pub(super) fn figure(&self) -> Figure {
        self.gaps.figure()
    }

    /// With a bound in bytes: how much later large packets are than without a window, and the share of small ones' gain that is
    /// kept.
    pub(super) fn bounded_in_bytes(&self) -> Option<(f64, f64)> {
        self.bounds.in_bytes()
    }

    pub(super) fn bounded_in_time(&self) -> Option<Finding> {
        self.gaps.bounded_in_time()
    }

    pub(super) fn tuned_is_near_the_best(&self) -> Option<Finding> {
        self.gaps.tuned_is_near_the_best()
    }

    pub(super) fn more_aggregation_more_gain(&self) -> Option<Finding> {
        self.associations.more_aggregation_more_gain()
    }
}

#[cfg(test)]
mod tests;
