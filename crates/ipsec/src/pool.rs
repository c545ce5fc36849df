//! Work that engines share: the calling thread and workers beside it do each job where it would end first.
//!
//! ```text
//! 1. idle          the pool gives an empty job, and its owner fills it          Pool::idle
//! 2. submit        the job gets its place in a reorder buffer and an engine     Pool::submit
//! 3. run           a worker does it, or the calling thread                      PoolJob::run, Pool::run_own
//! 4. finished      the pool books it, the buffer puts it in its place           Pool::book, Reorder::put
//! 5. leave         what is done leaves the buffer, in order                     Reorder::pop
//! 6. put back      the empty job is there for the next unit                     Pool::put_back
//! ```
//!
//! Nothing here waits: a worker's job comes back by a call. Jobs are bounded, and with them all memory that is under way.

mod reorder;

use core::num::NonZeroU32;
use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::Time;
use strait_model::Cost;
use strait_scheduler::{AlgorithmIndex, Dispatcher, Engine, Occupation, Price, SpareFirst, WhenFull};

pub(crate) use reorder::Reorder;

/// Jobs for each engine: one that runs, one that waits for it, and one whose result is being taken on.
pub(crate) const JOBS_AN_ENGINE: usize = 3;
/// Jobs with which an engine is full, of those of all engines. What it would finish first waits for it then: given to the next engine, a
/// slow one, it would hold up all that comes behind it, as units leave in order. With twice as many as its own, an engine of a quarter of
/// the speed has work as well. `strait lab sched` has the figures of both rules, for 3 and for 6.
const FULL_AT: usize = 2 * JOBS_AN_ENGINE;
/// The time to wake a thread with a job and to be woken with the result, until it was measured here: two futex calls and two turns
/// of the system's scheduler, on one machine 12 to 25 us.
const HANDING_OVER: Duration = Duration::from_micros(20);

/// The calling thread also moves packets: what takes it longer than this is for workers, while one has room. A pacer sends 4 ms in
/// advance, so the link does not notice half of that.
pub(crate) const OWN_MOST: Duration = Duration::from_millis(2);
const SPARE_OWN: SpareFirst = SpareFirst { most: OWN_MOST, jobs: JOBS_AN_ENGINE };

/// What a job consists of: self-contained, for any engine, in any order.
pub trait PoolWork {
    /// What an engine works with; every engine has its own.
    type Tools;
    /// Work without anything to do yet, with all the memory that it will need.
    fn empty() -> Self;
    /// What it is, by the place of its price, and how many bytes; nothing for what has no price: the calling thread does that.
    fn size(&self) -> Option<(AlgorithmIndex, usize)>;
    /// Does it, and says how many nanoseconds that took; nothing where the tools have no clock.
    fn run(&mut self, tools: &mut Self::Tools) -> Option<u64>;
}

/// A job of the sender's or the receiver's engines.
#[derive(Debug)]
pub struct PoolJob<W> {
    pub(crate) work: W,
    /// Names it among all that are under way.
    turn: u64,
    /// Which engine has it, where the dispatcher counts it.
    engine: Option<usize>,
    /// Nanoseconds that it took; nothing before it ran, and where there is no clock.
    pub(crate) took: Option<u64>,
}

impl<W: PoolWork> PoolJob<W> {
    fn empty() -> PoolJob<W> {
        PoolJob { work: W::empty(), turn: 0, engine: None, took: None }
    }

    /// Does the work; for workers.
    pub fn run(&mut self, tools: &mut W::Tools) {
        self.took = self.work.run(tools);
    }
}

/// The engines of one half, and the jobs that they share.
#[derive(Debug)]
pub(crate) struct Pool<W: PoolWork> {
    /// The calling thread's.
    pub(crate) tools: W::Tools,
    /// Says which engine ends first; nothing where there is only the calling thread.
    dispatcher: Option<Dispatcher>,
    /// What the calling thread has to do.
    own: VecDeque<PoolJob<W>>,
    idle: Vec<PoolJob<W>>,
    /// How many jobs may still be made, and how many there are beyond the bound.
    unmade: usize,
    surplus: usize,
    turn: u64,
}

impl<W: PoolWork> Pool<W> {
    /// The calling thread alone, with one job, which is made when it is first needed.
    pub(crate) const fn alone(tools: W::Tools) -> Pool<W> {
        Pool {
            tools,
            dispatcher: None,
            own: VecDeque::new(),
            idle: Vec::new(),
            unmade: 1,
            surplus: 0,
            turn: 0,
        }
    }

    /// Adds so many workers. `costs` are those of each algorithm on one engine, until jobs on each have said what they are there: on
    /// a slower core, or where something else has the processor as well.
    pub(crate) fn add_workers(&mut self, workers: usize, costs: impl Iterator<Item = Option<Cost>>) {
        if workers > 0 {
            self.dispatcher = Some(dispatcher(workers, costs));
            let jobs = (workers + 1) * JOBS_AN_ENGINE;
            self.unmade = jobs.saturating_sub(self.idle.len());
            // Any of these places may have all of them, whenever that comes to be.
            self.own.reserve(jobs);
            self.idle.reserve(jobs);
        }
    }

