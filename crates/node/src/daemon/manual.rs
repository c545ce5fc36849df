//! Peers whose keys are in the file: their associations are there from the start and never replaced, and their
//! sequence numbers outlive the node.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use strait_clock::Time;
use strait_ipsec::{
    InboundSa, Notice, OutboundSa, PeerCounters, PeerId, PeerSpec, SaSpec, SequenceNumbers, Usage, inbound,
    outbound,
};
use strait_keying::manual::Identity;
use strait_keying::{ControlEvent, MoveLog};
use strait_scheduler::Rate;
use strait_wire::{Protocol, Spi};

use super::Daemon;
use crate::config::{Manual, ManualCarrier, ManualMode, ManualPayloads, PeerSection};
use crate::counter_file::{CounterFile, CounterFileError};
use crate::direct::{PeerFlow, Watched};

/// How often counters are looked at: far more often than half of the numbers in reserve can be used up.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How the system says that no interface has an address.
const NO_SUCH_ADDRESS: std::io::ErrorKind = std::io::ErrorKind::AddrNotAvailable;

/// The words about a peer whose numbers another copy of this machine may use.
const STOPPED: &str = "nothing is sent with its manual keys, since this machine was restored from a snapshot or cloned and another copy \
    may use the same sequence numbers; make new keys for both ends";

/// What the packet threads are told of a peer, one list for each.
#[derive(Debug, Default)]
pub(super) struct PeerOrders {
    pub(super) out: Vec<outbound::Order>,
    pub(super) into: Vec<inbound::Order>,
}

/// A peer whose keys are in the file.
#[derive(Debug)]
pub(super) struct ManualPeer {
    name: String,
    counters: Arc<PeerCounters>,
    moves: MoveLog,
    pub(super) rate: Option<Rate>,
    pub(super) inbound: Arc<Usage>,
    pub(super) outbound: Arc<Usage>,
    pub(super) is_used_up: bool,
    /// True once another copy of this machine may use its numbers, so that nothing is sent.
    pub(super) is_stopped: bool,
    counter: Option<CounterFile>,
    /// Why no more numbers can be reserved now.
    unreserved: Option<CounterFileError>,
    keepalive: Option<Duration>,
    /// When something was last sent to keep a NAT's binding alive.
    kept_alive: Time,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct ManualPeers {
    known: BTreeMap<PeerId, ManualPeer>,
    look_at: Option<Time>,
}

impl Daemon {
    /// Puts a peer with manual keys in use; what it gets from the link is all that the link has.
    pub(super) fn add_manual(&mut self, entry: ManualEntry) {
        let id = entry.spec.id;
        let told = self.manual.add(entry, self.config.link.up.given(), self.clock.now());
        self.look_at_source(id);
        self.tell(told);
    }

    /// Takes one out of use.
    pub(super) fn remove_manual(&mut self, id: PeerId) {
        let told = self.manual.remove(id);
        self.tell(told);
    }
}

impl ManualPeers {
    /// Puts a peer in use; says what the packet threads have to be told.
    pub(super) fn add(&mut self, entry: ManualEntry, rate: Option<Rate>, now: Time) -> PeerOrders {
        let ManualEntry { spec, peer, counter, seed } = entry;
        let Some(manual) = peer.manual() else { return PeerOrders::default() };
        let id = spec.id;
        let outbound = OutboundSa::new(&manual.outbound(id, seed));
        let outbound = match &counter {
            Some(counter) => outbound.within(counter.reserve()),
            None => outbound,
        };
        let inbound = InboundSa::new(&manual.inbound(id));
        let inbound = if manual.roams { inbound } else { inbound.fixed() };
        let inbound = match manual.sequence {
            SequenceNumbers::Bits64 => inbound.recovering(),
            SequenceNumbers::Bits32 => inbound,
        };
        let mut moves = MoveLog::default();
        if let Some(endpoint) = spec.endpoint {
            spec.counters.endpoint.set(endpoint);
            moves.skip(spec.counters.endpoint.moves());
        }
        let known = ManualPeer {
            name: peer.name.clone(),
            counters: Arc::clone(&spec.counters),
            moves,
            rate,
            inbound: inbound.usage(),
            outbound: outbound.usage(),
            is_used_up: false,
            is_stopped: false,
            counter,
            unreserved: None,
            keepalive: peer.keepalive,
            kept_alive: now,
        };
        self.known.insert(id, known);
        self.look_at.get_or_insert(now + LOOK_EVERY);
        let into = vec![
            inbound::Order::AddPeer(id, Arc::clone(&spec.counters), Arc::clone(&spec.caches)),
            inbound::Order::Install(Box::new(inbound)),
        ];
        let out = vec![
            outbound::Order::AddPeer(Box::new(spec)),
            outbound::Order::Rate(id, rate.into()),
            outbound::Order::Install(Box::new(outbound)),
        ];
        PeerOrders { out, into }
    }

