//! The end of a session that this host wants: SIGTERM tells its monitor, which ends programs and keeper.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use super::signals::{signal_process, signal_session};
use super::workers::wait_for;
use crate::interrupt::EndSignal;
use crate::poll::{self, PollFd};

/// The time that programs have to end after they were hung up, and a keeper to tell its client of that, until they are killed.
const HANGING_UP: Duration = Duration::from_secs(5);
/// The time after which killed programs are left alone: they wait for a disk.
const GIVING_UP: Duration = Duration::from_secs(10);
/// The time between two looks at programs that are to end.
const LOOK: Duration = Duration::from_millis(200);

/// A wait for children that SIGTERM ends, and them with it.
pub(super) struct Ending {
    signal: EndSignal,
    /// True once it came.
    pub(super) told: bool,
}

impl Ending {
    /// Takes the signal, which waits from here on until it is looked for.
    pub(super) fn take() -> io::Result<Ending> {
        EndSignal::take().map(|signal| Ending { signal, told: false })
    }

    /// Waits for the end of a session's first program; if this process is told to end, ends all of the session.
    pub(super) fn of_program(&mut self, program: libc::pid_t) -> io::Result<ExitStatus> {
        if self.is_told(program) {
            end_session(program);
        }
        wait_for(program)
    }

    /// Waits for the end of a keeper; if this process is told to end, for a while.
    pub(super) fn of_keeper(&mut self, keeper: libc::pid_t) -> io::Result<ExitStatus> {
        if self.is_told(keeper) {
            let _ = descriptor_of(keeper)
                .and_then(|keeper| poll::wait(&mut [PollFd::readable(keeper.as_fd())], Some(HANGING_UP)));
            let _ = signal_process(keeper, libc::SIGKILL);
        }
        wait_for(keeper)
    }

    /// Waits until a child has ended or this process is told to; whether it was told.
    fn is_told(&mut self, child: libc::pid_t) -> bool {
        if self.told {
            return true;
        }
        // Linux before 5.3 has none.
        let Ok(child) = descriptor_of(child) else { return false };
        let mut ends = [PollFd::readable(child.as_fd()), PollFd::readable(self.signal.as_fd())];
        while matches!(poll::wait(&mut ends, None), Ok(0)) {}
        self.told = self.signal.came();
        self.told
    }
}

impl AsFd for Ending {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signal.as_fd()
    }
}

/// Hangs up the programs of a session, and kills those that stay. Its first one was not waited for, so that its number is no other's.
fn end_session(session: libc::pid_t) {
    for signal in [libc::SIGHUP, libc::SIGCONT] {
        signal_session(session, signal);
    }
    let begun = Instant::now();
    while begun.elapsed() < GIVING_UP {
        let signal = if begun.elapsed() < HANGING_UP { 0 } else { libc::SIGKILL };
        if signal_session(session, signal) == 0 {
            return;
        }
        thread::sleep(LOOK);
    }
}

/// A descriptor that can be read when a child has ended (`pidfd_open(2)`).
fn descriptor_of(child: libc::pid_t) -> io::Result<OwnedFd> {
    // SAFETY: takes integers; by number, as older C libraries lack it.
    let made = unsafe { libc::syscall(libc::SYS_pidfd_open, child, 0) };
    match libc::c_int::try_from(made) {
        // SAFETY: the descriptor was just made and has no other owner.
        Ok(made @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(made) }),
        _ => Err(io::Error::last_os_error()),
    }
}
