//! Who expands: the thread that calls, and workers beside it, each block where it would end first.
//!
//! Blocks that come one behind another are expanded side by side; whatever else comes waits until they are delivered, so
//! that nothing overtakes anything.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use strait_clock::{Stopwatch, Time};
use strait_compress::{BlockError, Blocks, Calibration, Codec, Coding};
use strait_model::{Bytes, Cost};
use strait_scheduler::{Algorithm, Dispatcher};

use super::payload::{Squeezed, refused};
use super::{Inbound, Inlet, Origin};
use crate::Reason;
use crate::block::BLOCK_MAX;
use crate::engines::{JOBS_AN_ENGINE, dispatcher};

/// What a worker expands with.
#[derive(Debug)]
pub struct Unsqueezer {
    blocks: Blocks,
    stopwatch: Stopwatch,
}

impl Unsqueezer {
    /// Without any context of a codec yet; `stopwatch` tells how long expanding takes.
    #[must_use]
    pub fn new(stopwatch: Stopwatch) -> Unsqueezer {
        Unsqueezer { blocks: Blocks::new(), stopwatch }
    }
}

/// A block that is to be expanded, with all that is needed for it.
#[derive(Debug)]
pub struct Job {
    squeezed: Vec<u8>,
    coding: Coding,
    /// Most bytes that it may expand to.
    cap: usize,
    expanded: Box<[u8]>,
    done: Result<usize, BlockError>,
    /// Nanoseconds that took; nothing when nobody has a clock.
    took: Option<u64>,
    turn: u64,
    engine: Option<usize>,
}

impl Job {
    fn new() -> Job {
        Job {
            squeezed: Vec::with_capacity(BLOCK_MAX),
            coding: Coding::NONE,
            cap: 0,
            expanded: vec![0; BLOCK_MAX].into_boxed_slice(),
            done: Ok(0),
            took: None,
            turn: 0,
            engine: None,
        }
    }

    /// Expands the block.
    pub fn run(&mut self, tools: &mut Unsqueezer) {
        let room = self.cap.min(self.expanded.len());
        let Some(into) = self.expanded.get_mut(..room) else { return };
        let (coding, squeezed, blocks) = (self.coding, &self.squeezed, &mut tools.blocks);
        (self.done, self.took) = tools.stopwatch.time(|| blocks.expand(coding, squeezed, into));
    }
}

/// Blocks under way, and who expands them.
#[derive(Debug)]
pub(super) struct Expanders {
    tools: Unsqueezer,
    dispatcher: Dispatcher,
    /// What the calling thread is to expand.
    own: VecDeque<Job>,
    idle: Vec<Job>,
    /// How many there may still be made.
    unmade: usize,
    turn: u64,
    /// In the order in which they came.
    under_way: VecDeque<(u64, Origin, Option<Job>)>,
}

impl Expanders {
    fn new(workers: usize, calibration: &Calibration, stopwatch: Stopwatch) -> Expanders {
        Expanders {
            tools: Unsqueezer::new(stopwatch),
            dispatcher: dispatcher(workers, Codec::ALL.into_iter().map(|codec| cost(calibration, codec))),
            own: VecDeque::new(),
            idle: Vec::new(),
            unmade: (workers + 1) * JOBS_AN_ENGINE,
            turn: 0,
            under_way: VecDeque::new(),
        }
    }

    fn idle(&mut self) -> Option<Job> {
        self.idle.pop().or_else(|| {
            self.unmade = self.unmade.checked_sub(1)?;
            Some(Job::new())
        })
    }

    /// Puts what an engine has done in its place.
    fn done(&mut self, job: Job, now: Time) {
        if let Some(engine) = job.engine {
            self.dispatcher.finished(engine, job.took.map(Duration::from_nanos), now);
        }
        if let Some((_, _, place)) = self.under_way.iter_mut().find(|(turn, ..)| *turn == job.turn) {
            *place = Some(job);
        }
    }

    /// Has the first block under way done, by this thread or by whoever has it.
    fn first(&mut self, now: Time, inlet: &mut impl Inlet) -> Option<(Origin, Job)> {
        while self.under_way.front()?.2.is_none() {
            let job = match self.own.pop_front() {
                Some(mut job) => {
                    job.run(&mut self.tools);
                    job
                }
                None => inlet.expanded()?,
            };
            self.done(job, now);
        }
        let (_, origin, job) = self.under_way.pop_front()?;
        Some((origin, job?))
    }
}

