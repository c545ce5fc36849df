//! What the kernel is told to refuse this process from now on: system calls that no tunnel needs (seccomp(2)) and every
//! file, port and process that is not open already (landlock(7)).
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use libc::sock_filter;

use super::{PrivilegeError, calls};

/// What the kernel took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// Whether system calls are filtered.
    pub calls: bool,
    /// The version of Landlock; 0 where the kernel has none.
    pub landlock: u32,
}

/// Confines the calling thread and all that it starts, for ever. What the kernel does not know is left out.
///
/// To be called once privileges are dropped and everything is open, before any thread is started.
///
/// # Errors
/// What the kernel said, when it knows these ways and refuses.
pub fn confine() -> Result<Confinement, PrivilegeError> {
    restrict(&[], FIRST, &[])
}

/// As [`confine`], but the files `read` and those in such folders may be read, and those in the folder `work` written, too.
///
/// # Errors
/// As [`confine`]; if one of them cannot be found.
pub(crate) fn confine_reader(read: &[PathBuf], work: &Path) -> Result<Confinement, PrivilegeError> {
    let read = read.iter().map(|path| (path.as_path(), READ));
    restrict(&Vec::from_iter(read.chain([(work, IN_FOLDER)])), FIRST, calls::FILES)
}

fn restrict(
    paths: &[(&Path, u64)],
    least: u32,
    more: &[libc::c_long],
) -> Result<Confinement, PrivilegeError> {
    let landlock = close_files(paths, least).map_err(PrivilegeError::Confine)?;
    Ok(Confinement { calls: filter_calls(more).map_err(PrivilegeError::Confine)?, landlock })
}

/// Leaves the calling thread and all that it starts the files and folders in the folders `work`, and those to read in `read`, for ever; no
/// device, no program, no new socket or process. What is open stays so. What the kernel does not know is left out; the answer says
/// whether it knows how to close files.
///
/// To be called after privileges were dropped, which sets what the kernel asks for, and before any thread is started.
///
/// # Errors
/// If one of them cannot be opened; what the kernel said, when it knows these ways and refuses.
pub fn confine_to(work: &[&Path], read: &[&Path]) -> Result<bool, PrivilegeError> {
    let read = read.iter().map(|path| (*path, READ));
    let paths: Vec<_> = work.iter().map(|folder| (*folder, IN_FOLDER)).chain(read).collect();
    let least = if work.is_empty() { FIRST } else { RENAMES };
    let more = [calls::FILES, calls::FOLDERS, calls::FOLDERS_ALSO].concat();
    restrict(&paths, least, &more).map(|confinement| confinement.landlock > 0)
}

/// Rights on files by the version of Landlock that knows them first (`linux/landlock.h`): 13 of the first version, REFER,
/// TRUNCATE, and since version 5 IOCTL_DEV.
const FILE_RIGHTS: [u64; 5] = [(1 << 13) - 1, (1 << 14) - 1, (1 << 15) - 1, (1 << 15) - 1, (1 << 16) - 1];
/// To bind and to connect TCP sockets, since version 4.
const PORT_RIGHTS: u64 = 3;
/// To reach abstract sockets and to signal processes outside, since version 6.
const SCOPES: u64 = 3;
/// What is done in a folder that is left: files are read, written, cut and removed, folders, files and symlinks made, and all of them
/// renamed and linked from one folder to another. No programs, devices, sockets and FIFOs.
const IN_FOLDER: u64 =
    (1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8) | (1 << 12 | 1 << 13 | 1 << 14);
/// To read files, and to list folders.
const READ: u64 = 1 << 2 | 1 << 3;
/// Those of a file itself: to run, write, read and cut it.
const OF_FILE: u64 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14;
/// The first version.
const FIRST: u32 = 1;
/// The first version that lets files be renamed to another folder (REFER).
const RENAMES: u32 = 2;
/// `LANDLOCK_RULE_PATH_BENEATH`.
const BENEATH: libc::c_uint = 1;
/// `LANDLOCK_CREATE_RULESET_VERSION`.
const ASK_VERSION: libc::c_uint = 1;

/// `struct landlock_ruleset_attr`.
#[repr(C)]
struct RulesetAttributes {
    files: u64,
    ports: u64,
    scopes: u64,
}

/// `struct landlock_path_beneath_attr`, which has no gaps.
#[repr(C, packed)]
struct BeneathAttributes {
    rights: u64,
    path: libc::c_int,
}

/// Opens nothing from now on but these files and what is in these folders, with their rights; the version of Landlock, 0 without `least`.
fn close_files(paths: &[(&Path, u64)], least: u32) -> io::Result<u32> {
    // SAFETY: asks for a number only, as a null pointer and a length of 0 say.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<RulesetAttributes>(),
            0_usize,
            ASK_VERSION,
        )
    };
    let Some(version) = u32::try_from(version).ok().filter(|version| *version >= least) else { return Ok(0) };
    let known = usize::try_from(version).unwrap_or(usize::MAX).min(FILE_RIGHTS.len()) - 1;
    let attributes = RulesetAttributes {
        files: FILE_RIGHTS.get(known).copied().unwrap_or_default(),
        ports: if version >= 4 { PORT_RIGHTS } else { 0 },
        scopes: if version >= 6 { SCOPES } else { 0 },
    };
    // Older kernels refuse fields that they do not know.
    let len: usize = match version {
        ..4 => 8,
        4..6 => 16,
        _ => 24,
    };
    // SAFETY: the pointer is to a struct of at least this length, which outlives the call.
    let rules = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, len, 0 as libc::c_uint)
    };
    if rules < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was made above and is used by nothing else.
    let rules = unsafe { OwnedFd::from_raw_fd(rules as libc::c_int) };
    for (path, rights) in paths {
        except(&rules, path, rights & attributes.files)?;
    }
    // SAFETY: takes integers only.
    let closed =
        unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0 as libc::c_uint) };
    if closed < 0 { Err(io::Error::last_os_error()) } else { Ok(version) }
}

/// Leaves these rights on a file, or on what is in a folder.
fn except(rules: &OwnedFd, path: &Path, rights: u64) -> io::Result<()> {
    let path = File::options().read(true).custom_flags(libc::O_PATH).open(path)?;
    let rights = if path.metadata()?.is_dir() { rights } else { rights & OF_FILE };
    let rule = BeneathAttributes { rights, path: path.as_raw_fd() };
    // SAFETY: the pointer is to a whole struct, which outlives the call and names what is open.
    let added = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            rules.as_raw_fd(),
            BENEATH,
            &raw const rule,
            0 as libc::c_uint,
        )
    };
    if added < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Refuses all system calls but those of [`calls`] and `more` from now on; false where the kernel cannot, or may not.
fn filter_calls(more: &[libc::c_long]) -> io::Result<bool> {
    let Some(filter) = calls::filter(more) else { return Ok(false) };
    // Refusals are logged by the kernel (Linux 4.14); the filter needs no slower processor (4.17): no foreign program runs here.
    let wanted = libc::SECCOMP_FILTER_FLAG_LOG | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    for flags in [wanted, 0] {
        match install(&filter, flags) {
            Ok(()) => return Ok(true),
            // EPERM: a filter around this process, as of a container.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::EPERM)) => {
            }
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

fn install(filter: &[sock_filter], flags: libc::c_ulong) -> io::Result<()> {
    let len = u16::try_from(filter.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the program points to `len` steps that outlive the call, which copies them.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests;
