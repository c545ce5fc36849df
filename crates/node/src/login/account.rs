//! Accounts of this host, as passwd(5) has them.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::privileges::{self, ServiceUser};
use crate::process::checked;

/// Most bytes that the system needs to describe an account.
const ENTRY_MAX: usize = 16 << 10;
/// The shell of an account that names none (passwd(5)).
const SHELL: &str = "/bin/sh";

unsafe extern "C" {
    // Of the system's library, which knows where distributions have `/etc/shells`.
    fn getusershell() -> *const libc::c_char;
    fn setusershell();
    fn endusershell();
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// The number of its user.
    pub user: u32,
    /// The number of its first group.
    pub group: u32,
    /// Its home.
    pub home: PathBuf,
    /// Its shell.
    pub shell: PathBuf,
}

impl Account {
    /// The account called `name`, if the system knows one whose numbers it can have.
    #[must_use]
    pub fn named(name: &str) -> Option<Account> {
        let name = CString::new(name).ok()?;
        find(|entry, buffer, length, found| {
            // SAFETY: every pointer is to a value that outlives the call, the buffer with its length.
            unsafe { libc::getpwnam_r(name.as_ptr(), entry, buffer, length, found) }
        })
    }

    /// The account of the user that this process acts as.
    #[must_use]
    pub fn own() -> Option<Account> {
        find(|entry, buffer, length, found| {
            // SAFETY: as above.
            unsafe { libc::getpwuid_r(privileges::user(), entry, buffer, length, found) }
        })
    }

    /// Whether this process acts as its user.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.user == privileges::user()
    }

    /// True if its shell is one that a person may have (getusershell(3)), and none that keeps the account from doing anything.
    #[must_use]
    pub fn has_listed_shell(&self) -> bool {
        /// The list has one place in each process.
        static LIST: Mutex<()> = Mutex::new(());
        let _one = LIST.lock();
        // SAFETY: takes nothing; no other thread is in the list.
        unsafe { setusershell() };
        // SAFETY: as above; a text ends in a zero byte and is there until the next call.
        let next = || unsafe { getusershell().as_ref() }.map(|at| unsafe { CStr::from_ptr(at) }.to_bytes());
        let is_listed = std::iter::from_fn(next).any(|shell| shell == self.shell.as_os_str().as_bytes());
        // SAFETY: takes nothing.
        unsafe { endusershell() };
        is_listed
    }

    /// The user that its processes have, as [`privileges::drop_all`] takes it.
    pub(super) fn service_user(&self) -> ServiceUser {
        if self.is_own() {
            ServiceUser::Same
        } else {
            ServiceUser::Other { user: self.user, group: self.group }
        }
    }

    /// Takes its groups, as root: what `setcred` of PAM adds to.
    pub(super) fn take_groups(&self) -> io::Result<()> {
        let name = CString::new(self.name.as_str()).map_err(io::Error::other)?;
        // SAFETY: the name ends in a zero byte and outlives the call.
        checked(unsafe { libc::initgroups(name.as_ptr(), self.group) })
    }

    /// Becomes its user for ever; the groups that this process has besides stay.
    pub(super) fn become_user(&self) -> io::Result<()> {
        if self.is_own() && self.group == privileges::group() {
            return Ok(());
        }
        // SAFETY: takes integers only.
        checked(unsafe { libc::setresgid(self.group, self.group, self.group) })?;
        // SAFETY: takes integers only.
        checked(unsafe { libc::setresuid(self.user, self.user, self.user) })
    }
}

type Lookup<'a> =
    &'a dyn Fn(*mut libc::passwd, *mut libc::c_char, usize, *mut *mut libc::passwd) -> libc::c_int;

fn find(
    look: impl Fn(*mut libc::passwd, *mut libc::c_char, usize, *mut *mut libc::passwd) -> libc::c_int,
) -> Option<Account> {
    let look: Lookup<'_> = &look;
    let mut buffer = vec![0; ENTRY_MAX];
    // SAFETY: all zeros is a valid passwd, whose fields are integers and pointers.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    if look(&raw mut entry, buffer.as_mut_ptr(), buffer.len(), &raw mut found) != 0 || found.is_null() {
        return None;
    }
    if !can_be(entry.pw_uid) || !can_be(entry.pw_gid) {
        return None;
    }
    // SAFETY: the library filled the entry; its texts are in the buffer, which is still there, and end in zero bytes.
    let text = |at: *const libc::c_char| unsafe { CStr::from_ptr(at) }.to_bytes();
    let shell = text(entry.pw_shell);
    let shell = if shell.is_empty() { SHELL.as_bytes() } else { shell };
    Some(Account {
        name: String::from_utf8(text(entry.pw_name).to_vec()).ok()?,
        user: entry.pw_uid,
        group: entry.pw_gid,
        home: PathBuf::from(OsStr::from_bytes(text(entry.pw_dir))),
        shell: PathBuf::from(OsStr::from_bytes(shell)),
    })
}

/// Whether a process can be this user or group: the greatest number has calls leave it as it is (setresuid(2)), which would be root.
const fn can_be(number: u32) -> bool {
    number != u32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_would_leave_a_process_root_is_no_accounts() {
        assert!(can_be(0) && can_be(65_534) && can_be(u32::MAX - 1));
        assert!(!can_be(u32::MAX));
    }

    #[test]
    fn accounts_are_found_by_name_and_by_number() {
        let root = Account::named("root").unwrap();
        assert_eq!((root.user, root.group, root.home.to_str()), (0, 0, Some("/root")));
        assert!(root.shell.is_absolute());
        assert_eq!(Account::named("no-such-account"), None);
        assert_eq!(Account::named("a\0b"), None);
        assert!(root.has_listed_shell(), "{root:?}");
        for shell in ["/usr/sbin/nologin", "/bin/false", ""] {
            let kept_out = Account { shell: PathBuf::from(shell), ..root.clone() };
            assert!(!kept_out.has_listed_shell(), "{shell}");
        }
        if let Some(own) = Account::own() {
            assert!(own.is_own());
            assert_eq!(Account::named(&own.name), Some(own));
        }
    }
}
