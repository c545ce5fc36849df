//! Who compresses: the thread that calls, and workers beside it, each unit where it would end first.
//!
//! What comes back early waits for its turn: units of one peer leave in the order in which they were gathered.

use core::num::NonZeroU32;
use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::{Stopwatch, Time};
use strait_compress::calibrate::{CANDIDATES, Calibration, nearest};
use strait_scheduler::{Algorithm, Dispatcher, Occupation};

use super::job::{Job, Squeezer};
use super::link::Link;
use super::{Lost, Outbound, Outlet, Way, Works};
use crate::Reason;
use crate::engines::{JOBS_AN_ENGINE, dispatcher};

/// The engines, and jobs for them.
#[derive(Debug)]
pub(super) struct Engines {
    /// The calling thread's.
    pub(super) squeezer: Squeezer,
    /// Says which engine ends first; nothing where there is only the calling thread.
    workers: Option<Dispatcher>,
    /// What the calling thread has to do.
    own: VecDeque<Job>,
    /// Jobs without work.
    idle: Vec<Job>,
    /// How many there may still be made, and how many there are too many.
    unmade: usize,
    surplus: usize,
    /// Numbers what is under way.
    turn: u64,
}

/// Units of one link that are with the engines, in the order in which they will leave.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    units: VecDeque<(u64, Option<Job>)>,
    /// Bytes that they will be on the wire, as far as that can be told.
    pub(super) bytes: u64,
}

impl UnderWay {
    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Whether the first may leave.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.units.front(), Some((_, Some(_))))
    }

    fn add(&mut self, turn: u64, job: Option<Job>, bytes: u64) {
        self.units.push_back((turn, job));
        self.bytes += bytes;
    }

    /// Gives a job back that has no place here.
    fn done(&mut self, job: Job) -> Option<Job> {
        let Some((_, place)) = self.units.iter_mut().find(|(turn, _)| *turn == job.task.turn) else {
            return Some(job);
        };
        place.replace(job)
    }

    fn pop(&mut self) -> Option<Job> {
        let (_, job) = self.units.pop_front_if(|(_, job)| job.is_some())?;
        self.bytes -= job.as_ref().map_or(0, |job| job.task.predicted);
        job
    }

    /// All jobs that are back; those that are away have no place here when they come.
    fn jobs(&mut self) -> impl Iterator<Item = Job> {
        self.bytes = 0;
        self.units.drain(..).filter_map(|(_, job)| job)
    }

    /// Packets that were gathered and have not left; of those that are away nobody knows.
    pub(super) fn packets(&self) -> u64 {
        self.units.iter().filter_map(|(_, job)| job.as_ref()).map(|job| job.plain.packets()).sum()
    }
}

impl Engines {
    /// The calling thread alone.
    pub(super) fn alone(stopwatch: Stopwatch) -> Engines {
        let squeezer = Squeezer::new(stopwatch);
        let (own, idle) = (VecDeque::new(), vec![Job::new()]);
        Engines { squeezer, workers: None, own, idle, unmade: 0, surplus: 0, turn: 0 }
    }

    /// So many workers beside it, alike in speed.
    pub(super) fn add_workers(&mut self, workers: usize, calibration: &Calibration) {
        if workers > 0 {
            self.workers =
                Some(dispatcher(workers, CANDIDATES.iter().map(|it| Some(calibration.of(*it)?.compress))));
            self.unmade = (workers + 1) * JOBS_AN_ENGINE - self.idle.len();
        }
    }

    pub(super) const fn has_workers(&self) -> bool {
        self.workers.is_some()
    }

    /// How many compress side by side, as far as one may count on it: half of them, since whoever receives, carries and seals
    /// needs the processors too.
    pub(super) fn side_by_side(&self) -> NonZeroU32 {
        let engines = self.workers.as_ref().map_or(1, Dispatcher::len).div_ceil(2);
        u32::try_from(engines).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
    }

    /// How busy each is, this thread first; nothing where it is alone.
    pub(super) fn occupations(&self, now: Time) -> Vec<Occupation> {
        let Some(workers) = &self.workers else { return Vec::new() };
        (0..workers.len()).filter_map(|engine| workers.occupation(engine, now)).collect()
    }

    /// Whether another unit may be gathered.
    pub(super) fn has_idle(&self) -> bool {
        !self.idle.is_empty() || self.unmade > 0
    }

