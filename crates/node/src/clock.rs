//! The system's clock as [`Time`], and a timer that counts by it.
//!
//! Both count while the system is suspended (`CLOCK_BOOTTIME`): keys age in suspend, and what was due meanwhile is due at
//! once afterwards. Setting the wall clock changes nothing.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use strait_clock::Time;
use tokio::io::unix::AsyncFd;

use crate::cpu_time;
use crate::path_memory::unix_time;
use crate::timespec::timespec;

/// Counts from when the node started, suspend included.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// `CLOCK_BOOTTIME` at the start.
    start: Duration,
    base: Instant,
}

impl Clock {
    /// Zero is now.
    #[must_use]
    pub fn start() -> Clock {
        Clock { start: since_boot(), base: Instant::now() }
    }

    /// The time since the start.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::ZERO + since_boot().saturating_sub(self.start)
    }

    /// How long until `at`; zero when it has passed.
    #[must_use]
    pub fn until(&self, at: Time) -> Duration {
        at.since(self.now())
    }

    /// An instant to count from, for libraries that count in instants and are given them.
    #[must_use]
    pub const fn base(&self) -> Instant {
        self.base
    }

    /// Nanoseconds that the system ran since the start, to measure how long work takes: suspend is no work.
    #[must_use]
    pub fn running(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Returns the time of day when the system was booted; it changes when that is set, and not when it is slewed or the system suspended.
#[must_use]
pub fn booted_at() -> Duration {
    Duration::from_secs(unix_time()).saturating_sub(since_boot())
}

/// The system's time since its boot, suspend included.
fn since_boot() -> Duration {
    // It cannot fail: Linux has this clock since 2.6.39.
    cpu_time::read(libc::CLOCK_BOOTTIME).unwrap_or_default()
}

/// Waits for times of a [`Clock`]. One that passed during suspend ends the wait when the system resumes; tokio's own timers
/// would count on from where they stopped.
#[derive(Debug)]
pub struct BootTimer {
    clock: Clock,
    timer: AsyncFd<OwnedFd>,
    /// What the kernel waits for.
    armed: Option<Time>,
}

impl BootTimer {
    /// A timer for times of `clock`; to be made inside a tokio runtime.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new(clock: Clock) -> io::Result<BootTimer> {
        // SAFETY: no pointer is passed; the result is checked before it is used.
        let fd =
            unsafe { libc::timerfd_create(libc::CLOCK_BOOTTIME, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and has no other owner.
        let timer = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: the descriptor stays open and the same as long as it is registered, which owns it.
        let timer = unsafe { AsyncFd::register(timer) }?;
        Ok(BootTimer { clock, timer, armed: None })
    }

    /// Returns at `at`, or at once if that has passed; may be dropped before and called again, also for another time.
    ///
    /// # Errors
    /// When the kernel refuses the time, which it does for none that a [`Clock`] can show.
    pub async fn until(&mut self, at: Time) -> io::Result<()> {
        if self.armed != Some(at) {
            self.arm(at)?;
            self.armed = Some(at);
        }
        loop {
            let mut ready = self.timer.readable().await?;
            let mut count = [0_u8; 8];
            // SAFETY: the pointer and length describe `count`, which outlives the call.
            let read =
                unsafe { libc::read(ready.get_ref().as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
            if read > 0 {
                self.armed = None;
                return Ok(());
            }
            // Readable for an earlier time than the timer is set to now.
            ready.clear_ready();
        }
    }

    fn arm(&self, at: Time) -> io::Result<()> {
        // Zero would disarm it.
        let at = (self.clock.start + at.since(Time::ZERO)).max(Duration::from_nanos(1));
        let once = libc::itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(at) };
        let fd = self.timer.get_ref().as_raw_fd();
        // SAFETY: `once` outlives the call, and a null pointer means that the former setting is of no interest.
        let set = unsafe {
            libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &raw const once, std::ptr::null_mut())
        };
        if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests;
