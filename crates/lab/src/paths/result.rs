//! What came of one path with one source.

use serde::Serialize;

use super::found::{FoundAfter, found};
use super::run::{PathLook, PathTrack};
use super::script::PathScript;

/// What is sent through the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PathSource {
    /// A quarter more than the fastest rate of the path, whatever is lost.
    Greedy,
    /// One TCP connection.
    Tcp,
}

impl PathSource {
    /// Every source.
    pub const ALL: [PathSource; 2] = [PathSource::Greedy, PathSource::Tcp];

    /// Its name in tables and figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PathSource::Greedy => "greedy",
            PathSource::Tcp => "TCP",
        }
    }
}

/// What came of one path with one source.
#[derive(Clone, Debug, Serialize)]
pub struct PathResult {
    /// The name of the path.
    pub path: &'static str,
    /// What it is like.
    pub title: String,
    /// What was sent.
    pub source: PathSource,
    /// Milliseconds of a round trip without a queue.
    pub round_trip_ms: f64,
    /// The share of the rate that is there for the tunnel that it used, in wire bytes, from the first packet on.
    pub used: f64,
    /// Mbit/s of payload that the host received.
    pub received_mbit: f64,
    /// The median of the estimated rate over the one that is there for the tunnel; nothing without an estimate.
    pub found_over_true: Option<f64>,
    /// Milliseconds that a datagram waits in the modem: the median over time.
    pub queue_median_ms: f64,
    /// The same: more than in 95 % of the time.
    pub queue_p95_ms: f64,
    /// The share of the tunnel's datagrams that the modem's queue had no room for.
    pub overflowed: f64,
    /// How soon each new rate was found.
    pub found: Vec<FoundAfter>,
}

impl PathResult {
    pub(super) fn of(script: &PathScript, track: &PathTrack) -> PathResult {
        let looks = &track.looks;
        let free =
            looks.iter().map(|look| script.free(look.second)).sum::<f64>() / (looks.len() as f64).max(1.0);
        let over = |look: &PathLook| Some(look.found? / script.free(look.second));
        let queue = |share| quantile(looks.iter().map(|look| look.queue * 1e3), share).unwrap_or(0.0);
        PathResult {
            path: script.name,
            title: script.title.clone(),
            source: track.source,
            round_trip_ms: script.round_trip * 1e3,
            used: track.passed * 8.0 / 1e6 / script.length / free,
            received_mbit: track.received as f64 * 8.0 / 1e6 / script.length,
            found_over_true: quantile(looks.iter().filter_map(over), 0.5),
            queue_median_ms: queue(0.5),
            queue_p95_ms: queue(0.95),
            overflowed: track.overflowed as f64 / (track.datagrams as f64).max(1.0),
            found: found(script, looks),
        }
    }
}

/// The value below which this share of them is.
fn quantile(values: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get((values.len().saturating_sub(1) as f64 * share) as usize).copied()
}
