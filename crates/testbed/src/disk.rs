//! Room on disks: a file system that is soon full, for what a daemon does then, and what a folder takes.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::Error;

/// The commands of `fsconfig(2)` that are used here (linux/mount.h).
const SET_STRING: libc::c_ulong = 1;
const CREATE: libc::c_ulong = 6;
/// What takes all the room.
const FILLER: &str = "filler";

/// A file system in memory that is mounted nowhere: it is reached by its descriptor, and goes with it.
///
/// Its folder is a link of `/proc`, which other processes of root may follow too.
#[derive(Debug)]
pub struct SmallDisk(OwnedFd);

impl SmallDisk {
    /// An empty one with room for `bytes`, in whole pages.
    ///
    /// # Errors
    /// [`Error::System`] when the caller may not mount, or on a Linux before 5.2.
    pub fn create(bytes: u32) -> Result<SmallDisk, Error> {
        mount(bytes).map(SmallDisk).map_err(Error::doing("make a small disk"))
    }

    /// Its folder.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }

    /// Takes all the room that is left.
    ///
    /// # Errors
    /// [`Error::System`] for anything but a full disk.
    pub fn fill(&self) -> Result<(), Error> {
        let doing = || Error::doing("fill a disk");
        let filler = File::options().create(true).append(true).open(self.path().join(FILLER));
        let mut filler = filler.map_err(doing())?;
        loop {
            match filler.write(&[0; 4096]) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(doing()(error)),
            }
        }
    }

    /// Gives the room back.
    ///
    /// # Errors
    /// [`Error::System`] when it was never taken.
    pub fn empty(&self) -> Result<(), Error> {
        fs::remove_file(self.path().join(FILLER)).map_err(Error::doing("empty a disk"))
    }
}

fn mount(bytes: u32) -> io::Result<OwnedFd> {
    let none = std::ptr::null::<libc::c_char>();
    let size = std::ffi::CString::new(bytes.to_string())?;
    // SAFETY: the name is a string that outlives the call.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0) })?;
    let set = |command: libc::c_ulong, key: Option<&CStr>, value: Option<&CStr>| {
        let [key, value] = [key, value].map(|text| text.map_or(none, CStr::as_ptr));
        // SAFETY: both texts are strings, or absent as the command demands, and outlive the call.
        let done = unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), command, key, value, 0) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    set(SET_STRING, Some(c"size"), Some(&size))?;
    set(SET_STRING, Some(c"mode"), Some(c"700"))?;
    set(CREATE, None, None)?;
    // SAFETY: takes numbers only.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 0, 0) })
}

/// The descriptor that a call gave.
fn owned(given: libc::c_long) -> io::Result<OwnedFd> {
    match RawFd::try_from(given) {
        // SAFETY: the system has just made it, and no other value has it.
        Ok(descriptor @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The size of a folder as `du` has it, in bytes; of one that is not there, nothing.
#[must_use]
pub fn on_disk(folder: &Path) -> u64 {
    // `st_blocks` of stat(2) counts 512 bytes.
    let blocks = |path: &Path| fs::symlink_metadata(path).map_or(0, |about| about.blocks() * 512);
    let below = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let below: u64 = below.map(|path| if path.is_dir() { on_disk(&path) } else { blocks(&path) }).sum();
    blocks(folder) + below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_takes_nothing_until_there_is_room_again() {
        if !crate::sandbox::allows_hosts() {
            return;
        }
        let disk = SmallDisk::create(64 << 10).unwrap();
        let file = disk.path().join("file");
        disk.fill().unwrap();
        assert_eq!(fs::write(&file, "x").unwrap_err().kind(), io::ErrorKind::StorageFull);
        disk.empty().unwrap();
        fs::write(&file, "x").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"x");
    }
}
