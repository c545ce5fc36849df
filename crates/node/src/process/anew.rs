//! Processes that begin as this program begins: with memory of their own at places of their own, and nothing of the process that starts
//! them but a task. What a peer guesses of one says nothing of the next (execve(2), as sshd has it for each connection).
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{ProcessChannel, checked, fork, memory_file, name_process};
use crate::logging::{self, Form};

/// The descriptor with the task: the first behind standard input, output and errors.
const TASK: RawFd = 3;
/// The program that this process runs, also once another is at its path.
const PROGRAM: &CStr = c"/proc/self/exe";
/// The exit status of a process that could not become another (as shells have it).
const NOT_STARTED: libc::c_int = 127;

/// Starts a process called `name` that runs this program from its beginning, with a task and the descriptors for it, and returns its
/// number. Behind its name it has the words of this process, so that people see whose it is. As [`fork`], it reads nothing from standard
/// input, and signals do not end it.
///
/// # Errors
/// This program cannot be run, or the system has no process or no memory left.
pub(crate) fn start_anew(
    name: &CStr,
    task: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<libc::pid_t> {
    // SAFETY: the text ends in a zero byte and outlives the call.
    checked(unsafe { libc::faccessat(libc::AT_FDCWD, PROGRAM.as_ptr(), libc::X_OK, libc::AT_EACCESS) })?;
    // Of any length, as a configuration is.
    let mut text = memory_file(name)?;
    text.write_all(&serde_json::to_vec(task)?)?;
    text.rewind()?;
    let (ours, theirs) = ProcessChannel::pair()?;
    let descriptors: Vec<_> = [text.as_fd()].into_iter().chain(descriptors.iter().copied()).collect();
    ours.send(&serde_json::to_vec(&logging::form())?, &descriptors)?;
    let others = std::env::args_os().skip(1).map(|word| CString::new(word.into_vec()));
    let words: Vec<CString> = [Ok(name.to_owned())].into_iter().chain(others).collect::<Result<_, _>>()?;
    let words: Vec<_> = words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect();
    fork(name, &[], || {
        // SAFETY: the texts end in zero bytes and outlive the calls, which take integers beside them; the list ends in a null pointer.
        unsafe {
            // A copy stays open when another program begins.
            if libc::dup2(theirs.as_fd().as_raw_fd(), TASK) < 0 || libc::fcntl(TASK, libc::F_SETFD, 0) < 0 {
                return NOT_STARTED;
            }
            libc::execv(PROGRAM.as_ptr(), words.as_ptr())
        };
        tracing::error!("cannot start {name:?}: {}", io::Error::last_os_error());
        NOT_STARTED
    })
}

/// Takes the task of this process with its descriptors, if it was started by [`start_anew`] with this name, and logs as the process does
/// that started it. Only the first call may find one.
///
/// # Errors
/// The task is another version's, or did not come.
pub(crate) fn take_task<T: DeserializeOwned>(name: &CStr) -> Option<io::Result<(T, Vec<OwnedFd>)>> {
    let is_called_so = std::env::args_os().next()?.as_bytes() == name.to_bytes();
    // SAFETY: all zeros is a valid stat; the pointer is to one that outlives the call.
    let has_socket = || unsafe {
        let mut found: libc::stat = zeroed();
        libc::fstat(TASK, &raw mut found) == 0 && found.st_mode & libc::S_IFMT == libc::S_IFSOCK
    };
    (is_called_so && has_socket()).then(|| {
        name_process(name);
        // SAFETY: the descriptor is a socket's that this process was started with; nothing else knows of it.
        receive(&ProcessChannel::from(unsafe { OwnedFd::from_raw_fd(TASK) }))
    })
}

fn receive<T: DeserializeOwned>(channel: &ProcessChannel) -> io::Result<(T, Vec<OwnedFd>)> {
    let (form, descriptors) = channel.receive()?;
    let form: Form = serde_json::from_slice(&form)?;
    logging::start(form).map_err(io::Error::other)?;
    let mut descriptors = descriptors.into_iter();
    let mut text = Vec::new();
    File::from(descriptors.next().ok_or(io::ErrorKind::UnexpectedEof)?).read_to_end(&mut text)?;
    Ok((serde_json::from_slice(&text)?, descriptors.collect()))
}
