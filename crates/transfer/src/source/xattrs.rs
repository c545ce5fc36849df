//! Extended attributes.

use std::os::fd::AsFd;

use rustix::fs::{fgetxattr, flistxattr};
use rustix::io::Errno;

use super::SkipReason;
use crate::folder::XATTR_NAMESPACE;
use crate::stamp::Xattrs;

/// Names and values of an entry together at most: one value of XFS; ext4 keeps 4 KiB.
const MAX_BYTES: usize = 64 << 10;

/// Names and values of the namespace `user`, in the order of names.
pub(super) fn read(file: impl AsFd) -> Result<Xattrs, SkipReason> {
    let too_large = |error| match error {
        Errno::RANGE | Errno::TOOBIG => SkipReason::XattrsTooLarge,
        error => SkipReason::Unreadable(error),
    };
    let mut list = vec![0; MAX_BYTES];
    let len = match flistxattr(&file, &mut list[..]) {
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        other => other.map_err(too_large)?,
    };
    let mut found = Vec::new();
    let mut bytes = 0;
    for name in list[..len].split(|byte| *byte == 0).filter(|name| name.starts_with(XATTR_NAMESPACE)) {
        let mut value = vec![0; MAX_BYTES];
        let len = match fgetxattr(&file, name, &mut value[..]) {
            // It was removed meanwhile.
            Err(Errno::NODATA) => continue,
            other => other.map_err(too_large)?,
        };
        value.truncate(len);
        bytes += name.len() + len;
        if bytes > MAX_BYTES {
            return Err(SkipReason::XattrsTooLarge);
        }
        found.push((name.to_vec(), value));
    }
    found.sort_unstable();
    Ok(found)
}
