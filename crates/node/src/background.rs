//! `strait up` without `--foreground`: the same program again, in a session of its own.
#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a node may take to be up: it measures its ciphers first.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often waiting looks whether the node has ended.
const TICK: Duration = Duration::from_millis(50);

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
    /// The program cannot be started again.
    #[error("cannot start the tunnel in the background: {0}; try --foreground")]
    Start(#[source] io::Error),
    /// It started and ended; what it said.
    #[error("{0}")]
    Ended(String),
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
    let failed = |source| BackgroundError::Log { path: log.to_owned(), source };
    let mut file =
        OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(log).map_err(failed)?;
    let begin = file.seek(SeekFrom::End(0)).map_err(failed)?;
    let ready = Ready::new().map_err(BackgroundError::Start)?;
    let mut child = spawn(arguments, &file, &ready).map_err(BackgroundError::Start)?;
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if ready.heard() {
            return Ok(child.id());
        }
        if child.try_wait().map_err(BackgroundError::Start)?.is_some() {
            return Err(BackgroundError::Ended(said(&mut file, begin)));
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(BackgroundError::TooSlow { log: log.to_owned() })
}

fn spawn(arguments: &[&std::ffi::OsStr], log: &File, ready: &Ready) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env("NOTIFY_SOCKET", &ready.path);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
    // SAFETY: setsid is async-signal-safe and touches no memory of this process.
    unsafe {
        command.pre_exec(|| match libc::setsid() {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
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

/// A socket in a folder of its own, on which the node says that it is up.
struct Ready {
    socket: UnixDatagram,
    folder: PathBuf,
    path: PathBuf,
}

impl Ready {
    fn new() -> io::Result<Ready> {
        let folder = std::env::temp_dir().join(format!("strait-ready-{}", std::process::id()));
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&folder)?;
        let path = folder.join("socket");
        let socket = UnixDatagram::bind(&path)?;
        socket.set_read_timeout(Some(TICK))?;
        Ok(Ready { socket, folder, path })
    }

    /// Waits a tick; whether the node said that it is up.
    fn heard(&self) -> bool {
        let mut message = [0; 256];
        let len = self.socket.recv(&mut message).unwrap_or(0);
        message
            .get(..len)
            .is_some_and(|text| text.split(|byte| *byte == b'\n').any(|line| line == b"READY=1"))
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
