//! Talking to a running daemon over its local socket.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::local::{Answer, Changes, Request};
use crate::report::DaemonReport;
use crate::runtime::{self, RuntimeError};

/// Most bytes of an answer: a report of ten thousand peers.
const ANSWER_MAX: u64 = 64 << 20;
/// How long a daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a daemon gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No folder to look in.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// No daemon listens.
    #[error("no tunnel is running on {interface} (no daemon listens at {})", path.display())]
    NotRunning {
        /// The interface.
        interface: String,
        /// Where its daemon would listen.
        path: PathBuf,
    },
    /// The daemon of another user.
    #[error(
        "the tunnel on {interface} belongs to another user; run this as the user who started it, or, to look at it, as a \
         member of its group"
    )]
    Forbidden {
        /// The interface.
        interface: String,
    },
    /// The daemon does not answer.
    #[error("the tunnel on {interface} does not answer: {source}")]
    Io {
        /// The interface.
        interface: String,
        /// What the system said.
        source: io::Error,
    },
    /// The daemon is of another version.
    #[error("the tunnel on {interface} sent an answer that this version does not understand: {source}")]
    Answer {
        /// The interface.
        interface: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The daemon did not do it.
    #[error("{message}")]
    Refused {
        /// What it said.
        message: String,
    },
    /// The daemon answered something else.
    #[error("the tunnel on {interface} sent an answer of the wrong kind")]
    Unexpected {
        /// The interface.
        interface: String,
    },
}

/// The interfaces whose daemons listen, in order of name; sockets without a listener are left out.
///
/// # Errors
/// [`ClientError::Runtime`], or [`ClientError::Io`] when the folder cannot be read.
pub fn running() -> Result<Vec<String>, ClientError> {
    let shared = listening(&runtime::shared_folder()).unwrap_or_default();
    let own = runtime::folder().map_err(ClientError::from).and_then(|folder| {
        let failed = |source| ClientError::Io { interface: folder.display().to_string(), source };
        listening(&folder).map_err(failed)
    });
    match own {
        // Whose folder it is may be of no interest to a member of the group.
        Err(_) if !shared.is_empty() => Ok(shared),
        own => Ok(own?.into_iter().chain(shared).collect::<BTreeSet<String>>().into_iter().collect()),
    }
}

/// The interfaces whose sockets in `folder` have a listener that this user may talk to.
fn listening(folder: &Path) -> io::Result<Vec<String>> {
    let mut interfaces = runtime::interfaces(folder)?;
    interfaces.retain(|interface| UnixStream::connect(runtime::socket(folder, interface)).is_ok());
    Ok(interfaces)
}

/// What the daemon of `interface` does.
///
/// # Errors
/// [`ClientError`].
pub fn show(interface: &str) -> Result<DaemonReport, ClientError> {
    let own = ask(interface, Request::Show);
    let answer = own.or_else(|error| {
        let path = runtime::socket(&runtime::shared_folder(), interface);
        // What was wrong with the first says more, unless it is there for this user.
        ask_at(&path, interface, Request::Show).map_err(|other| match other {
            ClientError::NotRunning { .. } => error,
            other => other,
        })
    });
    match answer?.0 {
        Answer::Report { report } => Ok(*report),
        other => Err(unexpected(interface, other)),
    }
}

/// Has the daemon of `interface` read its configuration again.
///
/// # Errors
/// [`ClientError`]; [`ClientError::Refused`] says what is wrong with the configuration.
pub fn reload(interface: &str) -> Result<Changes, ClientError> {
    match ask(interface, Request::Reload)?.0 {
        Answer::Reloaded { changes } => Ok(changes),
        other => Err(unexpected(interface, other)),
    }
}

/// Ends the daemon of `interface`; returns when it has removed everything.
///
/// # Errors
/// [`ClientError`].
pub fn down(interface: &str) -> Result<(), ClientError> {
    let (answer, mut stream) = ask(interface, Request::Down)?;
    if answer != Answer::Ending {
        return Err(unexpected(interface, answer));
    }
    match stream.read(&mut [0]) {
        Ok(_) => Ok(()),
        // It ended without closing in order.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(()),
        Err(source) => Err(ClientError::Io { interface: interface.to_owned(), source }),
    }
}

fn ask(interface: &str, request: Request) -> Result<(Answer, UnixStream), ClientError> {
    let path = runtime::socket(&runtime::folder()?, interface);
    ask_at(&path, interface, request)
}

pub(crate) fn ask_at(
    path: &Path,
    interface: &str,
    request: Request,
) -> Result<(Answer, UnixStream), ClientError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ClientError::NotRunning { interface: interface.to_owned(), path: path.to_owned() }
        }
        io::ErrorKind::PermissionDenied => ClientError::Forbidden { interface: interface.to_owned() },
        _ => ClientError::Io { interface: interface.to_owned(), source },
    };
    let broken = |source| ClientError::Answer { interface: interface.to_owned(), source };
    let mut stream = UnixStream::connect(path).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    let question = serde_json::to_string(&request).map_err(broken)? + "\n";
    stream.write_all(question.as_bytes()).map_err(failed)?;
    let mut line = String::new();
    BufReader::new((&stream).take(ANSWER_MAX)).read_line(&mut line).map_err(failed)?;
    let answer = serde_json::from_str(&line).map_err(broken)?;
    Ok((answer, stream))
}

fn unexpected(interface: &str, answer: Answer) -> ClientError {
    match answer {
        Answer::Refused { message } => ClientError::Refused { message },
        _ => ClientError::Unexpected { interface: interface.to_owned() },
    }
}
