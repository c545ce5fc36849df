//! Operations in any order on the data plane of three sites: whatever happens, each packet arrives once or is counted as dropped.

use strait_sim::operations::data;

/// Settings, then operations of four bytes each.
pub fn check(input: &[u8]) {
    if let Err(violation) = data::run(input) {
        panic!("{violation}");
    }
}
