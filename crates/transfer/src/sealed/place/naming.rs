//! What is written aside gets its name.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::fs::{openat, readlinkat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::stamp::Status;

/// Bytes that are compared at once.
const STEP: usize = 64 * 1024;

/// Gives `aside` in an open folder the name `name`. Without leave to replace, what has that name stays, which is an error unless it
/// has the same content; then `aside` is dropped.
pub(super) fn rename(folder: &OwnedFd, aside: &[u8], name: &[u8], replace: bool) -> io::Result<()> {
    if replace {
        return Ok(renameat(folder, aside, folder, name)?);
    }
    match renameat_with(folder, aside, folder, name, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => settle(folder, aside, name),
        // Some file systems cannot do it in one step (rename(2)).
        Err(Errno::INVAL | Errno::NOSYS) => match Status::at(folder, name) {
            Ok(_) => settle(folder, aside, name),
            Err(Errno::NOENT) => Ok(renameat(folder, aside, folder, name)?),
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

fn settle(folder: &OwnedFd, aside: &[u8], name: &[u8]) -> io::Result<()> {
    if !is_same(folder, aside, name)? {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file of this name is there already"));
    }
    Ok(unlinkat(folder, aside, AtFlags::empty())?)
}

/// Whether two names have the same content: files byte for byte, links by what they say.
fn is_same(folder: &OwnedFd, one: &[u8], other: &[u8]) -> io::Result<bool> {
    let (first, second) = (Status::at(folder, one)?, Status::at(folder, other)?);
    let sizes = first.stamp().size == second.stamp().size;
    match (first.kind(), second.kind()) {
        (FileType::RegularFile, FileType::RegularFile) if sizes => {
            same_bytes(open(folder, one)?, open(folder, other)?)
        }
        (FileType::Symlink, FileType::Symlink) => {
            Ok(readlinkat(folder, one, Vec::new())? == readlinkat(folder, other, Vec::new())?)
        }
        _ => Ok(false),
    }
}

fn open(folder: &OwnedFd, name: &[u8]) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::empty())?.into())
}

fn same_bytes(mut one: File, mut other: File) -> io::Result<bool> {
    let (mut first, mut second) = (Vec::with_capacity(STEP), Vec::with_capacity(STEP));
    loop {
        for (file, bytes) in [(&mut one, &mut first), (&mut other, &mut second)] {
            bytes.clear();
            file.take(STEP as u64).read_to_end(bytes)?;
        }
        if first != second {
            return Ok(false);
        }
        if first.is_empty() {
            return Ok(true);
        }
    }
}
