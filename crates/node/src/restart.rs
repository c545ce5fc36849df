//! Another program in the place of a daemon that runs, perhaps through its own tunnel; if that does not come up, the one that ran is
//! started again.
//!
//! ```text
//! found   the daemon that runs: its program, its words, its surroundings, its configuration; not one that a service manager runs
//! kept    the configuration that it runs with, to go back to
//! swap    one ends, the other starts, or the first again; in a process of its own, which no terminal ends
//! ```
//!
//! All that is used of the daemon is from the kernel, or from its process with the privileges: the one that handles packets is not trusted.
#![allow(unsafe_code)]

mod found;
mod kept;
mod swap;

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::background::{BackgroundError, end, wait_for};
use crate::client::ClientError;
use crate::process::{fork, memory_file};
use crate::runtime::{self, RuntimeError};

pub use found::RunningDaemon;
use kept::{KeptConfig, original};

/// The time that a program may take to check a configuration: it looks up no names.
const CHECKING: Duration = Duration::from_secs(30);
/// Most bytes that are shown of its output.
const SAID_MAX: u64 = 16 << 10;

/// A reason not to restart a daemon; it runs on, untouched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestartError {
    /// It does not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// There is no folder for a lock.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// It belongs to another user, or hides from its own.
    #[error(
        "cannot see the program of process {process}, which has the tunnel ({source}); run this as root, or use `strait down` and then \
         `strait up`"
    )]
    Forbidden {
        /// The process.
        process: u32,
        /// The system's error.
        source: io::Error,
    },
    /// It cannot be started as it was.
    #[error("{0}")]
    Unfit(String),
    /// The other program does not take the configuration.
    #[error("{}, which runs on: {said}", refusal(program))]
    Refused {
        /// The program.
        program: PathBuf,
        /// Its output.
        said: String,
    },
    /// Something is lacking.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The step that failed, as a verb.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// Another command does the same.
    #[error("another `strait restart` of {0} is under way")]
    UnderWay(String),
    /// The process that does it ended without a word.
    #[error("the process that restarts the tunnel ended without a word; see {}, and `strait show`", log.display())]
    Lost {
        /// Its log.
        log: PathBuf,
    },
}

fn refusal(program: &Path) -> String {
    format!("{} does not take the configuration, so nothing was done to the tunnel", program.display())
}

fn doing(what: impl Into<String>) -> impl FnOnce(io::Error) -> RestartError {
    let doing = what.into();
    move |source| RestartError::Io { doing, source }
}

/// The end of a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// True if the other program has the tunnel now.
    pub is_new: bool,
    /// The same for people, with the reason.
    pub words: String,
}

/// A plan to put another program in the place of a daemon.
#[derive(Debug)]
pub struct Restart {
    daemon: RunningDaemon,
    /// The other program.
    program: PathBuf,
    /// Its configuration.
    file: PathBuf,
    /// The time in which a peer that was up has to be so again; it is not waited for without.
    heard_within: Option<Duration>,
    log: PathBuf,
}

impl Restart {
    /// `program`, or `own` without, with the configuration in `file`, or that of the daemon. If the daemon does not log to a file, what
    /// happens is logged to `log`.
    ///
    /// # Errors
    /// [`RestartError`].
    pub fn plan(
        daemon: RunningDaemon,
        program: Option<PathBuf>,
        own: PathBuf,
        file: Option<PathBuf>,
        log: PathBuf,
    ) -> Result<Restart, RestartError> {
        let absolute = |path: &Path| std::path::absolute(path).map_err(doing("find the configuration"));
        let file = file.map_or_else(|| Ok(original(&daemon.file)), |file| absolute(&file))?;
        let log = daemon.log.as_ref().map_or(log, |(path, _)| path.clone());
        Ok(Restart { program: absolute(&program.unwrap_or(own))?, daemon, file, heard_within: None, log })
    }

    /// The same, which goes back also if none of the peers that are up now is so again within this time.
    #[must_use]
    pub fn unless_heard(self, within: Option<Duration>) -> Restart {
        Restart { heard_within: within, ..self }
    }

    /// The file that says what happens.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Has the other program check the configuration, in the daemon's surroundings, and returns what it said.
    ///
    /// # Errors
    /// [`RestartError`].
    pub fn check(&self) -> Result<String, RestartError> {
        let failed = |source| doing(format!("run {}", self.program.display()))(source);
        let mut output = memory_file(c"check").map_err(failed)?;
        let to = || output.try_clone().map(Stdio::from).map_err(failed);
        let mut command = self.daemon.command(&self.program);
        command.arg("check").arg(&self.file).stdin(Stdio::null()).stdout(to()?).stderr(to()?);
        // A group of its own, to be ended as a whole.
        let mut child =
            std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().map_err(failed)?;
        let ended = wait_for(CHECKING, || !matches!(child.try_wait(), Ok(None)));
        if !ended {
            end(&mut child);
        }
        let status = child.wait().map_err(failed)?;
        let mut said = Vec::new();
        output.rewind().and_then(|()| output.take(SAID_MAX).read_to_end(&mut said)).map_err(failed)?;
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        if status.success() {
            return Ok(said);
        }
        let said = match (ended, said.is_empty()) {
            (false, _) => format!("it has not checked it after {} s", CHECKING.as_secs()),
            (true, true) => format!("it says nothing and ends with {status}"),
            (true, false) => said.strip_prefix("strait: ").unwrap_or(&said).to_owned(),
        };
        Err(RestartError::Refused { program: self.program.clone(), said })
    }

    /// Ends the daemon and starts the other program, or the daemon's again, in a process that goes on when this one is ended; waits for
    /// it. To be called before any thread is started.
    ///
    /// # Errors
    /// [`RestartError`]: nothing has happened, but for [`RestartError::Lost`].
    pub fn swap(self) -> Result<Outcome, RestartError> {
        let _lock = self.lock()?;
        let mut log = self.open_log()?;
        let (mut told, tells) = UnixStream::pair().map_err(doing("make a channel"))?;
        let path = self.log.clone();
        let held = [std::os::fd::AsFd::as_fd(&told)];
        // As long as the daemon runs, so that what cannot be gone back to is not left.
        let kept = KeptConfig::of(&self.daemon, &self.file)?;
        fork(c"strait-restart", &held, || swap::run(&self, &kept, &mut log, &tells))
            .inspect_err(|_| kept.forget())
            .map_err(doing("start a process"))?;
        drop((tells, log));
        let mut text = String::new();
        let heard = told.read_to_string(&mut text);
        heard.ok().and_then(|_| serde_json::from_str(&text).ok()).ok_or(RestartError::Lost { log: path })
    }

    /// Locks the tunnel against others of these; the process that does it keeps the lock.
    fn lock(&self) -> Result<File, RestartError> {
        let path = runtime::folder()?.join(format!("{}.restart", self.daemon.interface));
        let mut options = File::options();
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let file = options.open(&path).map_err(doing(format!("open {}", path.display())))?;
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            return Err(RestartError::Unfit(format!("{} is not a file; remove it", path.display())));
        }
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => {
                Err(RestartError::UnderWay(self.daemon.interface.clone()))
            }
            Err(std::fs::TryLockError::Error(error)) => Err(doing(format!("lock {}", path.display()))(error)),
        }
    }

    fn open_log(&self) -> Result<File, RestartError> {
        let opened = match &self.daemon.log {
            Some((_, file)) => file.try_clone().map_err(BackgroundError::Start),
            None => crate::background::open(&self.log),
        };
        opened.map_err(|error| RestartError::Unfit(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
