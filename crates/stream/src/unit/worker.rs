//! Compression beside writing: jobs that go to a thread of the caller's and come back.

use core::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use strait_clock::Time;
use strait_model::Seconds;

use super::UnitContext;
use super::encoder::UnitEncoder;
use super::ladder::{CONTROL_RUNG, LADDER};

/// The clock of a writer and of its worker; it never goes back.
pub trait UnitClock: Send + Sync {
    /// The time since an origin of the clock's own.
    fn now(&self) -> Time;
}

impl<F: Fn() -> Time + Send + Sync> UnitClock for F {
    fn now(&self) -> Time {
        self()
    }
}

/// Units at the worker at once: one that is compressed and one that waits, while the caller writes a third.
pub(super) const AT_WORK: usize = 2;

/// A unit on its way through the encoder. It owns its memory, which is used again.
#[derive(Debug, Default)]
pub(super) struct UnitJob {
    pub(super) raw: Vec<u8>,
    /// Header and payload, once it is made.
    pub(super) unit: Vec<u8>,
    pub(super) context: UnitContext,
    /// The place in the ladder; nothing to store it. Control units have a rung of their own.
    pub(super) place: Option<usize>,
    pub(super) anew: bool,
    /// How long making it took.
    pub(super) took: Seconds,
}

impl UnitJob {
    /// Makes the unit.
    pub(super) fn run(&mut self, encoder: &mut UnitEncoder, clock: &dyn UnitClock) {
        let rung = match self.context {
            UnitContext::Data => self.place.and_then(|place| LADDER.get(place)),
            UnitContext::Control => Some(&CONTROL_RUNG),
        };
        let began = clock.now();
        encoder.encode(&self.raw, self.context, rung, self.anew, &mut self.unit);
        self.took = Seconds(clock.now().since(began).as_secs_f64());
    }
}

/// The half of a writer that compresses. The caller gives it a thread: [`UnitWorker::run`].
pub struct UnitWorker {
    jobs: Receiver<UnitJob>,
    done: SyncSender<UnitJob>,
    clock: Arc<dyn UnitClock>,
}

impl UnitWorker {
    /// Compresses until the writer is dropped.
    pub fn run(self) {
        let mut encoder = UnitEncoder::default();
        while let Ok(mut job) = self.jobs.recv() {
            job.run(&mut encoder, &*self.clock);
            if self.done.send(job).is_err() {
                return;
            }
        }
    }
}

impl fmt::Debug for UnitWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnitWorker").finish_non_exhaustive()
    }
}

/// Who compresses.
pub(super) enum UnitEngine {
    /// The caller's own thread.
    Own(Box<UnitEncoder>),
    /// A worker's, at which `under_way` jobs are.
    Worker { jobs: SyncSender<UnitJob>, done: Receiver<UnitJob>, under_way: usize },
}

/// An engine and the worker that it hands jobs to.
pub(super) fn worker(clock: Arc<dyn UnitClock>) -> (UnitEngine, UnitWorker) {
    let ((jobs, to_do), (done, made)) = (sync_channel(AT_WORK), sync_channel(AT_WORK));
    let engine = UnitEngine::Worker { jobs, done: made, under_way: 0 };
    (engine, UnitWorker { jobs: to_do, done, clock })
}
