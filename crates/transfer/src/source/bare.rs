//! Mount points without their file systems: /etc/fstab names them, and the kernel has nothing mounted there.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::fs::{CWD, FileType};

use crate::stamp::{Stamp, Status};

/// The fields with paths in lines of fstab(5), and in those of proc_pid_mountinfo(5), which are like them.
const IN_FSTAB: usize = 1;
const IN_MOUNTINFO: usize = 4;

/// Folders that are to be mount points and are none now, by device and inode: a walk comes to them by any path.
#[derive(Clone, Debug, Default)]
pub struct BareMountPoints(BTreeSet<(u64, u64)>);

impl BareMountPoints {
    /// Those of this host; none where it has no such lists.
    #[must_use]
    pub fn find() -> BareMountPoints {
        let lists = fs::read("/etc/fstab").and_then(|fstab| Ok((fstab, fs::read("/proc/self/mountinfo")?)));
        lists.map_or_else(
            |_| BareMountPoints::default(),
            |(fstab, mounted)| BareMountPoints::of(&fstab, &mounted),
        )
    }

    pub(crate) fn of(fstab: &[u8], mounted: &[u8]) -> BareMountPoints {
        let mounted: BTreeSet<PathBuf> = paths(mounted, IN_MOUNTINFO).collect();
        // First as it is written: what is mounted is not looked at, as its server may not answer. The kernel has no links in its list.
        let missing = paths(fstab, IN_FSTAB).filter(|path| path.is_absolute() && !mounted.contains(path));
        let missing =
            missing.filter_map(|path| fs::canonicalize(path).ok()).filter(|path| !mounted.contains(path));
        let status = missing.filter_map(|path| Status::at(CWD, path.as_os_str().as_bytes()).ok());
        let folders = status.filter(|status| status.kind() == FileType::Directory);
        BareMountPoints(
            folders.map(|status| status.stamp()).map(|stamp| (stamp.device, stamp.inode)).collect(),
        )
    }

    pub(super) fn has(&self, stamp: &Stamp) -> bool {
        self.0.contains(&(stamp.device, stamp.inode))
    }
}

/// The paths in a field of each line, but for comments.
fn paths(text: &[u8], field: usize) -> impl Iterator<Item = PathBuf> {
    let lines =
        text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.starts_with(b"#"));
    let fields = lines.filter_map(move |line| {
        line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).nth(field)
    });
    fields.map(|field| PathBuf::from(OsString::from_vec(unescaped(field))))
}

/// Undoes the octal numbers of blanks and backslashes, such as `\040`.
fn unescaped(mut field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    while let Some((first, behind)) = field.split_first() {
        let digits = behind.split_at_checked(3).filter(|_| *first == b'\\');
        let number = digits.and_then(|(digits, behind)| {
            Some((u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok()?, behind))
        });
        let (byte, behind) = number.unwrap_or((*first, behind));
        bytes.push(byte);
        field = behind;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestFolder;

    #[test]
    fn what_fstab_names_and_the_kernel_does_not_is_bare() {
        let folder = TestFolder::new("bare");
        for name in ["a b", "disk", "off"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("disk", folder.join("link")).unwrap();
        fs::write(folder.join("file"), "").unwrap();
        let at = folder.path().display();
        let fstab = format!(
            "# /dev/sda1\t{at}/off ext4\n#{at} {at}/off xfs\n\nUUID=1 {at}/a\\040b ext4 nofail 0 2\n/swap none swap sw\n\
             server:/x\t{at}/disk/ nfs4\n/dev/sdb {at}/link ext4\n/dev/sdc {at}/gone ext4\n/dev/sdd {at}/file ext4\n"
        );
        let mounted =
            format!("30 1 8:1 / / rw - ext4 /dev/sda1 rw\n31 30 0:40 / {at}/disk rw shared:1 - nfs4 x rw\n");
        let count = |mounted: &str| {
            let bare = BareMountPoints::of(fstab.as_bytes(), mounted.as_bytes());
            let has = |name: &str| {
                bare.has(&Status::of(fs::File::open(folder.join(name)).unwrap()).unwrap().stamp())
            };
            (["a b", "disk", "off", "file"].map(has), bare.0.len())
        };
        assert_eq!(count(&mounted), ([true, false, false, false], 1));
        assert_eq!(count(""), ([true, true, false, false], 2));
    }
}