    /// A job without work. Where [`Engines::has_idle`] says that there is none, it is one too many, which goes when it is put back.
    pub(super) fn idle(&mut self) -> Job {
        self.idle.pop().unwrap_or_else(|| {
            match self.unmade.checked_sub(1) {
                Some(left) => self.unmade = left,
                None => self.surplus += 1,
            }
            Job::new()
        })
    }

    pub(super) fn put_back(&mut self, job: Job) {
        match self.surplus.checked_sub(1) {
            Some(left) => self.surplus = left,
            None => self.idle.push(job),
        }
    }
}

impl Outbound {
    /// Adds so many workers beside the calling thread, to whom [`Outlet::hand_over`] gives jobs.
    #[must_use]
    pub fn with_workers(mut self, workers: usize, calibration: &Calibration) -> Outbound {
        self.works.engines.add_workers(workers, calibration);
        self
    }

    /// A worker has done a job.
    pub fn finished(&mut self, job: Job, now: Time) {
        if let Some((dispatcher, engine)) = self.works.engines.workers.as_mut().zip(job.task.engine) {
            let took = job.outcome.and_then(|outcome| outcome.took).map(Duration::from_nanos);
            dispatcher.finished(engine, took, now);
        }
        let peer = job.task.to;
        let (back, gone) = match self.links.get_mut(&peer) {
            Some(link) => (link.under_way.done(job), Reason::NoSa),
            None => (Some(job), Reason::NoPeer),
        };
        if let Some(job) = back {
            self.works.counters.drops.count(gone, job.plain.packets());
            self.works.engines.put_back(job);
        }
    }

    /// Does the calling thread's next job; false when it has none.
    pub(super) fn do_own(&mut self, now: Time) -> bool {
        let engines = &mut self.works.engines;
        let Some(mut job) = engines.own.pop_front() else { return false };
        job.run(&mut engines.squeezer);
        self.finished(job, now);
        true
    }
}

impl Works {
    /// Step 4 for a unit that was gathered: at once where there is only the calling thread, else where it ends first.
    pub(super) fn squeeze(&mut self, way: &mut Way<'_, impl Outlet>, mut job: Job) -> Result<(), Lost> {
        let link = &mut *way.link;
        let at_once = self.overtakes || !job.has_work() && link.under_way.is_empty();
        if !self.engines.has_workers() || at_once {
            job.run(&mut self.engines.squeezer);
            let sent = self.finish(way, &mut job);
            self.engines.put_back(job);
            return sent;
        }
        self.engines.turn += 1;
        job.task.turn = self.engines.turn;
        let (turn, predicted) = (job.task.turn, job.task.predicted);
        if !job.has_work() {
            link.under_way.add(turn, Some(job), predicted);
            return Ok(());
        }
        link.under_way.add(turn, None, predicted);
        self.assign(job, way);
        Ok(())
    }

    /// Gives a job to the engine that ends first.
    fn assign(&mut self, mut job: Job, way: &mut Way<'_, impl Outlet>) {
        let engines = &mut self.engines;
        let ticket = engines.workers.as_mut().and_then(|dispatcher| {
            dispatcher.dispatch(Algorithm(nearest(job.task.method)?), job.plain.len(), way.now)
        });
        // What has no price, as headers alone, is done here and stands in no books.
        job.task.engine = ticket.map(|ticket| ticket.engine);
        let back = match job.task.engine {
            None | Some(0) => Some(job),
            Some(worker) => way.outlet.hand_over(worker, job),
        };
        engines.own.extend(back);
    }

    /// Gives up what is under way on a link that cannot send any more.
    pub(super) fn abandon(&mut self, link: &mut Link) {
        let gone = if link.sa.is_none() { Reason::NoSa } else { Reason::NoPeer };
        self.counters.drops.count(gone, link.under_way.packets());
        link.under_way.jobs().for_each(|job| self.engines.put_back(job));
    }

    /// Steps 5 and 6 for the first unit under way, if an engine has done it.
    pub(super) fn leave(&mut self, way: &mut Way<'_, impl Outlet>) -> Result<bool, Lost> {
        let Some(mut job) = way.link.under_way.pop() else { return Ok(false) };
        let sent = self.finish(way, &mut job);
        self.engines.put_back(job);
        sent.map(|()| true)
    }

    /// Whether another unit may be gathered for this link: there is a job for it, and the link has room behind all that is
    /// under way.
    pub(super) fn may_gather(&self, link: &Link, now: Time) -> bool {
        self.engines.has_idle() && self.has_room_behind(link, link.under_way.bytes, now)
    }
}

#[cfg(test)]
mod tests;
