//! One program as several processes, each with what it needs and no more.
#![allow(unsafe_code)]

mod anew;
mod channel;

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub(crate) use anew::{start_anew, take_task};
pub(crate) use channel::ProcessChannel;

/// How a process ends that panicked, as Rust programs do.
const PANICKED: libc::c_int = 101;

/// The error of a system call, if its result says that there is one.
pub(crate) fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Starts a process called `name` that runs `body` and ends with what that returns. It has what this process has, but reads
/// nothing from standard input, and no signal from a terminal or a supervisor ends it: it ends when `body` finds that the
/// other end of a channel is gone. It gives up `closes`, this process's ends of channels.
///
/// The answer is its number. To be called before any thread is started, since only the calling thread goes on in the new process.
///
/// # Errors
/// When the system has no process left.
pub(crate) fn fork(
    name: &CStr,
    closes: &[BorrowedFd<'_>],
    body: impl FnOnce() -> libc::c_int,
) -> io::Result<libc::pid_t> {
    // SAFETY: there is no other thread, so no lock is held by one that does not go on.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            prepare(name, closes);
            // Not into the caller's code, which is the other process's.
            let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(PANICKED);
            // SAFETY: takes an integer; ends this process without the exit handlers of the other.
            unsafe { libc::_exit(code) }
        }
        number => Ok(number),
    }
}

/// Tells a runtime when there is something to read from `descriptor`.
pub(crate) fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor stays open and the same as long as it is registered, which owns it.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?)
}

/// A process that runs, as the kernel has it (proc_pid_stat(5)); none that has ended and waits for its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunningProcess {
    pub(crate) group: i32,
    pub(crate) session: i32,
}

impl RunningProcess {
    /// Returns the one whose folder in `/proc` this is, if it runs.
    pub(crate) fn at(place: &Path) -> Option<RunningProcess> {
        RunningProcess::parse(&String::from_utf8_lossy(&fs::read(place.join("stat")).ok()?))
    }

    fn parse(stat: &str) -> Option<RunningProcess> {
        // Behind the name, which may have anything in it: state, parent, group, session.
        let mut fields = stat.rsplit(')').next()?.split_whitespace();
        if ["Z", "X"].contains(&fields.next()?) {
            return None;
        }
        let mut number = || fields.next()?.parse().ok();
        let (_parent, group, session): (i32, i32, i32) = (number()?, number()?, number()?);
        Some(RunningProcess { group, session })
    }
}

/// Returns a file in memory that no folder has.
pub(crate) fn memory_file(name: &CStr) -> io::Result<File> {
    // SAFETY: the name ends in a zero byte and outlives the call.
    let make = |flags| unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | flags) };
    // A system may take none without it (`vm.memfd_noexec`); before Linux 6.3, it is unknown.
    let made = match make(libc::MFD_NOEXEC_SEAL) {
        -1 => make(0),
        made => made,
    };
    checked(made)?;
    // SAFETY: the descriptor was just made and has no other owner.
    Ok(unsafe { File::from_raw_fd(made) })
}

/// Gives this process the name that `ps` shows.
pub(crate) fn name_process(name: &CStr) {
    // SAFETY: the name ends in a zero byte and outlives the call.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

fn prepare(name: &CStr, closes: &[BorrowedFd<'_>]) {
    name_process(name);
    // SAFETY: the path ends in a zero byte and outlives the call; what owns the closed descriptors is the other process's, and
    // nothing here uses or drops it; what fails leaves things as they were.
    unsafe {
        for descriptor in closes {
            libc::close(descriptor.as_raw_fd());
        }
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Standard input may be the way by which the other process says that it is up.
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if null >= 0 {
            libc::dup2(null, libc::STDIN_FILENO);
            libc::close(null);
        }
        for number in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
            only_write(number);
        }
    }
}

/// Opens a terminal anew for writing alone: what a process without privileges logs to is not what a person types passwords at. What is no
/// terminal, or cannot be opened, stays.
fn only_write(number: libc::c_int) {
    let Ok(name) = CString::new(format!("/proc/self/fd/{number}")) else { return };
    // SAFETY: the name ends in a zero byte and outlives the calls, which take integers beside it; the descriptor is replaced in place.
    unsafe {
        if libc::isatty(number) != 1 {
            return;
        }
        let opened = libc::open(name.as_ptr(), libc::O_WRONLY | libc::O_NOCTTY | libc::O_CLOEXEC);
        if opened >= 0 {
            libc::dup2(opened, number);
            libc::close(opened);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::login::{Pty, PtySize};

    #[test]
    fn a_terminal_that_is_logged_to_is_not_read_from() {
        let size = PtySize { columns: 80, rows: 24, width: 0, height: 0 };
        let (pty, terminal) = Pty::open(size, &[]).unwrap();
        let access = |of: &OwnedFd| {
            // SAFETY: takes integers, and changes nothing.
            unsafe { libc::fcntl(of.as_raw_fd(), libc::F_GETFL) & libc::O_ACCMODE }
        };
        assert_eq!(access(&terminal), libc::O_RDWR);
        only_write(terminal.as_raw_fd());
        assert_eq!(access(&terminal), libc::O_WRONLY);
        let mut terminal = std::fs::File::from(terminal);
        terminal.write_all(b"logged").unwrap();
        assert!(terminal.read(&mut [0; 8]).is_err());
        let mut got = [0; 6];
        let begun = std::time::Instant::now();
        while (&pty).read(&mut got).is_err() {
            assert!(begun.elapsed().as_secs() < 60);
        }
        assert_eq!(&got, b"logged");
        let (_reader, writer) = std::io::pipe().unwrap();
        let writer = OwnedFd::from(writer);
        only_write(writer.as_raw_fd());
        assert_eq!(access(&writer), libc::O_WRONLY, "a pipe stays");
    }

    #[test]
    fn a_process_runs_until_it_has_ended_whatever_its_name_is() {
        let stat = |state| format!("7 (a) Z 1 2 3 (b) {state} 1 20 30 0 -1 4194304");
        assert_eq!(RunningProcess::parse(&stat("S")), Some(RunningProcess { group: 20, session: 30 }));
        for none in [stat("Z"), stat("X"), String::new(), "7 (a) R 1".to_owned()] {
            assert_eq!(RunningProcess::parse(&none), None, "{none}");
        }
        assert!(RunningProcess::at(Path::new("/proc/self")).is_some());
        assert!(RunningProcess::at(Path::new("/proc/none")).is_none());
    }
}
