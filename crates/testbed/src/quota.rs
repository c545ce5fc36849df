//! A control group whose processes have a share of a processor and no more (cgroups(7), the controller `cpu`).

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, thread};

use crate::{DaemonProcess, Error};

/// Groups are called so, and then by this process and a number.
const PREFIX: &str = "strait-testbed-";
/// The kernel's least quota and least period, and its longest period (`kernel/sched/core.c`), in microseconds.
const LEAST: f64 = 1_000.0;
const LONGEST: f64 = 1_000_000.0;
/// A period, where the share allows it: long enough that a tick of the kernel, of up to 4 ms, is a part of it.
const PERIOD: f64 = 20_000.0;
/// Tries to remove a group, whose last process may still be on its way out.
const TRIES: u32 = 50;

/// A group. Dropped, it is removed, if its processes have ended.
#[derive(Debug)]
pub struct ProcessorQuota {
    folder: PathBuf,
    version: GroupVersion,
}

/// The versions of control groups, which have different files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupVersion {
    One,
    Two,
}

impl ProcessorQuota {
    /// A group without processes, whose `number` no other group of this process has.
    ///
    /// # Errors
    /// [`Error::System`] when there is no controller, or it may not be used.
    pub fn create(number: usize) -> Result<ProcessorQuota, Error> {
        let doing = || Error::doing("make a control group for a share of a processor");
        let mounts = fs::read_to_string("/proc/self/mounts").map_err(doing())?;
        let none = || io::Error::other("no control group here has the controller `cpu`");
        let (root, version) = controller(&mounts).ok_or_else(none).map_err(doing())?;
        sweep(&root);
        let folder = root.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&folder).map_err(doing())?;
        let group = ProcessorQuota { folder, version };
        // Also tells whether the group has the controller.
        group.set_share(1.0)?;
        Ok(group)
    }

    /// Limits all its processes together to this share of one processor; more than 1 is more than one.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn set_share(&self, share: f64) -> Result<(), Error> {
        let (quota, period) = quota(share);
        let set = || match self.version {
            GroupVersion::Two => self.write("cpu.max", &format!("{quota} {period}")),
            GroupVersion::One => {
                // One after the other, and never more than the kernel takes at once.
                self.write("cpu.cfs_quota_us", "-1")?;
                self.write("cpu.cfs_period_us", &period.to_string())?;
                self.write("cpu.cfs_quota_us", &quota.to_string())
            }
        };
        set().map_err(Error::doing(format!("limit processes to {share:.4} of a processor")))
    }

    /// Takes a daemon in: its process that handles packets.
    ///
    /// # Errors
    /// [`Error::System`] when it has ended.
    pub fn add(&self, daemon: &DaemonProcess) -> Result<(), Error> {
        let added = self.write("cgroup.procs", &daemon.pid().to_string());
        added.map_err(Error::doing("put a daemon into a control group"))
    }

    /// The time after which its processes may go on at the latest: what takes less may not be slowed at all.
    #[must_use]
    pub fn period(share: f64) -> Duration {
        Duration::from_micros(quota(share).1)
    }

    fn write(&self, name: &str, value: &str) -> io::Result<()> {
        fs::write(self.folder.join(name), value)
    }
}

impl Drop for ProcessorQuota {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            match fs::remove_dir(&self.folder) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    thread::sleep(Duration::from_millis(20));
                }
                _ => break,
            }
        }
    }
}

/// Microseconds of a processor in each period of so many.
fn quota(share: f64) -> (u64, u64) {
    let period = PERIOD.max(LEAST / share).min(LONGEST);
    ((period * share).max(LEAST).round() as u64, period.round() as u64)
}

/// The folder of all groups with the controller, by the table of mounts (proc(5)).
fn controller(mounts: &str) -> Option<(PathBuf, GroupVersion)> {
    let mounts = || mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let one = mounts().find_map(|fields| match fields[..] {
        [_, place, "cgroup", options, ..] if options.split(',').any(|it| it == "cpu") => {
            Some((place.into(), GroupVersion::One))
        }
        _ => None,
    });
    one.or_else(|| {
        mounts().find_map(|fields| match fields[..] {
            [_, place, "cgroup2", ..] if can(Path::new(place)) => Some((place.into(), GroupVersion::Two)),
            _ => None,
        })
    })
}

/// True if groups below this one have the controller, or can be given it.
fn can(root: &Path) -> bool {
    let control = root.join("cgroup.subtree_control");
    let has = || fs::read_to_string(&control).is_ok_and(|it| it.split_whitespace().any(|it| it == "cpu"));
    has() || fs::write(&control, "+cpu").is_ok() && has()
}

/// Removes the groups of processes that have been killed.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
        if owner.is_some_and(|(pid, _)| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_quota_in_a_period_that_the_kernel_takes() {
        assert_eq!(quota(0.5), (10_000, 20_000));
        assert_eq!(quota(2.0), (40_000, 20_000));
        assert_eq!(quota(0.01), (1_000, 100_000));
        assert_eq!(quota(0.000_1), (1_000, 1_000_000));
        assert_eq!(ProcessorQuota::period(0.02), Duration::from_millis(50));
    }

    #[test]
    fn the_controller_is_found_by_its_mount() {
        let one = "tmpfs /groups tmpfs rw 0 0\ncgroup /groups/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n";
        assert_eq!(controller(one), Some(("/groups/cpu,cpuacct".into(), GroupVersion::One)));
        assert_eq!(controller("cgroup /groups/cpuset cgroup rw,cpuset 0 0\n"), None);
        assert_eq!(controller("cgroup2 /nowhere/at/all cgroup2 rw 0 0\n"), None);
    }
}
