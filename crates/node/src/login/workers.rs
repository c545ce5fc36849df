//! The processes of a stream: a *monitor*, which keeps root's rights and reads no byte of a peer's, and a *keeper*, which has none and
//! reads them all. For a session the monitor asks PAM, makes the process that becomes the account's program, and waits for its end.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use strait_ipsec::Source;

use super::account::Account;
use super::ending::Ending;
use super::folder;
use super::kerberos::{self, Proven, TicketCache};
use super::launch::{self, Launcher, Surroundings};
use super::pam::{PamError, PamSession};
use super::permit::{LoginPermit, LoginWho, RefusalLog, Served};
use super::places::SessionPlace;
use super::pty::{self, Pty};
use super::records::LoginRecord;
use super::signals::{signal_process, unblock};
use crate::daemon;
use crate::privileges;
use crate::process::{ProcessChannel, checked, fork, start_anew, take_task};
use crate::services::{Places, StreamHead, TimeLimit, UNLISTED, say_last, unfit};

/// The name of a monitor.
const NAME: &CStr = c"strait-session";
/// Streams of a peer at once beside its sessions: as many as a connection of it may open.
const STREAMS: usize = 64;
/// Streams of all peers at once, but for those that each has whatever others have.
const ALL_MAX: usize = 1024;
const OWN: usize = 2;
/// Streams of a node that the configuration does not list.
const OF_UNLISTED: usize = 4;
/// Of the streams of all those, the ones from one site have at most one in so many, as the nodes have.
const UNLISTED_SHARE: usize = 4;
/// Memory of a keeper: a session has 16 MiB, with windows of the greatest size four times as much.
pub(super) const MEMORY: u64 = 96 << 20;

/// The monitors that run.
#[derive(Debug, Default)]
pub struct LoginWorkers {
    /// Their numbers, and the streams that they serve.
    running: Vec<(libc::pid_t, RefusalLog)>,
}

/// What the keeper asks for: a session, and whether a pseudo-terminal comes with the message.
const OPEN: &[u8] = b"open";
/// Or whether the account may log in now, without a session: for a connection.
const CHECK: &[u8] = b"check";

/// What the monitor says.
#[derive(Debug, Serialize, Deserialize)]
enum MonitorSays {
    /// The account's process is there.
    Opened { process: i32 },
    /// The account may log in.
    Allowed,
    /// It is not, or may not.
    Refused { why: WhyRefused, text: String },
    /// It ended, as wait(2) says it.
    Ended { status: i32 },
}

/// What a keeper says of a monitor that says nothing.
const PAM_FAILED: &str = "the modules that check accounts (PAM) took too long, or failed";

/// Why there is no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhyRefused {
    /// PAM said no.
    Account,
    /// The peer, or all peers together, have as many as they may.
    TooMany,
    /// Something is missing or failed.
    System,
}

/// A session that there is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRefused {
    /// Why.
    pub why: WhyRefused,
    /// In words.
    pub text: String,
}

/// True if `random` refuses a stream of a node that is not listed: once half of the places beside sessions are taken, the more are, the
/// likelier, so that those who fill places as soon as they are free do not get each of them (as `MaxStartups` in sshd_config(5)).
const fn is_refused_early(taken: usize, random: u64) -> bool {
    let half = STREAMS / 2;
    random % (half as u64) < taken.saturating_sub(half) as u64
}

impl LoginWorkers {
    /// Whether none runs.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Forgets those that have ended.
    pub fn reap(&mut self) {
        self.running.retain(|(process, logs)| {
            let mut status = 0;
            // SAFETY: the pointer is to an integer that outlives the call; the process is this one's child, which was not waited for yet.
            let waited = unsafe { libc::waitpid(*process, &raw mut status, libc::WNOHANG) };
            if waited > 0 && libc::WIFSIGNALED(status) {
                logs.say("login", "it was killed: what the system says of accounts, or PAM, took too long");
            }
            waited == 0
        });
    }

