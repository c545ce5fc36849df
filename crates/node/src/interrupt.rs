//! Signals that ask the program to end: remembered, so that everything is put away in order.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI32, Ordering};

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
