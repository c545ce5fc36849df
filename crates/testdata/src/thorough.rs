//! Parts of tests that only `make test-all` runs: the one place that decides, and that keeps account of what is left to it.
//!
//! A whole test that takes too long for `make test` has the attribute `#[ignore]`. One that tries many cases calls [`all_or`].

use std::env;

use crate::skip::{caller, note};

/// Has the value `all` where everything is to be tried.
pub const TESTS: &str = "STRAIT_TESTS";

/// Names the file to which a line is added for each part that is left.
pub const LEFT: &str = "STRAIT_LEFT";

/// True where everything is to be tried. If not, the test that calls this leaves `left` to `make test-all`.
///
/// # Panics
/// If the file that [`LEFT`] names cannot be written.
#[must_use]
pub fn all_or(left: &str) -> bool {
    if env::var_os(TESTS).is_some_and(|value| value == "all") {
        return true;
    }
    note(LEFT, &format!("{}: {left}", caller()));
    false
}
