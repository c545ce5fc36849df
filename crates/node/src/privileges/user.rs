//! The user as whom packets are handled.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fmt;
use std::io;
use std::str::FromStr;

use caps::{CapSet, Capability};
use serde::{Deserialize, Serialize};

use super::{PrivilegeError, is_root, user};

/// The user that packages make.
const DEFAULT: &str = "strait";
/// The user without rights where there is none for the daemon: `nobody` (Linux `overflowuid`).
const NOBODY: u32 = 65_534;
/// Most bytes that the system needs to describe a user.
const ENTRY_MAX: usize = 16 << 10;

/// Why packets cannot be handled as the user that the file names.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserError {
    /// The system does not know it.
    #[error(
        "there is no user `{name}`; make it with `useradd --system --no-create-home {name}`, or leave `user` out"
    )]
    Missing {
        /// As written.
        name: String,
    },
    /// The system does not know the group.
    #[error("there is no group `{name}`; make it with `groupadd --system {name}`, or leave `group` out")]
    NoGroup {
        /// As written.
        name: String,
    },
    /// Only root may become another user.
    #[error("only root can handle packets as user `{name}`; run as root, or leave `user` out")]
    Forbidden {
        /// As written.
        name: String,
    },
}

/// The user as whom packets are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceUser {
    /// The one that starts the daemon.
    Same,
    /// Another one.
    Other {
        /// Its number.
        user: u32,
        /// The number of its group.
        group: u32,
    },
}

impl ServiceUser {
    /// The user called `named`; without a name `strait`, or a user without rights where there is none of that name. Who is not
    /// root, or may not become another, stays.
    ///
    /// # Errors
    /// [`UserError`] when a name is given that cannot be used.
    pub fn find(named: Option<&str>) -> Result<ServiceUser, UserError> {
        let found = entry(named.unwrap_or(DEFAULT));
        let Some(name) = named.map(str::to_owned) else {
            let (user, group) = found.unwrap_or((NOBODY, NOBODY));
            return Ok(if may_become(user, group) {
                ServiceUser::Other { user, group }
            } else {
                ServiceUser::Same
            });
        };
        match found {
            None => Err(UserError::Missing { name }),
            Some((number, _)) if number == user() => Ok(ServiceUser::Same),
            Some((user, group)) if may_become(user, group) => Ok(ServiceUser::Other { user, group }),
            Some(_) => Err(UserError::Forbidden { name }),
        }
    }

    /// Whether it is one of no service's own, which others may use too.
    #[must_use]
    pub const fn is_nobody(self) -> bool {
        matches!(self, ServiceUser::Other { user: NOBODY, .. })
    }
}

/// As [`ServiceUser::from_str`] reads it.
impl fmt::Display for ServiceUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServiceUser::Same => f.write_str("same"),
            ServiceUser::Other { user, group } => write!(f, "{user}:{group}"),
        }
    }
}

impl FromStr for ServiceUser {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<ServiceUser, Self::Err> {
        match text.split_once(':') {
            Some((user, group)) => Ok(ServiceUser::Other { user: user.parse()?, group: group.parse()? }),
            None => Ok(ServiceUser::Same),
        }
    }
}

/// Whether this process can: by its capabilities, and since its user namespace has these numbers.
fn may_become(user: u32, group: u32) -> bool {
    let has = |one| caps::has_cap(None, CapSet::Effective, one).unwrap_or(false);
    is_root()
        && has(Capability::CAP_SETUID)
        && has(Capability::CAP_SETGID)
        && is_mapped("/proc/self/uid_map", user)
        && is_mapped("/proc/self/gid_map", group)
}

/// Whether the map of a user namespace (user_namespaces(7)) has this number inside.
fn is_mapped(map: &str, number: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(map) else { return true };
    text.lines().any(|line| {
        let mut parts = line.split_whitespace().map(|part| part.parse::<u64>().unwrap_or(0));
        let (first, count) = (parts.next().unwrap_or(0), parts.nth(1).unwrap_or(0));
        (first..first + count).contains(&number.into())
    })
}

