//! A limit of time for what others decide in this process: modules of PAM, the library's records, a peer that asks for nothing.
#![allow(unsafe_code)]

use std::io;
use std::time::Duration;

use crate::process::checked;
use crate::timespec::timespec;

/// Kills this process when it is over, which no module can put off: they may change what SIGALRM does, not SIGKILL.
#[derive(Debug)]
pub struct TimeLimit(libc::timer_t);

// SAFETY: the number of a timer, which any thread of the process may delete (timer_delete(2)).
unsafe impl Send for TimeLimit {}

impl TimeLimit {
    /// Begins to count.
    ///
    /// # Errors
    /// As `timer_create(2)`.
    pub fn set(limit: Duration) -> io::Result<TimeLimit> {
        // SAFETY: all zeros is a valid sigevent and itimerspec; the pointers are to values that outlive the calls.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_SIGNAL;
            event.sigev_signo = libc::SIGKILL;
            let mut timer: libc::timer_t = std::ptr::null_mut();
            checked(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer))?;
            let guard = TimeLimit(timer);
            let mut span: libc::itimerspec = std::mem::zeroed();
            span.it_value = timespec(limit);
            let set = libc::timer_settime(timer, 0, &raw const span, std::ptr::null_mut());
            checked(set)?;
            Ok(guard)
        }
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        // SAFETY: the timer was made by this and is deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}
