//! Which engine does a job: the one that would finish it first.
//!
//! An engine is whatever works alone and one job after the other: a thread, an accelerator. The rule is that of A. V. Taddeo,
//! A. Ferrante and V. Piuri, *Scheduling Small Packets in IPSec-based Systems*, section III-B, for any number of engines.
//!
//! Engines differ, and not only by what is said of them: each has estimates of its own of what a job takes there, its set-up and its
//! bytes, and of what bringing a job there takes ([`Dispatcher::finished`]).
//!
//! An engine is full when it has as many jobs as it takes. The paper does not say what the scheduler does then: [`WhenFull`] does.

mod price;
mod speed;
mod station;

use core::time::Duration;

use strait_clock::Time;

pub use price::Price;
use station::EngineStation;
pub use station::{Engine, Occupation, WorkDone};

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

/// The rule for a job that a full engine would finish first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The job waits for that engine, and all that come after wait with it, as a writer does at a full FIFO.
    Wait,
    /// The job goes to the next engine with room: the one of those that finishes it first.
    Next,
}

/// Work that is kept from the first engine, which has something else to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpareFirst {
    /// It gets no job that takes it longer than this,
    pub most: Duration,
    /// while any other engine that can do it has fewer jobs than this.
    pub jobs: usize,
}

impl SpareFirst {
    /// Nothing is kept from it.
    const NEVER: SpareFirst = SpareFirst { most: Duration::MAX, jobs: 0 };
}

/// The load of all engines. It runs nothing: the caller does, and reports what is finished.
#[derive(Debug)]
pub struct Dispatcher {
    stations: Vec<EngineStation>,
    when_full: WhenFull,
    /// The engine that a job waits for, beyond those that it takes.
    awaited: Option<usize>,
}

impl Dispatcher {
    /// All engines idle. Nothing is allocated after this.
    #[must_use]
    pub fn new(engines: Vec<Engine>, when_full: WhenFull) -> Dispatcher {
        let stations = engines.into_iter().map(EngineStation::new).collect();
        Dispatcher { stations, when_full, awaited: None }
    }

    /// Returns true if [`Dispatcher::dispatch`] takes a job: no job waits for an engine, and one has room where none may wait.
    #[must_use]
    pub fn takes(&self) -> bool {
        match self.when_full {
            WhenFull::Wait => self.awaited.is_none(),
            WhenFull::Next => self.stations.iter().any(EngineStation::has_room),
        }
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
    /// Nothing when no engine that may have it can do this, and while an earlier job waits for a full engine.
    pub fn dispatch(&mut self, algorithm: AlgorithmIndex, bytes: usize, now: Time) -> Option<Ticket> {
        self.dispatch_sparing(algorithm, bytes, SpareFirst::NEVER, now)
    }

    /// The same where the first engine is to be spared.
    pub fn dispatch_sparing(
        &mut self,
        algorithm: AlgorithmIndex,
        bytes: usize,
        spare: SpareFirst,
        now: Time,
    ) -> Option<Ticket> {
        if !self.takes() {
            return None;
        }
        let may_wait = self.when_full == WhenFull::Wait;
        let may = |it: &EngineStation| it.has_room() || may_wait && it.works();
        let others = self.stations.iter().skip(1).any(|it| it.jobs() < spare.jobs && it.can(algorithm));
        let offers = self.stations.iter().enumerate().filter(|(_, it)| may(it));
        let offers = offers.filter_map(|(engine, it)| Some((engine, it.offer(algorithm, bytes, now)?)));
        let (engine, offer) = offers.min_by_key(|(engine, offer)| {
            let spared = others && *engine == 0 && offer.takes() > spare.most;
            (spared, offer.finishing(), offer.takes())
        })?;
        let ticket = Ticket { engine, waits: offer.waits(), takes: offer.takes() };
        let station = self.stations.get_mut(engine)?;
        self.awaited = (!station.has_room()).then_some(engine);
        station.accept(offer, now);
        Some(ticket)
    }

    /// The job that `engine` was at ended at `now`. The next one in its queue begins, if there is any.
    ///
    /// `took` is how long it worked: what later jobs of that algorithm are expected to take there is corrected by it, and the rest of
    /// the time is what bringing the job took. Nothing where that is not known.
    pub fn finished(&mut self, engine: usize, took: Option<Duration>, now: Time) {
        if let Some(station) = self.stations.get_mut(engine) {
            station.finish(took, now);
            self.awaited = self.awaited.filter(|awaited| *awaited != engine);
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
