//! `strait up` without `--foreground`: the same program again, in a session of its own.
#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{RunningProcess, checked};
use crate::runtime::READY_VARIABLE;

/// How long a node may take to be up: it measures its ciphers first.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time that is left to the rest of one that ended, and between looks at it.
const ENDING: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(20);

/// Why no node runs in the background.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackgroundError {
    /// The log cannot be written.
    #[error("cannot write the log {}: {source}; name another with --log-file", path.display())]
    Log {
        /// Its file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another user could read or redirect the log.
    #[error("the log {} is a link, a pipe, or another user's file; name another with --log-file", path.display())]
    Foreign {
        /// What it is called.
        path: PathBuf,
    },
    /// The program cannot be started again.
    #[error("cannot start the tunnel in the background: {0}; try --foreground")]
    Start(#[source] io::Error),
    /// It started and ended.
    #[error("{said}")]
    Ended {
        /// Its words.
        said: String,
        /// Its exit code; none if a signal ended it.
        code: Option<i32>,
    },
    /// It is neither up nor has it ended.
    #[error("the tunnel is not up after {} s; see {}", PATIENCE.as_secs(), log.display())]
    TooSlow {
        /// Where it may have said why.
        log: PathBuf,
    },
}

/// Starts `arguments` of this program in the background with its output in `log`, and waits until it says
/// that it is ready; gives its process number.
///
/// # Errors
/// [`BackgroundError`], in which case nothing runs.
pub fn start(arguments: &[&std::ffi::OsStr], log: &Path) -> Result<u32, BackgroundError> {
    let mut command = Command::new(std::env::current_exe().map_err(BackgroundError::Start)?);
    command.args(arguments);
    start_program(command, &mut open(log)?, log).map(|child| child.id())
}

/// The same for any program, whose output goes to the file `log` of this name.
///
/// # Errors
/// As [`start`].
pub(crate) fn start_program(command: Command, file: &mut File, log: &Path) -> Result<Child, BackgroundError> {
    let begin = file.seek(SeekFrom::End(0)).unwrap_or(0);
    let (mut ready, theirs) = UnixStream::pair().map_err(BackgroundError::Start)?;
    ready.set_read_timeout(Some(PATIENCE)).map_err(BackgroundError::Start)?;
    let mut child = spawn(command, file, theirs.into()).map_err(BackgroundError::Start)?;
    // A word, or the end when the node has ended.
    let heard = loop {
        match ready.read(&mut [0; 16]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            heard => break heard,
        }
    };
    match heard {
        Ok(0) => {
            // One that closed it may still run. Where it was killed, its process with the privileges puts the network back by itself.
            wait_for(ENDING, || !matches!(child.try_wait(), Ok(None)));
            let code = child.try_wait().ok().flatten().and_then(|status| status.code());
            if code.is_none() {
                end(&mut child);
            }
            Err(BackgroundError::Ended { said: said(file, begin), code })
        }
        Ok(_) => Ok(child),
        Err(_) => {
            end(&mut child);
            Err(BackgroundError::TooSlow { log: log.to_owned() })
        }
    }
}

/// Kills a program that was started here with all that it started. A full tunnel stays closed. The process with the privileges ends by
/// itself when the other is gone, and removes the rest meanwhile.
pub(crate) fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
    let Ok(group) = libc::pid_t::try_from(child.id()) else { return };
    if !wait_for(ENDING, || !group_runs(group)) {
        // SAFETY: takes integers. The group is the session that was made for it, whose number is not given anew while there is a process
        // in it.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        wait_for(ENDING, || !group_runs(group));
    }
}

/// Returns true as long as a process of a group runs. One that has ended may be in it for good, where nothing waits for orphans.
fn group_runs(group: libc::pid_t) -> bool {
    // SAFETY: takes integers.
    if unsafe { libc::kill(-group, 0) } != 0 {
        return false;
    }
    let Ok(mut all) = fs::read_dir("/proc") else { return true };
    let is_of_it = |place: &Path| RunningProcess::at(place).is_some_and(|found| found.group == group);
    all.any(|entry| entry.is_ok_and(|entry| is_of_it(&entry.path())))
}

