//! The state of one engine: what it can do, its queue, its running job.

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::Time;
use strait_model::Cost;

use super::speed::{EngineSpeed, Expected};
use super::{AlgorithmIndex, Price};

/// The share that the newest job has in what bringing jobs takes: noticed within some tens of them, as a load is.
const NEWEST: f64 = 1.0 / 16.0;
/// Bringing a job is never taken for more than so many times what it was said to take. Where it takes longer, the thread that brings
/// jobs is late itself, and an engine beside it is all the more of use.
const BRINGING_MOST: f64 = 4.0;

/// How fast what an engine did is forgotten when it is said how busy it is: what a person who looks twice takes for "now".
const HALF_LIFE: Duration = Duration::from_secs(1);

/// The description of an engine: its prices and its queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Engine {
    /// By [`AlgorithmIndex`], what it costs here; nothing, also beyond the end, for what this engine cannot do.
    pub prices: Vec<Option<Price>>,
    /// The time to bring a job here and its result back; the engine may do another one meanwhile.
    pub bringing: Duration,
    /// Jobs with which it is full, the running one included.
    pub jobs: usize,
}

/// The load of an engine, and the times that were found on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Occupation {
    /// Share of its time in which it worked lately: what was a second ago counts half.
    pub busy: f64,
    /// How long a job that comes now is expected to wait.
    pub waits: Duration,
    /// Jobs that it has, the running one included.
    pub jobs: usize,
    /// The time to bring a job there and its result back.
    pub bringing: Duration,
    /// By algorithm, what it did.
    pub done: Vec<WorkDone>,
}

/// The work of an engine with one algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkDone {
    /// The algorithm.
    pub algorithm: AlgorithmIndex,
    /// Jobs that ended.
    pub jobs: u64,
    /// The cost of a job now, learned from those.
    pub cost: Cost,
}

/// An engine with its queue. Times are whole nanoseconds, so that sums that are added to and taken from stay exact.
#[derive(Debug)]
pub(super) struct EngineStation {
    skills: Vec<Option<Skill>>,
    most: usize,
    /// Nanoseconds, as described and as they were found.
    bringing: (f64, f64),
    waiting: VecDeque<StationJob>,
    /// Equation 3, the time in queue: the sum over `waiting`.
    queued: u64,
    running: Option<Running>,
    busy: Busy,
}

/// Something it can do.
#[derive(Debug)]
struct Skill {
    speed: EngineSpeed,
    /// Jobs that ended.
    jobs: u64,
}

#[derive(Clone, Copy, Debug)]
struct StationJob {
    algorithm: AlgorithmIndex,
    /// c of equation 3.
    expected: Expected,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    job: StationJob,
    /// t of equation 4.
    since: Time,
    /// True if it was brought then: it did not wait for another.
    brought: bool,
}

/// What a job would find here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    job: StationJob,
    waits: u64,
    bringing: u64,
}

impl Offer {
    /// Equation 1, and what bringing takes.
    pub(super) const fn finishing(&self) -> u64 {
        self.waits.saturating_add(self.job.expected.nanos).saturating_add(self.bringing)
    }

    pub(super) const fn waits(&self) -> Duration {
        Duration::from_nanos(self.waits)
    }

    pub(super) const fn takes(&self) -> Duration {
        Duration::from_nanos(self.job.expected.nanos)
    }
}

impl EngineStation {
    pub(super) fn new(engine: Engine) -> EngineStation {
        let skill = |price: Option<Price>| Some(Skill { speed: EngineSpeed::new(price?), jobs: 0 });
        let bringing = engine.bringing.as_secs_f64() * 1e9;
        EngineStation {
            skills: engine.prices.into_iter().map(skill).collect(),
            most: engine.jobs,
            bringing: (bringing, bringing),
            // One more than it takes may wait for it.
            waiting: VecDeque::with_capacity(engine.jobs),
            queued: 0,
            running: None,
            busy: Busy { share: 0.0, at: Time::ZERO },
        }
    }

    /// Returns true if it takes any job at all.
    pub(super) const fn works(&self) -> bool {
        self.most > 0
    }

    pub(super) fn has_room(&self) -> bool {
        self.jobs() < self.most
    }

    pub(super) fn can(&self, algorithm: AlgorithmIndex) -> bool {
        self.skills.get(algorithm.0).is_some_and(Option::is_some)
    }

