//! How long a ping takes, by what both ends still have of each other.
//!
//! - `end`, `cards`: a node around the real state and real ESP; its cards on disk, and a directory;
//! - `tiers`, `pings`: round trips by tier; `parts`: what each step takes by itself; `daemons`: round trips through tunnels;
//! - `tables`, `figures`, `claims`, `notes`: what is made of it.

mod cards;
mod claims;
mod daemons;
mod end;
mod figures;
mod notes;
mod parts;
mod pings;
mod tables;
mod tiers;

use std::io;
use std::time::Duration;

use strait_crypto::{Cipher, Integrity, Suite};
use strait_keying::sessionless::Protection;

use super::content::EnskipFile;
use super::{EnskipLab, throughput};
use crate::claim::{self, Claim, FigureSource};
use crate::error::Error;
use crate::figure::Figure;
use crate::measure::{RunValues, pin};
use crate::report::LabReport;
use crate::steps::{Effort, StepCounter, StepNote};
use claims::LatencyFigures;
use daemons::{DaemonPings, TunnelLoad};
use end::PingSettings;
use parts::Part;
use pings::{PingPair, PingRoom};
use tiers::{CacheUse, RoundTrip, Tier};

/// Runs that count, after one that does not, and pairs of nodes in each: a run's figure is the middle one of its pairs.
const RUNS: (usize, usize) = (5, 5);
/// How long a step is repeated in a run.
const PART: Duration = Duration::from_millis(10);
/// How often daemons are started.
const STARTS: usize = 3;
/// A quick look.
const QUICK: (usize, usize) = (1, 1);

/// How packets are protected, as columns have it: the paper's algorithms, and those of today alone, with ML-KEM, and
/// with a disk that is waited for.
const SETTINGS: [(&str, PingSettings); 4] = [
    ("3DES, MD5", PingSettings { protection: TRIPLE_DES, hybrid: false, durable: false }),
    ("aes-256-gcm", PingSettings { protection: AES, hybrid: false, durable: false }),
    ("with ML-KEM", PingSettings { protection: AES, hybrid: true, durable: false }),
    ("aes-256-gcm, marks durable", PingSettings { protection: AES, hybrid: false, durable: true }),
];
const TRIPLE_DES: Protection = Protection::Separate(Cipher::TripleDesCbc, Integrity::HmacMd5_96);
const AES: Protection = Protection::Aead(Suite::Aes256Gcm);
/// The place in [`SETTINGS`] of the paper's algorithms,
const PAPERS: usize = 0;
/// of today's,
const TODAYS: usize = 1;
/// and where marks are on disk, as they are to be; the settings before stand beside the paper's figures.
const DURABLE: usize = 3;

/// What was measured in one tier with some settings; microseconds, a value a run.
#[derive(Clone, Debug, Default)]
struct TierTimes {
    /// Round trips by the clock on the wall.
    took: RunValues,
    /// Of these, what both ends waited for: marks on disk, cards on disk, the directory.
    waited: [RunValues; 3],
    /// What one round trip asked of caches.
    uses: CacheUse,
}

/// Round trips of all settings and tiers.
pub(super) struct Latency {
    /// By the places of settings and tiers.
    times: Vec<Vec<TierTimes>>,
    parts: Vec<Part>,
    /// Through tunnels, or why there are none.
    daemons: Result<DaemonPings, String>,
}

impl Latency {
    /// Number of steps.
    pub(super) const fn steps(effort: Effort) -> usize {
        3 + if matches!(effort, Effort::Quick) { QUICK.0 } else { RUNS.0 }
    }

