//! Where running daemons are found: one socket for each interface in a folder that only their user may enter.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Names the folder, in place of the system's.
pub const FOLDER_VARIABLE: &str = "STRAIT_RUNTIME_DIR";
/// Where root's daemons are (file-hierarchy(7)).
const SYSTEM_FOLDER: &str = "/run/strait";
const SUFFIX: &str = "sock";

/// Why there is no folder for sockets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// An ordinary user without a session.
    #[error("there is no directory for sockets: set {FOLDER_VARIABLE} or XDG_RUNTIME_DIR")]
    NoFolder,
    /// The folder cannot be made.
    #[error("cannot make {}: {source}", path.display())]
    Make {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others may enter it.
    #[error("{} is accessible by others (mode {mode:03o}); run `chmod 700 {}`", path.display(), path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

/// The folder with the sockets; it need not exist.
///
/// # Errors
/// [`RuntimeError::NoFolder`].
pub fn folder() -> Result<PathBuf, RuntimeError> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = named(FOLDER_VARIABLE) {
        return Ok(folder);
    }
    if crate::privileges::is_root() {
        return Ok(SYSTEM_FOLDER.into());
    }
    named("XDG_RUNTIME_DIR").map(|folder| folder.join("strait")).ok_or(RuntimeError::NoFolder)
}

/// Makes the folder, for its user only.
pub(crate) fn make(folder: &Path) -> Result<(), RuntimeError> {
    let failed = |source| RuntimeError::Make { path: folder.to_owned(), source };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder).and_then(|()| folder.metadata());
    let found = made.map_err(failed)?;
    if found.mode() & 0o077 == 0 {
        return Ok(());
    }
    // systemd's RuntimeDirectory and a careful umask both give 0755 or so; ours to close when it is ours.
    let closed = std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700));
    closed.map_err(|_| RuntimeError::Open { path: folder.to_owned(), mode: found.mode() & 0o777 })
}

/// The socket of the daemon for `interface`.
#[must_use]
pub fn socket(folder: &Path, interface: &str) -> PathBuf {
    folder.join(format!("{interface}.{SUFFIX}"))
}

/// The interfaces that have a socket, in order of name.
///
/// # Errors
/// When the folder exists and cannot be read.
pub fn interfaces(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new(SUFFIX)) {
            names.extend(path.file_stem().and_then(OsStr::to_str).map(str::to_owned));
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_found_by_interface() {
        let folder = std::env::temp_dir().join(format!("strait-runtime-{}", std::process::id()));
        assert!(interfaces(&folder).unwrap().is_empty(), "no folder, no daemon");
        make(&folder).unwrap();
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
        for name in ["b.sock", "a.sock", "st.1.sock", "ready"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        assert_eq!(interfaces(&folder).unwrap(), ["a", "b", "st.1"]);
        assert_eq!(socket(&folder, "st.1"), folder.join("st.1.sock"));
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
        make(&folder).unwrap();
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700, "closed again");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