    /// Returns an offer for a job here, full or not; nothing when this engine cannot do it.
    pub(super) fn offer(&self, algorithm: AlgorithmIndex, bytes: usize, now: Time) -> Option<Offer> {
        let skill = self.skills.get(algorithm.0)?.as_ref()?;
        let job = StationJob { algorithm, expected: skill.speed.expect(bytes, now) };
        Some(Offer { job, waits: self.waits(now), bringing: self.bringing.1.round() as u64 })
    }

    /// Takes the job of an offer that was made just now.
    pub(super) fn accept(&mut self, offer: Offer, now: Time) {
        if self.running.is_none() {
            self.run(offer.job, true, now);
            return;
        }
        self.queued = self.queued.saturating_add(offer.job.expected.nanos);
        self.waiting.push_back(offer.job);
    }

    /// The running job is done: the first that waits is next.
    pub(super) fn finish(&mut self, took: Option<Duration>, now: Time) {
        let Some(Running { job, since, brought }) = self.running.take() else { return };
        // A thread that does one itself has not looked at the clock since it began.
        let ended = took.map_or(now, |took| now.max(self.busy.at.max(since) + took));
        self.busy.settle(true, ended);
        self.learn(job, took, now);
        if let Some(took) = took.filter(|_| brought) {
            self.note_bringing(now.since(since).saturating_sub(took));
        }
        if let Some(next) = self.waiting.pop_front() {
            self.queued = self.queued.saturating_sub(next.expected.nanos);
            self.run(next, false, now);
        }
    }

    pub(super) fn occupation(&self, now: Time) -> Occupation {
        let mut busy = self.busy;
        busy.settle(self.running.is_some(), now);
        let done = self.skills.iter().enumerate().filter_map(|(algorithm, skill)| {
            let Skill { speed, jobs } = skill.as_ref().filter(|skill| skill.jobs > 0)?;
            Some(WorkDone { algorithm: AlgorithmIndex(algorithm), jobs: *jobs, cost: speed.cost(now) })
        });
        Occupation {
            busy: busy.share,
            waits: Duration::from_nanos(self.waits(now)),
            jobs: self.jobs(),
            bringing: Duration::from_nanos(self.bringing.1.round() as u64),
            done: done.collect(),
        }
    }

    fn run(&mut self, job: StationJob, brought: bool, now: Time) {
        self.busy.settle(false, now);
        self.running = Some(Running { job, since: now, brought });
    }

    /// Returns the part that is not work of the time from bringing a job until its end was noticed.
    fn note_bringing(&mut self, took: Duration) {
        let (described, found) = self.bringing;
        let nanos = (took.as_secs_f64() * 1e9).min(described * BRINGING_MOST);
        self.bringing.1 = found + (nanos - found) * NEWEST;
    }

    fn learn(&mut self, job: StationJob, took: Option<Duration>, now: Time) {
        let Some(skill) = self.skills.get_mut(job.algorithm.0).and_then(Option::as_mut) else { return };
        skill.jobs += 1;
        if let Some(took) = took {
            skill.speed.learn(job.expected, took, now);
        }
    }

    /// Jobs that it has, the running one included.
    pub(super) fn jobs(&self) -> usize {
        self.waiting.len() + usize::from(self.running.is_some())
    }

    /// Equation 2: the time in queue, and what is left of the running job.
    fn waits(&self, now: Time) -> u64 {
        self.queued.saturating_add(self.running.map_or(0, |running| running.residual(now)))
    }
}

impl Running {
    /// Equation 4: nothing is left of a job that takes longer than was expected.
    fn residual(&self, now: Time) -> u64 {
        let been = now.as_nanos().saturating_sub(self.since.as_nanos());
        self.job.expected.nanos.saturating_sub(been)
    }
}

/// The share of time in which something was done, what was long ago counting little.
#[derive(Clone, Copy, Debug)]
struct Busy {
    share: f64,
    at: Time,
}

impl Busy {
    /// Since it was last settled, something was done all the time, or nothing.
    fn settle(&mut self, worked: bool, now: Time) {
        let halves = now.since(self.at).as_secs_f64() / HALF_LIFE.as_secs_f64();
        let kept = (-halves).exp2();
        self.share = self.share * kept + if worked { 1.0 - kept } else { 0.0 };
        self.at = self.at.max(now);
    }
}