    /// Starts the processes of a stream, which serve it with `keeper` as [`serve_login`] says. To be called before there is any thread.
    ///
    /// # Errors
    /// `ResourceBusy` when as many run as may; `fork(2)`.
    pub fn start(
        &mut self,
        permit: &LoginPermit,
        keeper: &impl Serialize,
        stream: BorrowedFd<'_>,
    ) -> io::Result<()> {
        self.reap();
        if !self.admit(&permit.logs.head, permit.sessions, daemon::random_number()?) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        // Before it can be told to end: what comes until it can look waits.
        let _ending = Ending::take()?;
        let process = start_anew(NAME, &(permit, keeper), &[stream])?;
        self.running.push((process, permit.logs.clone()));
        Ok(())
    }

    /// Has the streams of such nodes ended, with all that was begun by them.
    pub fn end(&self, which: impl Fn(&StreamHead) -> bool) {
        for (process, _) in self.running.iter().filter(|(_, logs)| which(&logs.head)) {
            let _ = signal_process(*process, libc::SIGTERM);
        }
    }

    /// True if there is a place for another stream of this node; `random` decides where it is not listed and places become few.
    fn admit(&self, head: &StreamHead, sessions: u16, random: u64) -> bool {
        let count = |same: &dyn Fn(&StreamHead) -> bool| {
            self.running.iter().filter(|(_, logs)| same(&logs.head)).count()
        };
        let of_peer = count(&|it| it.peer == head.peer);
        let sessions = usize::from(sessions);
        let places = Places { all: ALL_MAX, peer: STREAMS + sessions, own: OWN };
        if head.peer == UNLISTED {
            let site = |it: &StreamHead| Source::site(it.from.ip());
            let near = count(&|it| it.peer == UNLISTED && site(it) == site(head));
            let greedy =
                count(&|it| it.key == head.key) >= OF_UNLISTED || near >= places.peer / UNLISTED_SHARE;
            if greedy || is_refused_early(of_peer.saturating_sub(sessions), random) {
                return false;
            }
        }
        places.admit(self.running.len(), of_peer)
    }
}

/// The keeper's end of its monitor.
#[derive(Debug)]
pub struct KeeperPort {
    channel: ProcessChannel,
    folder: PathBuf,
    account: Account,
    principal: Option<String>,
}

impl KeeperPort {
    /// The folder that this process works in: the account's, for sockets.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The account that this process is.
    #[must_use]
    pub const fn account(&self) -> &Account {
        &self.account
    }

    /// Who the client is by its ticket, if it had to show one.
    #[must_use]
    pub fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// Has the account's session opened, with a terminal if there is one: the process that waits for what to run, and its number.
    ///
    /// # Errors
    /// Why not.
    pub fn open_session(&self, pty: Option<&Pty>) -> Result<(Launcher, i32), SessionRefused> {
        let failed = |text: String| SessionRefused { why: WhyRefused::System, text };
        let pty: Vec<BorrowedFd<'_>> = pty.into_iter().map(AsFd::as_fd).collect();
        self.channel.send(OPEN, &pty).map_err(|error| failed(error.to_string()))?;
        // It is killed where a module of PAM takes longer than it may.
        let (said, mut descriptors) = self.channel.receive().map_err(|_| failed(PAM_FAILED.to_owned()))?;
        match (serde_json::from_slice(&said), descriptors.pop()) {
            (Ok(MonitorSays::Opened { process }), Some(launcher)) => {
                Ok((Launcher::new(ProcessChannel::from(launcher)), process))
            }
            (Ok(MonitorSays::Refused { why, text }), _) => Err(SessionRefused { why, text }),
            _ => Err(failed("the monitor said something else".to_owned())),
        }
    }

    /// Has PAM asked whether the account may log in now, without a session.
    ///
    /// # Errors
    /// Why not.
    pub fn check_account(&self) -> Result<(), SessionRefused> {
        let failed = |text: String| SessionRefused { why: WhyRefused::System, text };
        self.channel.send(CHECK, &[]).map_err(|error| failed(error.to_string()))?;
        let (said, _) = self.channel.receive().map_err(|_| failed(PAM_FAILED.to_owned()))?;
        match serde_json::from_slice(&said) {
            Ok(MonitorSays::Allowed) => Ok(()),
            Ok(MonitorSays::Refused { why, text }) => Err(SessionRefused { why, text }),
            _ => Err(failed("the monitor said something else".to_owned())),
        }
    }

