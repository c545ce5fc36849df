//! How much processor time each thread has used, asked by the clocks of the threads: a confined process may not look into
//! `/proc`.
#![allow(unsafe_code)]

use std::sync::Mutex;
use std::time::Duration;

/// The threads of this process that are counted, each with its clock.
static CLOCKS: Mutex<Vec<(String, libc::clockid_t)>> = Mutex::new(Vec::new());

/// Counts the calling thread from now on, as `name`.
pub(crate) fn count(name: &str) {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the pointer is to a clock's number that outlives the call; the thread is the calling one.
    let found = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
    if found == 0
        && let Ok(mut clocks) = CLOCKS.lock()
    {
        clocks.push((name.to_owned(), clock));
    }
}

/// Nanoseconds of a processor that the calling thread has used: what else a machine does does not count.
pub(crate) fn of_this_thread() -> u64 {
    let used = read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default();
    u64::try_from(used.as_nanos()).unwrap_or(u64::MAX)
}

/// The names and times of the threads that still run, in order of name.
pub(crate) fn all() -> Vec<(String, Duration)> {
    let Ok(mut clocks) = CLOCKS.lock() else { return Vec::new() };
    // The clock of a thread that has ended is gone.
    clocks.retain(|(_, clock)| read(*clock).is_some());
    let mut times: Vec<_> =
        clocks.iter().filter_map(|(name, clock)| Some((name.clone(), read(*clock)?))).collect();
    times.sort();
    times
}

/// Returns the time of any clock of the system; nothing of a thread's that has ended. Safe in a handler (signal-safety(7)).
pub(crate) fn read(clock: libc::clockid_t) -> Option<Duration> {
    let mut span = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a value that outlives the call, which writes a timespec.
    let result = unsafe { libc::clock_gettime(clock, &raw mut span) };
    (result == 0).then(|| {
        Duration::new(u64::try_from(span.tv_sec).unwrap_or(0), u32::try_from(span.tv_nsec).unwrap_or(0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_that_works_is_counted_until_it_ends() {
        let (ready, worked) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            count("test-works");
            let sum = (0..1_000_000_u64).map(std::hint::black_box).sum::<u64>();
            ready.send(sum).unwrap();
            let _ = ended.recv();
        });
        worked.recv().unwrap();
        let time = || all().into_iter().find(|(name, _)| name == "test-works").map(|(_, time)| time);
        assert!(time().is_some_and(|time| time > Duration::ZERO));
        drop(end);
        thread.join().unwrap();
        // The kernel lets go of a thread a little after it lets those go on who wait for its end (clear_child_tid, clone(2)).
        let gone = (0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            time().is_none()
        });
        assert!(gone, "{:?}", time());
    }
}
