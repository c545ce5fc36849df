//! A process for each stream that is served: what it does wrong costs one transfer of one peer.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsFd;

use super::ServiceChannel;
use crate::privileges::{self, ServiceUser};
use crate::process::fork;

/// How a worker ends that could not give up its privileges.
const PRIVILEGED: libc::c_int = 77;

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

    /// Starts a process for a stream of `peer` that goes on as `user`, without any privilege, does `body` and ends. It has what
    /// this process has, but for the channel. To be called before there is any thread.
    ///
    /// # Errors
    /// `ResourceBusy` when as many run as may; `fork(2)`.
    pub fn start(
        &mut self,
        channel: &ServiceChannel,
        peer: &str,
        user: ServiceUser,
        body: impl FnOnce() -> i32,
    ) -> io::Result<()> {
        self.reap();
        let of_peer = self.running.iter().filter(|(_, its)| its == peer).count();
        if !self.limits.places.admit(self.running.len(), of_peer) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let memory = self.limits.memory;
        let number = fork(c"strait-files", &[channel.as_fd()], || {
            if prepare(memory).and_then(|()| privileges::drop_all(user).map_err(io::Error::other)).is_err() {
                return PRIVILEGED;
            }
            body()
        })?;
        self.running.push((number, peer.to_owned()));
        Ok(())
    }
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