    /// How the program ended, if it did; to be asked when the descriptor can be read.
    ///
    /// # Errors
    /// `WouldBlock` while it runs; another error when that will not be known.
    pub fn ended(&self) -> io::Result<ExitStatus> {
        let (said, _) = self.channel.receive_now()?;
        match serde_json::from_slice(&said) {
            Ok(MonitorSays::Ended { status }) => Ok(ExitStatus::from_raw(status)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl AsFd for KeeperPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

/// Serves the stream that this process was started for by [`LoginWorkers::start`], if it was, and returns its exit status: it is the
/// monitor, and its keeper does `body` with what it was given.
pub fn serve_login<T: DeserializeOwned>(body: impl FnOnce(T, &KeeperPort, UnixStream) -> i32) -> Option<i32> {
    let begun = take_task(NAME)?.and_then(|((permit, keeper), mut descriptors)| {
        let ending = Ending::take()?;
        let stream = descriptors.pop().ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok((permit, keeper, UnixStream::from(stream), ending))
    });
    Some(begun.map_or_else(unfit, |(permit, keeper, stream, ending)| {
        monitor(permit, stream, ending, |port, stream| body(keeper, &port, stream))
    }))
}

/// Does the monitor's work, and returns its exit status.
fn monitor(
    permit: LoginPermit,
    stream: UnixStream,
    mut ending: Ending,
    body: impl FnOnce(KeeperPort, UnixStream) -> i32,
) -> libc::c_int {
    // SAFETY: takes nothing. The session goes on when the daemon's terminal is closed.
    unsafe { libc::setsid() };
    let Some((account, principal, cache)) = served_as(&permit, &stream) else { return 1 };
    let LoginPermit { interface, sessions, patience, logs, .. } = permit;
    let permit = Served { principal, account, interface, sessions, patience, logs };
    let entered = folder::enter(&permit.account)
        .and_then(|folder| ProcessChannel::pair().map(|(ours, theirs)| (folder, ours, theirs)));
    let (folder, ours, theirs) = match entered {
        Ok(entered) => entered,
        Err(error) => {
            tracing::error!("{permit}: no login: {error}");
            return 1;
        }
    };
    let user = permit.account.service_user();
    let (account, principal) = (permit.account.clone(), permit.principal.clone());
    let keeper = fork(c"strait-keeper", &[ours.as_fd(), ending.as_fd()], move || {
        let limited =
            limit_memory(MEMORY).and_then(|()| privileges::drop_all(user).map_err(io::Error::other));
        match limited {
            Ok(()) => body(KeeperPort { channel: theirs, folder, account, principal }, stream),
            Err(error) => unfit(error),
        }
    });
    let keeper = match keeper {
        Ok(keeper) => keeper,
        Err(error) => {
            tracing::error!("{permit}: no login: {error}");
            return 1;
        }
    };
    // What the keeper needs is its own now, and this process waits where no folder is in use.
    let _ = std::env::set_current_dir("/");
    // A stream that wants no session ends without a word.
    let place = match ours.receive() {
        Ok((message, descriptors)) if message == OPEN => {
            serve(&ours, &permit, descriptors, cache, &mut ending)
        }
        received => {
            // No session is to have what was passed on.
            drop(cache);
            if received.is_ok_and(|(message, _)| message == CHECK) {
                check(&ours, &permit);
            }
            None
        }
    };
    drop(ours);
    let _ = ending.of_keeper(keeper);
    // The keeper's memory counts, also while it waits for a client to hear of the end.
    drop(place);
    0
}

/// The account that a stream is served as, and what a ticket has brought; nothing if it is not served, of which the client is told.
fn served_as(
    permit: &LoginPermit,
    stream: &UnixStream,
) -> Option<(Account, Option<String>, Option<TicketCache>)> {
    match &permit.who {
        LoginWho::Own(account) => Some((account.clone(), None, None)),
        LoginWho::Named { name, unknown } => {
            let account = named(name, permit);
            if account.is_none() {
                say_last(stream, unknown);
            }
            Some((account?, None, None))
        }
        LoginWho::Ticket(demand) => {
            let Proven { principal, account, cache } = kerberos::prove(stream, demand, permit)?;
            Some((account, Some(principal), cache))
        }
    }
}

/// Looks the account up, for as long as PAM may take; then this process is killed.
fn named(name: &str, permit: &LoginPermit) -> Option<Account> {
    let limit = TimeLimit::set(permit.patience).ok()?;
    let account = Account::named(name);
    drop(limit);
    if account.is_none() {
        permit.log_refused(&format!("there is no account {name} here"));
    }
    account
}

/// Says whether the account may log in now.
fn check(keeper: &ProcessChannel, permit: &Served) {
    let checked = if privileges::is_root() { PamSession::check(permit.pam(None)) } else { Ok(()) };
    let says = match checked.map_err(from_pam) {
        Ok(()) => MonitorSays::Allowed,
        // The keeper logs it, which knows where to.
        Err(SessionRefused { why, text }) => MonitorSays::Refused { why, text },
    };
    let _ = serde_json::to_vec(&says).map_err(io::Error::from).and_then(|text| keeper.send(&text, &[]));
}

fn from_pam(error: PamError) -> SessionRefused {
    let why = match error {
        PamError::Refused { .. } => WhyRefused::Account,
        _ => WhyRefused::System,
    };
    SessionRefused { why, text: error.to_string() }
}

/// Limits what a process may have, and lets a supervisor end it again.
pub(super) fn limit_memory(memory: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: memory, rlim_max: memory };
    // SAFETY: the pointer is to a whole rlimit that outlives the call; the default is no handler of this program's.
    unsafe {
        checked(libc::setrlimit(libc::RLIMIT_DATA, &raw const limit))?;
        libc::signal(libc::SIGTERM, libc::SIG_DFL);
    }
    unblock()
}

/// Opens the session, waits for its end, and closes it; its place is still taken then.
fn serve(
    keeper: &ProcessChannel,
    permit: &Served,
    descriptors: Vec<OwnedFd>,
    cache: Option<TicketCache>,
    ending: &mut Ending,
) -> Option<SessionPlace> {
    let say = |says: &MonitorSays, descriptors: &[BorrowedFd<'_>]| {
        serde_json::to_vec(says).map_err(io::Error::from).and_then(|text| keeper.send(&text, descriptors))
    };
    let session = match OpenSession::open(permit, descriptors, cache.as_ref()) {
        Ok(session) => session,
        Err(SessionRefused { why, text }) => {
            permit.log_refused(&format!("log in as {}: {text}", permit.account.name));
            let _ = say(&MonitorSays::Refused { why, text }, &[]);
            return None;
        }
    };
    let OpenSession { process, launcher, pam, terminal, place } = session;
    tracing::info!("{permit} logged in as {}", permit.account.name);
    // A keeper that is gone takes the launcher with it, and the process ends.
    let _ = say(&MonitorSays::Opened { process }, &[launcher.as_fd()]);
    drop(launcher);
    let record = terminal.filter(|_| privileges::is_root());
    let record = record
        .and_then(|terminal| LoginRecord::begin(&terminal, &permit.account.name, permit.peer(), process));
    let status = ending.of_program(process);
    let _ = say(&MonitorSays::Ended { status: status.map_or(255 << 8, ExitStatusExt::into_raw) }, &[]);
    drop(record);
    drop(pam);
    // The keeper may wait for a client for days.
    drop(cache);
    let by = if ending.told { ", by the configuration or by root" } else { "" };
    tracing::info!("{permit}: the login as {} ended{by}", permit.account.name);
    Some(place)
}

/// A session that is open.
struct OpenSession {
    process: libc::pid_t,
    launcher: ProcessChannel,
    pam: Option<PamSession>,
    terminal: Option<PathBuf>,
    place: SessionPlace,
}

impl OpenSession {
    fn open(
        permit: &Served,
        descriptors: Vec<OwnedFd>,
        cache: Option<&TicketCache>,
    ) -> Result<OpenSession, SessionRefused> {
        let refused = |why, text: String| SessionRefused { why, text };
        let system = |error: io::Error| refused(WhyRefused::System, error.to_string());
        let place =
            SessionPlace::take(&permit.session(), permit.counted_as(), permit.sessions).map_err(system)?;
        let place = place.ok_or_else(|| {
            refused(WhyRefused::TooMany, "as many sessions run as may; `strait login --list`".to_owned())
        })?;
        // The kernel says what it is called, not the keeper; it is not held, so that the keeper alone can hang it up.
        let terminal =
            descriptors.first().map(|pty| pty::name_of(pty.as_fd())).transpose().map_err(system)?;
        // A keeper that was taken over may have one of another system of files, whose number is another's terminal here.
        if let Some(name) = terminal.as_deref() {
            pty::check_owner(name, permit.account.user).map_err(system)?;
        }
        drop(descriptors);
        // SAFETY: takes an integer. What modules of PAM say of it comes later.
        unsafe { libc::umask(0o022) };
        let mut pam = None;
        if privileges::is_root() {
            let login = permit.pam(terminal.as_deref());
            let opened = PamSession::open(login, || permit.account.take_groups());
            pam = Some(opened.map_err(from_pam)?);
        }
        let with = Surroundings {
            environment: pam.as_ref().map(PamSession::environment).unwrap_or_default(),
            said: pam.as_mut().map(PamSession::take_said).unwrap_or_default(),
            peer: permit.peer().to_owned(),
            principal: permit.principal.clone(),
            cache: cache.map(TicketCache::variable),
        };
        let (launcher, theirs) = ProcessChannel::pair().map_err(system)?;
        let process =
            fork(c"strait-launch", &[launcher.as_fd()], || launch::run(&theirs, &permit.account, &with))
                .map_err(system)?;
        Ok(OpenSession { process, launcher, pam, terminal, place })
    }
}

/// Waits for the end of a child.
pub(super) fn wait_for(process: libc::pid_t) -> io::Result<ExitStatus> {
    let mut status = 0;
    loop {
        // SAFETY: the pointer is to an integer that outlives the call; the process is this one's child.
        match checked(unsafe { libc::waitpid(process, &raw mut status, 0) }) {
            Ok(()) => return Ok(ExitStatus::from_raw(status)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_not_listed_has_four_streams_and_its_site_a_fourth_of_all() {
        let mut workers = LoginWorkers::default();
        let mut start = |peer: &str, key: usize, from: &str| {
            let from = format!("{from}:7").parse().unwrap();
            let (peer, key) = (peer.to_owned(), key.to_string());
            let head = StreamHead {
                peer,
                key,
                from,
                service: 4,
                version: 1,
                name: Vec::new(),
                rate_bits: None,
                binding: None,
            };
            // The number that refuses nothing as long as there is room.
            let admitted = workers.admit(&head, 0, u64::try_from(STREAMS).unwrap() / 2 - 1);
            workers.running.extend(admitted.then_some((0, RefusalLog { head, loud: false })));
            admitted
        };
        let mut count = |key: usize, from: &str| (0..9).filter(|_| start(UNLISTED, key, from)).count();
        let near: Vec<usize> = (0..9).map(|key| count(key, &format!("[2001:db8:0:{key}::1]"))).collect();
        assert_eq!(near, [4, 4, 4, 4, 0, 0, 0, 0, 0]);
        assert_eq!((9..30).map(|key| count(key, &format!("198.51.100.{key}"))).sum::<usize>(), STREAMS - 16);
        assert!(start("site-b", 99, "[2001:db8::1]"), "a peer has its own");
    }

    #[test]
    fn nodes_that_are_not_listed_are_refused_at_random_before_all_places_are_taken() {
        let refused = |taken| (0..32).filter(|random| is_refused_early(taken, *random)).count();
        assert_eq!([0, 32, 33, 48, 63, 64].map(refused), [0, 0, 1, 16, 31, 32]);
    }
}
