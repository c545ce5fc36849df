//! Worker threads that compress beside the thread that carries packets.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::{self, JoinHandle};

use strait_clock::Stopwatch;
use strait_ipsec::outbound::{Job, Squeezer};

use crate::clock::Clock;
use crate::wake::Wake;

/// Jobs that may wait for one worker: more than the sending half ever makes.
const JOBS: usize = 8;
/// Codecs keep their tables on the heap.
const STACK: usize = 256 * 1024;

/// The workers of one packet thread; they end when this is dropped.
#[derive(Debug)]
pub struct Workers {
    jobs: Vec<SyncSender<Job>>,
    done: Receiver<Job>,
    handles: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts so many workers, who `wake` the packet thread when a job is done.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(count: usize, wake: &Arc<Wake>, clock: &Clock) -> io::Result<Workers> {
        let (finished, done) = channel();
        let mut workers = Workers { jobs: Vec::new(), done, handles: Vec::new() };
        for number in 1..=count {
            let (sender, jobs) = sync_channel(JOBS);
            let now = *clock;
            let squeezer = Squeezer::new(Stopwatch::new(move || now.now().as_nanos()));
            let (finished, wake) = (finished.clone(), Arc::clone(wake));
            let work = move || work(&jobs, squeezer, &finished, &wake);
            let thread = thread::Builder::new().name(format!("strait-job-{number}")).stack_size(STACK);
            workers.handles.push(thread.spawn(work)?);
            workers.jobs.push(sender);
        }
        Ok(workers)
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.jobs.len()
    }

    /// Gives a job to worker `number`, from 1 on; gives it back where that has no room.
    pub fn hand_over(&self, number: usize, job: Job) -> Option<Job> {
        let Some(worker) = number.checked_sub(1).and_then(|place| self.jobs.get(place)) else {
            return Some(job);
        };
        worker.try_send(job).err().map(|error| match error {
            TrySendError::Full(job) | TrySendError::Disconnected(job) => job,
        })
    }

    /// A job that is done, if there is one.
    #[must_use]
    pub fn done(&self) -> Option<Job> {
        self.done.try_recv().ok()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.jobs.clear();
        for handle in self.handles.drain(..) {
            // A worker that panicked has said so already.
            let _ = handle.join();
        }
    }
}

fn work(jobs: &Receiver<Job>, mut squeezer: Squeezer, finished: &Sender<Job>, wake: &Wake) {
    while let Ok(mut job) = jobs.recv() {
        job.run(&mut squeezer);
        if finished.send(job).is_err() {
            return;
        }
        wake.raise();
    }
}