impl Inbound {
    /// Adds so many workers beside the calling thread, to whom [`Inlet::expand`] gives blocks.
    #[must_use]
    pub fn with_workers(
        mut self,
        workers: usize,
        calibration: &Calibration,
        stopwatch: Stopwatch,
    ) -> Inbound {
        self.expanders = (workers > 0).then(|| Expanders::new(workers, calibration, stopwatch));
        self
    }

    /// Expands and delivers all blocks that came; to be called when nothing more is there to be received.
    pub fn settle(&mut self, now: Time, inlet: &mut impl Inlet) {
        while self.deliver_first(now, inlet) {}
    }

    /// A job for one more block; nothing where the calling thread expands alone.
    pub(super) fn idle_expansion(&mut self, now: Time, inlet: &mut impl Inlet) -> Option<Job> {
        loop {
            let idle = self.expanders.as_mut()?.idle();
            if idle.is_some() || !self.deliver_first(now, inlet) {
                return idle;
            }
        }
    }

    /// Lets a block be expanded by whoever ends first.
    pub(super) fn share_out(
        &mut self,
        origin: Origin,
        job: Job,
        block: Squeezed<'_>,
        inlet: &mut impl Inlet,
    ) {
        let Some(expanders) = &mut self.expanders else { return };
        let Squeezed { coding, bytes, cap } = block;
        expanders.turn += 1;
        let mut job = Job { coding, cap, turn: expanders.turn, ..job };
        job.squeezed.clear();
        job.squeezed.extend_from_slice(bytes);
        let algorithm = Algorithm(coding.codec.id().into());
        // What comes out is not known yet; how that stands to what goes in is part of what the dispatcher learns.
        let ticket = expanders.dispatcher.dispatch(algorithm, job.squeezed.len(), origin.now);
        // What has no price, as headers alone, is done here and stands in no books.
        job.engine = ticket.map(|ticket| ticket.engine);
        expanders.under_way.push_back((job.turn, origin, None));
        let back = match job.engine {
            None | Some(0) => Some(job),
            Some(worker) => inlet.expand(worker, job),
        };
        expanders.own.extend(back);
    }

    /// Takes a job back that was not used.
    pub(super) fn unused(&mut self, job: Job) {
        if let Some(expanders) = &mut self.expanders {
            expanders.idle.push(job);
        }
    }

    /// Delivers the first block under way, which has to be done for that; false when there is none.
    fn deliver_first(&mut self, now: Time, inlet: &mut impl Inlet) -> bool {
        let Some(expanders) = &mut self.expanders else { return false };
        let Some((origin, mut job)) = expanders.first(now, inlet) else { return false };
        if let Err(reason) = self.deliver(origin, &mut job, inlet) {
            self.counters.refuse(reason);
        }
        self.unused(job);
        true
    }

    fn deliver(&mut self, origin: Origin, job: &mut Job, inlet: &mut impl Inlet) -> Result<(), Reason> {
        let len = job.done.map_err(refused)?;
        self.bench.gauge.learn(job.coding.codec, len, job.took, origin.now);
        self.count_expanded(job.coding.codec);
        let receiver = self.sas.get(&origin.sa).ok_or(Reason::UnknownSpi)?;
        // Somebody else's packet may be in hand.
        let heard = core::mem::replace(&mut self.heard, (origin.peer, Arc::clone(&receiver.counters)));
        let result = self.packets(origin, &mut job.expanded, len, inlet);
        self.heard = heard;
        result
    }
}

/// What expanding a block of `codec` takes; a block does not say which method made it, so the slowest is assumed.
fn cost(calibration: &Calibration, codec: Codec) -> Option<Cost> {
    let figures = calibration.figures().iter().filter(|figures| figures.method.codec == codec);
    let whole = |cost: &Cost| cost.of(Bytes(BLOCK_MAX as u64)).0;
    figures.map(|figures| figures.expand).max_by(|a, b| whole(a).total_cmp(&whole(b)))
}

#[cfg(test)]
mod tests;
