//! The daemon that runs.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{RestartError, clean_command, doing, is_of_one_start, unit};
use crate::client::{self, ClientError};
use crate::config::FILE_MAX;
use crate::daemon::starter::kept_text;
use crate::local::Request;
use crate::privileges;
use crate::runtime::{self, FOR_COMMAND, READY_VARIABLE};

/// Most bytes of the words or of the environment of a process: what the kernel lets programs be started with by default (execve(2)).
const WORDS_MAX: u64 = 2 << 20;
/// The process that has the privileges.
const STARTER: &str = "strait-starter";

/// A daemon that runs, with what it takes to start it again as it was.
#[derive(Debug)]
pub struct RunningDaemon {
    pub(super) interface: String,
    pub(super) process: u32,
    /// Its program, which stays what it is when another file has its name.
    pub(super) program: File,
    /// What that is called.
    pub(super) program_path: PathBuf,
    /// The words behind the program's name.
    words: Vec<OsString>,
    /// Which of them is the configuration.
    file_at: usize,
    /// The configuration.
    pub(super) file: PathBuf,
    /// Its text when it was read last; none of older daemons.
    pub(super) text: Option<Vec<u8>>,
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// The file that it logs to.
    pub(super) log: Option<PathBuf>,
    pub(super) log_file: Option<File>,
    /// The unit of systemd that it is.
    pub(super) unit: Option<String>,
    /// The peers that are up.
    pub(super) peers_up: Vec<String>,
}

impl RunningDaemon {
    /// The daemon of `interface`.
    ///
    /// # Errors
    /// [`RestartError`] when it does not run or cannot be started again as it was.
    pub fn find(interface: &str) -> Result<RunningDaemon, RestartError> {
        let socket = runtime::socket(&runtime::folder()?, interface);
        let mut stream = client::connect(&socket, interface)?;
        let (process, user) = listener(&stream).map_err(doing("see who has the tunnel"))?;
        let forbidden = |source| RestartError::Forbidden { process, source };
        let place = PathBuf::from(format!("/proc/{process}"));
        let program = File::open(place.join("exe")).map_err(forbidden)?;
        let program_path = fs::read_link(place.join("exe")).map_err(forbidden)?;
        let starter = starter(process, user).map_err(forbidden)?;
        let words: Vec<OsString> = parts(&starter.join("cmdline")).map_err(forbidden)?.split_off(1);
        let folder = fs::read_link(starter.join("cwd")).map_err(forbidden)?;
        let environment = environment(&starter).map_err(forbidden)?;
        let file_at = file_among(&words).ok_or_else(|| {
            RestartError::Unfit(format!(
                "{interface} was not started by `strait up`: start it again as it was"
            ))
        })?;
        let is_awaited = environment.iter().find(|(name, _)| name == READY_VARIABLE).map(|(_, value)| value);
        let unit = match is_awaited {
            Some(value) if value != FOR_COMMAND => None,
            _ => Some(unit::of_process(&place).ok_or_else(|| supervised(interface))?),
        };
        // What another user's daemon was started with is nothing to start a program with.
        if unit.is_none() && user != privileges::user() {
            return Err(ClientError::Forbidden { interface: interface.to_owned() }.into());
        }
        // It was this one all the time, as it still answers where it was asked.
        let report = client::report(interface, client::ask_on(&mut stream, interface, &Request::Show)?)?;
        let up = report.peers.into_iter().filter(|peer| peer.state == "up").map(|peer| peer.name);
        let log =
            fs::read_link(starter.join("fd/1")).ok().filter(|log| log.starts_with("/") && unit.is_none());
        Ok(RunningDaemon {
            interface: interface.to_owned(),
            process,
            program,
            program_path: without_mark(&program_path),
            file: folder.join(words.get(file_at).unwrap_or(&OsString::new())),
            words,
            file_at,
            text: text(&starter),
            folder,
            environment,
            log_file: log.is_some().then(|| append(&starter.join("fd/1"))).transpose().map_err(forbidden)?,
            log,
            unit,
            peers_up: up.collect(),
        })
    }

