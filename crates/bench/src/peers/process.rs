//! A process of another tunnel.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use strait_testbed::{Namespace, interrupt};

use crate::error::Error;

/// The interface on either host.
pub(super) const INTERFACE: &str = "tun0";
/// How long it may take to be there: with ssh, after a login over the slowest link.
const START: Duration = Duration::from_secs(60);
/// How much of what it said is told, in lines.
const LAST_LINES: usize = 6;

/// A running process, and what it says in a file. Killed when dropped.
#[derive(Debug)]
pub(super) struct PeerProcess {
    tunnel: &'static str,
    child: Child,
    log: PathBuf,
}

impl PeerProcess {
    pub(super) fn start(
        tunnel: &'static str,
        mut command: Command,
        log: PathBuf,
    ) -> Result<PeerProcess, Error> {
        let mut start = || {
            let file = File::create(&log)?;
            let also = file.try_clone()?;
            command.stdin(Stdio::null()).stdout(file).stderr(also).spawn()
        };
        let child = start().map_err(Error::doing(format!("start {tunnel}")))?;
        Ok(PeerProcess { tunnel, child, log })
    }

    /// Waits until `host` has the tunnel's interface.
    pub(super) fn wait_for_interface(&mut self, host: &Namespace) -> Result<(), Error> {
        let start = Instant::now();
        while !host.interfaces()?.iter().any(|name| name == INTERFACE) {
            interrupt::pause(Duration::from_millis(20))?;
            let ended = self.child.try_wait().map_err(Error::doing("look after a tunnel"))?;
            if ended.is_some() || start.elapsed() > START {
                return Err(self.failed(format!("no {INTERFACE} on {}", host.name())));
            }
        }
        Ok(())
    }

    /// An error with the end of what the process said.
    pub(super) fn failed(&self, what: String) -> Error {
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().rev().take(LAST_LINES).collect();
        let said = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
        Error::NoTunnel { tunnel: self.tunnel, why: format!("{what}\n{said}") }
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs ip(8) on `host`, for what a tunnel needs.
pub(super) fn ip(tunnel: &'static str, host: &Namespace, arguments: &[&str]) -> Result<(), Error> {
    run(tunnel, "start ip (iproute2)", host.command("ip").args(arguments))
}

/// Runs a command that a tunnel needs, to its end.
pub(super) fn run(tunnel: &'static str, doing: &str, command: &mut Command) -> Result<(), Error> {
    let output = command.stdin(Stdio::null()).output().map_err(Error::doing(doing))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::NoTunnel { tunnel, why })
}

/// Writes a file that only its owner may read.
pub(super) fn write_private(path: &Path, content: &str) -> Result<(), Error> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(content.as_bytes())
    };
    write().map_err(Error::doing(format!("write {}", path.display())))
}