/// Looks again until `done` holds, for at most `patience`, and returns the last answer.
pub(crate) fn wait_for(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !done() {
        if begun.elapsed() >= patience {
            return false;
        }
        thread::sleep(AGAIN);
    }
    true
}

/// Opens the log, or makes it. Not through a link, which could lead into any file; not into what another user reads.
pub(crate) fn open(path: &Path) -> Result<File, BackgroundError> {
    let failed = |source| BackgroundError::Log { path: path.to_owned(), source };
    let foreign = || BackgroundError::Foreign { path: path.to_owned() };
    let mut options = OpenOptions::new();
    options.create(true).append(true).read(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => foreign(),
        _ => failed(error),
    })?;
    let found = file.metadata().map_err(failed)?;
    let is_own = found.is_file() && found.uid() == crate::privileges::user();
    // Such as /dev/null.
    let is_device = found.file_type().is_char_device();
    if is_own || is_device { Ok(file) } else { Err(foreign()) }
}

/// Starts the program in a session of its own. On `ready`, its standard input, it says that it is up.
fn spawn(mut command: Command, log: &File, ready: OwnedFd) -> io::Result<Child> {
    command.env(READY_VARIABLE, "1").env_remove("NOTIFY_SOCKET");
    command.stdin(ready).stdout(log.try_clone()?).stderr(log.try_clone()?);
    // SAFETY: signal and setsid are async-signal-safe and touch no memory of this process.
    unsafe {
        command.pre_exec(|| {
            // Who starts it may ignore them.
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::signal(signal, libc::SIG_DFL);
            }
            checked(libc::setsid())
        });
    }
    command.spawn()
}

/// What was added to the log since `begin`, as far as people want to read.
fn said(file: &mut File, begin: u64) -> String {
    const MOST: usize = 4000;
    let mut bytes = Vec::new();
    if file.seek(SeekFrom::Start(begin)).is_ok() {
        let _ = file.read_to_end(&mut bytes);
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    let from = text.char_indices().rev().nth(MOST).map_or(0, |(at, _)| at);
    let text = text.get(from..).unwrap_or_default();
    if text.is_empty() { "the tunnel exited without a message".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_log_that_is_a_link_a_pipe_or_of_another_user_is_not_written() {
        let folder = std::env::temp_dir().join(format!("strait-background-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let (log, link, pipe) = (folder.join("log"), folder.join("link"), folder.join("pipe"));
        let is_foreign = |path: &Path| matches!(open(path), Err(BackgroundError::Foreign { .. }));
        assert!(open(&log).is_ok() && open(&log).is_ok(), "made, and gone on with");
        assert_eq!(log.metadata().unwrap().mode() & 0o777, 0o600);
        symlink(&log, &link).unwrap();
        assert!(is_foreign(&link));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(is_foreign(&pipe));
        assert!(open(Path::new("/dev/null")).is_ok());
        let is_root = crate::privileges::is_root();
        if is_root
            || strait_testdata::skip::skip(strait_testdata::skip::Need::Root, "may not give a file away")
        {
            std::os::unix::fs::chown(&log, Some(65_534), None).unwrap();
            assert!(is_foreign(&log));
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_rest_of_a_program_that_was_killed_has_ended_before_another_is_started() {
        let folder = std::env::temp_dir().join(format!("strait-background-rest-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let (log, done) = (folder.join("log"), folder.join("done"));
        let mut command = Command::new("sh");
        // The rest waits until the first is gone, and a little.
        let rest = "(while kill -0 $$; do sleep 0.1; done; sleep 0.5; : >\"$0\") & kill -9 $$";
        command.args(["-c", rest]).arg(&done);
        let started = start_program(command, &mut open(&log).unwrap(), &log);
        assert!(matches!(started, Err(BackgroundError::Ended { .. })), "{started:?}");
        assert!(done.exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