/// The numbers of a user and its group.
fn entry(name: &str) -> Option<(u32, u32)> {
    let name = CString::new(name).ok()?;
    let mut buffer = vec![0; ENTRY_MAX];
    // SAFETY: all zeros is a valid passwd, whose fields are integers and pointers.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: every pointer is to a value that outlives the call, the buffer with its length.
    let result = unsafe {
        libc::getpwnam_r(name.as_ptr(), &raw mut entry, buffer.as_mut_ptr(), buffer.len(), &raw mut found)
    };
    (result == 0 && !found.is_null()).then_some((entry.pw_uid, entry.pw_gid))
}

/// The number of the group called `named`; without a name that of `strait`, if there is one and this process may give it
/// files.
///
/// # Errors
/// [`UserError::NoGroup`] when a name is given that the system does not know.
pub fn find_group(named: Option<&str>) -> Result<Option<u32>, UserError> {
    match (group(named.unwrap_or(DEFAULT)), named) {
        (None, Some(name)) => Err(UserError::NoGroup { name: name.to_owned() }),
        (Some(number), None) if !is_root() && !is_own_group(number) => Ok(None),
        (found, _) => Ok(found),
    }
}

/// Whether this process is in the group.
fn is_own_group(number: u32) -> bool {
    super::group() == number
}

fn group(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let mut buffer = vec![0; ENTRY_MAX];
    // SAFETY: all zeros is a valid group, whose fields are integers and pointers.
    let mut entry: libc::group = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: every pointer is to a value that outlives the call, the buffer with its length.
    let result = unsafe {
        libc::getgrnam_r(name.as_ptr(), &raw mut entry, buffer.as_mut_ptr(), buffer.len(), &raw mut found)
    };
    (result == 0 && !found.is_null()).then_some(entry.gr_gid)
}

/// Goes on as `to`. To be called before any thread is started.
pub(super) fn become_user(to: ServiceUser) -> Result<(), PrivilegeError> {
    let ServiceUser::Other { user, group } = to else { return Ok(()) };
    let checked = |result: libc::c_int| match result {
        0 => Ok(()),
        _ => Err(PrivilegeError::User { user, source: io::Error::last_os_error() }),
    };
    let mut signal: libc::c_int = 0;
    // SAFETY: the pointer is to an integer that outlives the call; nothing is changed.
    unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut signal) };
    // SAFETY: no list of groups is passed, so none is read; the other calls take integers only.
    checked(unsafe { libc::setgroups(0, std::ptr::null()) })?;
    // SAFETY: as above.
    checked(unsafe { libc::setresgid(group, group, group) })?;
    // SAFETY: as above.
    checked(unsafe { libc::setresuid(user, user, user) })?;
    // A process that is to end with its parent is, also as another user, for which the kernel forgets it (prctl(2)).
    // SAFETY: takes integers only.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_refused_with_words() {
        assert_eq!(entry("root"), Some((0, 0)));
        assert_eq!(entry("no-such-user-here"), None);
        let error = ServiceUser::find(Some("no-such-user-here")).unwrap_err().to_string();
        assert!(error.contains("useradd --system"), "{error}");
        let user = ServiceUser::find(None).unwrap();
        assert_eq!(user != ServiceUser::Same, may_become(NOBODY, NOBODY), "{user}");
        assert_eq!(find_group(Some("root")).unwrap(), Some(0));
        assert!(find_group(Some("no-such-group")).unwrap_err().to_string().contains("groupadd"));
        for user in [ServiceUser::Same, ServiceUser::Other { user: 7, group: 9 }] {
            assert_eq!(user.to_string().parse(), Ok(user));
        }
    }

    #[test]
    fn numbers_of_a_user_namespace() {
        let map = std::env::temp_dir().join(format!("strait-map-{}", std::process::id()));
        std::fs::write(&map, "         0       1000          1\n     65534      65534          1\n").unwrap();
        let path = map.to_str().unwrap();
        assert!(is_mapped(path, 0) && is_mapped(path, 65_534));
        assert!(!is_mapped(path, 1) && !is_mapped(path, 1000));
        std::fs::remove_file(&map).unwrap();
    }
}
