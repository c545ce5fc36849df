//! Peers that are not in the file, but have certificates of an authority.
//!
//! ```text
//! process   follows a directory, in a process of its own      directory/process.rs
//! finder    looks certificates up, in the same process         directory/finder.rs
//! messages  what both processes say to each other               directory/messages.rs
//! use_peers certificates become peers                           directory/use_peers.rs
//! holder    which certificates are held, and make peers         directory/holder.rs
//! publisher publishes this node's daily keys, in the same process directory/publisher.rs
//! cache     what is held, on disk                                directory/cache.rs
//! demand    what is looked up, and which peers stay              directory/demand.rs
//! peers     as the rest of the node sees them                     here
//! ```
#![allow(unsafe_code)]

mod cache;
mod demand;
mod finder;
mod holder;
mod messages;
mod process;
mod publisher;
mod use_peers;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ipnet::IpNet;
use strait_clock::Time;
use strait_keying::PublicKey;
use strait_keying::directory::{Certificate, LookUpEnd, Question};
use strait_keying::sessionless::{DailyKeys, DailyPolicy};
use strait_wire::sessionless::Name;
use tokio::io::unix::AsyncFd;

use super::{Daemon, StartError, roster};
use crate::config::{Config, DirectoryCertificates, DirectorySection, PeerSection, hush_peer};
use crate::folders::state_folder;
use crate::privileges::ServiceUser;
use crate::process::{ProcessChannel, fork, watched};
use crate::report::DirectoryReport;
use demand::Demand;
use messages::{Mandate, Told, Wanted};
pub(super) use use_peers::told;
use use_peers::{peer_of, usable};

/// Messages that are taken at once before routes and policies are made anew.
const BURST: usize = 64;

/// The other processes' end of the process that follows a directory.
#[derive(Debug)]
pub(super) struct DirectoryProcess {
    channel: ProcessChannel,
    pid: libc::pid_t,
}

impl DirectoryProcess {
    /// Starts the process; it gives up `closes`. To be called before any key is in memory. It does nothing before it has a mandate, and
    /// ends without one.
    pub(super) fn start(closes: &[BorrowedFd<'_>]) -> Result<DirectoryProcess, StartError> {
        let (channel, theirs) = ProcessChannel::pair().map_err(StartError::Runtime)?;
        let closes: Vec<_> = closes.iter().copied().chain([channel.as_fd()]).collect();
        let pid = fork(c"strait-follower", &closes, move || process::run(&theirs));
        Ok(DirectoryProcess { channel, pid: pid.map_err(StartError::Runtime)? })
    }

    /// Has it follow what the configuration says, as `user`.
    pub(super) fn begin(
        self,
        config: &Config,
        user: &ServiceUser,
    ) -> Result<Option<DirectoryPeers>, StartError> {
        let Some(section) = &config.directory else {
            let DirectoryProcess { channel, pid } = self;
            drop(channel);
            // SAFETY: a null pointer means that it is of no interest how it ended.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
            return Ok(None);
        };
        let on_demand = section.certificates == DirectoryCertificates::OnDemand;
        let mandate = Mandate {
            authority: section.authority.to_string(),
            servers: section.servers.clone(),
            max_stale_s: section.max_stale.as_secs(),
            max_held: if on_demand { section.max_certificates } else { section.max_peers },
            on_demand,
            daily_keys: section.daily_keys != DailyPolicy::Off,
            cache: state_folder()
                .map(|folder| folder.join(format!("{}.certificates", config.node.interface))),
            user: user.to_string(),
        };
        let begin = || -> io::Result<DirectoryPeers> {
            self.channel.send(&serde_json::to_vec(&mandate)?, &[])?;
            Ok(DirectoryPeers {
                section: section.clone(),
                channel: self.channel,
                peers: BTreeMap::new(),
                report: DirectoryReport {
                    authority: mandate.authority.clone(),
                    ..DirectoryReport::default()
                },
                refused: 0,
                published: 0,
                learned: Vec::new(),
                demand: mandate.on_demand.then(|| Demand::new(section)),
                ended: Vec::new(),
                is_newer: false,
                is_pin_time: false,
                events: None,
                has_ended: false,
                has_more: false,
            })
        };
        begin().map(Some).map_err(StartError::Runtime)
    }
}

impl AsFd for DirectoryProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

/// The peers of a directory.
#[derive(Debug)]
pub(super) struct DirectoryPeers {
    section: DirectorySection,
    channel: ProcessChannel,
    /// What certificates say of peers, whether that can be used or not.
    peers: BTreeMap<PublicKey, PeerSection>,
    report: DirectoryReport,
    /// Certificates with networks that the configuration does not allow.
    refused: u64,
    /// Servers that have this node's daily keys.
    published: usize,
    /// Daily keys of peers, until the key manager has them: those of a node, or that it has none any more.
    learned: Vec<Result<DailyKeys, PublicKey>>,
    /// Where certificates are looked up.
    demand: Option<Demand>,
    /// Look-ups that are over, until the peers are made that they found.
    ended: Vec<(Name, LookUpEnd)>,
    /// Whether a newer list came, so that what was refused may be taken now.
    is_newer: bool,
    /// Whether it is time to look for what is pinned and not there.
    is_pin_time: bool,
    events: Option<AsyncFd<OwnedFd>>,
    has_ended: bool,
    /// Whether more may be there to be taken.
    has_more: bool,
}

impl DirectoryPeers {
    /// Where a runtime hears of news, until the process is gone.
    fn events(&mut self) -> Option<&AsyncFd<OwnedFd>> {
        if self.events.is_none() && !self.has_ended {
            let events = self.channel.as_fd().try_clone_to_owned().and_then(watched);
            self.events =
                events.inspect_err(|error| tracing::error!("the directory is not heard: {error}")).ok();
            self.has_ended = self.events.is_none();
        }
        self.events.as_ref()
    }

