//! The data plane of three sites, each of which sends to both others.
//!
//! Every inner packet is unique and carries its number. A *witness*, a receiver at the end of a link that neither loses
//! nor delays, opens each datagram as it leaves; so the books of a sender are exact whatever its real link does:
//!
//! ```text
//! given to the sender = opened by the witness + dropped with a reason + waiting
//! ```
//!
//! and nothing waits once everything was let through. The receiver proper gets nothing that was not sent and nothing
//! twice; what it misses shared a datagram, or a block, with what the link lost.

mod links;
mod model;
mod opened;
mod operation;
mod outlets;
mod settings;
mod site;
mod traffic;
mod world;

use super::{Held, Violation, hold};
pub use operation::{Between, DataOperation, Mishap, OPERATION_LEN, Oddity};
pub use settings::{DataSettings, SETTINGS_LEN};
pub use world::DataSummary;
use world::DataWorld;

/// How many sites there are.
const SITES: usize = 3;

/// Every link, by sender and receiver.
fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..SITES).flat_map(|from| (0..SITES).map(move |to| (from, to))).filter(|(from, to)| from != to)
}

/// Reads settings and operations, and runs them; what is left over at the end is ignored.
///
/// # Errors
/// [`Violation`] when the reference model does not agree with what the cores do.
pub fn run(input: &[u8]) -> Result<DataSummary, Violation> {
    let Some((settings, rest)) = input.split_first_chunk::<SETTINGS_LEN>() else {
        return Ok(DataSummary::default());
    };
    let operations = rest.as_chunks::<OPERATION_LEN>().0.iter().map(|bytes| DataOperation::read(*bytes));
    run_all(DataSettings::read(*settings), operations)
}

/// Runs these operations.
///
/// # Errors
/// [`Violation`] when the reference model does not agree with what the cores do.
pub fn run_all(
    settings: DataSettings,
    operations: impl IntoIterator<Item = DataOperation>,
) -> Result<DataSummary, Violation> {
    let mut world = DataWorld::new(settings);
    let mut after = 0;
    for operation in operations {
        let outcome = world.apply(operation);
        outcome.map_err(|what| Violation { after, operation: format!("{operation:?}"), what })?;
        after += 1;
    }
    world.settle().map_err(|what| Violation { after, operation: "the end".to_owned(), what })?;
    Ok(world.summary())
}
