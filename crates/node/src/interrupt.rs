//! Signals that ask the program to end: remembered, so that everything is put away in order.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use crate::cpu_time;

static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// The time at which it came, in milliseconds.
static CAME: AtomicU64 = AtomicU64::new(0);

/// The milliseconds within which further signals are the same request: `timeout` and `sudo` send one to the process and one to its group,
/// and a person needs longer than that for a second thought.
const ONE_REQUEST: u64 = 500;

/// The signals that end the program in order: from the keyboard, from a supervisor, from a closed terminal.
const SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// From here on [`signal`] reports these; a second request ends the program at once.
pub fn watch() {
    for signal in SIGNALS {
        // SAFETY: all zeros is a valid `sigaction`; the handler only touches atomics and calls what is
        // async-signal-safe.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = remember as *const () as usize;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// From here on what a terminal sends does nothing: its keys, and its end. What ends this program is something else.
pub fn ignore() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
        // SAFETY: ignoring a signal touches no memory.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Starts a thread that none of these reaches: they are for the one that waits for them ([`EndSignal`]), whichever was there first.
///
/// # Errors
/// An error of the system that has no room for another thread.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let before = mask(libc::SIG_BLOCK, &set(&SIGNALS))?;
    let thread = thread::Builder::new().name(name.to_owned()).spawn(body);
    mask(libc::SIG_SETMASK, &before)?;
    thread
}

/// Signals to end, to be waited for with descriptors ([`crate::poll::wait`]).
#[derive(Debug)]
pub struct EndSignal {
    descriptor: OwnedFd,
    signals: &'static [i32],
    /// The time at which the first came, in milliseconds.
    first: AtomicU64,
}

impl EndSignal {
    /// From here on a supervisor's (`SIGTERM`) is read. To be called before there is any thread but of [`spawn`], and after processes were
    /// started that are to be ended by it.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn take() -> io::Result<EndSignal> {
        EndSignal::of(&[libc::SIGTERM])
    }

    /// The same for all signals that end a program in order: from the keyboard, from a supervisor, from a closed terminal.
    ///
    /// # Errors
    /// As [`EndSignal::take`].
    pub fn any() -> io::Result<EndSignal> {
        EndSignal::of(&SIGNALS)
    }

    fn of(signals: &'static [i32]) -> io::Result<EndSignal> {
        let set = set(signals);
        mask(libc::SIG_BLOCK, &set)?;
        // SAFETY: the set outlives the call, which returns a descriptor or an error.
        let made = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and has no other owner.
        Ok(EndSignal { descriptor: unsafe { OwnedFd::from_raw_fd(made) }, signals, first: AtomicU64::new(0) })
    }

    /// Returns true if a signal came since the last time. One of a second request, if this is called for it, ends the program at once.
    #[must_use]
    pub fn came(&self) -> bool {
        let mut came = false;
        while let Some(signal) = self.next() {
            if is_another(&self.first) {
                let _ = mask(libc::SIG_UNBLOCK, &set(self.signals));
                end_by(signal);
            }
            came = true;
        }
        came
    }

    /// The number of the next that was not read.
    fn next(&self) -> Option<i32> {
        let mut buffer = [0_u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: the pointer and length describe `buffer`, which outlives the call.
        let got =
            unsafe { libc::read(self.descriptor.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        // The number is the first field (signalfd(2)).
        (usize::try_from(got) == Ok(buffer.len()))
            .then(|| i32::from_ne_bytes(buffer.first_chunk().copied().unwrap_or_default()))
    }

    /// From here on they end the program at once.
    pub fn release(self) {
        let _ = mask(libc::SIG_UNBLOCK, &set(self.signals));
    }
}

impl AsFd for EndSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn set(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: all zeros is a valid set on Linux, and the calls get a pointer to one.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

/// Changes which signals reach this thread. Returns those that did not before.
fn mask(how: i32, signals: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = set(&[]);
    // SAFETY: both sets outlive the call.
    match unsafe { libc::pthread_sigmask(how, signals, &raw mut before) } {
        0 => Ok(before),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

extern "C" fn remember(signal: i32) {
    if is_another(&CAME) {
        end_by(signal);
    } else {
        let _ = SIGNAL.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// Returns true if a signal that came now is another request than the one that first came at `first`, which is 0 before that; safe in a
/// handler (signal-safety(7)).
fn is_another(first: &AtomicU64) -> bool {
    let now = cpu_time::read(libc::CLOCK_MONOTONIC).unwrap_or_default().as_millis();
    let now = u64::try_from(now).unwrap_or(u64::MAX);
    let first = first.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst);
    first.is_err_and(|first| now > first + ONE_REQUEST)
}

/// Ends the program as one that does not know the signal.
fn end_by(signal: i32) {
    // SAFETY: resetting a disposition and raising a signal touch no memory, and are async-signal-safe (signal-safety(7)).
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// The number of the signal that has asked the program to end, once one has.
#[must_use]
pub fn signal() -> Option<i32> {
    match SIGNAL.load(Ordering::SeqCst) {
        0 => None,
        signal => Some(signal),
    }
}
