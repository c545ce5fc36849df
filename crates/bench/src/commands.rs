//! Commands without a daemon: each has the user's own node for its time, from the start of its process to the end of it.
//!
//! The far host has a daemon with a folder, the near one nothing but a configuration. What commands are compared with goes to an sshd,
//! or over one TCP connection, of the same hosts in turn.

mod files;
mod outage;
mod round_trips;
mod stage;

use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::{BenchPart, BenchSetup, each_part};

/// A section for each part, given to `done` when it is measured.
pub(crate) fn run(setting: &BenchSetup, done: &mut dyn FnMut(BenchSection)) -> Result<(), Error> {
    let parts: [(&str, BenchPart); 3] =
        [("files", files::run), ("round-trips", round_trips::run), ("outage", outage::run)];
    each_part(&parts, setting, done)
}
