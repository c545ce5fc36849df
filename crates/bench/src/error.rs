//! Why a benchmark could not run.

use std::io;
use std::path::PathBuf;

/// Why a benchmark could not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Hosts, links, daemons or transfers failed, or a signal asked for the end.
    #[error(transparent)]
    Testbed(#[from] strait_testbed::Error),
    /// A codec or a cipher could not be measured.
    #[error(transparent)]
    Lab(#[from] strait_lab::Error),
    /// A path in virtual time could not be run.
    #[error("cannot run a path in virtual time: {0}")]
    Simulation(Box<dyn std::error::Error + Send + Sync>),
    /// A system call or a file failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was attempted.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// There is no program to measure.
    #[error("there is no {}\n  fix: cargo build --release, or name the program with --strait PATH", .0.display())]
    NoProgram(PathBuf),
    /// Two builds could not be compared.
    #[error("the builds cannot be compared: {0}")]
    Comparison(String),
    /// A capture could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An implementation of WireGuard did not take its configuration.
    #[error("WireGuard on {host} refused its configuration: {answer}")]
    Refused {
        /// Name of the host.
        host: String,
        /// What it answered on its control socket.
        answer: String,
    },
    /// A stream or an echo did not get through.
    #[error("{what} by way of {way}: nothing arrived")]
    Silent {
        /// What was sent.
        what: &'static str,
        /// The way it should have taken.
        way: String,
    },
    /// Another tunnel did not come up.
    #[error("{tunnel} did not come up: {why}")]
    NoTunnel {
        /// Its name.
        tunnel: &'static str,
        /// What is missing, and the end of what it said.
        why: String,
    },
    /// The packet path did not carry what it was given, so its time means nothing.
    #[error("{what}: {arrived} of {sent} bytes came out")]
    Lost {
        /// What was measured.
        what: String,
        /// Bytes that went in.
        sent: u64,
        /// Bytes that came out.
        arrived: u64,
    },
}

impl Error {
    /// Wraps an I/O error with what was being done.
    pub(crate) fn doing(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = what.into();
        move |source| Error::System { doing, source }
    }
}
