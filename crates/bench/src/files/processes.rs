//! What the processes of an end use: processor time, memory, and what they read, from `/proc` (proc(5)).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Between two looks: a short part of any transfer, and few enough looks not to take part in it.
const EACH: Duration = Duration::from_millis(100);
/// Clock ticks a second in `/proc`, on every architecture of today (sysconf(3), `_SC_CLK_TCK`).
const TICKS: f64 = 100.0;

/// What one process used so far.
#[derive(Clone, Copy, Debug, Default)]
struct ProcessPeak {
    /// The most memory that it ever had, in bytes (`VmHWM`).
    memory: u64,
    /// Bytes that it read from anything (`rchar`).
    read: u64,
}

/// The processes of an end.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndPeaks {
    /// By their numbers, as they were when they were seen last.
    each: BTreeMap<u32, ProcessPeak>,
    /// The most memory of all of them in one look, in bytes.
    together: u64,
}

impl EndPeaks {
    /// The most memory of one process, in MiB.
    pub(crate) fn largest(&self) -> f64 {
        mebibytes(self.each.values().map(|peak| peak.memory).max().unwrap_or(0))
    }

    /// The most memory of all of them at one time, in MiB: what each has of its own, and once the pages of files, which are the
    /// program's and its libraries', and which processes share.
    pub(crate) fn together(&self) -> f64 {
        mebibytes(self.together)
    }

    /// Bytes that processes read that are not in `but`.
    pub(super) fn read(&self, but: &BTreeSet<u32>) -> u64 {
        self.each.iter().filter(|(pid, _)| !but.contains(pid)).map(|(_, peak)| peak.read).sum()
    }

    fn look(&mut self, pids: &BTreeSet<u32>) {
        let (mut own, mut files) = (0, 0);
        for pid in pids {
            // One that ended keeps what was seen last.
            let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
            let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
            let bytes = |field: &str| number(&status, field).unwrap_or(0) * 1024;
            let peak = self.each.entry(*pid).or_default();
            peak.memory = peak.memory.max(bytes("VmHWM:"));
            peak.read = peak.read.max(number(&io, "rchar:").unwrap_or(0));
            own += bytes("RssAnon:") + bytes("RssShmem:");
            files = files.max(bytes("RssFile:"));
        }
        self.together = self.together.max(own + files);
    }
}

/// Runs `work` and looks meanwhile at the processes of all ends, each with all that it started. `work` may add some.
pub(crate) fn watched<T, const N: usize>(
    roots: &[Mutex<BTreeSet<u32>>; N],
    work: impl FnOnce() -> T,
) -> (T, [EndPeaks; N]) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut peaks: [EndPeaks; N] = std::array::from_fn(|_| EndPeaks::default());
            while !stop.load(Ordering::Relaxed) {
                let parents = parents();
                for (peaks, roots) in peaks.iter_mut().zip(roots) {
                    let roots = roots.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    peaks.look(&with_children(&parents, &roots));
                }
                thread::sleep(EACH);
            }
            peaks
        });
        let done = work();
        stop.store(true, Ordering::Relaxed);
        (done, watching.join().unwrap_or_else(|_| std::array::from_fn(|_| EndPeaks::default())))
    })
}

/// All that a process started and that is still there, and itself.
pub(crate) fn tree(root: u32) -> BTreeSet<u32> {
    with_children(&parents(), &BTreeSet::from([root]))
}

/// Has the peaks of such processes begin anew (proc(5), `clear_refs`).
pub(crate) fn forget_peaks(root: u32) {
    for pid in tree(root) {
        let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
    }
}

/// Processor seconds of a process, of all that it started, and of those of them that have ended.
pub(crate) fn processor(root: u32) -> f64 {
    tree(root).into_iter().filter_map(times).map(|[own, ended]| own + ended).sum()
}

/// Processor seconds of this program's children that have ended.
pub(crate) fn ended_children() -> f64 {
    times(std::process::id()).map_or(0.0, |[_, ended]| ended)
}

/// Processor seconds of a process, and of its children that it has waited for.
fn times(pid: u32) -> Option<[f64; 2]> {
    parse_times(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Fields 14 to 17. The name in field 2 may hold spaces, but ends with the last `)`.
fn parse_times(stat: &str) -> Option<[f64; 2]> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).map(str::parse::<f64>);
    let mut next = || fields.next()?.ok();
    let [user, system, user_ended, system_ended] = [next()?, next()?, next()?, next()?];
    Some([(user + system) / TICKS, (user_ended + system_ended) / TICKS])
}

/// The parent of each process there is.
fn parents() -> BTreeMap<u32, u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?))
    })
    .collect()
}

fn with_children(parents: &BTreeMap<u32, u32>, roots: &BTreeSet<u32>) -> BTreeSet<u32> {
    let mut found: BTreeSet<u32> = roots.iter().copied().filter(|pid| parents.contains_key(pid)).collect();
    loop {
        let more: Vec<u32> = parents
            .iter()
            .filter(|(pid, parent)| found.contains(parent) && !found.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// The numbers of all processes that there are.
pub(crate) fn all() -> BTreeSet<u32> {
    parents().into_keys().collect()
}

/// MiB that are their own, of those processes that run one of `programs` (its name begins so).
pub(crate) fn own_memory(pids: &BTreeSet<u32>, programs: &[&str]) -> f64 {
    let runs = |pid: &&u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        programs.iter().any(|program| name.starts_with(program))
    };
    let own = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        Some((number(&status, "RssAnon:")? + number(&status, "RssShmem:")?) * 1024)
    };
    mebibytes(pids.iter().filter(runs).filter_map(own).sum())
}

fn number(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_an_awkward_name() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 106 0 0 0 17 5 200 100 20 0 3 0 12345";
        assert_eq!(parse_times(stat), Some([0.22, 3.0]));
        assert_eq!(parse_times("42 (short) S 1"), None);
    }

    #[test]
    fn children_of_children_belong_to_an_end() {
        let parents = BTreeMap::from([(5, 1), (6, 5), (7, 6), (8, 1), (3, 7)]);
        assert_eq!(with_children(&parents, &BTreeSet::from([5, 99])), BTreeSet::from([3, 5, 6, 7]));
    }

    #[test]
    fn a_process_that_was_started_meanwhile_is_seen() {
        let roots = [BTreeSet::from([std::process::id()]), BTreeSet::new()].map(Mutex::new);
        let (pid, [near, far]) = watched(&roots, || {
            let mut child = std::process::Command::new("sleep").arg("0.5").spawn().unwrap();
            child.wait().unwrap();
            child.id()
        });
        assert!(near.each.contains_key(&pid) && far.each.is_empty());
        assert!(near.largest() > 0.0 && near.together() > 0.0 && far.together() == 0.0);
        assert!(near.read(&BTreeSet::new()) > near.read(&BTreeSet::from([std::process::id()])));
    }
}
