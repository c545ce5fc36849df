//! What a process has used: processor time and memory, from `/proc` (proc(5)).
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::time::Duration;

use crate::Error;

/// Processor time and memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessCost {
    /// Time on a processor, all threads, user and system.
    pub processor: Duration,
    /// Memory that is in use, in bytes.
    pub resident: u64,
    /// The most memory that ever was, in bytes.
    pub resident_peak: u64,
}

impl ProcessCost {
    /// What a running process, such as another program to compare with, has used so far.
    ///
    /// # Errors
    /// [`Error::System`] when it has ended.
    pub fn of_process(pid: u32) -> Result<ProcessCost, Error> {
        of(pid).map_err(Error::doing(format!("measure the process {pid}")))
    }
}

/// The time that threads of a process have been on a processor, to the nanosecond (the kernel's
/// `Documentation/scheduler/sched-stats.rst`), without those that have ended.
pub(super) fn scheduled(pid: u32) -> io::Result<Duration> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))?;
    let nanos = tasks.flatten().filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Ok(Duration::from_nanos(nanos.sum()))
}

/// The cost of a running process.
pub(super) fn of(pid: u32) -> io::Result<ProcessCost> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    // SAFETY: takes no pointers.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1);
    let ticks = ticks(&stat).ok_or(io::ErrorKind::InvalidData)?;
    Ok(ProcessCost {
        processor: Duration::from_millis(ticks * 1000 / per_second),
        resident: kilobytes(&status, "VmRSS:").unwrap_or(0) * 1024,
        resident_peak: kilobytes(&status, "VmHWM:").unwrap_or(0) * 1024,
    })
}

/// Fields 14 and 15, user and system time. The name in field 2 may hold spaces, but ends with the last `)`.
fn ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn kilobytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_an_awkward_name() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 106 0 0 0 17 5 0 0 20 0 3 0 12345";
        assert_eq!(ticks(stat), Some(22));
        assert_eq!(ticks("42 (short) S 1"), None);
        assert_eq!(kilobytes("VmHWM:\t  2048 kB\nVmRSS:\t 1024 kB\n", "VmRSS:"), Some(1024));
        assert_eq!(kilobytes("Name: x\n", "VmRSS:"), None);
    }

    #[test]
    fn this_process_costs_something() {
        let cost = of(std::process::id()).unwrap();
        assert!(cost.resident > 100_000 && cost.resident_peak >= cost.resident / 2, "{cost:?}");
        let before = scheduled(std::process::id()).unwrap();
        std::hint::black_box((0..1_000_000_u64).map(std::hint::black_box).sum::<u64>());
        std::thread::yield_now();
        assert!(scheduled(std::process::id()).unwrap() > before);
    }
}
