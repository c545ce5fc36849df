//! What can go wrong while hosts, links and daemons are set up and driven.

use std::io;
use std::time::Duration;

/// Why something on the testbed did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system does not allow hosts to be made here; says what to change.
    #[error("{}", list(.0))]
    Forbidden(Vec<Obstacle>),
    /// A system call failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was attempted, such as "create the veth pair a-b".
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// A daemon ended before it was ready.
    #[error("the daemon on {host} ended with {status} before it was ready; it said:\n{said}")]
    DaemonEnded {
        /// Name of the host.
        host: String,
        /// Exit status, as the system prints it.
        status: String,
        /// The end of its log.
        said: String,
    },
    /// A guest's kernel ended by itself.
    #[error("the guest has ended; its console said:\n{said}")]
    GuestEnded {
        /// The end of what its console said.
        said: String,
    },
    /// A daemon, a session or a transfer made no progress in time.
    #[error("{what} after {} s{}", waited.as_secs(), words(said))]
    TooSlow {
        /// What was waited for, such as "host a has no session with its peer".
        what: String,
        /// How long it was waited for.
        waited: Duration,
        /// The end of the log that may tell why; empty when there is none.
        said: String,
    },
    /// A command on a host failed.
    #[error("'{command}' on {host} ended with {status}: {said}")]
    Command {
        /// The command line.
        command: String,
        /// Name of the host.
        host: String,
        /// Exit status, as the system prints it.
        status: String,
        /// What it wrote about it.
        said: String,
    },
    /// The receiver got other bytes than the sender sent.
    #[error("{file} arrived damaged: the first wrong byte is number {at}")]
    Damaged {
        /// Name of the file.
        file: String,
        /// Offset from the start, in bytes.
        at: usize,
    },
    /// A signal asked the program to end.
    #[error("interrupted by signal {0}")]
    Interrupted(i32),
}

impl Error {
    /// Wraps an I/O error with what was being done.
    pub(crate) fn doing(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = what.into();
        move |source| Error::System { doing, source }
    }
}

/// Something that the system forbids or lacks, and how to change that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}\n  fix: {remedy}")]
pub struct Obstacle {
    /// What is missing or forbidden.
    pub cause: String,
    /// The command or setting that helps.
    pub remedy: String,
}

fn list(obstacles: &[Obstacle]) -> String {
    obstacles.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn words(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; the log ends:\n{said}") }
}
