//! The file, which the starter writes and the packet process reads before it gives up its rights.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{PATH_FILE_MAX, PathMemory};
use crate::{privileges, runtime};

/// Names the folder, in place of the system's.
const FOLDER_VARIABLE: &str = "STRAIT_STATE_DIR";
/// Where root's daemons keep what outlives them (file-hierarchy(7)).
const SYSTEM_FOLDER: &str = "/var/lib/strait";

/// Where what was found on paths is kept.
#[derive(Clone, Debug)]
pub(crate) struct PathFile(PathBuf);

impl PathFile {
    /// The file for the tunnel of this interface; nothing where there is no folder for it.
    pub(crate) fn of(interface: &str) -> Option<PathFile> {
        folder().map(|folder| PathFile(folder.join(format!("{interface}.paths"))))
    }

    /// The file at `path`.
    #[cfg(test)]
    pub(crate) fn at(path: PathBuf) -> PathFile {
        PathFile(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What it says. Nothing where there is none; of one that cannot be used, the log says why, and it is begun anew.
    pub(crate) fn read(&self) -> PathMemory {
        let path = self.0.display();
        let bytes = match self.bytes() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return PathMemory::default(),
            Err(error) => {
                tracing::warn!(%path, "cannot read what was found on paths: {error}; their rates are found again");
                return PathMemory::default();
            }
        };
        PathMemory::parse(&bytes, unix_time()).unwrap_or_else(|error| {
            tracing::warn!(
                %path,
                "the file of what was found on paths is not used: {error}; their rates are found again, and it is written anew"
            );
            PathMemory::default()
        })
    }

    /// Puts a new file in the place of the old one, whole or not at all.
    pub(crate) fn write(&self, memory: &PathMemory) -> io::Result<()> {
        let (Some(folder), Some(name)) = (self.0.parent(), self.0.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        runtime::make(folder).map_err(io::Error::other)?;
        let mut draft = std::ffi::OsString::from(".");
        draft.push(name);
        draft.push(".new");
        let draft = folder.join(draft);
        let written = fill(&draft, &memory.render()).and_then(|()| fs::rename(&draft, &self.0));
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written
    }

    fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&self.0)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let mut bytes = Vec::new();
        // One more than may be, so that a longer file is refused and not cut.
        let most = u64::try_from(PATH_FILE_MAX).unwrap_or(u64::MAX) + 1;
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// The folder for what outlives a daemon; it need not exist. Nothing where the environment names none.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // systemd.exec(5): a list with colons, of which a unit of ours has one.
    let unit = || named("STATE_DIRECTORY").and_then(|all| std::env::split_paths(&all).next());
    let home = || named("HOME").map(|home| home.join(".local/state"));
    named(FOLDER_VARIABLE).or_else(unit).or_else(|| {
        if privileges::is_root() {
            return Some(SYSTEM_FOLDER.into());
        }
        named("XDG_STATE_HOME").or_else(home).map(|folder| folder.join("strait"))
    })
}

fn fill(draft: &Path, bytes: &[u8]) -> io::Result<()> {
    // What an earlier run left there was not finished.
    match fs::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
    file.write_all(bytes)?;
    file.sync_data()
}

/// Seconds since 1970; 0 where the clock was never set.
#[must_use]
pub fn unix_time() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "no other clock goes on while the node does not run; a wrong one keeps or forgets a guess"
    )]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
