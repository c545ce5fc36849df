//! A way to wake a thread that sleeps in [`crate::poll::wait`].
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// An event that many threads may raise and one thread waits for.
///
/// Raising it again before the sleeper has looked costs no system call.
#[derive(Debug)]
pub struct Wake {
    event: OwnedFd,
    raised: AtomicBool,
}

impl Wake {
    /// A quiet event.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Wake> {
        // SAFETY: no pointer is passed; the result is checked before it is used.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and has no other owner.
        let event = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Wake { event, raised: AtomicBool::new(false) })
    }

    /// Makes the descriptor readable.
    pub fn raise(&self) {
        if self.raised.swap(true, Ordering::AcqRel) {
            return;
        }
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the pointer and length describe `one`, which outlives the call. The write can only
        // fail when the counter is at its limit, and then the descriptor is readable already.
        unsafe { libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Whether it was raised and not cleared since; costs no system call.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// Makes the descriptor quiet again; to be called before looking at what it announced.
    pub fn clear(&self) {
        let mut count = [0_u8; 8];
        // SAFETY: the pointer and length describe `count`, which outlives the call. It fails only
        // when the descriptor is quiet already.
        unsafe { libc::read(self.event.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
        // A read-modify-write, so that whatever was queued before a raise that found the flag set is seen.
        self.raised.swap(false, Ordering::AcqRel);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{PollFd, wait};
    use std::sync::Arc;
    use std::time::Duration;

    fn readable(wake: &Wake) -> bool {
        let mut fds = [PollFd::readable(wake.as_fd())];
        wait(&mut fds, Some(Duration::ZERO)).unwrap();
        fds[0].is_ready()
    }

    #[test]
    fn raise_and_clear() {
        let wake = Wake::new().unwrap();
        assert!(!readable(&wake));
        wake.raise();
        wake.raise();
        assert!(readable(&wake));
        wake.clear();
        assert!(!readable(&wake));
        wake.clear();
        wake.raise();
        assert!(readable(&wake));
    }

    #[test]
    fn wakes_a_sleeper() {
        let wake = Arc::new(Wake::new().unwrap());
        let other = Arc::clone(&wake);
        let sleeper = std::thread::spawn(move || {
            let mut fds = [PollFd::readable(other.as_fd())];
            while !fds[0].is_ready() {
                wait(&mut fds, None).unwrap();
            }
        });
        wake.raise();
        sleeper.join().unwrap();
    }
}
