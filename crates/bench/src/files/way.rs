//! What moves files, and the commands that do.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use strait_testbed::{interrupt, outside};

use crate::error::Error;

/// How soon the end of a command is noticed.
const TICK: Duration = Duration::from_millis(2);

/// What moves a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileWay {
    /// `strait send`.
    Strait,
    /// `rsync -az --zc=zstd` through ssh.
    Rsync,
    /// `scp -r`, without compression.
    Scp,
    /// `zstd -3 | ssh`, and `zstd -d` at the other end.
    Zstd,
    /// `nncp-file` and `nncp-call`, without compression: it has none for files.
    Nncp,
    /// One TCP stream from memory to memory.
    Tcp,
    /// One QUIC stream from memory to memory.
    Quic,
}

impl FileWay {
    /// In the order of the columns and of runs.
    pub(super) const ALL: [FileWay; 7] = [
        FileWay::Strait,
        FileWay::Rsync,
        FileWay::Scp,
        FileWay::Zstd,
        FileWay::Nncp,
        FileWay::Tcp,
        FileWay::Quic,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            FileWay::Strait => "Strait",
            FileWay::Rsync => "rsync -az",
            FileWay::Scp => "scp",
            FileWay::Zstd => "zstd -3 | ssh",
            FileWay::Nncp => "nncp",
            FileWay::Tcp => "plain TCP",
            FileWay::Quic => "bare QUIC",
        }
    }
}

/// The options of rsync through ssh with these options.
pub(crate) fn rsync_options(ssh: &[String]) -> Vec<String> {
    ["-az", "--zc=zstd", "-e"]
        .map(str::to_owned)
        .into_iter()
        .chain([format!("ssh {}", ssh.join(" "))])
        .collect()
}

/// What the compared programs call themselves, each that is there.
pub(super) fn versions() -> String {
    outside::versions(&[("rsync", "--version"), ("ssh", "-V"), ("zstd", "--version")])
}

/// Waits until a child has ended, and kills it if it takes too long or a signal asks for the end.
pub(crate) fn wait(child: &mut Child, patience: Duration) -> Result<ExitStatus, Error> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(Error::doing("wait for a command"))? {
            return Ok(status);
        }
        let late = begin.elapsed() > patience;
        if let (Err(error), _) | (Ok(()), Err(error)) = (interrupt::check(), too_slow(late, patience)) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(error.into());
        }
        thread::sleep(TICK);
    }
}

fn too_slow(late: bool, waited: Duration) -> Result<(), strait_testbed::Error> {
    let what = "a transfer had not ended".to_owned();
    let slow = strait_testbed::Error::TooSlow { what, waited, said: String::new() };
    if late { Err(slow) } else { Ok(()) }
}

/// What a power failure now would leave whole: for a file and its name, or for a folder and all else on its file system.
pub(crate) fn make_durable(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        let status = Command::new("sync").arg("-f").arg(path).status()?;
        return status.success().then_some(()).ok_or_else(|| io::Error::other("sync failed"));
    }
    File::open(path)?.sync_all()?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