    /// Whether there is any engine but the calling thread.
    pub(crate) const fn has_workers(&self) -> bool {
        self.dispatcher.is_some()
    }

    /// How many engines work side by side, as far as one may count on it: half of them, since the threads that receive, carry and
    /// seal need the processors too.
    pub(crate) fn side_by_side(&self) -> NonZeroU32 {
        let engines = self.dispatcher.as_ref().map_or(1, Dispatcher::len).div_ceil(2);
        u32::try_from(engines).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
    }

    /// How busy each engine is, the calling thread first; nothing where it is alone.
    pub(crate) fn occupations(&self, now: Time) -> Vec<Occupation> {
        let Some(dispatcher) = &self.dispatcher else { return Vec::new() };
        (0..dispatcher.len()).filter_map(|engine| dispatcher.occupation(engine, now)).collect()
    }

    /// Returns true if [`Pool::idle`] gives a job, and no job waits for an engine that is full.
    pub(crate) fn has_idle(&self) -> bool {
        (!self.idle.is_empty() || self.unmade > 0) && self.dispatcher.as_ref().is_none_or(Dispatcher::takes)
    }

    /// A job without work; nothing when all are in use.
    pub(crate) fn idle(&mut self) -> Option<PoolJob<W>> {
        self.idle.pop().or_else(|| {
            self.unmade = self.unmade.checked_sub(1)?;
            Some(PoolJob::empty())
        })
    }

    /// A job without work, one beyond the bound when all are in use: that one goes when it is put back.
    pub(crate) fn idle_or_surplus(&mut self) -> PoolJob<W> {
        self.idle().unwrap_or_else(|| {
            self.surplus += 1;
            PoolJob::empty()
        })
    }

    /// Takes a job back whose work has left, or that was not used.
    pub(crate) fn put_back(&mut self, job: PoolJob<W>) {
        match self.surplus.checked_sub(1) {
            Some(left) => self.surplus = left,
            None => self.idle.push(job),
        }
    }

    /// Gives `job` the next place in `order`, with `note`, and to the engine that ends first: to a worker by `hand_over`, which is
    /// given the worker's number, from 1 on, and gives the job back where there is no such worker or it has no room.
    pub(crate) fn submit<T>(
        &mut self,
        order: &mut Reorder<W, T>,
        note: T,
        mut job: PoolJob<W>,
        now: Time,
        hand_over: impl FnOnce(usize, PoolJob<W>) -> Option<PoolJob<W>>,
    ) {
        self.turn += 1;
        job.turn = self.turn;
        order.expect(job.turn, note);
        let ticket = self.dispatcher.as_mut().and_then(|dispatcher| {
            let (algorithm, bytes) = job.work.size()?;
            dispatcher.dispatch_sparing(algorithm, bytes, SPARE_OWN, now)
        });
        job.engine = ticket.map(|ticket| ticket.engine);
        let back = match job.engine {
            None | Some(0) => Some(job),
            Some(worker) => hand_over(worker, job),
        };
        self.own.extend(back);
    }

    /// Does `job` on the calling thread, beside everything that is under way.
    pub(crate) fn run_now(&mut self, job: &mut PoolJob<W>) {
        job.engine = None;
        job.run(&mut self.tools);
    }

    /// Does the next job of the calling thread, and gives it, done and booked; nothing when it has none.
    pub(crate) fn run_own(&mut self, now: Time) -> Option<PoolJob<W>> {
        let mut job = self.own.pop_front()?;
        job.run(&mut self.tools);
        self.book(&job, now);
        Some(job)
    }

    /// Whether the calling thread has a job to do.
    #[cfg(test)]
    pub(crate) fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// Notes that a worker has done `job`.
    pub(crate) fn book(&mut self, job: &PoolJob<W>, now: Time) {
        if let Some((dispatcher, engine)) = self.dispatcher.as_mut().zip(job.engine) {
            dispatcher.finished(engine, job.took.map(Duration::from_nanos), now);
        }
    }

    /// Jobs that are idle or may still be made: all of them when nothing is under way.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.idle.len() + self.unmade
    }
}

/// The calling thread, engine 0, and so many workers: alike at first, but that a job has to be brought to a worker and back.
fn dispatcher(workers: usize, costs: impl Iterator<Item = Option<Cost>>) -> Dispatcher {
    let prices: Vec<Option<Price>> = costs.map(|cost| cost.map(Price::from)).collect();
    let engine = |bringing| Engine { prices: prices.clone(), bringing, jobs: FULL_AT };
    let alone = core::iter::once(engine(Duration::ZERO));
    let engines = alone.chain(core::iter::repeat_n(engine(HANDING_OVER), workers)).collect();
    Dispatcher::new(engines, WhenFull::Wait)
}

#[cfg(test)]
mod tests;
