//! Signals that ask the program to end: remembered, so that everything is put away in order.

use std::thread;
use std::time::{Duration, Instant};

pub use strait_node::interrupt::watch;

use crate::Error;

/// How soon a pause notices a signal.
const TICK: Duration = Duration::from_millis(250);

/// Fails once a signal has asked the program to end.
///
/// # Errors
/// [`Error::Interrupted`] with the signal's number.
pub fn check() -> Result<(), Error> {
    strait_node::interrupt::signal().map_or(Ok(()), |signal| Err(Error::Interrupted(signal)))
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
