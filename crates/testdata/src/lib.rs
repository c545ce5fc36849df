//! Where what the project is tried out with is found, the one place that knows: corpora, captures, published vectors, and systems to talk
//! to. None of it is part of the project, so tests and benchmarks must be able to do without; [`skip::skip`] is how a test does.

pub mod reference;
pub mod skip;
pub mod thorough;

use std::path::{Path, PathBuf};

use skip::{Need, skip};

/// Names a folder that holds data, instead of the usual one.
pub const VARIABLE: &str = "STRAIT_TEST_DATA";

/// Names a folder that holds peers, instead of the usual one.
pub const PEERS: &str = "STRAIT_TEST_PEERS";

/// The path of `name` inside the data folder, such as `calgary/book1`, when it is there. The folder is the one that
/// [`VARIABLE`] names, or `../shared/data` beside the workspace.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    let path = inside(VARIABLE, "../../../shared/data", name);
    path.exists().then_some(path)
}

/// For tests: [`find`], which skips the test where `name` is not there.
///
/// # Panics
/// As [`skip()`] does.
#[must_use]
pub fn find_or_skip(name: &str) -> Option<PathBuf> {
    let found = find(name);
    let _ = found.is_some()
        || skip(Need::Corpora, &format!("no {name} (set {VARIABLE} to the folder that has it)"));
    found
}

/// A Linux kernel that runs as an ordinary process (User-Mode Linux).
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it has IP-TFS, which came with Linux 6.14 and which no kernel of Debian's is built with.
    pub iptfs: bool,
}

/// For tests: the kernels that are here. What a test does with one that is not is skipped.
///
/// # Panics
/// As [`skip()`] does.
#[must_use]
pub fn kernels() -> Vec<Kernel> {
    [false, true].into_iter().filter_map(kernel).collect()
}

/// For tests: the kernel of Debian's package `user-mode-linux`, or else the one with IP-TFS, `linux.uml` in the folder that
/// [`PEERS`] names or in `../shared/interop` beside the workspace. Skips the test where it is not there.
///
/// # Panics
/// As [`skip()`] does.
#[must_use]
pub fn kernel(iptfs: bool) -> Option<Kernel> {
    let (path, need, remedy) = if iptfs {
        let path = inside(PEERS, "../../../shared/interop", "linux.uml");
        (path, Need::Iptfs, format!("no kernel with IP-TFS (set {PEERS} to the folder that has linux.uml)"))
    } else {
        (PathBuf::from(DEBIAN_KERNEL), Need::Kernels, format!("no {DEBIAN_KERNEL} (scripts/setup test)"))
    };
    (path.exists() || skip(need, &remedy)).then_some(Kernel { path, iptfs })
}

/// Where Debian's package puts its kernel.
const DEBIAN_KERNEL: &str = "/usr/bin/linux.uml";

/// The path of `name` in the folder that `variable` names, or else in the `usual` one, relative to this crate.
fn inside(variable: &str, usual: &str, name: &str) -> PathBuf {
    let folder = std::env::var_os(variable)
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(usual), PathBuf::from);
    folder.join(name)
}
