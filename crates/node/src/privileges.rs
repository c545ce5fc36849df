//! What the process may do: as little as a running tunnel needs.
#![allow(unsafe_code)]

mod calls;
mod confine;
mod user;

use std::io;

use caps::{CapSet, Capability, CapsHashSet};

use crate::process::checked;
pub(crate) use confine::confine_reader;
pub use confine::{Confinement, confine, confine_to};
pub use user::{ServiceUser, UserError, find_group};

/// Why privileges could not be dropped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// The kernel refused.
    #[error("cannot drop privileges ({step}): {reason}")]
    Capabilities {
        /// Which set of capabilities.
        step: &'static str,
        /// What the system said.
        reason: caps::errors::CapsError,
    },
    /// The kernel refused.
    #[error("cannot set no_new_privs: {0}")]
    NoNewPrivileges(#[source] io::Error),
    /// The kernel refused.
    #[error("cannot give up files and system calls: {0}")]
    Confine(#[source] io::Error),
    /// The kernel refused.
    #[error("cannot go on as user {user}: {source}")]
    User {
        /// The number of the user.
        user: u32,
        /// What the system said.
        source: io::Error,
    },
}

/// Whether the process runs as root.
#[must_use]
pub fn is_root() -> bool {
    user() == 0
}

/// The number of the user that the process acts as.
#[must_use]
pub fn user() -> u32 {
    // SAFETY: takes nothing, touches nothing, cannot fail.
    unsafe { libc::geteuid() }
}

/// The number of the group that the process acts as.
#[must_use]
pub fn group() -> u32 {
    // SAFETY: takes nothing, touches nothing, cannot fail.
    unsafe { libc::getegid() }
}

/// Keeps CAP_NET_ADMIN, for routes at reload and at the end, and nothing else, for this thread and all that it
/// starts; programs it might run get nothing new, and no core file can hold keys, and no process without privileges can read them from memory.
///
/// To be called before any thread is started, since Linux keeps capabilities for each thread.
///
/// # Errors
/// [`PrivilegeError`]; privileges may be dropped in part then.
pub fn drop_all_but_network() -> Result<(), PrivilegeError> {
    reduce(&[Capability::CAP_NET_ADMIN], ServiceUser::Same)
}

/// Keeps what it takes to start processes as other users: CAP_SETUID and CAP_SETGID; and CAP_DAC_READ_SEARCH, since a configuration or a
/// folder may lie where root alone has no right without it. The rest as [`drop_all_but_network`].
///
/// # Errors
/// [`PrivilegeError`]; privileges may be dropped in part then.
pub(crate) fn drop_all_but_users() -> Result<(), PrivilegeError> {
    let kept = [Capability::CAP_SETUID, Capability::CAP_SETGID, Capability::CAP_DAC_READ_SEARCH];
    reduce(&kept, ServiceUser::Same)
}

/// Goes on as `user` without any capability; the rest as [`drop_all_but_network`].
///
/// # Errors
/// [`PrivilegeError`]; privileges may be dropped in part then.
pub fn drop_all(user: ServiceUser) -> Result<(), PrivilegeError> {
    reduce(&[], user)
}

fn reduce(keep: &[Capability], user: ServiceUser) -> Result<(), PrivilegeError> {
    let failed = |step| move |reason| PrivilegeError::Capabilities { step, reason };
    let held = caps::read(None, CapSet::Permitted).map_err(failed("read"))?;
    if held.contains(&Capability::CAP_SETPCAP) {
        for capability in caps::runtime::thread_all_supported() {
            if !keep.contains(&capability) {
                caps::drop(None, CapSet::Bounding, capability).map_err(failed("bounding set"))?;
            }
        }
    }
    // Not known before Linux 4.3, and then there is nothing to clear.
    let _ = caps::clear(None, CapSet::Ambient);
    user::become_user(user)?;
    let kept: CapsHashSet = held.into_iter().filter(|one| keep.contains(one)).collect();
    caps::set(None, CapSet::Effective, &kept).map_err(failed("effective set"))?;
    caps::set(None, CapSet::Permitted, &kept).map_err(failed("permitted set"))?;
    caps::clear(None, CapSet::Inheritable).map_err(failed("inheritable set"))?;
    // SAFETY: takes integers only; it can only narrow what the process may do.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1 as libc::c_ulong, 0, 0, 0) } != 0 {
        return Err(PrivilegeError::NoNewPrivileges(io::Error::last_os_error()));
    }
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // A limit of 0 does not keep the kernel from piping a core to a program (core(5)), and other processes of the same
    // user could read keys from memory (ptrace(2)).
    // SAFETY: takes integers only; it can only narrow what others may do.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0 as libc::c_ulong, 0, 0, 0) };
    // SAFETY: the pointer is to a whole rlimit that outlives the call. A limit can always be lowered.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
    Ok(())
}

/// Keeps all memory of this process out of swap space, where keys would outlive it: each page from its first use on, also
/// of what is allocated later.
///
/// Keys are in the memory of the TLS library and of the ciphers too, so a few locked pages of our own would not do. The
/// limit of locked memory goes first: below one, allocations would fail later. Raising it takes CAP_SYS_RESOURCE.
///
/// # Errors
/// What the system said; nothing is locked then.
pub fn lock_memory() -> io::Result<()> {
    let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the pointer is to a whole rlimit that outlives the call.
    checked(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const unlimited) })?;
    lock_all()
}

fn lock_all() -> io::Result<()> {
    // SAFETY: takes integers only; pages stay where they are.
    checked(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) })
}

/// Whether the host has swap space now.
#[must_use]
pub fn has_swap() -> bool {
    // One line for each, behind a line of titles.
    std::fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_testdata::skip::{Need, skip};

    #[test]
    fn locked_memory_stays_locked_as_it_grows() {
        if !is_root() && !skip(Need::Root, "another than root may lock little memory") {
            return;
        }
        // CAP_IPC_LOCK sets this process above the limit.
        lock_all().unwrap();
        let more = std::hint::black_box(vec![1_u8; 16 << 20]);
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let kilobytes = |name: &str| -> usize {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
        };
        let (locked, used) = (kilobytes("VmLck"), kilobytes("RssAnon"));
        assert!(used > more.len() >> 10 && locked >= used, "{status}");
        // SAFETY: takes nothing; other tests need no locked memory.
        unsafe { libc::munlockall() };
    }

    #[test]
    fn only_the_network_is_left() {
        let root = is_root() || skip(Need::Root, "another than root keeps its bounding set");
        // Capabilities belong to a thread, so this one is used up.
        let thread = std::thread::spawn(move || {
            drop_all_but_network().unwrap();
            let left = |set| caps::read(None, set).unwrap();
            let network = |set: &CapsHashSet| set.iter().all(|one| *one == Capability::CAP_NET_ADMIN);
            assert!(network(&left(CapSet::Permitted)) && network(&left(CapSet::Effective)));
            assert!(left(CapSet::Inheritable).is_empty());
            if root {
                assert!(network(&left(CapSet::Bounding)), "{:?}", left(CapSet::Bounding));
            }
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            assert!(status.lines().any(|line| line == "NoNewPrivs:\t1"));
            // SAFETY: takes integers only, and changes nothing.
            assert_eq!(unsafe { libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0) }, 0);
            drop_all(ServiceUser::Same).unwrap();
            assert!(left(CapSet::Permitted).is_empty() && left(CapSet::Effective).is_empty());
            assert!(!root || left(CapSet::Bounding).len() <= 1, "only who may drop it can");
        });
        thread.join().unwrap();
    }
}
