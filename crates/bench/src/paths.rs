//! The link as it is: long, lossy, of an unknown rate, and paid by the byte; Strait beside the plain link and wireguard-go.

mod known;
mod lossy;
mod recorded;
mod repair;
mod sparse;
mod stage;
mod table;
mod unknown;

use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::{BenchSetup, each_part};

/// Long clean links, lossy ones, unknown rates, sparse traffic, what repair costs: a section each, given to `done` when it is
/// measured.
pub(crate) fn run(setting: &BenchSetup, done: &mut dyn FnMut(BenchSection)) -> Result<(), Error> {
    each_part(&[known::run, lossy::run, unknown::run, sparse::run, repair::run], setting, done)
}
