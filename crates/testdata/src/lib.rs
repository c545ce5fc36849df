//! Where what the project is tried out with is found, the one place that knows: corpora, captures, published vectors, and systems to talk
//! to. None of it is part of the project, so whoever uses it must be able to do without.

pub mod reference;

use std::path::{Path, PathBuf};

/// Names a folder that holds data, instead of the usual one.
pub const VARIABLE: &str = "STRAIT_TEST_DATA";

/// Names a folder that holds peers, instead of the usual one.
pub const PEERS: &str = "STRAIT_TEST_PEERS";

/// The path of `name` inside the data folder, such as `calgary/book1`, when it is there. The folder is the one that
/// [`VARIABLE`] names, or `../shared/data` beside the workspace. Says so when something is skipped for want of it.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    inside(VARIABLE, "../../../shared/data", name)
}

/// A Linux kernel that runs as an ordinary process (User-Mode Linux).
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it has IP-TFS, which came with Linux 6.14 and which no kernel of Debian's is built with.
    pub iptfs: bool,
}

/// The kernels that are here: that of Debian's package `user-mode-linux`, and one with IP-TFS, `linux.uml` in the folder that
/// [`PEERS`] names, or `../shared/interop` beside the workspace. Says so when something is skipped for want of one.
#[must_use]
pub fn kernels() -> Vec<Kernel> {
    let debian = Path::new(DEBIAN_KERNEL);
    if !debian.exists() {
        eprintln!("skipped what needs {DEBIAN_KERNEL}: not found (scripts/setup test)");
    }
    let debian = debian.exists().then(|| Kernel { path: debian.to_owned(), iptfs: false });
    let newer = inside(PEERS, "../../../shared/interop", "linux.uml");
    debian.into_iter().chain(newer.map(|path| Kernel { path, iptfs: true })).collect()
}

/// Where Debian's package puts its kernel.
const DEBIAN_KERNEL: &str = "/usr/bin/linux.uml";

/// The path of `name` in the folder that `variable` names, or else in the `usual` one, relative to this crate.
fn inside(variable: &str, usual: &str, name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable)
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(usual), PathBuf::from);
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!(
        "skipped what needs {}: not found (set {variable} to the folder that has {name})",
        path.display()
    );
    None
}
