//! Starting the daemon in the background: the same program again, in a session of its own, with a pipe on which
//! it says that it is ready or why not.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::logging::Form;
use crate::runtime;

/// Set for the process in the background: its standard input is the pipe.
const VARIABLE: &str = "STRAIT_DETACHED";
/// What it writes there when it is ready; anything else is an error's text.
const READY: &str = "ready\n";
/// Where logs of system services are (file-hierarchy(7)).
const LOG_FOLDER: &str = "/var/log";

/// Why there is no daemon in the background.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DetachError {
    /// No place for the log.
    #[error("cannot write the log {}: {source}; name another with `--log-file`, or stay with `--foreground`", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The program cannot be started again.
    #[error("cannot start the daemon: {0}; stay with `--foreground`")]
    Start(#[source] io::Error),
    /// It said what is wrong.
    #[error("{said}")]
    Refused {
        /// What it said.
        said: String,
    },
    /// It ended without a word.
    #[error("the daemon ended before it was ready; its log is {}", log.display())]
    Ended {
        /// Its log.
        log: PathBuf,
    },
}

/// Starts `up CONFIG --foreground` of this program in the background; returns its process number and its log once
/// it is ready.
///
/// # Errors
/// [`DetachError`]; [`DetachError::Refused`] with the daemon's own words.
pub fn start(config: &Path, interface: &str, log: Option<&Path>, form: Form) -> Result<(u32, PathBuf), DetachError> {
    let log = log.map_or_else(|| default_log(interface), Path::to_owned);
    let failed = |source| DetachError::Log { path: log.clone(), source };
    // Addresses and names of peers are nobody else's business.
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&log).map_err(failed)?;
    let errors = file.try_clone().map_err(failed)?;
    let (mut hear, tell) = io::pipe().map_err(DetachError::Start)?;
    let program = std::env::current_exe().map_err(DetachError::Start)?;
    let mut command = Command::new(program);
    command.arg("up").arg(config).arg("--foreground");
    if form == Form::Json {
        command.args(["--log", "json"]);
    }
    command.env(VARIABLE, "1").stdin(tell).stdout(file).stderr(errors);
    let child = command.spawn().map_err(DetachError::Start)?;
    // Holds the other end of the pipe, whose closing is awaited.
    drop(command);
    let mut said = String::new();
    let heard = hear.read_to_string(&mut said);
    match said.as_str() {
        READY => Ok((child.id(), log)),
        "" => Err(heard.map_or_else(DetachError::Start, |_| DetachError::Ended { log })),
        _ => Err(DetachError::Refused { said: said.trim_end().to_owned() }),
    }
}

fn default_log(interface: &str) -> PathBuf {
    let folder = match crate::privileges::is_root() {
        true => Some(PathBuf::from(LOG_FOLDER)).filter(|folder| folder.is_dir()),
        false => None,
    };
    let folder = folder.or_else(|| runtime::folder().ok().filter(|folder| runtime::make(folder).is_ok()));
    folder.unwrap_or_else(std::env::temp_dir).join(format!("strait-{interface}.log"))
}

/// The end of the pipe in the background process.
#[derive(Debug)]
pub(super) struct Parent(Option<File>);

impl Parent {
    /// Nobody, unless this process was started by [`start`]; then it leaves the terminal's session.
    pub(super) fn of_this_process() -> Parent {
        if std::env::var_os(VARIABLE).is_none() {
            return Parent(None);
        }
        // SAFETY: takes nothing. It fails only for a group leader, which a process just spawned is not.
        unsafe { libc::setsid() };
        Parent(take_standard_input().ok())
    }

    /// Says that the daemon is ready.
    pub(super) fn ready(self) {
        self.say(READY);
    }

    /// Says why it will not be.
    pub(super) fn failed(self, error: &impl std::fmt::Display) {
        self.say(&format!("{error}\n"));
    }

    fn say(self, text: &str) {
        let written = self.0.map(|mut pipe| pipe.write_all(text.as_bytes()));
        if let Some(Err(error)) = written {
            tracing::debug!(%error, "whoever started the daemon has gone");
        }
    }
}

/// Standard input as a file of its own, with nothing in its place.
fn take_standard_input() -> io::Result<File> {
    let null = File::open("/dev/null")?;
    // SAFETY: duplicates a descriptor that the process has from its start; the result is checked.
    let copy = unsafe { libc::fcntl(libc::STDIN_FILENO, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and nobody else owns it.
    let copy = unsafe { OwnedFd::from_raw_fd(copy) };
    // SAFETY: `null` is open; standard input stays a valid descriptor, now for `/dev/null`.
    unsafe { libc::dup2(null.as_raw_fd(), libc::STDIN_FILENO) };
    Ok(File::from(copy))
}
