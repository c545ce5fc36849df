//! Talking to a running daemon over its local socket.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use strait_scheduler::Rate;
use strait_stream::{OPENING_MAX, StreamPriority};

use crate::local::{Answer, Changes, KerberosWay, Request};
use crate::report::DaemonReport;
use crate::runtime::{self, RuntimeError};

/// Most bytes of an answer: a report of ten thousand peers.
const ANSWER_MAX: u64 = 64 << 20;
/// Most bytes of the answer to a request for a stream.
const LINE_MAX: usize = 4096;
/// The time that the answer to a request for a stream may take: as long as the stream waits for a connection, and a little.
const CONNECTING: Duration = OPENING_MAX.saturating_add(Duration::from_secs(5));
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
    /// The daemon ended before it answered.
    #[error("the tunnel on {interface} ended while it was asked")]
    Ended {
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

/// Whether the daemon of `interface` listens to this user as its own, not as a member of its group.
#[must_use]
pub fn is_own(interface: &str) -> bool {
    runtime::folder().is_ok_and(|folder| UnixStream::connect(runtime::socket(&folder, interface)).is_ok())
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
    report(interface, answer?.0)
}

/// The same of the daemon of `interface` whose socket is in `folder`.
///
/// # Errors
/// [`ClientError`].
pub fn show_in(folder: &Path, interface: &str) -> Result<DaemonReport, ClientError> {
    report(interface, ask_at(&runtime::socket(folder, interface), interface, Request::Show)?.0)
}

pub(crate) fn report(interface: &str, answer: Answer) -> Result<DaemonReport, ClientError> {
    match answer {
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

/// Ends the daemon of `interface`; returns when it has removed everything, but for what keeps packets from leaving in the clear where that
/// stays for the next start.
///
/// # Errors
/// [`ClientError`].
pub fn down(interface: &str, stays_closed: bool) -> Result<(), ClientError> {
    let (answer, mut stream) = ask(interface, Request::Down { stays_closed })?;
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

/// What a client wants of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamOptions {
    /// Which streams it goes before.
    pub priority: StreamPriority,
    /// Whether to tell what Kerberos needs on it.
    pub kerberos: bool,
}

impl From<StreamPriority> for StreamOptions {
    fn from(priority: StreamPriority) -> StreamOptions {
        StreamOptions { priority, kerberos: false }
    }
}

impl StreamOptions {
    pub(crate) fn request(self, peer: &str) -> Request {
        let StreamOptions { priority, kerberos } = self;
        Request::Open { peer: peer.to_owned(), priority, kerberos }
    }
}

/// A stream to a peer.
#[derive(Debug)]
pub struct OpenedStream {
    /// Its bytes.
    pub stream: UnixStream,
    /// The rate of the link to the peer when it was opened, if it is told or was found.
    pub rate: Option<Rate>,
    /// What Kerberos needs on it, if that was asked for.
    pub kerberos: Option<KerberosWay>,
}

/// Returns true if the node has closed a stream: as a reset where it had not read all.
#[must_use]
pub fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// Opens a stream to a service of `peer` over the daemon of `interface`: the first bytes to write name the service.
///
/// # Errors
/// [`ClientError`]; [`ClientError::Refused`] says why there is none.
pub fn open_stream(
    interface: &str,
    peer: &str,
    options: impl Into<StreamOptions>,
) -> Result<OpenedStream, ClientError> {
    let request = options.into().request(peer);
    let own = runtime::folder().map_err(ClientError::from);
    let own = own.and_then(|folder| open_at(&runtime::socket(&folder, interface), interface, &request));
    own.or_else(|error| match error {
        ClientError::NotRunning { .. } | ClientError::Forbidden { .. } | ClientError::Runtime(_) => {
            let shared = runtime::socket(&runtime::shared_folder(), interface);
            open_at(&shared, interface, &request).map_err(|other| match other {
                ClientError::NotRunning { .. } => error,
                other => other,
            })
        }
        error => Err(error),
    })
}

/// The same over the daemon whose socket is at `path`.
///
/// # Errors
/// As [`open_stream`].
pub fn open_stream_at(
    path: &Path,
    peer: &str,
    options: impl Into<StreamOptions>,
) -> Result<OpenedStream, ClientError> {
    let interface = path.file_stem().unwrap_or_default().to_string_lossy();
    open_at(path, &interface, &options.into().request(peer))
}

/// The same over the daemon that listens at `path`.
pub(crate) fn open_at(path: &Path, interface: &str, request: &Request) -> Result<OpenedStream, ClientError> {
    let failed = |source| broken_off(interface, source);
    let mut stream = connect(path, interface)?;
    put(&mut stream, interface, request)?;
    stream.set_read_timeout(Some(CONNECTING)).map_err(failed)?;
    // Byte by byte: what follows the line is the stream.
    let (mut line, mut byte) = (Vec::new(), [0]);
    while byte != *b"\n" && line.len() < LINE_MAX && stream.read(&mut byte).map_err(failed)? > 0 {
        line.extend_from_slice(&byte);
    }
    if line.is_empty() {
        return Err(failed(io::ErrorKind::UnexpectedEof.into()));
    }
    let broken = |source| ClientError::Answer { interface: interface.to_owned(), source };
    match serde_json::from_slice(&line).map_err(broken)? {
        Answer::Connected { rate_bits, kerberos } => {
            stream.set_read_timeout(None).and_then(|()| stream.set_write_timeout(None)).map_err(failed)?;
            Ok(OpenedStream { stream, rate: rate_bits.and_then(Rate::from_bits), kerberos })
        }
        other => Err(unexpected(interface, other)),
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
    let mut stream = connect(path, interface)?;
    Ok((ask_on(&mut stream, interface, &request)?, stream))
}

/// The answer of the daemon at the other end of `stream`.
pub(crate) fn ask_on(
    stream: &mut UnixStream,
    interface: &str,
    request: &Request,
) -> Result<Answer, ClientError> {
    let failed = |source| broken_off(interface, source);
    let broken = |source| ClientError::Answer { interface: interface.to_owned(), source };
    put(stream, interface, request)?;
    let mut line = String::new();
    if BufReader::new((&*stream).take(ANSWER_MAX)).read_line(&mut line).map_err(failed)? == 0 {
        return Err(failed(io::ErrorKind::UnexpectedEof.into()));
    }
    serde_json::from_str(&line).map_err(broken)
}

/// A connection to the daemon that listens at `path`.
pub(crate) fn connect(path: &Path, interface: &str) -> Result<UnixStream, ClientError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ClientError::NotRunning { interface: interface.to_owned(), path: path.to_owned() }
        }
        io::ErrorKind::PermissionDenied => ClientError::Forbidden { interface: interface.to_owned() },
        _ => ClientError::Io { interface: interface.to_owned(), source },
    };
    let stream = UnixStream::connect(path).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    Ok(stream)
}

/// Asks.
fn put(stream: &mut UnixStream, interface: &str, request: &Request) -> Result<(), ClientError> {
    let broken = |source| ClientError::Answer { interface: interface.to_owned(), source };
    let question = serde_json::to_string(request).map_err(broken)? + "\n";
    stream.write_all(question.as_bytes()).map_err(|source| broken_off(interface, source))
}

/// What the system says of a daemon that ended, or that does not answer.
fn broken_off(interface: &str, source: io::Error) -> ClientError {
    let interface = interface.to_owned();
    match source.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => {
            ClientError::Ended { interface }
        }
        // The system calls it "Resource temporarily unavailable".
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            let source = io::Error::new(io::ErrorKind::TimedOut, "nothing came in time");
            ClientError::Io { interface, source }
        }
        _ => ClientError::Io { interface, source },
    }
}

fn unexpected(interface: &str, answer: Answer) -> ClientError {
    match answer {
        Answer::Refused { message } => ClientError::Refused { message },
        _ => ClientError::Unexpected { interface: interface.to_owned() },
    }
}
