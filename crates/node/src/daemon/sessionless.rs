//! Peers with keys that need no session: what the key manager is told of them, and the marks that are written for it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use strait_clock::Stopwatch;
use strait_keying::sessionless::{KemKey, NodeKeys, ReceiverSettings, WallTime};
use strait_keying::{MarkOwner, PrivateKey, SessionlessSettings, SessionlessTerms, WallClock};
use zeroize::Zeroizing;

use super::marks::{MarkEvent, MarkOf, Marks};
use super::{Daemon, StartError, StarterError, roster, start};
use crate::config::{Config, DirectoryKeying, PeerSection, SessionlessSection};

/// This node's keys until they are needed, and its marks from then on.
pub(super) struct SessionlessKeys {
    /// Its keys and 32 random bytes.
    kept: Option<(NodeKeys, Zeroizing<[u8; 32]>)>,
    marks: Option<Marks>,
    /// What is wrong with the file of marks.
    trouble: Option<String>,
}

impl SessionlessKeys {
    /// Has a mark written.
    pub(super) fn persist(&mut self, owner: MarkOwner, mark: u64) {
        let which = match owner {
            MarkOwner::Own => MarkOf::Sender,
            MarkOwner::Peer(key) => MarkOf::Peer(key),
        };
        if let Some(marks) = &mut self.marks {
            marks.persist(which, mark);
        }
    }

    /// Marks that are on disk, and those that could not be written.
    pub(super) async fn next(&mut self) -> MarkEvent {
        match &mut self.marks {
            Some(marks) => marks.next().await,
            None => std::future::pending().await,
        }
    }

    /// What cannot be written, a sentence.
    pub(super) fn warning(&self) -> Option<String> {
        self.trouble.clone()
    }
}

impl Daemon {
    /// Tells the key manager of the peers of the configuration that a start begins with.
    pub(super) fn add_sessionless(&mut self) -> Result<(), StarterError> {
        let config = self.config.clone();
        self.begin_sessionless(&config)?;
        for peer in &config.peers {
            if let Some(section) = &peer.sessionless {
                self.enter_sessionless(peer, section);
            }
        }
        Ok(())
    }

    /// Opens the marks, if `config` has a peer that needs them and they are not open.
    pub(super) fn begin_sessionless(&mut self, config: &Config) -> Result<(), StarterError> {
        // A directory may tell of the first at any time.
        let told = config.directory.as_ref().is_some_and(|told| told.keying == DirectoryKeying::Sessionless);
        let is_there = told || config.peers.iter().any(|peer| peer.sessionless.is_some());
        if !is_there || self.sessionless.marks.is_some() {
            return Ok(());
        }
        let marks = Marks::open(&self.starter, self.control.public())?;
        let mark = marks.sender();
        self.sessionless.marks = Some(marks);
        let daily = self.open_daily(config)?;
        if let Some((keys, seed)) = self.sessionless.kept.take() {
            let keys = match daily {
                Some((policy, own)) => keys.with_daily_keys(policy, own),
                None => keys,
            };
            let clock = self.clock;
            self.control.begin_sessionless(SessionlessSettings {
                keys,
                clock: WallClock::new(wall_time),
                mark,
                receiver: ReceiverSettings::default(),
                stopwatch: Stopwatch::new(move || clock.running()),
                seed,
            });
        }
        self.threads.control.take_sessionless();
        Ok(())
    }

    /// Takes the ML-KEM key that was made since the start; peers that have this node's card use it.
    pub(super) fn take_kem_key(&mut self, kem: Option<KemKey>) {
        match (&mut self.sessionless.kept, kem) {
            (Some((keys, _)), Some(kem)) => drop(keys.kem.get_or_insert(kem)),
            (None, Some(kem)) => self.control.take_kem_key(kem),
            (_, None) => {}
        }
    }

    /// Tells the key manager of a peer, or what changed of it.
    pub(super) fn enter_sessionless(&mut self, peer: &PeerSection, section: &SessionlessSection) {
        let spec = self.roster.enter(peer);
        let (Some(config), Some(marks)) = (roster::keyed(peer, spec), &self.sessionless.marks) else {
            return;
        };
        let terms = SessionlessTerms {
            path: section.path,
            epoch: section.epoch,
            pinned: section.pin,
            card: section.card.clone().map(Box::new),
            mark: marks.of(&config.key),
        };
        let (id, key, now) = (config.spec.id, config.key, self.clock.now());
        self.control.update_sessionless(config, terms, now);
        if let Some(place) = self.paths.place_outside(&key, &self.plan) {
            self.control.remember_place(id, place, now);
        }
    }

    /// Something became of marks.
    pub(super) fn mark_event(&mut self, event: MarkEvent) {
        let now = self.clock.now();
        match event {
            MarkEvent::Persisted(which, mark) => {
                if self.sessionless.trouble.take().is_some() {
                    tracing::info!("marks of keys without sessions are written again");
                }
                let owner = match which {
                    MarkOf::Sender => MarkOwner::Own,
                    MarkOf::Peer(key) => MarkOwner::Peer(key),
                };
                self.control.mark_persisted(owner, mark, now);
            }
            MarkEvent::Refused(which) => {
                let whose = match which {
                    MarkOf::Sender => "this node".to_owned(),
                    MarkOf::Peer(key) => format!("the peer with the public key {key}"),
                };
                tracing::error!("there is no room for the mark of {whose}: its packets are refused");
            }
            MarkEvent::Late(error) => self.marks_fail(format!("marks of keys without sessions: {error}")),
            MarkEvent::Ended(error) => self.marks_fail(format!(
                "no marks of keys without sessions are written any more, so nothing is sent or taken without a session: {error}"
            )),
        }
    }

    fn marks_fail(&mut self, words: String) {
        if self.sessionless.trouble.replace(words.clone()).is_none() {
            tracing::error!("{words}");
        }
    }
}

/// The time of day of this machine; 1995 if its clock is before 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "numbers and epochs go by the time of day; one that goes back is told"
)]
fn wall_time() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    WallTime::from_unix(since)
}

/// The keys of the node with this identity, until they are needed.
pub(super) fn keys(identity: &PrivateKey, kem: Option<KemKey>) -> Result<SessionlessKeys, StartError> {
    let keys = NodeKeys::new(PrivateKey::generate(identity.expose_seed()), kem);
    let seed = start::seed().map_err(StartError::Runtime)?;
    Ok(SessionlessKeys { kept: Some((keys, seed)), marks: None, trouble: None })
}
