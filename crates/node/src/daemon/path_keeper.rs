//! The figures of the paths to peers, and the places of peers, noted as they are found, and kept for the next start.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use strait_clock::Time;
use strait_ipsec::{LossPattern, PeerCounters, PeerId, outbound};
use strait_keying::{Control, PeerStatus, PublicKey};

use super::Daemon;
use super::starter::Starter;
use crate::network::Plan;
use crate::path_memory::{PathFile, PathFound, PathKey, PathMemory, PlaceFound, unix_time};
use crate::report::RememberedReport;

/// How often it is looked what was found: what came since counts for no path if that changes.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How far writes are apart at least, as flash memory wears: a hundred thousand in a year.
const WRITE_EVERY: Duration = Duration::from_secs(300);

/// The path to one peer.
#[derive(Debug)]
struct CurrentPath {
    key: PathKey,
    /// What was remembered of it when it came in use.
    remembered: Option<PathFound>,
    /// Delivery reports by the last look: without more there is nothing new.
    reports: u64,
    /// True if it cleared ECN marks then.
    clears_marks: bool,
}

/// What is remembered of all paths, and which are in use.
#[derive(Debug)]
pub(super) struct PathKeeper {
    memory: PathMemory,
    current: BTreeMap<PeerId, CurrentPath>,
    look_at: Time,
    /// When something that is worth it may be written.
    write_at: Time,
    /// Whether there is something that is worth a write, and whether there is anything new at all.
    news: (bool, bool),
    /// Whether the last write failed, which was logged.
    failing: bool,
}

impl PathKeeper {
    /// Reads what earlier runs found, while this process may open files.
    pub(super) fn open(interface: &str) -> PathKeeper {
        let file = PathFile::of(interface);
        let memory = file.map(|file| file.read()).unwrap_or_default();
        tracing::debug!(paths = memory.len(), "rates of paths are remembered");
        PathKeeper {
            memory,
            current: BTreeMap::new(),
            look_at: Time::ZERO,
            write_at: Time::ZERO,
            news: (false, false),
            failing: false,
        }
    }

    /// When [`Daemon::note_paths`] wants to be called next; never while no path is in use.
    pub(super) fn poll_timeout(&self) -> Time {
        if self.current.is_empty() { Time::MAX } else { self.look_at }
    }

    /// Whether the path to a peer leads to the same network as when it came in use.
    fn is_as_it_was(&self, peer: PeerId, counters: &PeerCounters) -> bool {
        let (Some(current), Some(endpoint)) = (self.current.get(&peer), counters.endpoint.get()) else {
            return true;
        };
        current.key.network.contains(&endpoint.ip().to_canonical())
    }

    /// Datagrams to a peer take this path; what is remembered of it, if it is another than before.
    fn enter(&mut self, peer: PeerId, key: PathKey) -> Option<Option<PathFound>> {
        if self.current.get(&peer).is_some_and(|current| current.key == key) {
            return None;
        }
        let remembered = self.memory.get(&key);
        let reports = self.current.get(&peer).map_or(0, |current| current.reports);
        self.current.insert(peer, CurrentPath { key, remembered, reports, clears_marks: false });
        Some(remembered)
    }

    /// Notes what reports said of the path to a peer since the last look.
    fn note(&mut self, peer: PeerId, counters: &PeerCounters, at: u64) {
        let Some(current) = self.current.get_mut(&peer) else { return };
        let reports = counters.reports_in.get();
        let Some(path) = counters.path.get().filter(|_| reports > current.reports) else { return };
        current.reports = reports;
        if std::mem::replace(&mut current.clears_marks, path.clears_marks) != path.clears_marks {
            let does =
                if path.clears_marks { "clears ECN marks: none are sent" } else { "leaves ECN marks again" };
            let network = &current.key.network;
            tracing::info!("the path to {network} {does}");
        }
        let rate = path.estimate.and_then(|estimate| estimate.found);
        let found = PathFound::new(rate, path.least_round_trip, path.losses, at);
        let is_news = self.memory.note(current.key.clone(), found);
        self.news = (self.news.0 | is_news, true);
    }

    /// Returns the place at which a peer was heard last.
    pub(super) fn place(&self, peer: &PublicKey) -> Option<PlaceFound> {
        self.memory.place(peer)
    }

    /// Returns the place of a peer in an earlier run, if datagrams to it do not go into the tunnel, as those may that only a look-up would
    /// keep out.
    pub(super) fn place_outside(&self, peer: &PublicKey, plan: &Plan) -> Option<SocketAddr> {
        self.place(peer).map(|place| place.endpoint).filter(|at| !plan.would_loop(*at))
    }

