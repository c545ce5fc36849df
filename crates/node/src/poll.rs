//! Waiting for descriptors with timeouts in nanoseconds.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::timespec::timespec;

/// A descriptor and what is awaited of it; an error or hang-up on it also makes it ready.
#[repr(transparent)]
#[derive(Debug)]
pub struct PollFd<'fd>(libc::pollfd, PhantomData<BorrowedFd<'fd>>);

impl<'fd> PollFd<'fd> {
    /// Waits until something can be read.
    #[must_use]
    pub fn readable(fd: BorrowedFd<'fd>) -> PollFd<'fd> {
        PollFd::new(fd, libc::POLLIN)
    }

    /// Waits until something can be written.
    #[must_use]
    pub fn writable(fd: BorrowedFd<'fd>) -> PollFd<'fd> {
        PollFd::new(fd, libc::POLLOUT)
    }

    /// Waits until something can be read, or written, or both; with neither only for errors and a hang-up.
    #[must_use]
    pub fn ready_to(fd: BorrowedFd<'fd>, read: bool, write: bool) -> PollFd<'fd> {
        let events = if read { libc::POLLIN } else { 0 } | if write { libc::POLLOUT } else { 0 };
        PollFd::new(fd, events)
    }

    /// Holds a place in the array and waits for nothing.
    #[must_use]
    pub const fn ignored() -> PollFd<'fd> {
        // The kernel skips negative descriptors (poll(2)).
        PollFd(libc::pollfd { fd: -1, events: 0, revents: 0 }, PhantomData)
    }

    fn new(fd: BorrowedFd<'fd>, events: libc::c_short) -> PollFd<'fd> {
        PollFd(libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }, PhantomData)
    }

    /// Whether the last [`wait`] found it ready.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.0.revents != 0
    }

    /// Whether the last [`wait`] found both directions ended, or an error.
    #[must_use]
    pub const fn is_gone(&self) -> bool {
        self.0.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
    }
}

/// Returns the bytes that were written to `stream` and its other end has not read, as the system counts them (SIOCOUTQ, unix(7)).
///
/// # Errors
/// As `ioctl(2)`.
pub fn unsent(stream: &UnixStream) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ writes an int, to one that outlives the call.
    let result = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(u32::try_from(bytes).unwrap_or(0)) }
}

/// Sleeps until one of `fds` is ready or `timeout` is over (never, if none); says how many are ready.
///
/// A signal ends the sleep early with 0.
///
/// # Errors
/// As `ppoll(2)`, without EINTR.
pub fn wait(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    let span = timeout.map(timespec);
    let span = span.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = libc::nfds_t::try_from(fds.len()).unwrap_or(libc::nfds_t::MAX);
    // SAFETY: `PollFd` is transparent over `pollfd`, so the pointer and count describe `fds`; `span`
    // is null or points to a value that outlives the call; a null signal mask changes nothing.
    let ready = unsafe { libc::ppoll(fds.as_mut_ptr().cast(), count, span, std::ptr::null()) };
    if let Ok(ready) = usize::try_from(ready) {
        return Ok(ready);
    }
    for fd in fds {
        fd.0.revents = 0;
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        error => Err(error),
    }
}

/// Asks the kernel to end this thread's sleeps on time: by default it may add 50 us (prctl(2),
/// `PR_SET_TIMERSLACK`), which a pacer feels.
pub fn sleep_exactly() {
    // SAFETY: takes integers only and changes nothing but the calling thread's timer slack.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn sees_what_is_ready_and_only_that() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let mut fds = [PollFd::readable(far.as_fd()), PollFd::writable(far.as_fd()), PollFd::ignored()];
        assert_eq!(wait(&mut fds, Some(Duration::ZERO)).unwrap(), 1);
        assert_eq!(fds.each_ref().map(PollFd::is_ready), [false, true, false]);
        near.write_all(b"x").unwrap();
        assert_eq!(wait(&mut fds, None).unwrap(), 2);
        assert_eq!(fds.each_ref().map(PollFd::is_ready), [true, true, false]);
    }

    #[test]
    fn a_timeout_ends_the_sleep() {
        sleep_exactly();
        let (_near, far) = UnixStream::pair().unwrap();
        let mut fds = [PollFd::readable(far.as_fd())];
        assert_eq!(wait(&mut fds, Some(Duration::from_micros(200))).unwrap(), 0);
        assert!(!fds[0].is_ready());
    }
}
