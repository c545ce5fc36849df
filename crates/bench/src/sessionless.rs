//! Keys without sessions: what they cost beside sessions.

mod daemon;
mod first;
mod idle;
mod peers;
mod stage;
mod throughput;

use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::{BenchPart, BenchSetup, each_part};

/// A section for each part, given to `done` when it is measured.
pub(crate) fn run(setting: &BenchSetup, done: &mut dyn FnMut(BenchSection)) -> Result<(), Error> {
    let parts: [(&str, BenchPart); 5] = [
        ("first", first::run),
        ("throughput", throughput::run),
        ("peers", peers::run),
        ("daemon", daemon::run),
        ("idle", idle::run),
    ];
    each_part(&parts, setting, done)
}
