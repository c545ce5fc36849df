//! The link as it is: long, lossy, of an unknown rate, and paid by the byte; Strait beside the plain link and wireguard-go.

mod changes;
mod known;
mod lossy;
mod recorded;
mod repair;
mod sparse;
mod stage;
mod table;
mod unknown;

pub(crate) use stage::ThinPath;

use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::{BenchPart, BenchSetup, each_part};

/// Long clean links, lossy ones, unknown rates and such that change, sparse traffic, what repair costs: a section each, given
/// to `done` when it is measured.
pub(crate) fn run(setting: &BenchSetup, done: &mut dyn FnMut(BenchSection)) -> Result<(), Error> {
    let parts: [(&str, BenchPart); 6] = [
        ("known", known::run),
        ("lossy", lossy::run),
        ("unknown", unknown::run),
        ("changes", changes::run),
        ("sparse", sparse::run),
        ("repair", repair::run),
    ];
    each_part(&parts, setting, done)
}
