//! Worker threads beside a thread that carries packets.

use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::{self, JoinHandle};

use crate::cpu_time;

/// Jobs that may wait for one worker: more than a packet thread ever gives it, which is one more than an engine is full with.
const JOBS: usize = 8;
/// Codecs keep their tables on the heap.
const STACK: usize = 256 * 1024;

/// The workers of one packet thread; they end when this is dropped.
#[derive(Debug)]
pub struct Workers<J> {
    jobs: Vec<SyncSender<J>>,
    done: Receiver<J>,
    handles: Vec<JoinHandle<()>>,
}

impl<J: Send + 'static> Workers<J> {
    /// Starts so many workers called `name`, each with what `make` gives it to do a job with, after which it calls `wake`.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start<D: FnMut(&mut J) + Send + 'static>(
        (name, count): (&str, usize),
        make: impl Fn() -> D,
        wake: impl Fn() + Clone + Send + 'static,
    ) -> io::Result<Workers<J>> {
        let (finished, done) = channel();
        let mut workers = Workers { jobs: Vec::new(), done, handles: Vec::new() };
        for number in 1..=count {
            let (sender, jobs) = sync_channel(JOBS);
            let (run, finished, wake) = (make(), finished.clone(), wake.clone());
            let thread = thread::Builder::new().name(worker_name(name, number)).stack_size(STACK);
            workers.handles.push(thread.spawn(move || work(&jobs, run, &finished, &wake))?);
            workers.jobs.push(sender);
        }
        Ok(workers)
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.jobs.len()
    }

    /// Gives a job to worker `number`, from 1 on; gives it back where there is no such worker or it has no room.
    #[must_use]
    pub fn hand_over(&self, number: usize, job: J) -> Option<J> {
        let worker = number.checked_sub(1).and_then(|place| self.jobs.get(place));
        let Some(worker) = worker else { return Some(job) };
        worker.try_send(job).err().map(|(TrySendError::Full(job) | TrySendError::Disconnected(job))| job)
    }

    /// A job that is done, if there is one.
    #[must_use]
    pub fn done(&self) -> Option<J> {
        self.done.try_recv().ok()
    }

    /// The next job that is done, waited for; nothing when there are no workers. For callers that have nothing else to do, and only
    /// while workers have jobs.
    #[must_use]
    pub fn wait(&self) -> Option<J> {
        self.done.recv().ok()
    }
}

impl<J> Drop for Workers<J> {
    fn drop(&mut self) {
        self.jobs.clear();
        for handle in self.handles.drain(..) {
            // A worker that panicked has said so already.
            let _ = handle.join();
        }
    }
}

/// Returns the name of a worker's thread, by that of the thread beside which it works and its number, from 1 on.
pub(crate) fn worker_name(name: &str, number: usize) -> String {
    format!("{name}-{number}")
}

fn work<J>(jobs: &Receiver<J>, mut run: impl FnMut(&mut J), finished: &Sender<J>, wake: &impl Fn()) {
    cpu_time::count(thread::current().name().unwrap_or_default());
    while let Ok(mut job) = jobs.recv() {
        run(&mut job);
        if finished.send(job).is_err() {
            return;
        }
        wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits as the thread that shares its work does: until a worker wakes it.
    fn woken() -> (impl Fn() + Clone + Send + 'static, Receiver<()>) {
        let (wake, woken) = channel();
        (move || wake.send(()).unwrap(), woken)
    }

    #[test]
    fn every_job_comes_back_done() {
        let square = || |job: &mut u64| *job *= *job;
        let (wake, woken) = woken();
        let workers = Workers::start(("square", 3), square, wake).unwrap();
        assert_eq!((workers.count(), workers.done()), (3, None));
        assert_eq!(workers.hand_over(0, 5), Some(5), "the calling thread is none of them");
        assert_eq!(workers.hand_over(4, 5), Some(5));
        for (number, job) in [(1, 2), (2, 3), (3, 4), (1, 5)] {
            assert_eq!(workers.hand_over(number, job), None);
        }
        let mut done: Vec<_> = woken.iter().take(4).map_while(|()| workers.done()).collect();
        done.sort_unstable();
        assert_eq!(done, [4, 9, 16, 25]);
    }

    #[test]
    fn busy_worker_returns_jobs_without_room() {
        let (hold, held) = sync_channel::<()>(0);
        let held = std::sync::Arc::new(std::sync::Mutex::new(held));
        let slow = move || {
            let held = std::sync::Arc::clone(&held);
            move |_: &mut usize| assert!(held.lock().unwrap().recv().is_err())
        };
        let (wake, woken) = woken();
        let workers = Workers::start(("slow", 1), slow, wake).unwrap();
        let refused = (0..=JOBS + 1).filter_map(|job| workers.hand_over(1, job)).count();
        assert!((1..=2).contains(&refused), "{refused}: one may be in its hands");
        drop(hold);
        for _ in refused..JOBS + 2 {
            woken.recv().unwrap();
            assert!(workers.done().is_some());
        }
    }
}
