//! Signals that ask the program to end: remembered, so that everything is put away in order.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::{self, JoinHandle};

static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The signals that end the program in order: from the keyboard, from a supervisor, from a closed terminal.
const SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// From here on [`signal`] reports these; a second one ends the program at once.
pub fn watch() {
    for signal in SIGNALS {
        // SAFETY: all zeros is a valid `sigaction`; the handler only touches an atomic and calls `signal`, which
        // is async-signal-safe.
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
        Ok(EndSignal { descriptor: unsafe { OwnedFd::from_raw_fd(made) }, signals })
    }

    /// Whether it came since the last time; a second one ends the program at once.
    #[must_use]
    pub fn came(&self) -> bool {
        let mut buffer = [0_u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: the pointer and length describe `buffer`, which outlives the call.
        let got =
            unsafe { libc::read(self.descriptor.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        let came = usize::try_from(got) == Ok(buffer.len());
        if came {
            let _ = mask(libc::SIG_UNBLOCK, &set(self.signals));
        }
        came
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
    SIGNAL.store(signal, Ordering::SeqCst);
    for each in SIGNALS {
        // SAFETY: resetting a disposition from a handler is async-signal-safe (signal-safety(7)).
        unsafe { libc::signal(each, libc::SIG_DFL) };
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
