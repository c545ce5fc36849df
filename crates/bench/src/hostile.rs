//! What strangers and hostile peers cost everybody else, and whether many honest sites get on as well as few.

mod floods;
mod hub;
mod peers;
mod star;
mod watch;

use strait_testbed::interrupt;

use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::BenchSetup;

/// Floods, a hostile peer, a hub: a section each, given to `done` when it is measured. A part that cannot run does not
/// keep the others from it; the first error is given back.
pub(crate) fn run(setting: &BenchSetup, done: &mut dyn FnMut(BenchSection)) -> Result<(), Error> {
    let mut first = Ok(());
    for part in [floods::run, peers::run, hub::run] {
        match part(setting) {
            Ok(section) => done(section),
            Err(error) if first.is_ok() => first = Err(error),
            Err(_) => {}
        }
        interrupt::check()?;
    }
    first
}
