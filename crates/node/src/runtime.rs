//! Where running daemons are found: one socket for each interface in a folder that only their user may enter.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Names the folder, in place of the system's.
pub const FOLDER_VARIABLE: &str = "STRAIT_RUNTIME_DIR";
/// Where root's daemons are (file-hierarchy(7)).
const SYSTEM_FOLDER: &str = "/run/strait";
const SUFFIX: &str = "sock";
/// The file that is locked while a socket gets or loses its name; others may not open it.
const LOCK: &str = "lock";
/// What the name of the folder for a group ends with.
const SHARED: &str = "-users";
/// Set for a daemon that says on its standard input, a socket, that it is up.
pub(crate) const READY_VARIABLE: &str = "STRAIT_READY_ON_STDIN";
/// Its value for a node that runs for one command only.
pub(crate) const FOR_COMMAND: &str = "command";

/// Returns true in a node that runs for one command only.
pub(crate) fn is_for_command() -> bool {
    std::env::var_os(READY_VARIABLE).is_some_and(|value| value == FOR_COMMAND)
}

/// Why there is no folder for sockets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// An ordinary user without a session or a home.
    #[error("there is no directory for sockets: set {FOLDER_VARIABLE}, XDG_RUNTIME_DIR or HOME")]
    NoFolder,
    /// The folder cannot be made.
    #[error("cannot make {}: {source}", path.display())]
    Make {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another user decides what is in it, or where it is.
    #[error("{} is a link, or belongs to another user; set {FOLDER_VARIABLE} to a directory of your own", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
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
    folder_of(crate::privileges::is_root(), |name| std::env::var_os(name))
}

/// The same of root or another user with these variables.
fn folder_of(is_root: bool, variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, RuntimeError> {
    let named = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = named(FOLDER_VARIABLE) {
        return Ok(folder);
    }
    if is_root {
        return Ok(SYSTEM_FOLDER.into());
    }
    // Without a session (su, cron, a container) the user's own state, which outlives a restart, as sockets there may.
    let state = || named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state")));
    let session = named("XDG_RUNTIME_DIR").map(|folder| folder.join("strait"));
    session.or_else(|| state().map(|folder| folder.join("strait/run"))).ok_or(RuntimeError::NoFolder)
}

/// The folder with the sockets for a group; it need not exist. Not inside [`folder`], which only its user may enter.
#[must_use]
pub fn shared_folder() -> PathBuf {
    let named = std::env::var_os(FOLDER_VARIABLE).filter(|value| !value.is_empty());
    let mut name = named.unwrap_or_else(|| SYSTEM_FOLDER.into());
    name.push(SHARED);
    name.into()
}

/// Makes the folder, for its user only.
///
/// # Errors
/// [`RuntimeError`]; nothing in the folder can be relied on then.
pub fn make(folder: &Path) -> Result<(), RuntimeError> {
    make_with(folder, OWN)
}

/// Makes the folder, which others may enter and look into.
///
/// # Errors
/// As [`make`].
pub(crate) fn make_shared(folder: &Path) -> Result<(), RuntimeError> {
    make_with(folder, LOOK)
}

/// What the permission bits of a folder are: for its user only, and for others to look into.
const OWN: u32 = 0o700;
const LOOK: u32 = 0o755;

fn make_with(folder: &Path, mode: u32) -> Result<(), RuntimeError> {
    let failed = |source| RuntimeError::Make { path: folder.to_owned(), source };
    let foreign = || RuntimeError::Foreign { path: folder.to_owned() };
    DirBuilder::new().recursive(true).mode(mode).create(folder).map_err(failed)?;
    // Another user could turn a link around at any time. A slash at the end would follow it.
    let name: PathBuf = folder.components().collect();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW);
    let opened = options.open(name).map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP | libc::ENOTDIR) => foreign(),
        _ => failed(error),
    })?;
    let found = opened.metadata().map_err(failed)?;
    if found.uid() != crate::privileges::user() {
        return Err(foreign());
    }
    if found.mode() & 0o777 == mode || mode == OWN && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    // systemd's RuntimeDirectory and the umask give what they do; ours to change when it is ours.
    let closed = opened.set_permissions(PermissionsExt::from_mode(mode));
    closed.map_err(|_| RuntimeError::Open { path: folder.to_owned(), mode: found.mode() & 0o777 })
}

/// Locks the folder until this is dropped. Names of sockets are given, and taken from those that nobody listens to any more, under it:
/// between the look at a socket and its removal another may have got its name.
///
/// # Errors
/// As `open(2)` and `flock(2)`.
pub(crate) fn lock(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let file = options.open(folder.join(LOCK))?;
    file.lock()?;
    Ok(file)
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
    with_suffix(folder, SUFFIX)
}

/// The interfaces that have a file with this suffix.
pub(crate) fn with_suffix(folder: &Path, suffix: &str) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new(suffix)) {
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
    fn every_user_with_a_home_has_a_folder() {
        let all = [
            (FOLDER_VARIABLE, "/own"),
            ("XDG_RUNTIME_DIR", "/run/user/7"),
            ("XDG_STATE_HOME", "/state"),
            ("HOME", "/home/u"),
        ];
        let of = |is_root, from: usize| {
            let found = folder_of(is_root, |name| {
                all.iter().skip(from).find(|(its, _)| *its == name).map(|(_, value)| OsString::from(value))
            });
            found.ok().map(|folder| folder.display().to_string())
        };
        let expected = ["/own", "/run/user/7/strait", "/state/strait/run", "/home/u/.local/state/strait/run"];
        for (from, folder) in expected.into_iter().enumerate() {
            assert_eq!(of(false, from).as_deref(), Some(folder));
        }
        assert_eq!(of(false, all.len()), None);
        assert_eq!(of(true, 1).as_deref(), Some(SYSTEM_FOLDER));
    }

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

    #[test]
    fn others_may_look_into_a_shared_folder_and_change_nothing() {
        let folder = std::env::temp_dir().join(format!("strait-runtime-shared-{}", std::process::id()));
        for before in [0o777, 0o700] {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::set_permissions(&folder, PermissionsExt::from_mode(before)).unwrap();
            make_shared(&folder).unwrap();
            assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o755);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_that_another_user_made_or_can_turn_elsewhere_is_not_used() {
        let parent = std::env::temp_dir().join(format!("strait-runtime-foreign-{}", std::process::id()));
        let (folder, link) = (parent.join("folder"), parent.join("link"));
        make(&folder).unwrap();
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        for path in [link.clone(), link.join("")] {
            assert!(matches!(make(&path), Err(RuntimeError::Foreign { .. })), "{}", path.display());
        }
        let is_root = crate::privileges::is_root();
        if is_root
            || strait_testdata::skip::skip(strait_testdata::skip::Need::Root, "may not give a folder away")
        {
            std::os::unix::fs::chown(&folder, Some(65_534), None).unwrap();
            assert!(matches!(make(&folder), Err(RuntimeError::Foreign { .. })));
        }
        std::fs::remove_dir_all(&parent).unwrap();
    }
}
