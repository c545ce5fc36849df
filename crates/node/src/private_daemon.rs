//! A daemon for the time of one command: an ordinary user's own node, where none runs.
#![allow(unsafe_code)]

use std::fs::DirBuilder;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use crate::client::{self, ClientError, OpenedStream, StreamOptions};
use crate::local::Request;
use crate::runtime::{self, FOLDER_VARIABLE, READY_VARIABLE, RuntimeError};

/// How long a node may take to be up: it measures its ciphers first.
const PATIENCE: Duration = Duration::from_secs(30);

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
    /// it is up. Its socket is in a folder of its own.
    ///
    /// # Errors
    /// [`PrivateError`], in which case nothing runs.
    pub fn start(mut command: Command, interface: &str) -> Result<PrivateDaemon, PrivateError> {
        let folder = folder()?;
        let (mut ready, theirs) = UnixStream::pair()?;
        ready.set_read_timeout(Some(PATIENCE))?;
        command.env(FOLDER_VARIABLE, &folder).env(READY_VARIABLE, "1").env_remove("NOTIFY_SOCKET");
        command.stdin(OwnedFd::from(theirs));
        // SAFETY: prctl takes integers here, is async-signal-safe and touches no memory of this process.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
                -1 => Err(io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
        let child = command.spawn()?;
        // Its end of the pair goes with it.
        drop(command);
        let daemon = PrivateDaemon { child, folder, interface: interface.to_owned() };
        loop {
            match ready.read(&mut [0; 16]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
                Ok(0) => return Err(PrivateError::Ended),
                Ok(_) => return Ok(daemon),
            }
        }
    }

    /// Whether it has ended by itself.
    #[must_use]
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
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
        if client::ask_at(&path, &self.interface, Request::Down).is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
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
