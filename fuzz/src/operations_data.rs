//! Operations in any order on the data plane of three sites: whatever happens, each packet arrives once or is counted as dropped.

use strait_sim::operations::data;

/// Most operations of one input: enough to fill what can be filled, too few to be slow.
const OPERATIONS: usize = 160;

/// Settings, then operations of four bytes each.
pub fn check(input: &[u8]) {
    let most = data::SETTINGS_LEN + OPERATIONS * data::OPERATION_LEN;
    if let Err(violation) = data::run(input.get(..most).unwrap_or(input)) {
        panic!("{violation}");
    }
}
