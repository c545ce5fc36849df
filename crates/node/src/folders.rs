//! The folders in which Strait keeps what outlives a process. They need not exist.

use std::path::PathBuf;

use crate::privileges;

/// The folders for a kind of files.
struct Place {
    /// The environment's name for it, in place of the system's.
    own: &'static str,
    /// systemd's name for that of a unit (systemd.exec(5)).
    unit: &'static str,
    /// Root's (file-hierarchy(7)).
    system: &'static str,
    /// The name of a user's (XDG Base Directory Specification), and where it is in the home without that.
    user: (&'static str, &'static str),
}

const STATE: Place = Place {
    own: "STRAIT_STATE_DIR",
    unit: "STATE_DIRECTORY",
    system: "/var/lib/strait",
    user: ("XDG_STATE_HOME", ".local/state"),
};

const CACHE: Place = Place {
    own: "STRAIT_CACHE_DIR",
    unit: "CACHE_DIRECTORY",
    system: "/var/cache/strait",
    user: ("XDG_CACHE_HOME", ".cache"),
};

/// The folder for state. Nothing where the environment names none.
#[must_use]
pub fn state_folder() -> Option<PathBuf> {
    STATE.find()
}

/// The folder for what can be measured or made again. Nothing where the environment names none.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    CACHE.find()
}

impl Place {
    fn find(&self) -> Option<PathBuf> {
        let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // A list with colons, of which a unit of ours has one.
        let unit = || named(self.unit).and_then(|all| std::env::split_paths(&all).next());
        let home = || named("HOME").map(|home| home.join(self.user.1));
        named(self.own).or_else(unit).or_else(|| {
            if privileges::is_root() {
                return Some(self.system.into());
            }
            named(self.user.0).or_else(home).map(|folder| folder.join("strait"))
        })
    }
}
