//! A thread that stays on one processor.
#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};

/// Keeps the calling thread on the processor that comes in place `place`, from 0 on, among those that it may use.
///
/// # Errors
/// `NotFound` when it may use fewer, or as `sched_setaffinity(2)`.
pub fn pin(place: usize) -> io::Result<()> {
    // SAFETY: all zeros is a valid cpu_set_t, which is an array of bits.
    let mut allowed: libc::cpu_set_t = unsafe { zeroed() };
    // SAFETY: the pointer and length describe `allowed`, which outlives the call; 0 is the calling thread.
    check(unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut allowed) })?;
    let most = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    // SAFETY: each number is below CPU_SETSIZE, as many bits as `allowed` has.
    let mut places = (0..most).filter(|at| unsafe { libc::CPU_ISSET(*at, &allowed) });
    let at = places.nth(place).ok_or(io::ErrorKind::NotFound)?;
    // SAFETY: as above.
    let mut one: libc::cpu_set_t = unsafe { zeroed() };
    // SAFETY: `at` is below CPU_SETSIZE.
    unsafe { libc::CPU_SET(at, &mut one) };
    // SAFETY: the pointer and length describe `one`, which outlives the call.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const one) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_use_one_processor() {
        let places = std::thread::spawn(|| {
            pin(0).unwrap();
            (pin(0), pin(1).map_err(|error| error.kind()))
        });
        let (again, other) = places.join().unwrap();
        assert!(again.is_ok());
        assert_eq!(other, Err(io::ErrorKind::NotFound), "only one is left");
    }
}
