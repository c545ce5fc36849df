//! Where data for trying the project out is found, the one place that knows: corpora, captures, published vectors. None of it is part of the
//! project, so whoever uses it must be able to do without.

use std::path::{Path, PathBuf};

/// Names a folder that holds such data, instead of the usual one.
pub const VARIABLE: &str = "STRAIT_TEST_DATA";

/// The path of `name` inside the data folder, such as `calgary/book1`, when it is there. The folder is the one that
/// [`VARIABLE`] names, or `../shared/data` beside the workspace. Says so when something is skipped for want of it.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    let path = folder().join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!(
        "skipped what needs {}: not found (set {VARIABLE} to the folder that has {name})",
        path.display()
    );
    None
}

fn folder() -> PathBuf {
    std::env::var_os(VARIABLE)
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from)
}
