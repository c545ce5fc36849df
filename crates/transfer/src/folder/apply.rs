//! Permissions, owners, times and extended attributes of what was received.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{
    AtFlags, Gid, Mode, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags, chmod, chownat, fchmod, fchown,
    fsetxattr, futimens, utimensat,
};
use rustix::io::Errno;

use super::{FolderError, FolderRules};
use crate::stamp::{Attributes, Status};

/// The namespace of extended attributes that any user may set (xattr(7)). Others mean rights on this host, such as capabilities.
pub(crate) const XATTR_NAMESPACE: &[u8] = b"user.";

/// Gives an open file or folder its attributes, as far as the folder's rules let a sender say them.
pub(super) fn apply(
    file: impl AsFd,
    attributes: &Attributes,
    rules: &FolderRules,
) -> Result<(), FolderError> {
    if rules.keep_xattrs {
        let allowed = attributes.xattrs.iter().filter(|(name, _)| name.starts_with(XATTR_NAMESPACE));
        for (name, value) in allowed {
            let set = fsetxattr(&file, name, value, XattrFlags::empty());
            set.map_err(|error| FolderError::new("set an extended attribute", error))?;
        }
    }
    if rules.keep_owners {
        let (user, group) = owner(attributes);
        fchown(&file, user, group).map_err(|error| FolderError::new("set the owner", error))?;
    }
    // After the owner, whose change takes the setuid bits away.
    let mode = Mode::from_raw_mode(attributes.mode & if rules.keep_set_id { 0o7777 } else { 0o777 });
    fchmod(&file, mode).map_err(|error| FolderError::new("set the permissions", error))?;
    futimens(&file, &times(attributes.modified))
        .map_err(|error| FolderError::new("set the time of modification", error))
}

/// Gives a symlink what it can have: an owner and a time.
pub(super) fn apply_to_symlink(
    folder: impl AsFd,
    name: &str,
    attributes: &Attributes,
    rules: &FolderRules,
) -> Result<(), FolderError> {
    if rules.keep_owners {
        let (user, group) = owner(attributes);
        let set = chownat(&folder, name, user, group, AtFlags::SYMLINK_NOFOLLOW);
        set.map_err(|error| FolderError::new("set the owner", error))?;
    }
    let set = utimensat(&folder, name, &times(attributes.modified), AtFlags::SYMLINK_NOFOLLOW);
    set.map_err(|error| FolderError::new("set the time of modification", error))
}

/// Gives the owner these permissions of an open file or folder, if they are missing. Through `/proc`, whose link to an open file cannot
/// be exchanged for another one's; so it may be open by O_PATH, without a permission.
/// Returns the permissions that it had, if they are others now.
pub(crate) fn allow_owner(file: &OwnedFd, bits: u32) -> Result<Option<u32>, Errno> {
    let mode = Status::of(file)?.attributes().mode;
    if mode & bits == bits {
        return Ok(None);
    }
    match set_mode(file, mode | bits) {
        // Another user's, which may be writable all the same.
        Err(Errno::PERM | Errno::ACCESS | Errno::ROFS) => Ok(None),
        other => other.map(|()| Some(mode)),
    }
}

/// Gives an open file or folder permissions, as [`allow_owner`] does.
pub(crate) fn set_mode(file: &OwnedFd, mode: u32) -> Result<(), Errno> {
    chmod(format!("/proc/self/fd/{}", file.as_raw_fd()), Mode::from_raw_mode(mode))
}

/// The number that chown(2) takes for "as it is" is no owner's.
fn owner(attributes: &Attributes) -> (Option<Uid>, Option<Gid>) {
    let (user, group) = attributes.owner;
    ((user != u32::MAX).then(|| Uid::from_raw(user)), (group != u32::MAX).then(|| Gid::from_raw(group)))
}

/// Gives a file a time, and returns the one that it has then.
pub(super) fn time_kept(file: &File, modified: i64) -> Option<i64> {
    futimens(file, &times(modified)).ok()?;
    Status::of(file).ok().map(|status| status.stamp().modified)
}

fn times(modified: i64) -> Timestamps {
    let (seconds, nanoseconds) = (modified.div_euclid(1_000_000_000), modified.rem_euclid(1_000_000_000));
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanoseconds },
    }
}
