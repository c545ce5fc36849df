//! A daemon for the time of one command: an ordinary user's own node, where none runs.
#![allow(unsafe_code)]

use std::fs::DirBuilder;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use crate::client::{self, ClientError, OpenedStream, StreamOptions};
use crate::interrupt;
use crate::local::Request;
use crate::logging::FILTER_VARIABLE;
use crate::report::DaemonReport;
use crate::runtime::{self, FOLDER_VARIABLE, FOR_COMMAND, READY_VARIABLE, RuntimeError};
use crate::units::span;

/// How long a node may take to be up: it measures its ciphers first.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of its log that are kept where it is not to be written over a terminal.
const LOG_KEPT: usize = 8 << 10;
/// The time that the end of its log may take to come once it has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why there is no such daemon.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateError {
    /// No folder for its socket.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// It cannot be started.
    #[error("cannot start a node for this command: {0}")]
    Start(#[from] io::Error),
    /// It ended, and has said why on standard error.
    #[error("the node for this command has ended")]
    Ended,
}

/// A daemon that ends with this, or with the process that started it.
#[derive(Debug)]
pub struct PrivateDaemon {
    child: Child,
    folder: PathBuf,
    interface: String,
}

impl PrivateDaemon {
    /// Runs `command`, which is to run a node without a tunnel device whose interface is called `interface`, and waits until
    /// it is up. Its socket is in a folder of its own. Its log is not written over a terminal, unless the environment asks for one
    /// ([`FILTER_VARIABLE`]); if it does not come up, the end of it is.
    ///
    /// # Errors
    /// [`PrivateError`], in which case nothing runs.
    pub fn start(mut command: Command, interface: &str) -> Result<PrivateDaemon, PrivateError> {
        let folder = folder()?;
        let (mut ready, theirs) = UnixStream::pair()?;
        ready.set_read_timeout(Some(PATIENCE))?;
        command.env(FOLDER_VARIABLE, &folder).env(READY_VARIABLE, FOR_COMMAND).env_remove("NOTIFY_SOCKET");
        command.stdin(OwnedFd::from(theirs));
        // SAFETY: prctl takes integers here, is async-signal-safe and touches no memory of this process.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
                -1 => Err(io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
        if io::stderr().is_terminal() && std::env::var_os(FILTER_VARIABLE).is_none() {
            command.stderr(Stdio::piped());
        }
        let mut child = command.spawn()?;
        let log = child.stderr.take().map(follow).transpose()?;
        // Its end of the pair goes with it.
        drop(command);
        let daemon = PrivateDaemon { child, folder, interface: interface.to_owned() };
        loop {
            match ready.read(&mut [0; 16]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let words = format!("it is not up after {}", span(PATIENCE));
                    return Err(io::Error::new(io::ErrorKind::TimedOut, words).into());
                }
                Err(error) => return Err(error.into()),
                Ok(0) => {
                    let end = log.and_then(|log| log.recv_timeout(LAST_WORDS).ok());
                    let _ = io::stderr().write_all(&end.unwrap_or_default());
                    return Err(PrivateError::Ended);
                }
                Ok(_) => return Ok(daemon),
            }
        }
    }

    /// Whether it has ended by itself.
    #[must_use]
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns its report.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn show(&self) -> Result<DaemonReport, ClientError> {
        client::show_in(&self.folder, &self.interface)
    }

    /// Opens a stream to a service of `peer`: the first bytes to write name the service.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Refused`] says why there is none.
    pub fn open_stream(
        &self,
        peer: &str,
        options: impl Into<StreamOptions>,
    ) -> Result<OpenedStream, ClientError> {
        let request = options.into().request(peer);
        client::open_at(&runtime::socket(&self.folder, &self.interface), &self.interface, &request)
    }
}

impl Drop for PrivateDaemon {
    fn drop(&mut self) {
        let path = runtime::socket(&self.folder, &self.interface);
        // In order, so that the peer hears of it; else as the system ends processes.
        if client::ask_at(&path, &self.interface, Request::Down { stays_closed: false }).is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Reads a log until its end, which is then what the channel gives, as much of it as is kept.
fn follow(mut log: ChildStderr) -> io::Result<Receiver<Vec<u8>>> {
    let (ended, end) = mpsc::channel();
    interrupt::spawn("log", move || {
        let (mut kept, mut buffer) = (Vec::new(), [0; 1024]);
        while let Ok(read @ 1..) = log.read(&mut buffer) {
            kept.extend_from_slice(buffer.get(..read).unwrap_or_default());
            kept.drain(..kept.len().saturating_sub(LOG_KEPT));
        }
        let _ = ended.send(kept);
    })?;
    Ok(end)
}

/// A new folder for one daemon, which only this user may enter.
fn folder() -> Result<PathBuf, PrivateError> {
    let parent = runtime::folder()?;
    runtime::make(&parent)?;
    for number in 0..u32::MAX {
        let folder = parent.join(format!("command-{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok(made.map(|()| folder)?),
        }
    }
    Err(PrivateError::Start(io::ErrorKind::AlreadyExists.into()))
}

/// Where an ordinary user's own configuration is (XDG Base Directory Specification), if it is there.
#[must_use]
pub fn own_configuration() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("strait/strait.toml")).filter(|path| Path::is_file(path))
}
