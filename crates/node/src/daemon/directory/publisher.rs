//! The thread that publishes this node's daily keys: at each server, since each may have a store of its own.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use strait_keying::directory::{Answer, Question};

use super::messages::Told;
use super::process::SharedFollower;
use crate::directory::{DirectoryConnection, DirectoryFailure};

/// How long a server may take: it may wait for etcd, for 8 s.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause before servers that failed are tried again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(30);
/// How often they are published again, as a server may have lost what it had.
const REPEAT: Duration = Duration::from_secs(3600);

pub(super) struct Publisher {
    servers: Vec<String>,
    follower: SharedFollower,
    /// What was given last.
    latest: Option<Box<[u8]>>,
    /// Servers that do not have it.
    without: BTreeSet<String>,
    pause: Duration,
}

impl Publisher {
    pub(super) fn new(servers: Vec<String>, follower: SharedFollower) -> Publisher {
        Publisher { servers, follower, latest: None, without: BTreeSet::new(), pause: FIRST_PAUSE }
    }

    /// Publishes what is given, until the packet process is gone.
    pub(super) fn run(mut self, given: &Receiver<Vec<u8>>) {
        loop {
            let pause = match (&self.latest, self.without.is_empty()) {
                (None, _) => Duration::MAX,
                (Some(_), true) => REPEAT,
                (Some(_), false) => self.pause,
            };
            match given.recv_timeout(pause) {
                Ok(keys) => {
                    self.latest = Some(given.try_iter().last().unwrap_or(keys).into());
                    (self.without, self.pause) = (self.servers.iter().cloned().collect(), FIRST_PAUSE);
                }
                Err(RecvTimeoutError::Timeout) if self.without.is_empty() => {
                    self.without = self.servers.iter().cloned().collect();
                }
                Err(RecvTimeoutError::Timeout) => self.pause = LAST_PAUSE.min(self.pause * 2),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.publish().is_err() {
                return;
            }
        }
    }

    /// Gives the keys to all servers that do not have them; fails only by the channel.
    fn publish(&mut self) -> io::Result<()> {
        let Some(keys) = self.latest.clone() else { return Ok(()) };
        for server in self.without.clone() {
            match put(&server, &keys) {
                Ok(()) => {
                    self.without.remove(&server);
                }
                Err(error) => {
                    let words = format!("daily keys are not published: {error}");
                    tracing::warn!(server, "{words}");
                    self.follower.lock().note_failure(&server, &words);
                }
            }
        }
        let mut told = self.follower.lock();
        told.send(&Told::Published(self.servers.len() - self.without.len()))?;
        told.tell_report()
    }
}

fn put(server: &str, keys: &[u8]) -> Result<(), DirectoryFailure> {
    let mut connection = DirectoryConnection::open(server, PATIENCE)?;
    match connection.ask(&Question::PutDailyKeys(keys.into()))? {
        Answer::Stored => Ok(()),
        _ => Err(DirectoryFailure::Malformed(strait_keying::directory::BadMessage)),
    }
}