    /// How things are.
    pub(super) fn report(&self) -> DirectoryReport {
        let mut report = DirectoryReport { outside_limits: self.refused, ..self.report.clone() };
        if let Some(demand) = &self.demand {
            demand.add_to(&mut report, self.peers.len());
        }
        report
    }

    /// Has daily keys of this node published.
    pub(super) fn publish(&self, keys: &DailyKeys) {
        // If the process is gone, that is found out by what it says.
        let _ = demand::say(&self.channel, &Wanted::Publish(keys.as_bytes().to_vec()));
    }

    /// Servers that have this node's daily keys.
    pub(super) const fn published(&self) -> usize {
        self.published
    }

    /// Adds to `config`, as it was read from the file, the peers of certificates; what the file says comes first.
    pub(super) fn add_to(&mut self, config: &mut Config, own: Option<PublicKey>) {
        let mut taken: Vec<IpNet> = config.peers.iter().flat_map(|peer| &peer.allowed_ips).copied().collect();
        for (key, peer) in &self.peers {
            let is_there = |other: &PeerSection| other.name == peer.name || roster::is_same(other, peer);
            if own == Some(*key) || config.peers.iter().any(is_there) {
                continue;
            }
            let mut peer = peer.clone();
            let given = peer.allowed_ips.len();
            peer.allowed_ips = usable(&peer.allowed_ips, &self.section.allowed_ips, &taken);
            if peer.allowed_ips.len() < given {
                tracing::debug!(peer = peer.name, "networks of its certificate are not used");
            }
            if peer.allowed_ips.is_empty() && config.node.tunnel {
                continue;
            }
            taken.extend(&peer.allowed_ips);
            if config.link.metered.quiet {
                hush_peer(&mut peer);
            }
            config.peers.push(peer);
        }
    }

    /// Takes what the process says; whether peers may be others now. `packets` are those from and to a peer.
    fn hear(
        &mut self,
        own: Option<PublicKey>,
        packets: &dyn Fn(&PeerSection) -> u64,
        now: Time,
    ) -> io::Result<bool> {
        let mut changed = false;
        self.has_more = true;
        for _ in 0..BURST {
            let text = match self.channel.receive_now() {
                Ok((text, _)) => text,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.has_more = false;
                    break;
                }
                Err(error) => return Err(error),
            };
            match serde_json::from_slice(&text) {
                Ok(Told::Admit(text)) => changed |= self.admit(&text, own, packets, now),
                Ok(Told::LookedUp(question, ended)) => {
                    if let Ok(Question::Find(name)) = Question::from_bytes(&question) {
                        self.ended.push((name, ended.into()));
                    }
                }
                Ok(Told::NewerList) => {
                    if let Some(demand) = &mut self.demand {
                        demand.look_ups.forget_unknown();
                        (changed, self.is_newer) = (true, true);
                    }
                }
                Ok(Told::Dismiss(key, why)) => {
                    self.learned.extend(key.parse().ok().map(Err));
                    if let Some(peer) = key.parse().ok().and_then(|key| self.peers.remove(&key)) {
                        tracing::info!(peer = peer.name, "not a peer any more: {why}");
                        changed = true;
                    }
                }
                Ok(Told::DailyKeys(bytes)) => {
                    // They are verified once more. Of those that are no peers there may be any number.
                    let keys = DailyKeys::from_bytes(&bytes).ok();
                    self.learned.extend(keys.filter(|keys| self.peers.contains_key(keys.node())).map(Ok));
                }
                Ok(Told::Published(servers)) => self.published = servers,
                Ok(Told::Report(report)) => {
                    self.report = *report;
                    if let Some(demand) = &mut self.demand {
                        demand.note_traffic(&self.peers, packets, now);
                        self.is_pin_time = true;
                    }
                }
                Err(error) => {
                    tracing::debug!("the process that follows a directory said something else: {error}")
                }
            }
        }
        Ok(changed)
    }

    /// Takes a certificate, which is verified once more.
    fn admit(
        &mut self,
        text: &str,
        own: Option<PublicKey>,
        packets: &dyn Fn(&PeerSection) -> u64,
        now: Time,
    ) -> bool {
        let Ok(certificate) = Certificate::from_text(text, &self.section.authority) else { return false };
        if Some(*certificate.key()) == own {
            return false;
        }
        let mut peer = peer_of(&certificate, self.section.keying);
        let key = *certificate.key();
        if let Some(demand) = &mut self.demand {
            demand.look_ups.know([certificate.key_name(), certificate.text_name()]);
            demand.prepare(&mut peer);
            let full = !self.peers.contains_key(&key) && self.peers.len() >= self.section.max_peers;
            if full {
                let room = Self::make_room(demand, &mut self.peers, &self.channel, packets, now);
                let Some(gone) = room else {
                    tracing::warn!(peer = peer.name, "no room for a peer: all others are pinned");
                    return false;
                };
                self.learned.push(Err(gone));
            }
            demand.note_new(key, now);
        }
        let inside = usable(&peer.allowed_ips, &self.section.allowed_ips, &[]);
        let outside = peer.allowed_ips.iter().filter(|net| !inside.contains(net));
        let outside: Vec<String> = outside.map(ToString::to_string).collect();
        if !outside.is_empty() {
            self.refused += 1;
            tracing::warn!(
                peer = peer.name,
                "`allowed_ips` in [directory] does not have {} of its certificate",
                outside.join(", ")
            );
        }
        let before = self.peers.insert(key, peer.clone());
        if before.is_none() {
            tracing::info!(peer = peer.name, serial = certificate.serial(), "a peer by its certificate");
        }
        before != Some(peer)
    }
}
