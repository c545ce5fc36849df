//! The process that follows a directory for the packet process, which may open no connection. It has no privilege and no key.
//!
//! It asks one directory at a time for all certificates and for what is new; one that fails or lies gives way to the next. What it holds
//! is in a file, so that a node that starts without any directory has the peers that it had.

use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use strait_keying::PublicKey;
use strait_keying::directory::Question;

use super::cache::CertificateCache;
use super::holder::{Change, Holder, News};
use crate::directory::DirectoryConnection;
use crate::path_memory::unix_time;
use crate::privileges;
use crate::process::ProcessChannel;
use crate::report::{DirectoryReport, NotTakenReport};

/// How long a directory may take to be reached or to say something: it says something every 10 s.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause before the next directory is asked: at first, and at most, as long as directories fail.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(30);
/// How often what expires is looked for, and the packet process is told how things are.
const REVIEW: Duration = Duration::from_secs(5);

/// What the process needs to know.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Mandate {
    pub(super) authority: String,
    pub(super) servers: Vec<String>,
    pub(super) max_stale_s: u64,
    pub(super) max_peers: usize,
    /// The file for what is held.
    pub(super) cache: Option<PathBuf>,
    /// As whom it goes on.
    pub(super) user: String,
}

/// What it tells.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Told {
    /// A peer, by its certificate as text.
    Admit(String),
    /// A peer that is none any more, by its key, and why.
    Dismiss(String, String),
    /// How things are.
    Report(Box<DirectoryReport>),
}

/// What the process does, until the packet process is gone.
pub(super) fn run(channel: &ProcessChannel) -> i32 {
    // Without a directory in the configuration there is no mandate, only an end.
    let Ok((text, _)) = channel.receive() else { return 0 };
    let Ok(mandate) = serde_json::from_slice::<Mandate>(&text) else { return 1 };
    let cache = mandate.cache.as_ref().map(|path| {
        CertificateCache::open(path).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), "certificates are not kept on disk: {error}");
            CertificateCache::default()
        })
    });
    let user = mandate.user.parse().unwrap_or(privileges::ServiceUser::Same);
    if let Err(error) = privileges::drop_all(user) {
        tracing::error!("no directory is followed: {error}");
        return 1;
    }
    let (Ok(ends), Ok(authority)) = (channel.try_clone(), mandate.authority.parse()) else { return 1 };
    thread::spawn(move || {
        // Nothing is said to this process, so whatever comes is the end.
        let _ = ends.receive();
        std::process::exit(0);
    });
    let mut follower = Follower::new(&mandate, authority, cache.unwrap_or_default(), channel);
    match follower.run(&mandate.servers) {
        Ok(()) => 0,
        Err(error) => {
            tracing::debug!("the packet process is gone: {error}");
            0
        }
    }
}

struct Follower<'a> {
    holder: Holder,
    cache: CertificateCache,
    channel: &'a ProcessChannel,
    reviewed: Instant,
    report: DirectoryReport,
    /// Whether it was said that there is no fresh list.
    stale_said: bool,
}

