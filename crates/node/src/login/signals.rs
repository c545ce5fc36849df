//! Signals of a session's program.

use std::path::Path;
use std::{fs, io};

use crate::process::{RunningProcess, checked};

/// Sends a signal to all processes of a group.
///
/// # Errors
/// As `kill(2)`.
pub fn signal_group(group: i32, signal: i32) -> io::Result<()> {
    send(group, -group, signal)
}

/// Sends a signal to one process.
pub(super) fn signal_process(process: i32, signal: i32) -> io::Result<()> {
    send(process, process, signal)
}

/// Sends a signal to all processes of a session (setsid(2)) that run, and to the one that begins it; with 0 to none. How many there are.
pub(super) fn signal_session(session: i32, signal: i32) -> usize {
    let numbers = fs::read_dir("/proc").into_iter().flatten();
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let all = numbers.filter(|process| runs_in(*process, session));
    all.inspect(|process| drop(signal_process(*process, signal))).count()
}

/// True if a process runs in this session, or is to begin it.
fn runs_in(process: i32, session: i32) -> bool {
    let found = RunningProcess::at(Path::new(&format!("/proc/{process}")));
    found.is_some_and(|found| process == session || found.session == session)
}

fn send(number: i32, to: libc::pid_t, signal: i32) -> io::Result<()> {
    if number <= 1 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: takes integers.
    checked(unsafe { libc::kill(to, signal) })
}

/// Blocks no signal in this process.
pub(super) fn unblock() -> io::Result<()> {
    // SAFETY: the set is a value of this function's, which outlives the calls.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        checked(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()))
    }
}

/// The name of a signal, without `SIG`; of one without a name, its number.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let known = usize::try_from(signal).ok().and_then(|number| NAMES.get(number.checked_sub(1)?));
    known.map_or_else(|| signal.to_string(), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_their_names_and_those_without_one_their_numbers() {
        assert_eq!(
            (signal_name(15), signal_name(9), signal_name(64)),
            ("TERM".into(), "KILL".into(), "64".into())
        );
    }
}
