//! The local socket of a daemon: one request line, one answer line, both JSON and bounded.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strait_kerberos::Binding;
use strait_stream::StreamPriority;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::report::DaemonReport;
use crate::runtime::{self, RuntimeError};

/// Most bytes of a request.
const REQUEST_MAX: u64 = 4096;
/// Requests under way at once; more wait.
const AT_ONCE: usize = 8;
/// How long a client may take to ask, and to take its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a daemon can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum Request {
    /// What it does.
    Show,
    /// To remove what it made and end.
    Down {
        /// Leaves what keeps packets from leaving in the clear for the next start.
        #[serde(default)]
        stays_closed: bool,
    },
    /// To read its configuration again.
    Reload,
    /// To open a stream to a service of a peer. Once that is answered, the connection is the stream: its first bytes name the
    /// service, and each end of it may be closed alone.
    Open {
        /// The peer's name.
        peer: String,
        /// Whether it goes before other streams.
        #[serde(default)]
        priority: StreamPriority,
        /// Whether the answer is to have what Kerberos needs.
        #[serde(default)]
        kerberos: bool,
    },
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// What it does.
    Report {
        /// All of it.
        report: Box<DaemonReport>,
    },
    /// It is ending; the connection closes when everything is removed.
    Ending,
    /// It read its configuration.
    Reloaded {
        /// What that changed.
        changes: Changes,
    },
    /// The stream is open.
    Connected {
        /// The rate of the link to the peer, in bit/s, if it is told or was found.
        #[serde(default)]
        rate_bits: Option<u64>,
        /// What Kerberos needs, if that was asked for.
        #[serde(default)]
        kerberos: Option<KerberosWay>,
    },
    /// It did not do it.
    Refused {
        /// Why, and what to do.
        message: String,
    },
}

/// What a client needs that authenticates itself by Kerberos on a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KerberosWay {
    /// The connection that carries the stream.
    pub binding: Binding,
    /// The service's name at the peer, if the configuration has one.
    pub service: Option<String>,
}

/// What reading the configuration again changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Names of new peers.
    pub added: Vec<String>,
    /// Names of peers that are gone.
    pub removed: Vec<String>,
    /// Names of peers that were told something else.
    pub changed: Vec<String>,
    /// Whether the compression rules, or the names of their trust domains, are others.
    #[serde(default)]
    pub rules: bool,
    /// Whether the link is another one.
    #[serde(default)]
    pub link: bool,
    /// Whether the folders that peers may read or write are others.
    #[serde(default)]
    pub folders: bool,
    /// Whether other peers may log in, or as others.
    #[serde(default)]
    pub logins: bool,
    /// True if a broker's rights, quotas or limits are others.
    #[serde(default)]
    pub broker: bool,
    /// Settings of `[node]` that have another value.
    #[serde(default)]
    pub node: Vec<String>,
    /// Settings that differ from the file until the daemon is started again.
    pub need_restart: Vec<String>,
}

/// As a person reads it: `added b, c; removed a; link changed`.
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |what: &str, names: &[String]| {
            (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
        };
        let parts = [
            names("added", &self.added),
            names("removed", &self.removed),
            names("changed", &self.changed),
            self.rules.then(|| "compression rules changed".to_owned()),
            self.link.then(|| "link changed".to_owned()),
            self.folders.then(|| "folders changed".to_owned()),
            self.logins.then(|| "logins changed".to_owned()),
            self.broker.then(|| "broker changed".to_owned()),
            names("changed in [node]:", &self.node),
            names("restart needed for", &self.need_restart),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { f.write_str("no changes") } else { f.write_str(&parts.join("; ")) }
    }
}

/// A request with the channel for its answer.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    pub(crate) request: Request,
    pub(crate) answer: oneshot::Sender<Answer>,
    /// Says when the answer has been written.
    pub(crate) written: oneshot::Receiver<()>,
    /// What is to be the stream, of a request for one; it is answered there.
    pub(crate) stream: Option<UnixStream>,
}

/// Why there is no local socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// No folder for it.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A daemon for this interface runs.
    #[error(
        "a tunnel on {interface} is already running; stop it with `strait down {interface}` or change its configuration with `strait reload {interface}`"
    )]
    Running {
        /// The interface.
        interface: String,
    },
    /// Anything else.
    #[error("cannot listen on {}: {source}", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The socket's file, which is removed with this.
#[derive(Debug)]
pub(crate) struct LocalSocket {
    listener: std::os::unix::net::UnixListener,
    path: PathBuf,
    audience: Audience,
}

/// Whom a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    /// The user of the daemon, and root.
    Owner,
    /// The members of the group with this number, who may only look.
    Group(u32),
}

impl LocalSocket {
    /// Makes the socket of `interface`, in place of one that a killed daemon left.
    pub(crate) fn claim(interface: &str) -> Result<LocalSocket, LocalError> {
        let folder = runtime::folder()?;
        runtime::make(&folder)?;
        let path = runtime::socket(&folder, interface);
        LocalSocket::claim_at(&path, interface, Audience::Owner)
    }

