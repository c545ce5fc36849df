//! The process that follows a directory for the packet process, which may open no connection. It has no privilege and no key.
//!
//! It asks one directory at a time for all certificates and for what is new; one that fails or lies gives way to the next. What it holds
//! is in a file, so that a node that starts without any directory has the peers that it had.
//!
//! Where certificates are looked up, it is told only of lists so, and another thread asks for what the packet process needs
//! (finder.rs). Both have what is held in common.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use strait_keying::PublicKey;
use strait_keying::directory::{Answer, Certificate, Question};
use strait_wire::sessionless::Name;

use super::cache::CertificateCache;
use super::finder::Finder;
use super::holder::{Change, DemandCounts, Holder, News};
use super::messages::{Ended, Mandate, Told, Wanted};
use super::publisher::Publisher;
use crate::directory::DirectoryConnection;
use crate::path_memory::unix_time;
use crate::privileges;
use crate::process::ProcessChannel;
use crate::report::{CacheReport, DirectoryReport, NotTakenReport};

/// How long a directory may take to be reached or to say something: it says something every 10 s.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause before the next directory is asked: at first, and at most, as long as directories fail.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(30);
/// How often what expires is looked for, and the packet process is told how things are.
const REVIEW: Duration = Duration::from_secs(5);

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
    let (Ok(ends), Ok(says), Ok(authority)) =
        (channel.try_clone(), channel.try_clone(), mandate.authority.parse())
    else {
        return 1;
    };
    let mut follower = Follower::new(&mandate, authority, cache.unwrap_or_default(), says);
    if let Err(error) = follower.restore() {
        tracing::debug!("the packet process is gone: {error}");
        return 0;
    }
    let follower = SharedFollower(Arc::new(Mutex::new(follower)));
    let ((gives, wanted), (publishes, published)) = (mpsc::channel(), mpsc::channel());
    thread::spawn(move || {
        listen(&ends, &gives, &publishes);
        std::process::exit(0);
    });
    if mandate.on_demand {
        let finder = Finder::new(mandate.servers.clone(), follower.clone(), mandate.daily_keys);
        thread::spawn(move || finder.run(&wanted));
    }
    if mandate.daily_keys {
        let publisher = Publisher::new(mandate.servers.clone(), follower.clone());
        thread::spawn(move || publisher.run(&published));
    }
    let watch = match (mandate.on_demand, mandate.daily_keys) {
        (true, _) => Question::Watch { certificates: false },
        (false, false) => Question::Watch { certificates: true },
        (false, true) => Question::WatchAll,
    };
    match follow_all(&follower, &mandate.servers, &watch) {
        Ok(()) => 0,
        Err(error) => {
            tracing::debug!("the packet process is gone: {error}");
            0
        }
    }
}

/// Takes what the packet process wants, until that is gone. It waits for nothing else, so that the packet process never has to.
fn listen(channel: &ProcessChannel, gives: &Sender<Wanted>, publishes: &Sender<Vec<u8>>) {
    while let Ok((text, _)) = channel.receive() {
        match serde_json::from_slice(&text) {
            Ok(Wanted::Publish(keys)) => drop(publishes.send(keys)),
            // Where certificates are not looked up, nothing is wanted.
            Ok(wanted) => drop(gives.send(wanted)),
            Err(error) => tracing::debug!("the packet process said something else: {error}"),
        }
    }
}

/// Follows directories in turn; ends only by an error of the channel.
fn follow_all(follower: &SharedFollower, servers: &[String], watch: &Question) -> io::Result<()> {
    let mut pause = FIRST_PAUSE;
    loop {
        for server in servers {
            let begun = Instant::now();
            let failed = follow(follower, server, watch)?;
            if begun.elapsed() > PATIENCE {
                pause = FIRST_PAUSE;
            }
            tracing::warn!(server, "the directory is not followed: {failed}");
            let mut told = follower.lock();
            told.report.server = None;
            told.note_failure(server, &failed);
            told.tell_report()?;
            drop(told);
            wait(follower, pause)?;
        }
        pause = LAST_PAUSE.min(pause * 2);
    }
}

/// Follows one directory; says why that ended.
fn follow(follower: &SharedFollower, server: &str, watch: &Question) -> io::Result<String> {
    let mut directory = match DirectoryConnection::open(server, PATIENCE) {
        Ok(directory) => directory,
        Err(error) => return Ok(error.to_string()),
    };
    if let Err(error) = directory.say(watch) {
        return Ok(error.to_string());
    }
    loop {
        let answer = match directory.hear() {
            Ok(answer) => answer,
            Err(error) => return Ok(error.to_string()),
        };
        let mut told = follower.lock();
        if told.report.server.is_none() {
            told.report.server = Some(server.to_owned());
            tracing::info!(server, "the directory is followed");
        }
        match told.holder.take(&answer, unix_time()) {
            Ok((News::Nothing, changes)) => told.tell(changes)?,
            Ok((news, changes)) => {
                // First on disk: a list that was acted on is not forgotten.
                told.keep(&answer);
                if news == News::List {
                    told.send(&Told::NewerList)?;
                    told.tell_report()?;
                }
                told.tell(changes)?;
            }
            Err(words) => return Ok(words),
        }
        told.look()?;
    }
}