    /// A command of `program` in the surroundings in which the daemon was started. A unit may be of another user: what systemd does not
    /// start itself gets what only Strait reads.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = clean_command(program);
        let environment = self.environment.iter().filter(|(name, _)| {
            !is_of_one_start(name) && (self.unit.is_none() || name.as_bytes().starts_with(b"STRAIT_"))
        });
        command.envs(environment.map(|(name, value)| (name, value))).current_dir(&self.folder);
        command
    }

    /// The daemon's own program in its surroundings.
    pub(super) fn own_command(&self) -> Command {
        let mut command = self.command(format!("/proc/self/fd/{}", self.program.as_raw_fd()));
        command.arg0(&self.program_path);
        command
    }

    /// The words by which it was started, with another configuration.
    pub(super) fn words(&self, file: &Path) -> Vec<OsString> {
        let mut words = self.words.clone();
        if let Some(word) = words.get_mut(self.file_at) {
            file.as_os_str().clone_into(word);
        }
        words
    }

    /// Whether it logs JSON.
    pub(super) fn logs_json(&self) -> bool {
        self.words.iter().any(|word| word == "json" || word == "--log=json")
    }

    /// Whether it, or its process with the privileges, still runs.
    pub(super) fn runs(&self) -> bool {
        let state = fs::read_to_string(format!("/proc/{}/status", self.process)).unwrap_or_default();
        field(&state, "State:").is_some_and(|state| !state.starts_with(['Z', 'X']))
    }
}

fn supervised(interface: &str) -> RestartError {
    RestartError::Unfit(format!(
        "{interface} runs in the foreground, so who started it starts it again, as a terminal or a supervisor; `strait restart` is for tunnels in \
         the background and units of systemd"
    ))
}

/// The process that listens at the other end of a connection, and its user, as both were when it began to.
pub(super) fn listener(stream: &UnixStream) -> io::Result<(u32, u32)> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or(0);
    // SAFETY: the pointers are to a whole ucred and to its length, which outlive the call.
    let got = unsafe {
        let to = (&raw mut found).cast();
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, to, &raw mut len)
    };
    crate::process::checked(got)?;
    match u32::try_from(found.pid) {
        // It is in another namespace of processes.
        Ok(0) | Err(_) => Err(io::Error::new(io::ErrorKind::NotFound, "it is in another container")),
        Ok(process) => Ok((process, found.uid)),
    }
}

/// The folder in `/proc` of the process with the privileges, which `process` started as `user`.
fn starter(process: u32, user: u32) -> io::Result<PathBuf> {
    let numbers = fs::read_dir("/proc")?.filter_map(|entry| Some(entry.ok()?.path()));
    let is_it = |place: &PathBuf| {
        let status = fs::read_to_string(place.join("status")).unwrap_or_default();
        let has = |name, value: &str| {
            field(&status, name).and_then(|text| text.split_whitespace().next()) == Some(value)
        };
        has("Name:", STARTER) && has("PPid:", &process.to_string()) && has("Uid:", &user.to_string())
    };
    numbers
        .into_iter()
        .find(is_it)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it has no starter"))
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// The texts in a file of the kernel that end in zero bytes each.
fn parts(path: &Path) -> io::Result<Vec<OsString>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(WORDS_MAX).read_to_end(&mut bytes)?;
    let text = bytes.strip_suffix(b"\0").ok_or(io::ErrorKind::InvalidData)?;
    Ok(text.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect())
}

fn environment(starter: &Path) -> io::Result<Vec<(OsString, OsString)>> {
    let variables = parts(&starter.join("environ"))?;
    let pair = |text: &OsString| {
        let bytes = text.as_bytes();
        let at = bytes.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (bytes.get(..at)?, bytes.get(at + 1..)?);
        Some((OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(value).to_owned()))
    };
    Ok(variables.iter().filter_map(pair).collect())
}

/// Which of the words of `strait up` names the configuration.
pub(super) fn file_among(words: &[OsString]) -> Option<usize> {
    let is_up = words.first().is_some_and(|word| word == "up");
    let behind = |at: usize| at.checked_sub(1).and_then(|at| words.get(at));
    let is_file = |at: &usize| {
        let takes_value = behind(*at).is_some_and(|word| word == "--log" || word == "--log-file");
        words.get(*at).is_some_and(|word| !word.as_bytes().starts_with(b"-")) && !takes_value
    };
    (1..words.len()).find(is_file).filter(|_| is_up)
}

/// The text of the configuration as it was read last.
fn text(starter: &Path) -> Option<Vec<u8>> {
    let name = format!("/memfd:{} ", kept_text::NAME.to_string_lossy());
    let mut open = fs::read_dir(starter.join("fd")).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let kept = open.find(|path| {
        fs::read_link(path).is_ok_and(|link| link.as_os_str().as_bytes().starts_with(name.as_bytes()))
    })?;
    let mut text = Vec::new();
    File::open(kept).ok()?.take(FILE_MAX).read_to_end(&mut text).ok()?;
    Some(text)
}

fn append(path: &Path) -> io::Result<File> {
    File::options().read(true).append(true).open(path)
}

/// The path of a program without what the kernel says behind it once its name is another's.
fn without_mark(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_bytes();
    OsStr::from_bytes(bytes.strip_suffix(b" (deleted)").unwrap_or(bytes)).into()
}
