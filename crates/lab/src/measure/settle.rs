//! Waiting until the machine is quiet.

use std::time::{Duration, Instant};

use strait_testbed::interrupt;

use super::MachineLoad;
use crate::error::Error;

/// How long the processors are watched before a run.
const WATCH: Duration = Duration::from_millis(250);
/// A run starts when less of the processors than this is in use,
const QUIET: f64 = 0.25;
/// or after this much waiting.
const PATIENCE: Duration = Duration::from_secs(8);

/// Waits until the machine is quiet, or has not become so in time, and says how it is.
///
/// # Errors
/// [`Error::NoLoad`], or [`Error::Testbed`] on a signal.
pub fn settle() -> Result<MachineLoad, Error> {
    let start = Instant::now();
    loop {
        interrupt::check()?;
        let load = MachineLoad::watched(WATCH).map_err(Error::NoLoad)?;
        if load.busy < QUIET || start.elapsed() > PATIENCE {
            return Ok(load);
        }
    }
}
