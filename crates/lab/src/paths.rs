//! The estimated rate beside the true one over time, on scripted paths in virtual time: whole nodes with `auto`, a link that
//! changes, and a source that has always more or is a TCP connection.
//!
//! - [`script`](self): the paths, and what happens on them;
//! - a run of each path with each source, which looks at the estimate and at the modem's queue every 10 ms;
//! - [`PathResult`]: how much of the rate was used, how long datagrams waited in the modem, and how soon 90 % of each new
//!   rate were found;
//! - a [`Figure`] of each path: the rates above, the queue below.

mod beside;
mod figures;
mod found;
mod result;
mod run;
mod script;

use serde::Serialize;
use strait_keying::SetupError;
use strait_sim::RateTrace;

use crate::steps::StepCounter;
use crate::{Effort, Figure, StepNote, parallel};
use run::PathRun;
use script::PathScript;

pub use found::{FoundAfter, RateChange};
pub use result::{PathResult, PathSource};

/// Which paths are run, and how.
#[derive(Clone, Debug)]
pub struct PathLab {
    /// What chance follows from.
    pub seed: u64,
    /// A quick run ends after ten seconds on each path.
    pub effort: Effort,
    /// The recorded rate of a cellular link; without one, a scripted stand-in takes its place.
    pub record: Option<RateTrace>,
    /// Names of the paths to run; all, where there is none.
    pub only: Vec<String>,
}

/// What came of all runs.
#[derive(Clone, Debug, Serialize)]
pub struct PathLabReport {
    /// What chance followed from.
    pub seed: u64,
    /// Each path with each source.
    pub paths: Vec<PathResult>,
    /// Each path drawn.
    #[serde(skip)]
    pub figures: Vec<Figure>,
}

impl PathLab {
    /// The names of all paths.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        script::all(None, 0).iter().map(|script| script.name).collect()
    }

    /// Runs every path with every source, as many at once as there are processors; `tell` is told of each path.
    ///
    /// # Errors
    /// [`SetupError`] when no node can run.
    pub fn run(&self, tell: &mut dyn FnMut(StepNote<'_>)) -> Result<PathLabReport, SetupError> {
        let mut scripts = script::all(self.record.as_ref(), self.seed);
        scripts.retain(|script| self.only.is_empty() || self.only.iter().any(|name| name == script.name));
        if self.effort == Effort::Quick {
            scripts.iter_mut().for_each(PathScript::shorten);
        }
        let mut report = PathLabReport { seed: self.seed, paths: Vec::new(), figures: Vec::new() };
        let mut steps = StepCounter::new(scripts.len(), tell);
        for script in &scripts {
            steps.next(script.name);
            let tracks = parallel::map(&PathSource::ALL, |source| {
                PathRun::new(script, *source, self.seed).map(PathRun::track)
            });
            let tracks = tracks.into_iter().collect::<Result<Vec<_>, SetupError>>()?;
            report.paths.extend(tracks.iter().map(|track| PathResult::of(script, track)));
            report.figures.push(figures::figure(script, &tracks));
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests;