fn wait(follower: &SharedFollower, pause: Duration) -> io::Result<()> {
    let begun = Instant::now();
    while let Some(left) = pause.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
        thread::sleep(left.min(REVIEW));
        follower.lock().look()?;
    }
    Ok(())
}

/// What the threads of the process have in common.
#[derive(Clone)]
pub(super) struct SharedFollower(Arc<Mutex<Follower>>);

impl SharedFollower {
    /// To be held for no longer than the disk takes.
    pub(super) fn lock(&self) -> MutexGuard<'_, Follower> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Follower {
    pub(super) holder: Holder,
    cache: CertificateCache,
    channel: ProcessChannel,
    reviewed: Instant,
    report: DirectoryReport,
    /// Whether it was said that there is no fresh list.
    stale_said: bool,
}

impl Follower {
    fn new(
        mandate: &Mandate,
        authority: PublicKey,
        cache: CertificateCache,
        channel: ProcessChannel,
    ) -> Follower {
        let holder = Holder::new(authority, Duration::from_secs(mandate.max_stale_s), mandate.max_held);
        let holder = if mandate.on_demand { holder.on_demand() } else { holder };
        let report = DirectoryReport { authority: mandate.authority.clone(), ..DirectoryReport::default() };
        Follower { holder, cache, channel, reviewed: Instant::now(), report, stale_said: false }
    }

    /// Takes what an earlier run left on disk.
    fn restore(&mut self) -> io::Result<()> {
        let kept = self.cache.read().unwrap_or_else(|error| {
            tracing::warn!("certificates on disk are not read: {error}");
            Vec::new()
        });
        let changes = self.holder.restore(kept, unix_time());
        tracing::debug!(peers = changes.len(), "certificates of an earlier run");
        self.tell(changes)?;
        self.rewrite();
        Ok(())
    }

    /// Writes what is new to disk.
    pub(super) fn keep(&mut self, answer: &Answer) {
        match self.cache.add(answer) {
            Ok(false) => {}
            Ok(true) => self.rewrite(),
            Err(error) => tracing::warn!("a certificate is not kept on disk: {error}"),
        }
    }

    /// Notes how asking a server failed.
    pub(super) fn note_failure(&mut self, server: &str, failed: &str) {
        self.report.failures += 1;
        self.report.last_failure = Some(format!("{server}: {failed}"));
    }

    /// Tells how a look-up ended, and before that whom it found.
    pub(super) fn looked_up(
        &mut self,
        name: &Name,
        found: Option<&Certificate>,
        ended: Ended,
    ) -> io::Result<()> {
        if let Some(certificate) = found {
            self.admit(certificate)?;
        }
        self.send(&Told::LookedUp(Question::Find(*name).to_bytes(), ended))
    }

    /// Tells of a peer, with its daily keys.
    fn admit(&self, certificate: &Certificate) -> io::Result<()> {
        self.send(&Told::Admit(certificate.to_text()))?;
        self.tell_daily_keys(certificate.key())
    }

    /// Tells of the daily keys of a peer, if they are known.
    pub(super) fn tell_daily_keys(&self, node: &PublicKey) -> io::Result<()> {
        match self.holder.daily_keys(node) {
            Some(keys) => self.send(&Told::DailyKeys(keys.as_bytes().to_vec())),
            None => Ok(()),
        }
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
        let any = changes.iter().any(|change| !matches!(change, Change::DailyKeys(_)));
        for change in changes {
            match change {
                Change::Admit(certificate) => self.admit(&certificate)?,
                Change::DailyKeys(node) => self.tell_daily_keys(&node)?,
                Change::Dismiss(key, why) => self.send(&Told::Dismiss(key.to_string(), why.to_string()))?,
            }
        }
        if any { self.tell_report() } else { Ok(()) }
    }

    pub(super) fn tell_report(&mut self) -> io::Result<()> {
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
        let demand = self.holder.demand_counts();
        let other_name = demand.map(|demand| ("other_name", demand.other_name));
        let counts = self.holder.counts().named().into_iter().chain([("full", self.holder.full())]);
        let counts = counts.chain(other_name);
        let report = DirectoryReport {
            list: list.map(|list| list.number()),
            list_age_seconds: list.map(|list| self.holder.trust().time(now).saturating_sub(list.issued())),
            clock_behind_seconds: self.holder.trust().clock_behind(now),
            is_fresh: stale.is_none(),
            certificates: self.holder.admitted(),
            not_taken: counts
                .map(|(reason, count)| NotTakenReport { reason: reason.to_owned(), count })
                .collect(),
            caches: demand.iter().map(held).collect(),
            ..self.report.clone()
        };
        self.send(&Told::Report(Box::new(report)))
    }

    pub(super) fn send(&self, told: &Told) -> io::Result<()> {
        self.channel.send(&serde_json::to_vec(told)?, &[])
    }

    fn rewrite(&mut self) {
        if let Err(error) = self.cache.write(self.holder.all()) {
            tracing::warn!("certificates are not kept on disk: {error}");
        }
    }
}

/// What is held, as a cache.
fn held(demand: &DemandCounts) -> CacheReport {
    CacheReport::new("certificates", demand.held, Some(demand.held.took))
}
