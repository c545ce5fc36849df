//! The thread that looks certificates up: first in what is held, then at a directory.
//!
//! What is wanted at the same time is asked for together, and answers come in the order of the questions. A server that fails, lies or takes
//! too long gives way to the next; what none has answered in time has failed, and is asked for again when it is needed again.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use strait_clock::Time;
use strait_keying::directory::{Answer, Certificate, Question};
use strait_scheduler::Budget;
use strait_wire::sessionless::Name;

use super::holder::Found;
use super::messages::{Ended, Wanted};
use super::process::SharedFollower;
use crate::directory::{DirectoryConnection, DirectoryFailure};
use crate::path_memory::unix_time;

/// Questions that are asked together: their answers are 400 kB at most, far below what a directory gives one source in a second.
const TOGETHER: usize = 64;
/// How long a server may take for what is asked together: half of how long packets wait, so that another can be asked.
const PATIENCE: Duration = Duration::from_millis(1200);
/// How long all servers together may take.
const PATIENCE_IN_ALL: Duration = Duration::from_millis(2500);

/// How often it is seen whether daily keys are to be asked for again.
const LOOK: Duration = Duration::from_secs(5);

pub(super) struct Finder {
    servers: Vec<String>,
    follower: SharedFollower,
    /// Whether daily keys are looked up too.
    daily_keys: bool,
    /// The server that is asked, and the connection to it.
    at: usize,
    connection: Option<DirectoryConnection>,
    /// Lines on servers that fail.
    lines: Budget,
    begun: Instant,
}

/// Why a server did not answer everything.
enum Failed {
    /// The packet process is gone.
    Channel,
    /// The server, and how.
    Server(String),
}

impl From<io::Error> for Failed {
    /// Of the channel; those of a connection are another type's.
    fn from(_: io::Error) -> Failed {
        Failed::Channel
    }
}

impl From<DirectoryFailure> for Failed {
    fn from(error: DirectoryFailure) -> Failed {
        Failed::Server(error.to_string())
    }
}

impl Finder {
    pub(super) fn new(servers: Vec<String>, follower: SharedFollower, daily_keys: bool) -> Finder {
        let lines = Budget::new(1, 4);
        Finder { servers, follower, daily_keys, at: 0, connection: None, lines, begun: Instant::now() }
    }

    /// Looks up what is wanted, until the packet process is gone.
    pub(super) fn run(mut self, wanted: &Receiver<Wanted>) {
        loop {
            let first = match wanted.recv_timeout(LOOK) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let together = first.into_iter().chain(wanted.try_iter().take(TOGETHER - 1));
            let names: Vec<Name> = together.filter_map(|wanted| self.name(wanted)).collect();
            let looked_up = if names.is_empty() { Ok(()) } else { self.look_up(names) };
            if looked_up.and_then(|()| self.refresh_daily_keys()).is_err() {
                return;
            }
        }
    }

    /// What is to be found; what else is wanted is done.
    fn name(&self, wanted: Wanted) -> Option<Name> {
        match wanted {
            Wanted::Find(question) => match Question::from_bytes(&question) {
                Ok(Question::Find(name)) => Some(name),
                _ => None,
            },
            Wanted::Evicted(key) => {
                let key = key.parse().ok()?;
                self.follower.lock().holder.evict(&key);
                None
            }
            Wanted::Publish(_) => None,
        }
    }

    fn look_up(&mut self, names: Vec<Name>) -> io::Result<()> {
        let mut unknown = self.find_here(names)?;
        let (began, asked) = (Instant::now(), unknown.len());
        let until = began + PATIENCE_IN_ALL;
        for _ in 0..self.servers.len() {
            if unknown.is_empty() || Instant::now() >= until {
                break;
            }
            match self.ask(&mut unknown, until) {
                Ok(()) => {}
                Err(Failed::Channel) => return Err(io::ErrorKind::BrokenPipe.into()),
                Err(Failed::Server(why)) => self.give_way(&why)?,
            }
        }
        let mut told = self.follower.lock();
        // Each of them waited until all were answered.
        told.holder.note_asked(began.elapsed() * u32::try_from(asked).unwrap_or(u32::MAX));
        unknown.iter().try_for_each(|name| told.looked_up(name, None, Ended::Failed))
    }

    /// Answers what is held here; gives back what a directory has to be asked for.
    fn find_here(&self, names: Vec<Name>) -> io::Result<Vec<Name>> {
        let mut told = self.follower.lock();
        let now = unix_time();
        let mut unknown = Vec::new();
        for name in names {
            if let Some(certificate) = told.holder.find(&name, now) {
                told.looked_up(&name, Some(&certificate), Ended::Found)?;
            } else if told.holder.may_judge(now).is_err() {
                told.looked_up(&name, None, Ended::Refused)?;
            } else {
                unknown.push(name);
            }
        }
        Ok(unknown)
    }

