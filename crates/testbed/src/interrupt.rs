//! Signals that ask the program to end: remembered, so that everything is put away in order.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;

/// How soon a pause notices a signal.
const TICK: Duration = Duration::from_millis(250);

static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The signals that end the program in order: from the keyboard, from a supervisor, from a closed terminal.
const SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// From here on [`check`] reports these signals; a second one ends the program at once.
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

extern "C" fn remember(signal: i32) {
    SIGNAL.store(signal, Ordering::SeqCst);
    for each in SIGNALS {
        // SAFETY: resetting a disposition from a handler is async-signal-safe (signal-safety(7)).
        unsafe { libc::signal(each, libc::SIG_DFL) };
    }
}

/// Fails once a signal has asked the program to end.
///
/// # Errors
/// [`Error::Interrupted`] with the signal's number.
pub fn check() -> Result<(), Error> {
    match SIGNAL.load(Ordering::SeqCst) {
        0 => Ok(()),
        signal => Err(Error::Interrupted(signal)),
    }
}

/// Waits for `span`, unless a signal asks for the end.
///
/// # Errors
/// [`Error::Interrupted`] with the signal's number.
pub fn pause(span: Duration) -> Result<(), Error> {
    let end = Instant::now() + span;
    loop {
        check()?;
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Ok(());
        }
        thread::sleep(rest.min(TICK));
    }
}
