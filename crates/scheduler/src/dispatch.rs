//! Which engine does a job: the one that would finish it first.
//!
//! An engine is whatever works alone and one job after the other: a thread, an accelerator. The rule is that of A. V. Taddeo,
//! A. Ferrante and V. Piuri, *Scheduling Small Packets in IPSec-based Systems*, section III-B, for any number of engines.

mod price;
mod station;

use core::time::Duration;

use strait_clock::Time;

pub use price::Price;
use station::EngineStation;
pub use station::{Engine, Occupation};

/// Something that engines can do: its place in [`Engine::prices`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlgorithmIndex(pub usize);

/// Which engine does a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Its place among the dispatcher's engines.
    pub engine: usize,
    /// How long the job is expected to wait there: w of equation 2.
    pub waits: Duration,
    /// How long it takes then: p of equation 1.
    pub takes: Duration,
}

/// The load of all engines. It runs nothing: the caller does, and reports what is finished.
#[derive(Debug)]
pub struct Dispatcher {
    stations: Vec<EngineStation>,
}

impl Dispatcher {
    /// All engines idle. Nothing is allocated after this.
    #[must_use]
    pub fn new(engines: Vec<Engine>) -> Dispatcher {
        Dispatcher { stations: engines.into_iter().map(EngineStation::new).collect() }
    }

    /// The number of engines.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.stations.len()
    }

    /// Whether there is no engine.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.stations.is_empty()
    }

    /// Gives a job of so many bytes to the engine that finishes it first: f = w + p is least there (equation 1). Of several the
    /// fastest has it, whose p is least, and of those the first. So an idle system uses its first fastest engine.
    ///
    /// Nothing when no engine that can do this has room for a job.
    pub fn dispatch(&mut self, algorithm: AlgorithmIndex, bytes: usize, now: Time) -> Option<Ticket> {
        self.dispatch_sparing(algorithm, bytes, Duration::MAX, now)
    }

    /// The same where the first engine has something else to do: it gets no job that takes it longer than `most`, unless no other
    /// engine has room.
    pub fn dispatch_sparing(
        &mut self,
        algorithm: AlgorithmIndex,
        bytes: usize,
        most: Duration,
        now: Time,
    ) -> Option<Ticket> {
        let offers = self.stations.iter().enumerate();
        let offers = offers.filter_map(|(engine, it)| Some((engine, it.offer(algorithm, bytes, now)?)));
        let (engine, offer) = offers.min_by_key(|(engine, offer)| {
            let spared = *engine == 0 && offer.takes() > most;
            (spared, offer.finishing(), offer.takes())
        })?;
        let ticket = Ticket { engine, waits: offer.waits(), takes: offer.takes() };
        self.stations.get_mut(engine)?.accept(offer, now);
        Some(ticket)
    }

    /// The job that `engine` was at ended at `now`. The next one in its queue begins, if there is any.
    ///
    /// `took` is how long it worked: what later jobs of that algorithm are expected to take there is corrected by it. Nothing
    /// where that is not known.
    pub fn finished(&mut self, engine: usize, took: Option<Duration>, now: Time) {
        if let Some(station) = self.stations.get_mut(engine) {
            station.finish(took, now);
        }
    }

    /// How busy `engine` is; nothing when there is no such engine.
    #[must_use]
    pub fn occupation(&self, engine: usize, now: Time) -> Option<Occupation> {
        self.stations.get(engine).map(|station| station.occupation(now))
    }
}

#[cfg(test)]
mod tests;
