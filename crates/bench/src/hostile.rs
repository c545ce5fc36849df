//! What strangers and hostile peers cost everybody else, and whether many honest sites get on as well as few.

mod floods;
mod hub;
mod peers;
mod pings;
mod star;
mod watch;

use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::BenchSetup;

/// Floods, a hostile peer, a hub: a section each.
pub(crate) fn run(setting: &BenchSetup) -> Result<Vec<BenchSection>, Error> {
    Ok(vec![floods::run(setting)?, peers::run(setting)?, hub::run(setting)?])
}