    /// Measures all, with a note before each step.
    pub(super) fn measured(lab: &EnskipLab, tell: &mut dyn FnMut(StepNote<'_>)) -> Result<Latency, Error> {
        let effort = lab.effort;
        let (runs, pairs) = if effort == Effort::Quick { QUICK } else { RUNS };
        let mut steps = StepCounter::new(Latency::steps(effort), tell);
        let mut times = vec![vec![TierTimes::default(); Tier::ALL.len()]; SETTINGS.len()];
        let doing = "send pings with keys that need no handshake";
        let mut room = PingRoom::new().map_err(Error::doing(doing))?;
        for run in 0..=runs {
            steps.next(&format!("pings, run {run} of {runs}"));
            let made = on_one_processor(|| all_settings(&mut room, pairs)).map_err(Error::doing(doing))?;
            if run > 0 {
                let cells = made.iter().zip(&mut times).flat_map(|(tiers, times)| tiers.iter().zip(times));
                cells.for_each(|(tier, times)| times.add(tier));
            }
        }
        steps.next("what steps of keying take");
        let parts = parts::measured(effort.stopwatch(RUNS.0, PART))?;
        steps.next("pings through tunnels");
        let daemons = match lab.tunnels() {
            Ok(program) => {
                let (starts, span, len) = match effort {
                    Effort::Full => (STARTS, throughput::TUNNEL, usize::MAX),
                    Effort::Quick => (1, throughput::QUICK.0, throughput::QUICK.1),
                };
                let file = EnskipFile::random().front(len).bytes;
                Ok(daemons::measured(program, &TunnelLoad { starts, file, span })?)
            }
            Err(why) => Err(why.to_owned()),
        };
        Ok(Latency { times, parts, daemons })
    }

    /// Puts tables, judgements and notes into a report, behind what is there.
    pub(super) fn reported(&self, report: &mut LabReport) {
        report.tables.extend(self.tables());
        report.claims.extend(self.claims());
        report.notes.extend(self.notes());
    }

    fn claims(&self) -> Vec<Claim> {
        let here = self.here();
        let sets = [(FigureSource::Printed, &LatencyFigures::printed()), (FigureSource::Here, &here)];
        claim::judged(&claims::RULES, &sets)
    }

    /// Its charts.
    pub(super) fn figures(&self) -> Vec<Figure> {
        vec![figures::by_tier(self)]
    }

    fn times(&self, settings: usize, tier: Tier) -> &TierTimes {
        let place = Tier::ALL.iter().position(|it| *it == tier).unwrap_or(0);
        &self.times[settings][place]
    }
}

impl TierTimes {
    fn add(&mut self, (trip, uses): &(RoundTrip, CacheUse)) {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        self.took.push(micros(trip.took));
        let waited = [trip.waited.marks, trip.waited.cards, trip.waited.directory];
        for (values, time) in self.waited.iter_mut().zip(waited) {
            values.push(micros(time));
        }
        self.uses = *uses;
    }
}

/// Does some work on a thread of its own, which stays on one processor.
fn on_one_processor<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let pinned = || {
        // Where that is forbidden, it is where the kernel puts it.
        let _ = pin(0);
        work()
    };
    std::thread::scope(|scope| {
        scope.spawn(pinned).join().unwrap_or_else(|why| std::panic::resume_unwind(why))
    })
}

/// One run with each of the settings.
fn all_settings(room: &mut PingRoom, pairs: usize) -> io::Result<Vec<Vec<(RoundTrip, CacheUse)>>> {
    SETTINGS.iter().map(|(_, settings)| one_run(room, *settings, pairs)).collect()
}

/// Of so many pairs, the middle round trip of each tier, in the order of tiers.
fn one_run(
    room: &mut PingRoom,
    settings: PingSettings,
    pairs: usize,
) -> io::Result<Vec<(RoundTrip, CacheUse)>> {
    let mut all = Vec::new();
    for _ in 0..pairs {
        let mut pair: PingPair = room.pair(settings)?;
        all.extend(pair.run()?);
    }
    let middle = |tier: &Tier| {
        let mut trips: Vec<_> = all.iter().filter(|(it, ..)| it == tier).collect();
        trips.sort_by_key(|(_, trip, _)| trip.took);
        trips.get(trips.len() / 2).map(|(_, trip, uses)| (*trip, *uses))
    };
    Ok(Tier::ALL.iter().filter_map(middle).collect())
}

#[cfg(test)]
mod tests;
