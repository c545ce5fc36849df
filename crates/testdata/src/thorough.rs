//! Parts of tests that only `make test-all` runs: the one place that decides, and that keeps account of what is left to it.
//!
//! A whole test that takes too long for `make test` has the attribute `#[ignore]`. One that tries many cases calls [`all_or`].

use std::env;
use std::path::Path;

use crate::skip::{caller, record};

/// Has the value `all` where everything is to be tried.
pub const TESTS: &str = "STRAIT_TESTS";

/// Names the file to which a line is added for each part that is left.
pub const LEFT: &str = "STRAIT_LEFT";

/// Whether everything is to be tried. If not, `left` is what the test that calls this leaves to `make test-all`.
///
/// # Panics
/// When the file that [`LEFT`] names cannot be written.
#[must_use]
pub fn all_or(left: &str) -> bool {
    if env::var_os(TESTS).is_some_and(|value| value == "all") {
        return true;
    }
    let line = format!("{}: {left}", caller());
    if let Some(path) = env::var_os(LEFT).filter(|value| !value.is_empty()) {
        let path = Path::new(&path);
        record(path, &line).unwrap_or_else(|error| panic!("{LEFT}={}: {error}", path.display()));
    }
    false
}
