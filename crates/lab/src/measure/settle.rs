//! Waiting until the machine is quiet.

use std::thread;
use std::time::{Duration, Instant};

use strait_lab::measure::Load;
use strait_testbed::interrupt;

use crate::error::Error;

/// How long the processors are watched before a run.
const WATCH: Duration = Duration::from_millis(250);
/// A run starts when less of the processors than this is in use,
const QUIET: f64 = 0.25;
/// or after this much waiting.
const PATIENCE: Duration = Duration::from_secs(8);

/// Waits until the machine is quiet, or has not become so in time, and says how it is.
pub(crate) fn settle() -> Result<Load, Error> {
    let start = Instant::now();
    loop {
        interrupt::check()?;
        let load = Load::watched(WATCH).map_err(Error::doing("read how busy the processors are"))?;
        if load.busy < QUIET || start.elapsed() > PATIENCE {
            return Ok(load);
        }
    }
}

/// Waits for `span`, unless a signal asks for the end.
pub(crate) fn pause(span: Duration) -> Result<(), Error> {
    let end = Instant::now() + span;
    loop {
        interrupt::check()?;
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Ok(());
        }
        thread::sleep(rest.min(WATCH));
    }
}
