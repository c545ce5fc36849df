//! The key managers of three nodes, each with a packet path that consists of counters.
//!
//! Whatever was lost, repeated, restarted, removed or moved: once the network is good again for some minutes, both
//! ends of each pair send with associations that the other receives on, with the same keys, and believe the same of
//! them. At any time what a key manager orders adds up: each association is installed once and withdrawn once, no
//! peer has more than four inbound, and no more than one handshake of a node with a peer is under way.

mod node;
mod operation;
mod world;

use super::{Held, Violation, hold};
pub use operation::{KEY_OPERATION_LEN, KEY_SETTINGS_LEN, KeyOperation, KeySettings};
pub use world::KeySummary;
use world::KeyWorld;

/// How many nodes there are.
const NODES: usize = 3;

/// Every way from a node to a peer.
fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..NODES).flat_map(|from| (0..NODES).map(move |to| (from, to))).filter(|(from, to)| from != to)
}

/// Reads settings and operations, and runs them; what is left over at the end is ignored.
///
/// # Errors
/// [`Violation`] when the reference model does not agree with what the key managers do.
pub fn run(input: &[u8]) -> Result<KeySummary, Violation> {
    let Some((settings, rest)) = input.split_first_chunk::<KEY_SETTINGS_LEN>() else {
        return Ok(KeySummary::default());
    };
    let operations = rest.as_chunks::<KEY_OPERATION_LEN>().0.iter().map(|bytes| KeyOperation::read(*bytes));
    run_all(KeySettings::read(*settings), operations)
}

/// Runs these operations.
///
/// # Errors
/// [`Violation`] when the reference model does not agree with what the key managers do.
pub fn run_all(
    settings: KeySettings,
    operations: impl IntoIterator<Item = KeyOperation>,
) -> Result<KeySummary, Violation> {
    let violation = |after, operation| move |what| Violation { after, operation, what };
    let mut world = KeyWorld::new(settings).map_err(violation(0, "the beginning".to_owned()))?;
    let mut after = 0;
    for operation in operations {
        world.apply(operation).map_err(violation(after, format!("{operation:?}")))?;
        after += 1;
    }
    world.recover().map_err(violation(after, "the end".to_owned()))?;
    Ok(world.summary())
}