    /// Returns the seconds since an earlier run heard a peer where it is taken to be, if nothing tells it better.
    pub(super) fn place_age(&self, status: &PeerStatus) -> Option<u64> {
        let place = self.place(&status.key)?;
        let is_it = status.remembered.is_some_and(|at| at == place.endpoint && status.endpoint == Some(at));
        is_it.then(|| unix_time().saturating_sub(place.at))
    }

    /// Notes where peers were heard.
    fn note_place(&mut self, peer: PublicKey, place: PlaceFound) {
        let is_news = self.memory.note_place(peer, place);
        self.news = (self.news.0 | is_news, true);
    }

    /// Has the starter write the file.
    fn write(&mut self, starter: &Starter) {
        self.news = (false, false);
        match (starter.remember(&self.memory), self.failing) {
            (Ok(()), _) => self.failing = false,
            (Err(error), false) => {
                self.failing = true;
                tracing::warn!("what was found on paths is not kept for the next start: {error}");
            }
            (Err(_), true) => {}
        }
    }

    /// The last word, when the packet threads have ended.
    pub(super) fn end(mut self, starter: &Starter) {
        if self.news.1 {
            self.write(starter);
        }
    }

    /// What was remembered of the path to a peer when it came in use.
    pub(super) fn report(&self, peer: PeerId) -> Option<RememberedReport> {
        let found = self.current.get(&peer)?.remembered?;
        Some(RememberedReport {
            rate_bits_per_second: found.rate.map(strait_scheduler::Rate::bits),
            min_rtt_seconds: found.round_trip.map(|micros| micros as f64 / 1e6),
            loss_ratio: found.losses().share,
            age_seconds: unix_time().saturating_sub(found.at),
        })
    }
}

impl Daemon {
    /// Finds by which path a peer is reached; if it is a new one, the sender begins with what is remembered of it.
    pub(super) fn look_at_path(&mut self, id: PeerId) {
        // Peers with manual keys, which the key manager does not know, report nothing that could be remembered.
        let Some(status) = self.control.status(id) else { return };
        let Some(address) = status.endpoint.map(|endpoint| endpoint.ip()) else { return };
        if let Ok(route) = self.watch.route(address, self.plan.mark) {
            self.enter_path(id, PathKey::new(status.key, route.interface, route.gateway, address));
        }
    }

    /// Datagrams to a peer take this path.
    pub(super) fn enter_path(&mut self, id: PeerId, key: PathKey) {
        let Some(remembered) = self.paths.enter(id, key) else { return };
        let (rate, losses) =
            remembered.map_or((None, LossPattern::NONE), |found| (found.rate, found.losses()));
        if let Some(rate) = rate {
            let peer = self.control.status(id).map(|status| status.name).unwrap_or_default();
            tracing::info!(peer, "the rate of this path is remembered: {rate}");
        }
        self.order_out(outbound::Order::NewPath(id, rate, losses));
    }

    /// Notes what was found since the last time, and has it written if it is time to.
    pub(super) fn note_paths(&mut self, now: Time) {
        if now < self.paths.look_at {
            return;
        }
        self.paths.look_at = now + LOOK_EVERY;
        self.note_all_paths();
        if self.paths.news.0 && now >= self.paths.write_at {
            self.paths.write_at = now + WRITE_EVERY;
            self.paths.write(&self.starter);
        }
    }

    /// Notes what was found since the last time. What was found where the peer is elsewhere by now is of two paths.
    pub(super) fn note_all_paths(&mut self) {
        let (at, now) = (unix_time(), self.clock.now());
        let mut moved = Vec::new();
        for peer in &self.config.peers {
            let Some((id, counters)) = self.roster.number(peer).zip(self.roster.counters(peer)) else {
                continue;
            };
            if let Some((key, place)) = heard(&self.control, id, at, now) {
                self.paths.note_place(key, place);
            }
            if self.paths.is_as_it_was(id, counters) {
                self.paths.note(id, counters, at);
            } else {
                moved.push(id);
            }
        }
        moved.into_iter().for_each(|peer| self.look_at_path(peer));
    }
}

/// Returns the place at which a peer with keys was heard, if now is `at` seconds since 1970.
fn heard(control: &Control, id: PeerId, at: u64, now: Time) -> Option<(PublicKey, PlaceFound)> {
    let status = control.status(id)?;
    let last = match &status.association {
        Some(pair) => pair.inbound.last.max(Some(pair.established))?,
        None => control.sessionless_status(id)?.inbound.first()?.last?,
    };
    Some((
        status.key,
        PlaceFound { endpoint: status.endpoint?, at: at.saturating_sub(now.since(last).as_secs()) },
    ))
}