impl Follower<'_> {
    fn new<'a>(
        mandate: &Mandate,
        authority: PublicKey,
        cache: CertificateCache,
        channel: &'a ProcessChannel,
    ) -> Follower<'a> {
        let holder = Holder::new(authority, Duration::from_secs(mandate.max_stale_s), mandate.max_peers);
        let report = DirectoryReport { authority: mandate.authority.clone(), ..DirectoryReport::default() };
        Follower { holder, cache, channel, reviewed: Instant::now(), report, stale_said: false }
    }

    /// Follows directories in turn; ends only by an error of the channel.
    fn run(&mut self, servers: &[String]) -> io::Result<()> {
        let kept = self.cache.read().unwrap_or_else(|error| {
            tracing::warn!("certificates on disk are not read: {error}");
            Vec::new()
        });
        let changes = self.holder.restore(kept, unix_time());
        tracing::debug!(peers = changes.len(), "certificates of an earlier run");
        self.tell(changes)?;
        self.rewrite();
        let mut pause = FIRST_PAUSE;
        loop {
            for server in servers {
                let begun = Instant::now();
                let failed = self.follow(server)?;
                self.report.server = None;
                self.report.failures += 1;
                if begun.elapsed() > PATIENCE {
                    pause = FIRST_PAUSE;
                }
                tracing::warn!(server, "the directory is not followed: {failed}");
                self.report.last_failure = Some(format!("{server}: {failed}"));
                self.tell_report()?;
                self.wait(pause)?;
            }
            pause = LAST_PAUSE.min(pause * 2);
        }
    }

    /// Follows one directory; says why that ended.
    fn follow(&mut self, server: &str) -> io::Result<String> {
        let mut directory = match DirectoryConnection::open(server, PATIENCE) {
            Ok(directory) => directory,
            Err(error) => return Ok(error.to_string()),
        };
        if let Err(error) = directory.say(&Question::Watch { certificates: true }) {
            return Ok(error.to_string());
        }
        loop {
            let answer = match directory.hear() {
                Ok(answer) => answer,
                Err(error) => return Ok(error.to_string()),
            };
            if self.report.server.is_none() {
                self.report.server = Some(server.to_owned());
                tracing::info!(server, "the directory is followed");
            }
            match self.holder.take(&answer, unix_time()) {
                Ok((News::Nothing, changes)) => self.tell(changes)?,
                Ok((_, changes)) => {
                    // First on disk: a list that was acted on is not forgotten.
                    match self.cache.add(&answer) {
                        Ok(false) => {}
                        Ok(true) => self.rewrite(),
                        Err(error) => tracing::warn!("a certificate is not kept on disk: {error}"),
                    }
                    self.tell(changes)?;
                }
                Err(words) => return Ok(words),
            }
            self.look()?;
        }
    }

    fn wait(&mut self, pause: Duration) -> io::Result<()> {
        let begun = Instant::now();
        while let Some(left) = pause.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
            thread::sleep(left.min(REVIEW));
            self.look()?;
        }
        Ok(())
    }

    /// Looks for what expires, if it is time.
    fn look(&mut self) -> io::Result<()> {
        if self.reviewed.elapsed() < REVIEW {
            return Ok(());
        }
        self.reviewed = Instant::now();
        let changes = self.holder.review(unix_time());
        self.tell(changes)?;
        self.tell_report()
    }

    fn tell(&mut self, changes: Vec<Change>) -> io::Result<()> {
        let any = !changes.is_empty();
        for change in changes {
            match change {
                Change::Admit(certificate) => self.send(&Told::Admit(certificate.to_text()))?,
                Change::Dismiss(key, why) => self.send(&Told::Dismiss(key.to_string(), why.to_string()))?,
            }
        }
        if any { self.tell_report() } else { Ok(()) }
    }

    fn tell_report(&mut self) -> io::Result<()> {
        let now = unix_time();
        let stale = self.holder.trust().is_fresh(now).err();
        match &stale {
            Some(why) if !std::mem::replace(&mut self.stale_said, true) => {
                tracing::warn!("no new peers of the directory are taken: {why}");
            }
            None => self.stale_said = false,
            Some(_) => {}
        }
        let list = self.holder.trust().list();
        let counts = self.holder.counts().named().into_iter().chain([("full", self.holder.full())]);
        let report = DirectoryReport {
            list: list.map(|list| list.number()),
            list_age_seconds: list.map(|list| now.saturating_sub(list.issued())),
            is_fresh: stale.is_none(),
            certificates: self.holder.admitted(),
            not_taken: counts
                .map(|(reason, count)| NotTakenReport { reason: reason.to_owned(), count })
                .collect(),
            ..self.report.clone()
        };
        self.send(&Told::Report(Box::new(report)))
    }

    fn send(&self, told: &Told) -> io::Result<()> {
        self.channel.send(&serde_json::to_vec(told)?, &[])
    }

    fn rewrite(&mut self) {
        if let Err(error) = self.cache.write(self.holder.all()) {
            tracing::warn!("certificates are not kept on disk: {error}");
        }
    }
}
