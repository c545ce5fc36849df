//! What strangers and hostile peers cost everybody else, and whether many honest sites get on as well as few.

mod floods;
mod hub;
mod peers;
mod services;
mod star;
mod watch;

use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::{BenchPart, BenchSetup, each_part};

/// Floods with and without sessions, a hostile peer, hostile streams, a hub: a section each, given to `done` when it is measured.
pub(crate) fn run(setting: &BenchSetup, done: &mut dyn FnMut(BenchSection)) -> Result<(), Error> {
    let parts: [(&str, BenchPart); 5] = [
        ("floods", floods::run),
        ("sessionless", floods::run_sessionless),
        ("peers", peers::run),
        ("services", services::run),
        ("hub", hub::run),
    ];
    each_part(&parts, setting, done)
}