    /// Takes a peer out of use.
    pub(super) fn remove(&mut self, id: PeerId) -> PeerOrders {
        if self.known.remove(&id).is_none() {
            return PeerOrders::default();
        }
        if self.known.is_empty() {
            self.look_at = None;
        }
        PeerOrders { out: vec![outbound::Order::RemovePeer(id)], into: vec![inbound::Order::RemovePeer(id)] }
    }

    /// Another rate of this node's link, which all of them are paced by; returns the orders for the sender.
    pub(super) fn set_rate(&mut self, rate: Option<Rate>) -> Vec<outbound::Order> {
        let one = |(id, peer): (&PeerId, &mut ManualPeer)| {
            peer.rate = rate;
            outbound::Order::Rate(*id, rate.into())
        };
        self.known.iter_mut().map(one).collect()
    }

    /// Another keepalive.
    pub(super) fn set_keepalive(&mut self, id: PeerId, keepalive: Option<Duration>) {
        if let Some(peer) = self.known.get_mut(&id) {
            peer.keepalive = keepalive;
        }
    }

    pub(super) fn get(&self, id: PeerId) -> Option<&ManualPeer> {
        self.known.get(&id)
    }

    /// The counter that is kept in the file at `path` now.
    pub(super) fn counter_at(&self, path: &Path) -> Option<&CounterFile> {
        self.known.values().filter_map(|peer| peer.counter.as_ref()).find(|counter| counter.path() == path)
    }

    /// Takes a notice about one of them, and gives back any other.
    pub(super) fn notice(&mut self, notice: Notice, now: Time) -> Option<Notice> {
        let about = match notice {
            Notice::NeedsSa(id)
            | Notice::Confirmed(id, _)
            | Notice::Moved(id)
            | Notice::Exhausted(id, _)
            | Notice::InnerMtu(id, _) => id,
            _ => return Some(notice),
        };
        let Some(peer) = self.known.get_mut(&about) else { return Some(notice) };
        let name = peer.name.as_str();
        match notice {
            Notice::Confirmed(_, spi) => tracing::info!(peer = name, %spi, "first packet from the peer"),
            Notice::Moved(id) => peer.log_moves(id, now),
            Notice::Exhausted(_, spi) => {
                peer.is_used_up = true;
                tracing::error!(
                    peer = name,
                    %spi,
                    "all sequence numbers are used: nothing more is sent; make new keys for both ends"
                );
            }
            _ => {}
        }
        None
    }

    /// Says that nothing is sent to any of them from now on: another copy of this machine may use the same keys and numbers, and which one
    /// goes on, only people know. The sender has forgotten their associations.
    pub(super) fn stop(&mut self) {
        for peer in self.known.values_mut() {
            peer.is_stopped = true;
            tracing::error!(peer = peer.name, "{STOPPED}");
        }
    }

    /// Returns a sentence for each file that cannot be written now, and for each peer that nothing is sent to.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let stopped =
            self.known.values().filter(|peer| peer.is_stopped).map(|peer| (peer, STOPPED.to_owned()));
        let failing =
            self.known.values().filter_map(|peer| Some((peer, unreserved(peer.unreserved.as_ref()?))));
        stopped.chain(failing).map(|(peer, words)| format!("peer {}: {words}", peer.name))
    }

    /// When [`ManualPeers::look`] wants to be called next.
    pub(super) const fn poll_timeout(&self) -> Option<Time> {
        self.look_at
    }

    /// Reserves numbers where they run low; says who needs a NAT keepalive.
    pub(super) fn look(&mut self, now: Time) -> Vec<outbound::Order> {
        if self.look_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.look_at = Some(now + LOOK_EVERY);
        self.known.iter_mut().filter_map(|(id, peer)| peer.look(*id, now)).collect()
    }

    /// Notes where the numbers ended, once the packet threads have.
    pub(super) fn end(self) {
        for peer in self.known.into_values() {
            if let Some(Err(error)) = peer.counter.map(CounterFile::close) {
                tracing::warn!(peer = peer.name, "some sequence numbers will be skipped: {error}");
            }
        }
    }
}

impl ManualPeer {
    /// The number of the last packet sent.
    pub(super) fn last_number(&self) -> u64 {
        let sealed = self.outbound.packets();
        self.counter.as_ref().map_or(sealed, |counter| counter.used(sealed))
    }

    /// Where datagrams to it go, if that is known.
    pub(super) fn endpoint(&self) -> Option<SocketAddr> {
        self.counters.endpoint.get()
    }

    /// Logs that it moved, which sender and receiver know already.
    fn log_moves(&mut self, peer: PeerId, now: Time) {
        if let Some(to) = self.endpoint()
            && let Some(unlogged) = self.moves.line(self.counters.endpoint.moves(), now)
        {
            tracing::info!(peer = self.name, "{}", ControlEvent::Moved { peer, to, unlogged });
        }
    }