    /// Asks the server whose turn it is; what it has answered is not in `names` any more.
    fn ask(&mut self, names: &mut Vec<Name>, until: Instant) -> Result<(), Failed> {
        let until = until.min(Instant::now() + PATIENCE);
        // It closes a connection on which nothing was asked for a minute: then another is as good.
        if let Some(connection) = self.connection.take() {
            match self.ask_on(connection, names, until) {
                Err(Failed::Server(_)) if Instant::now() < until => {}
                ended => return ended,
            }
        }
        let server = self.servers.get(self.at).cloned().unwrap_or_default();
        let patience = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let connection = DirectoryConnection::open(&server, patience).map_err(DirectoryFailure::from)?;
        self.ask_on(connection, names, until)
    }

    fn ask_on(
        &mut self,
        mut connection: DirectoryConnection,
        names: &mut Vec<Name>,
        until: Instant,
    ) -> Result<(), Failed> {
        for name in &*names {
            connection.say(&Question::Find(*name)).map_err(DirectoryFailure::from)?;
        }
        let mut found = Vec::new();
        while let Some(name) = names.first().copied() {
            let answer = connection.hear_until(until)?;
            let mut told = self.follower.lock();
            match told.holder.found(&name, &answer, unix_time()).map_err(Failed::Server)? {
                Found::Peer(certificate, is_new) => {
                    if is_new {
                        told.keep(&answer);
                    }
                    if self.daily_keys {
                        found.push((name, certificate));
                    } else {
                        told.looked_up(&name, Some(&certificate), Ended::Found)?;
                    }
                }
                Found::None => told.looked_up(&name, None, Ended::NotFound)?,
                Found::Refused(why) => {
                    tracing::debug!("a certificate is not taken: {why}");
                    told.looked_up(&name, None, Ended::Refused)?;
                }
            }
            drop(told);
            names.remove(0);
        }
        self.with_daily_keys(&mut connection, &found, until)?;
        self.connection = Some(connection);
        Ok(())
    }

    /// Says of peers that they were found, once the daily keys of those that are new are there too: the first packet to one can have them
    /// in its key so.
    fn with_daily_keys(
        &self,
        connection: &mut DirectoryConnection,
        found: &[(Name, Box<Certificate>)],
        until: Instant,
    ) -> Result<(), Failed> {
        if !self.daily_keys {
            return Ok(());
        }
        let wanted = self.follower.lock().holder.ask_for_daily_keys(unix_time(), TOGETHER);
        let asked = self.ask_for_daily_keys(connection, &wanted, until);
        let mut told = self.follower.lock();
        for (name, certificate) in found {
            told.looked_up(name, Some(certificate), Ended::Found)?;
        }
        asked
    }

    /// Asks for daily keys that are not known, or were asked for long ago.
    fn refresh_daily_keys(&mut self) -> io::Result<()> {
        if !self.daily_keys {
            return Ok(());
        }
        let wanted = self.follower.lock().holder.ask_for_daily_keys(unix_time(), TOGETHER);
        if wanted.is_empty() {
            return Ok(());
        }
        let server = self.servers.get(self.at).cloned().unwrap_or_default();
        let until = Instant::now() + PATIENCE;
        let ask = || {
            let mut connection =
                DirectoryConnection::open(&server, PATIENCE).map_err(DirectoryFailure::from)?;
            self.ask_for_daily_keys(&mut connection, &wanted, until)
        };
        match ask() {
            Ok(()) => Ok(()),
            Err(Failed::Channel) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(Failed::Server(why)) => self.give_way(&why),
        }
    }

    fn ask_for_daily_keys(
        &self,
        connection: &mut DirectoryConnection,
        wanted: &[Name],
        until: Instant,
    ) -> Result<(), Failed> {
        for name in wanted {
            connection.say(&Question::FindDailyKeys(*name)).map_err(DirectoryFailure::from)?;
        }
        for _ in wanted {
            let answer = connection.hear_until(until)?;
            let Answer::DailyKeys(bytes) = &answer else { continue };
            let mut told = self.follower.lock();
            if let Some(node) = told.holder.take_daily_keys(bytes, unix_time()).map_err(Failed::Server)? {
                told.keep(&answer);
                told.tell_daily_keys(&node)?;
            }
        }
        Ok(())
    }

    /// Goes on to the next server.
    fn give_way(&mut self, why: &str) -> io::Result<()> {
        let server = self.servers.get(self.at).cloned().unwrap_or_default();
        self.at = (self.at + 1) % self.servers.len().max(1);
        if self.lines.take(1, Time::ZERO + self.begun.elapsed()) {
            tracing::warn!(server, "the directory does not answer look-ups: {why}");
        }
        let mut told = self.follower.lock();
        told.note_failure(&server, why);
        told.tell_report()
    }
}
