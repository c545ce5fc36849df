//! The cost of strangers and hostile peers to everybody else, and of many honest sites beside few: the tunnel, its services, the
//! directory of keys, the broker.

mod attackers;
mod broker;
mod directory;
mod floods;
mod hub;
mod peers;
mod services;
mod star;
mod watch;

use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::{BenchPart, BenchSetup, each_part};

/// A section for each part, given to `done` when it is measured.
pub(crate) fn run(setting: &BenchSetup, done: &mut dyn FnMut(BenchSection)) -> Result<(), Error> {
    let parts: [(&str, BenchPart); 7] = [
        ("floods", floods::run),
        ("sessionless", floods::run_sessionless),
        ("peers", peers::run),
        ("services", services::run),
        ("hub", hub::run),
        ("directory", directory::run),
        ("broker", broker::run),
    ];
    each_part(&parts, setting, done)
}
