//! Keys without sessions: what they cost beside sessions, and what the directory of keys costs.

mod daemon;
mod directory;
mod first;
mod fleet;
mod idle;
mod peers;
mod stage;
mod throughput;
mod watchers;

pub(crate) use fleet::{Fleet, FleetStore, certificates};
pub(crate) use watchers::{Heard, publish, watch};

use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::{BenchPart, BenchSetup, each_part};

/// A section for each part, given to `done` when it is measured.
pub(crate) fn run(setting: &BenchSetup, done: &mut dyn FnMut(BenchSection)) -> Result<(), Error> {
    let parts: [(&str, BenchPart); 7] = [
        ("first", first::run),
        ("throughput", throughput::run),
        ("peers", peers::run),
        ("daemon", daemon::run),
        ("idle", idle::run),
        ("directory", directory::run),
        ("watchers", watchers::run),
    ];
    each_part(&parts, setting, done)
}
