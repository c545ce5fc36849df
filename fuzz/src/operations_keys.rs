//! Operations in any order on the key managers of three nodes: once the network is good again, both ends of each pair agree.

use strait_sim::operations::keys;

/// Most operations of one input: enough to break what can be broken, too few to be slow.
const OPERATIONS: usize = 48;

/// Settings, then operations of three bytes each.
pub fn check(input: &[u8]) {
    let most = keys::KEY_SETTINGS_LEN + OPERATIONS * keys::KEY_OPERATION_LEN;
    if let Err(violation) = keys::run(input.get(..most).unwrap_or(input)) {
        panic!("{violation}");
    }
}