    /// Reserves numbers if they run low; says so once when that fails, and once when it works again.
    fn reserve(&mut self) {
        let Some(counter) = &mut self.counter else { return };
        let failed = counter.keep(self.outbound.packets()).err();
        match (&self.unreserved, &failed) {
            (None, Some(error)) => tracing::error!(peer = self.name, "{}", unreserved(error)),
            (Some(_), None) => tracing::info!(peer = self.name, "sequence numbers are reserved again"),
            _ => {}
        }
        self.unreserved = failed;
    }

    fn look(&mut self, id: PeerId, now: Time) -> Option<outbound::Order> {
        self.log_moves(id, now);
        self.reserve();
        let sent = self.outbound.last().unwrap_or(Time::ZERO).max(self.kept_alive);
        let is_due = self.keepalive.is_some_and(|silence| sent + silence <= now);
        is_due.then(|| {
            self.kept_alive = now;
            outbound::Order::Keepalive(id)
        })
    }
}

/// What follows from an error of the counter's file.
fn unreserved(error: &CounterFileError) -> String {
    format!("sending stops when the reserved sequence numbers are used: {error}")
}

/// Warns of peers for which this host lacks the address that they send to.
pub(super) fn say_missing(peers: &[PeerSection]) {
    for peer in peers {
        if let Some(hosts) = peer.manual().and_then(Manual::hosts)
            && std::net::UdpSocket::bind((hosts.local, 0)).is_err_and(|error| error.kind() == NO_SUCH_ADDRESS)
        {
            let (peer, local) = (&peer.name, hosts.local);
            tracing::warn!(peer, %local, "no local interface has this address; nothing is received until one does");
        }
    }
}

/// A peer with everything that can fail done.
#[derive(Debug)]
pub(super) struct ManualEntry {
    pub(super) spec: PeerSpec,
    pub(super) peer: PeerSection,
    pub(super) counter: Option<CounterFile>,
    pub(super) seed: u64,
}

/// The counter of `manual`, if it has one.
pub(super) fn counter(
    manual: &Manual,
    held: CounterSource<'_>,
) -> Result<Option<CounterFile>, CounterFileError> {
    let Some(path) = &manual.counter_file else { return Ok(None) };
    match held {
        CounterSource::Held(held) => held.again(identity(manual), manual.sequence),
        CounterSource::Opened(file) => CounterFile::resume(file, path, identity(manual), manual.sequence),
        CounterSource::Path => CounterFile::open(path, identity(manual), manual.sequence),
    }
    .map(Some)
}

/// Whose numbers a counter of `manual` counts.
pub(super) fn identity(manual: &Manual) -> Identity {
    // Only its keys and numbers are looked at, and they do not depend on the peer.
    let outbound: SaSpec = manual.outbound(PeerId(0), 0);
    Identity::of(&outbound)
}

/// Where a counter comes from.
pub(super) enum CounterSource<'a> {
    /// From the file that is named, which this process may open.
    Path,
    /// From that file, opened.
    Opened(std::fs::File),
    /// From the counter that uses that file now.
    Held(&'a CounterFile),
}

/// The SPIs that `peers` are received with where sessions are too: in UDP, and directly behind IP if there are such sessions.
pub(super) fn spis(peers: &[PeerSection]) -> BTreeSet<Spi> {
    let direct = peers.iter().any(PeerSection::wants_direct);
    let beside = peers.iter().filter_map(PeerSection::manual);
    let beside = beside.filter(|manual| direct || manual.carrier == ManualCarrier::Udp);
    beside.filter_map(|manual| Some(manual.spi()?.inbound)).collect()
}

/// What peers send directly behind IP.
pub(super) fn watched(peers: &[PeerSection]) -> Watched {
    Watched {
        flows: peers.iter().filter_map(|peer| flow(peer.manual()?)).collect(),
        sessions: peers.iter().any(PeerSection::wants_direct),
    }
}

fn flow(manual: &Manual) -> Option<PeerFlow> {
    let ManualCarrier::Ip(hosts) = manual.carrier else { return None };
    let protocols = match (&manual.ah, &manual.esp, manual.inside, manual.mode) {
        (Some(_), ..) => vec![Protocol::AH],
        (None, Some(_), ..) => vec![Protocol::ESP],
        // What did not shrink comes as it is (RFC 3173 section 2.2): in transport mode to the host itself.
        (None, None, ManualPayloads::Ipcomp { .. }, ManualMode::Transport(_)) => vec![Protocol::IPCOMP],
        (None, None, ..) => vec![Protocol::IPCOMP, Protocol::IPIP, Protocol::IPV6],
    };
    Some(PeerFlow { from: hosts.remote, to: hosts.local, protocols })
}

#[cfg(test)]
mod tests;