    /// Makes the socket of `interface` for the members of `group`, who may look and no more.
    pub(crate) fn share(interface: &str, group: u32) -> Result<LocalSocket, LocalError> {
        let folder = runtime::shared_folder();
        runtime::make_shared(&folder)?;
        let path = runtime::socket(&folder, interface);
        LocalSocket::claim_at(&path, interface, Audience::Group(group))
    }

    fn claim_at(path: &Path, interface: &str, audience: Audience) -> Result<LocalSocket, LocalError> {
        use std::os::unix::net::{UnixListener, UnixStream};
        let failed = |source| LocalError::Io { path: path.to_owned(), source };
        // It gets its name when it listens and has its mode: a socket without a listener is taken for one that was left.
        let aside = path.with_file_name(format!(".{}", std::process::id()));
        let _ = std::fs::remove_file(&aside);
        let listener = UnixListener::bind(&aside).map_err(failed)?;
        let mut socket = LocalSocket { listener, path: aside.clone(), audience };
        let mode = match audience {
            Audience::Owner => 0o600,
            Audience::Group(group) => {
                std::os::unix::fs::chown(&aside, None, Some(group)).map_err(failed)?;
                0o660
            }
        };
        std::fs::set_permissions(&aside, std::os::unix::fs::PermissionsExt::from_mode(mode))
            .map_err(failed)?;
        let named = runtime::lock(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        match std::fs::hard_link(&aside, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if UnixStream::connect(path).is_ok() {
                    return Err(LocalError::Running { interface: interface.to_owned() });
                }
                std::fs::remove_file(path).map_err(failed)?;
                std::fs::hard_link(&aside, path).map_err(failed)?;
            }
            linked => linked.map_err(failed)?,
        }
        drop(named);
        path.clone_into(&mut socket.path);
        std::fs::remove_file(aside).map_err(failed)?;
        socket.listener.set_nonblocking(true).map_err(failed)?;
        Ok(socket)
    }

    /// Takes requests and passes them to `asks`, until the other end of that is gone.
    pub(crate) fn serve(&self, asks: mpsc::Sender<PendingRequest>) -> Result<(), LocalError> {
        let failed = |source| LocalError::Io { path: self.path.clone(), source };
        let listener = self.listener.try_clone().and_then(UnixListener::from_std).map_err(failed)?;
        tokio::spawn(accept(listener, asks, self.audience));
        Ok(())
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %error, "cannot remove the local socket");
        }
    }
}

async fn accept(listener: UnixListener, asks: mpsc::Sender<PendingRequest>, audience: Audience) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let asks = asks.clone();
                tokio::spawn(async move {
                    if let Err(error) = converse(stream, &asks, audience).await {
                        tracing::debug!(%error, "local request");
                    }
                    drop(place);
                });
            }
            // Out of descriptors: others will be closed.
            Err(error) => {
                tracing::warn!(%error, "local socket");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn converse(
    stream: UnixStream,
    asks: &mpsc::Sender<PendingRequest>,
    audience: Audience,
) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let (mut read, mut line) = (BufReader::new(read.take(REQUEST_MAX)), String::new());
    timeout(PATIENCE, read.read_line(&mut line)).await??;
    let (written, seen) = oneshot::channel();
    let answer = match serde_json::from_str(&line) {
        // What comes before the answer is no part of the stream.
        Ok(request @ Request::Open { .. }) if read.buffer().is_empty() => {
            let stream = read.into_inner().into_inner().reunite(write).map_err(io::Error::other)?;
            let (answer, _) = oneshot::channel();
            let pending = PendingRequest { request, answer, written: seen, stream: Some(stream) };
            return asks.send(pending).await.map_err(|_| io::ErrorKind::BrokenPipe.into());
        }
        Ok(request) if audience != Audience::Owner && request != Request::Show => {
            Answer::Refused { message: "members of the group may only look at this tunnel".to_owned() }
        }
        Ok(request) => ask(asks, request, seen).await,
        Err(error) => Answer::Refused { message: format!("not a request: {error}") },
    };
    let mut text = serde_json::to_string(&answer)?;
    text.push('\n');
    timeout(PATIENCE, write.write_all(text.as_bytes())).await??;
    if answer == Answer::Ending {
        let _ = written.send(());
        // The connection closes with the runtime, after everything is removed; the client waits for that.
        std::future::pending::<()>().await;
    }
    Ok(())
}

/// The control loop's answer to `request`.
pub(crate) async fn ask(
    asks: &mpsc::Sender<PendingRequest>,
    request: Request,
    written: oneshot::Receiver<()>,
) -> Answer {
    let (answer, answered) = oneshot::channel();
    let ending = || Answer::Refused { message: "the tunnel is ending".to_owned() };
    if asks.send(PendingRequest { request, answer, written, stream: None }).await.is_err() {
        return ending();
    }
    answered.await.unwrap_or_else(|_| ending())
}

#[cfg(test)]
mod tests;
