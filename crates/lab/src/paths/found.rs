//! How soon a new rate is found.

use serde::Serialize;

use super::run::PathLook;
use super::script::PathScript;

/// The share of a new rate that counts as found; a slower one is found when the estimate is no further above it.
const FOUND: f64 = 0.9;
/// A smaller change than this factor is none.
const CHANGE: f64 = 1.25;

/// A change of the rate that is there for the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateChange {
    /// Seconds from the first packet on.
    pub at: f64,
    /// Mbit/s before; nothing at the beginning.
    pub from: Option<f64>,
    /// Mbit/s from then on.
    pub to: f64,
}

/// A change, and when the estimate had followed it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FoundAfter {
    /// The change.
    #[serde(flatten)]
    pub change: RateChange,
    /// Seconds until 90 % of the new rate were found, or no more than that over 0.9; nothing where the next change or the end
    /// came before.
    pub seconds: Option<f64>,
    /// The same in round trips.
    pub round_trips: Option<f64>,
}

impl RateChange {
    /// Whether the rate is faster than before.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.from.is_none_or(|from| from < self.to)
    }

    /// The rate over the one before.
    #[must_use]
    pub fn factor(&self) -> Option<f64> {
        self.from.map(|from| self.to / from)
    }
}

/// The changes of a path that are to be found, the beginning first.
pub(super) fn changes(script: &PathScript) -> Vec<RateChange> {
    let mut changes = vec![RateChange { at: 0.0, from: None, to: script.free(0.0) }];
    let turns = if script.steps { script.turns() } else { Vec::new() };
    for at in turns.into_iter().filter(|at| *at > 0.0) {
        let (from, to) = (changes.last().map_or(0.0, |last| last.to), script.free(at));
        if (to / from).max(from / to) >= CHANGE {
            changes.push(RateChange { at, from: Some(from), to });
        }
    }
    changes
}

/// When each of them was found.
pub(super) fn found(script: &PathScript, looks: &[PathLook]) -> Vec<FoundAfter> {
    let changes = changes(script);
    let ends = changes.iter().skip(1).map(|next| next.at).chain([f64::INFINITY]);
    let after = |(change, end): (&RateChange, f64)| {
        let within = looks.iter().filter(|look| (change.at..end).contains(&look.second));
        let is_found = |rate: f64| {
            if change.is_up() { rate >= change.to * FOUND } else { rate <= change.to / FOUND }
        };
        let look = within.into_iter().find(|look| look.found.is_some_and(is_found));
        let seconds = look.map(|look| look.second - change.at);
        FoundAfter { change: *change, seconds, round_trips: seconds.map(|it| it / script.round_trip) }
    };
    changes.iter().zip(ends).map(after).collect()
}
