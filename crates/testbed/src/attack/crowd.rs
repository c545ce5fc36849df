//! Strangers with thousands of connections: each needs a file of this process.
#![allow(unsafe_code)]

use std::io;

use crate::namespace::check;

/// Has this process, and the processes that it starts from now on, open so many files, or as many as the system allows; returns how
/// many they can.
///
/// # Errors
/// As `setrlimit(2)`.
pub fn open_many_files(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to `limit`, which outlives the call.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    limit.rlim_cur = limit.rlim_cur.max(wanted.min(limit.rlim_max));
    // SAFETY: as above.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    Ok(limit.rlim_cur)
}
