//! A real `strait up` on a host.

mod cost;

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use strait_node::{client, runtime};

use crate::namespace::check;
use crate::{Error, Namespace, interrupt, log};
pub use cost::ProcessCost;

/// How long a daemon may take to be ready: it measures its ciphers first.
const START: Duration = Duration::from_secs(30);
/// How long it may take to end in order before it is killed.
const END: Duration = Duration::from_secs(5);
/// How often waiting looks again.
const TICK: Duration = Duration::from_millis(20);

/// A running daemon; dropped, it is asked to end, and killed if it does not.
#[derive(Debug)]
pub struct DaemonProcess {
    host: Namespace,
    program: PathBuf,
    folder: PathBuf,
    child: Child,
}

impl DaemonProcess {
    /// Starts `program up config --foreground` on `host` and waits until it says that it is ready (the protocol of
    /// `sd_notify(3)`). `folder` gets its socket and its log, `daemon.log`.
    ///
    /// # Errors
    /// [`Error::DaemonEnded`] with the end of its log, [`Error::TooSlow`], [`Error::Interrupted`], [`Error::System`].
    pub fn start(
        host: &Namespace,
        program: &Path,
        config: &Path,
        folder: &Path,
    ) -> Result<DaemonProcess, Error> {
        let arguments = [OsStr::new("up"), config.as_os_str(), OsStr::new("--foreground")];
        DaemonProcess::start_as(host, program, &arguments, folder)
    }

    /// Starts `program broker config`, as [`DaemonProcess::start`] does a daemon.
    ///
    /// # Errors
    /// As [`DaemonProcess::start`].
    pub fn start_broker(
        host: &Namespace,
        program: &Path,
        config: &Path,
        folder: &Path,
    ) -> Result<DaemonProcess, Error> {
        DaemonProcess::start_as(host, program, &[OsStr::new("broker"), config.as_os_str()], folder)
    }

    fn start_as(
        host: &Namespace,
        program: &Path,
        arguments: &[&OsStr],
        folder: &Path,
    ) -> Result<DaemonProcess, Error> {
        let doing = || format!("start {} on {}", program.display(), host.name());
        let ready = prepare(folder).map_err(Error::doing(doing()))?;
        let log = OpenOptions::new().create(true).append(true).open(folder.join("daemon.log"));
        let log = log.map_err(Error::doing(doing()))?;
        let mut command = host.command(program);
        command.args(arguments);
        surroundings(&mut command, folder).env("NOTIFY_SOCKET", folder.join("ready"));
        let errors = log.try_clone().map_err(Error::doing(doing()))?;
        // Its own process group: what is typed on the terminal reaches only who started it.
        command.stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
        let child = command.spawn().map_err(Error::doing(doing()))?;
        let mut daemon = DaemonProcess {
            host: host.clone(),
            program: program.to_owned(),
            folder: folder.to_owned(),
            child,
        };
        daemon.wait_until_ready(&ready)?;
        Ok(daemon)
    }

