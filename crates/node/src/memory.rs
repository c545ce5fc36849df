//! The machine's memory, and the share of it that this process may take.

use std::fs;
use std::path::Path;

/// A part of the machine's memory that what is kept of peers' data may take: a gateway has other work.
const PART: u64 = 4;
/// The bytes that it may take on the smallest machine.
pub(crate) const LEAST: u64 = 16 << 20;

/// Bytes for what is kept of peers' data where the file does not say: a fourth of the machine's memory, or of what the control group
/// allows if that is less.
pub(crate) fn share_of_this_machine() -> u64 {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = limit(Path::new("/sys/fs/cgroup"), &groups).unwrap_or(u64::MAX);
    (machine().min(limit) / PART).max(LEAST)
}

/// Bytes of memory of the machine.
fn machine() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = total.and_then(|total| total.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or_default().saturating_mul(1024)
}

/// The least `memory.max` of a control group (cgroup v2) and those that it is in, if one has any.
fn limit(root: &Path, groups: &str) -> Option<u64> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let of = |group: &Path| fs::read_to_string(root.join(group).join("memory.max")).ok()?.trim().parse().ok();
    Path::new(group).ancestors().filter_map(of).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_all_control_groups_counts() {
        let root = std::env::temp_dir().join(format!("strait-memory-{}", std::process::id()));
        let group = root.join("system.slice/strait.service");
        fs::create_dir_all(&group).unwrap();
        let groups = "4:cpu:/other\n0::/system.slice/strait.service\n";
        assert_eq!(limit(&root, groups), None);
        fs::write(group.join("memory.max"), "max\n").unwrap();
        assert_eq!(limit(&root, groups), None);
        fs::write(root.join("system.slice/memory.max"), "536870912\n").unwrap();
        assert_eq!(limit(&root, groups), Some(512 << 20));
        fs::write(group.join("memory.max"), "1073741824\n").unwrap();
        assert_eq!(limit(&root, groups), Some(512 << 20));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn this_machine_has_some() {
        assert!((LEAST..machine()).contains(&share_of_this_machine()));
    }
}
