//! The daemon that runs.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use zeroize::Zeroizing;

use super::{RestartError, doing, kept};
use crate::client::{self, ClientError};
use crate::daemon::starter::kept_text;
use crate::local::Request;
use crate::privileges;
use crate::process::RunningProcess;
use crate::runtime::{self, FOR_COMMAND, READY_VARIABLE};

/// Most bytes of the words or of the environment of a process: what the kernel lets programs be started with by default (execve(2)).
const WORDS_MAX: u64 = 2 << 20;
/// The process that has the privileges.
const STARTER: &str = "strait-starter";

/// A daemon that runs, with what it takes to start it again as it was.
pub struct RunningDaemon {
    pub(super) interface: String,
    pub(super) process: u32,
    /// The folder in `/proc` of its process with the privileges.
    starter: PathBuf,
    /// Its program, which stays what it is when another file has its name.
    program: File,
    /// Its name.
    program_path: PathBuf,
    /// The words behind the program's name.
    words: Vec<OsString>,
    /// The place of the configuration among them.
    file_at: usize,
    /// The configuration.
    pub(super) file: PathBuf,
    /// Its text when it was read last; none of older daemons.
    pub(super) text: Option<Zeroizing<Vec<u8>>>,
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// The file that it logs to, if that still has its name.
    pub(super) log: Option<(PathBuf, File)>,
    /// The peers that are up.
    pub(super) peers_up: Vec<String>,
}

/// Without the configuration and the environment, which may hold secrets.
impl fmt::Debug for RunningDaemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (interface, process) = (&self.interface, &self.process);
        f.debug_struct("RunningDaemon")
            .field("interface", interface)
            .field("process", process)
            .finish_non_exhaustive()
    }
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
        let words: Vec<_> = parts(&starter.join("cmdline")).map_err(forbidden)?.into_iter().skip(1).collect();
        let folder = fs::read_link(starter.join("cwd")).map_err(forbidden)?;
        let environment = environment(&starter).map_err(forbidden)?;
        let file_at = file_among(&words).ok_or_else(|| {
            RestartError::Unfit(format!(
                "{interface} was not started by `strait up`: start it again as it was"
            ))
        })?;
        if let Some(how) = how_supervised(&starter, &environment) {
            return Err(RestartError::Unfit(format!(
                "{interface} {how}, for example with `systemctl restart strait@NAME`"
            )));
        }
        // What another user's daemon was started with is nothing to start a program with.
        if user != privileges::user() {
            return Err(ClientError::Forbidden { interface: interface.to_owned() }.into());
        }
        let (text, log) = (text(&starter), log(&starter));
        // All that was from these processes, as the first still answers where it was asked.
        let report = client::report(interface, client::ask_on(&mut stream, interface, &Request::Show)?)?;
        let up = report.peers.into_iter().filter(|peer| peer.state == "up").map(|peer| peer.name);
        Ok(RunningDaemon {
            interface: interface.to_owned(),
            process,
            starter,
            program,
            program_path: without_mark(&program_path),
            file: folder.join(words.get(file_at).unwrap_or(&OsString::new())),
            words,
            file_at,
            text,
            folder,
            environment,
            log,
            peers_up: up.collect(),
        })
    }

    /// A command of `program` in the surroundings in which the daemon was started.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let is_of_one_start = |name: &OsStr| name == READY_VARIABLE || name == "NOTIFY_SOCKET";
        let environment = self.environment.iter().filter(|(name, _)| !is_of_one_start(name));
        command.env_clear().envs(environment.map(|(name, value)| (name, value))).current_dir(&self.folder);
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

    /// Returns true if it logs JSON.
    pub(super) fn logs_json(&self) -> bool {
        self.words.iter().any(|word| word == "json" || word == "--log=json")
    }

    /// Returns true as long as it, or its process with the privileges, runs.
    pub(super) fn runs(&self) -> bool {
        let own = PathBuf::from(format!("/proc/{}", self.process));
        [&own, &self.starter].into_iter().any(|place| RunningProcess::at(place).is_some())
    }
}

/// The reason to leave a daemon to what started it, and the way to restart it, if it is not in the background.
fn how_supervised(starter: &Path, environment: &[(OsString, OsString)]) -> Option<&'static str> {
    let groups = |place: &Path| fs::read_to_string(place.join("cgroup")).unwrap_or_default();
    let (its, own) = (groups(starter), groups(Path::new("/proc/self")));
    let service = service_among(&its);
    if service.is_some() && service != service_among(&own) {
        return Some("is run by a service manager; restart it there");
    }
    let is_background = |(name, value): &(OsString, OsString)| name == READY_VARIABLE && value != FOR_COMMAND;
    let in_foreground = "runs in the foreground; restart it where it was started";
    (!environment.iter().any(is_background)).then_some(in_foreground)
}

/// The service of systemd that a process with these control groups is part of (cgroups(7): `number:controllers:path`). A scope, such as
/// that of a session, is none.
pub(super) fn service_among(groups: &str) -> Option<&str> {
    let paths = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        ["", "name=systemd"].contains(&controllers).then_some(path)
    });
    paths
        .filter_map(|path| {
            path.rsplit('/').find(|name| name.ends_with(".service") || name.ends_with(".scope"))
        })
        .find(|unit| unit.ends_with(".service"))
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
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
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
fn text(starter: &Path) -> Option<Zeroizing<Vec<u8>>> {
    let name = format!("/memfd:{} ", kept_text::NAME.to_string_lossy());
    let mut open = fs::read_dir(starter.join("fd")).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let kept = open.find(|path| {
        fs::read_link(path).is_ok_and(|link| link.as_os_str().as_bytes().starts_with(name.as_bytes()))
    })?;
    kept::read(&kept).ok()
}

/// The file that a process logs to; nothing where it is deleted or has no name.
fn log(starter: &Path) -> Option<(PathBuf, File)> {
    let link = starter.join("fd/1");
    let path = fs::read_link(&link).ok().filter(|path| path.starts_with("/"))?;
    let file = File::options().read(true).append(true).open(link).ok()?;
    let (own, named) = (file.metadata().ok()?, fs::metadata(&path).ok()?);
    ((own.dev(), own.ino()) == (named.dev(), named.ino())).then_some((path, file))
}

/// The path of a program without what the kernel says behind it once its name is another's.
fn without_mark(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_bytes();
    OsStr::from_bytes(bytes.strip_suffix(b" (deleted)").unwrap_or(bytes)).into()
}