    fn wait_until_ready(&mut self, ready: &UnixDatagram) -> Result<(), Error> {
        let start = Instant::now();
        let mut message = [0_u8; 256];
        while start.elapsed() < START {
            interrupt::check()?;
            match ready.recv(&mut message) {
                Ok(length) if is_ready(message.get(..length).unwrap_or_default()) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Error::System { doing: "hear from the daemon".to_owned(), source: error });
                }
            }
            if let Some(status) = self.ended()? {
                let host = self.host.name().to_owned();
                return Err(Error::DaemonEnded { host, status: status.to_string(), said: self.last_words() });
            }
        }
        let what = format!("the daemon on {} was not ready", self.host.name());
        Err(Error::TooSlow { what, waited: START, said: self.last_words() })
    }

    /// The process's number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to its process with privileges, which looks after the host's network.
    ///
    /// # Errors
    /// [`Error::System`] when it has ended.
    pub fn signal_starter(&self, signal: i32) -> Result<(), Error> {
        let starter =
            |children: Vec<(String, u32)>| children.into_iter().find(|(name, _)| name == "strait-starter");
        let sent = children(self.pid())
            .and_then(|children| starter(children).ok_or_else(|| io::ErrorKind::NotFound.into()))
            .and_then(|(_, number)| kill(number, signal));
        sent.map_err(Error::doing("signal the daemon's starter"))
    }

    /// The file that its messages go to.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder.join("daemon.log")
    }

    /// The exit status, once the process has ended.
    ///
    /// # Errors
    /// [`Error::System`] when the system cannot say.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(Error::doing("look after the daemon"))
    }

    /// A command of the same program that talks to this daemon, such as `show`.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.host.command(&self.program);
        surroundings(&mut command, &self.folder).args(arguments).stdin(Stdio::null());
        command
    }

    /// The report that `strait show --json` prints, asked for without a process: tests look many times a second.
    ///
    /// # Errors
    /// [`Error::System`] when there is no answer.
    pub fn show(&self) -> Result<Value, Error> {
        let doing = || format!("ask the daemon on {} how it is", self.host.name());
        let interfaces = runtime::interfaces(&self.folder).map_err(Error::doing(doing()))?;
        let interface = interfaces.first().map_or("no tunnel", String::as_str);
        let report = client::show_in(&self.folder, interface).map_err(io::Error::other);
        let value = report.and_then(|report| serde_json::to_value(report).map_err(io::Error::from));
        value.map_err(Error::doing(doing()))
    }

    /// Has the daemon read its configuration again; gives what the program prints then.
    ///
    /// # Errors
    /// [`Error::Command`] when it refuses.
    pub fn reload(&self) -> Result<String, Error> {
        self.ask(&["reload"])
    }

    fn ask(&self, arguments: &[&str]) -> Result<String, Error> {
        let doing = || format!("ask the daemon on {} to {}", self.host.name(), arguments.join(" "));
        let output = self.command(arguments).output().map_err(Error::doing(doing()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Error::Command {
            command: format!("strait {}", arguments.join(" ")),
            host: self.host.name().to_owned(),
            status: output.status.to_string(),
            said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }

    /// Waits until `peer`, by name, has keys to send with.
    ///
    /// # Errors
    /// [`Error::TooSlow`] after `patience`, [`Error::Interrupted`], or what [`DaemonProcess::show`] fails with.
    pub fn wait_for_session(&self, peer: &str, patience: Duration) -> Result<(), Error> {
        let start = Instant::now();
        while start.elapsed() < patience {
            interrupt::check()?;
            if has_session(&self.show()?, peer) {
                return Ok(());
            }
            thread::sleep(TICK);
        }
        let what = format!("{} had no session with {peer}", self.host.name());
        Err(Error::TooSlow { what, waited: patience, said: self.last_words() })
    }

    /// What the process has used so far.
    ///
    /// # Errors
    /// [`Error::System`] when it has ended.
    pub fn cost(&self) -> Result<ProcessCost, Error> {
        cost::of(self.pid()).map_err(Error::doing(format!("measure the daemon on {}", self.host.name())))
    }

    /// The time that its threads have been on a processor, finer than that of [`DaemonProcess::cost`].
    ///
    /// # Errors
    /// [`Error::System`] when it has ended.
    pub fn scheduled(&self) -> Result<Duration, Error> {
        let doing = || format!("measure the daemon on {}", self.host.name());
        cost::scheduled(self.pid()).map_err(Error::doing(doing()))
    }

    /// Sends a signal to the process.
    ///
    /// # Errors
    /// [`Error::System`] when it has ended.
    pub fn signal(&self, signal: i32) -> Result<(), Error> {
        kill(self.pid(), signal).map_err(Error::doing("signal the daemon"))
    }

    /// Ends the process in order and says how it ended.
    ///
    /// # Errors
    /// [`Error::TooSlow`] when it had to be killed.
    pub fn stop(mut self) -> Result<ExitStatus, Error> {
        self.signal(libc::SIGTERM)?;
        match self.wait_for_end()? {
            Some(status) => Ok(status),
            None => {
                let what = format!("the daemon on {} did not end", self.host.name());
                Err(Error::TooSlow { what, waited: END, said: self.last_words() })
            }
        }
    }

    fn wait_for_end(&mut self) -> Result<Option<ExitStatus>, Error> {
        let start = Instant::now();
        while start.elapsed() < END {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            thread::sleep(TICK);
        }
        Ok(None)
    }

    /// The end of its log.
    #[must_use]
    pub fn last_words(&self) -> String {
        log::end_of(&self.log())
    }
}

impl Drop for DaemonProcess {
    fn drop(&mut self) {
        if matches!(self.ended(), Ok(None)) {
            let asked = self.signal(libc::SIGTERM);
            if asked.is_err() || !matches!(self.wait_for_end(), Ok(Some(_))) {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
    }
}

/// Makes the daemon's folder and the socket on which it says that it is ready.
fn prepare(folder: &Path) -> io::Result<UnixDatagram> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = folder.join("ready");
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = UnixDatagram::bind(path)?;
    socket.set_read_timeout(Some(TICK))?;
    Ok(socket)
}

/// What a daemon and the commands that talk to it have in common.
fn surroundings<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    let state = folder.join("state");
    command
        .env("STRAIT_RUNTIME_DIR", folder)
        .env("STRAIT_STATE_DIR", state)
        .env("NO_COLOR", "1")
        .env_remove("NOTIFY_SOCKET")
}

fn is_ready(message: &[u8]) -> bool {
    String::from_utf8_lossy(message).lines().any(|line| line == "READY=1")
}

fn has_session(report: &Value, peer: &str) -> bool {
    let peers = report.get("peers").and_then(Value::as_array);
    peers.into_iter().flatten().any(|entry| {
        entry.get("name").and_then(Value::as_str) == Some(peer)
            // Without sessions, there is nothing to wait for.
            && (entry.get("state").and_then(Value::as_str) == Some("up")
                || entry.get("keys").and_then(Value::as_str) == Some("sessionless"))
    })
}

/// The processes that `pid` started and that have not ended: name and number.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn children(pid: u32) -> io::Result<Vec<(String, u32)>> {
    let numbers = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let child = |number: u32| {
        let status = fs::read_to_string(format!("/proc/{number}/status")).ok()?;
        let value = |field: &str| status.lines().find_map(|line| line.strip_prefix(field)).map(str::trim);
        let ours = value("PPid:")? == pid.to_string() && !value("State:")?.starts_with('Z');
        Some((value("Name:").filter(|_| ours)?.to_owned(), number))
    };
    Ok(numbers.filter_map(child).collect())
}

/// Kills a process that leads a group of its own, with all of that group.
///
/// # Errors
/// [`Error::System`] when they have ended.
#[allow(unsafe_code)]
pub(crate) fn kill_group(leader: u32) -> Result<(), Error> {
    let doing = || Error::doing(format!("kill the group of {leader}"));
    let leader = i32::try_from(leader).map_err(io::Error::other).map_err(doing())?;
    // SAFETY: takes no pointers.
    check(unsafe { libc::kill(-leader, libc::SIGKILL) }).map_err(doing())
}

/// Kills one process of ours, which need not be our child.
pub(crate) fn end(pid: u32) -> io::Result<()> {
    kill(pid, libc::SIGKILL)
}

/// A signal for a process of ours.
#[allow(unsafe_code)]
fn kill(pid: u32, signal: i32) -> io::Result<()> {
    let pid = i32::try_from(pid).map_err(io::Error::other)?;
    // SAFETY: takes no pointers.
    check(unsafe { libc::kill(pid, signal) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn readiness_is_one_line_among_others() {
        assert!(is_ready(b"READY=1"));
        assert!(is_ready(b"STATUS=up\nREADY=1\n"));
        assert!(!is_ready(b"STATUS=READY=1"));
        assert!(!is_ready(b""));
    }

    #[test]
    fn a_session_belongs_to_a_named_peer() {
        let report = json!({"peers": [{"name": "b", "state": "up"}, {"name": "c", "state": "connecting"}]});
        assert!(has_session(&report, "b"));
        assert!(!has_session(&report, "c"));
        assert!(!has_session(&report, "d"));
        assert!(!has_session(&json!({}), "b"));
    }
}
