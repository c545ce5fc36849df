//! A process for each stream that is served: what it does wrong costs one transfer of one peer.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::privileges::{self, ServiceUser};
use crate::process::{start_anew, take_task};

/// The name of these processes.
const NAME: &CStr = c"strait-files";
/// The exit status of a worker that has no task, or could not give up its privileges.
const UNFIT: i32 = 77;

/// The numbers of processes that there may be at once.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Of all peers.
    pub all: usize,
    /// Of one peer.
    pub peer: usize,
    /// Of one peer where others have taken all; there are twice as many at most then.
    pub own: usize,
}

impl Places {
    /// True if a peer that has `of_peer` of `running` processes may have another.
    pub(crate) const fn admit(self, running: usize, of_peer: usize) -> bool {
        let most = if of_peer < self.own { 2 * self.all } else { self.all };
        running < most && of_peer < self.peer
    }
}

/// The limits of all that is served at once.
#[derive(Clone, Copy, Debug)]
pub struct WorkerLimits {
    /// Processes.
    pub places: Places,
    /// Bytes of memory that one process may have.
    pub memory: u64,
}

/// The processes that serve streams.
#[derive(Debug)]
pub struct ServiceWorkers {
    limits: WorkerLimits,
    /// Their numbers, and the peers that they serve.
    running: Vec<(libc::pid_t, String)>,
}

impl ServiceWorkers {
    /// None yet.
    #[must_use]
    pub const fn new(limits: WorkerLimits) -> ServiceWorkers {
        ServiceWorkers { limits, running: Vec::new() }
    }

    /// Whether none runs.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Forgets those that have ended.
    pub fn reap(&mut self) {
        self.running.retain(|(number, _)| {
            // SAFETY: no status is asked for; the process is this one's child, which was not waited for yet.
            let waited = unsafe { libc::waitpid(*number, std::ptr::null_mut(), libc::WNOHANG) };
            waited == 0
        });
    }

    /// Starts a process for a stream of `peer`, which goes on as `user`, without any privilege, and does `task` ([`serve_files`]) with
    /// these descriptors. To be called before there is any thread.
    ///
    /// # Errors
    /// `ResourceBusy` when as many run as may; `fork(2)`.
    pub fn start(
        &mut self,
        peer: &str,
        user: ServiceUser,
        task: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        self.reap();
        let of_peer = self.running.iter().filter(|(_, its)| its == peer).count();
        if !self.limits.places.admit(self.running.len(), of_peer) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let number = start_anew(NAME, &(self.limits.memory, user, task), descriptors)?;
        self.running.push((number, peer.to_owned()));
        Ok(())
    }
}

/// Does the task of this process with `body`, if it was started by [`ServiceWorkers::start`], and returns its exit status.
pub fn serve_files<T: DeserializeOwned>(body: impl FnOnce(T, Vec<OwnedFd>) -> i32) -> Option<i32> {
    let begun = take_task(NAME)?.and_then(|((memory, user, task), descriptors)| {
        prepare(memory)?;
        privileges::drop_all(user).map_err(io::Error::other)?;
        Ok((task, descriptors))
    });
    Some(begun.map_or_else(unfit, |(task, descriptors)| body(task, descriptors)))
}

/// Logs that a process cannot do what it was started for, and returns its exit status.
pub(crate) fn unfit(why: io::Error) -> i32 {
    tracing::error!("a stream is not served: {why}");
    UNFIT
}

/// Limits memory, and lets signals end the process, and what it starts, again.
fn prepare(memory: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: memory, rlim_max: memory };
    // SAFETY: the pointer is to a whole rlimit that outlives the call; the default is no handler of this program's.
    unsafe {
        if libc::setrlimit(libc::RLIMIT_DATA, &raw const limit) != 0 {
            return Err(io::Error::last_os_error());
        }
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_that_take_all_processes_leave_others_theirs() {
        let places = Places { all: 32, peer: 8, own: 2 };
        let mut running = Vec::new();
        let mut start = |peer: usize| {
            let of_peer = running.iter().filter(|it| **it == peer).count();
            let admitted = places.admit(running.len(), of_peer);
            if admitted {
                running.push(peer);
            }
            admitted
        };
        let greedy: Vec<usize> = (0..5).map(|peer| (0..99).filter(|_| start(peer)).count()).collect();
        assert_eq!(greedy, [8, 8, 8, 8, 2]);
        assert_eq!((5..100).map(|peer| (0..99).filter(|_| start(peer)).count()).sum::<usize>(), 30);
    }
}
