//! The keeper of all sessions of one node.
//!
//! ```text
//! wanted -> [look up] -> connect -> Offer ..... Accept -> install in, out -> Confirm      control/attempt.rs
//! Offer -> which of two? -> install in -> Accept ..... Confirm or first packet -> install out   control/answer.rs
//! pairs of associations: in use, awaited, fading                                          control/pairs.rs
//! every second: limits, silence                                                           control/watch.rs
//! ```

mod answer;
mod attempt;
mod backoff;
mod condition;
mod pairs;
mod peer;
mod show;
mod signals;
mod spis;
#[cfg(test)]
pub(crate) mod tests;
mod watch;

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use strait_clock::{Deadline, Random, Time};
use strait_ipsec::{Notice, PeerId, inbound, outbound};
use strait_scheduler::LinkRate;
use strait_wire::Spi;
use strait_wire::condition::Condition;
use strait_wire::tos::Ecn;

use crate::channel::{ChannelId, Channels, Code};
use crate::keystream::Keystream;
use crate::tls::AllowList;
use crate::{
    Action, Capabilities, Event, KeyExport, Lifetime, PeerConfig, PeerStatus, PublicKey, Settings,
    SetupError, Start, Where,
};
use peer::Peer;
use signals::{Owner, Stage};

/// How often associations are looked at while there are any: coarse, as all limits are seconds or more.
const TICK: Duration = Duration::from_secs(1);
/// How long a node that has just started, or lost its keys, goes on trying: as long as `WireGuard`'s
/// REKEY_ATTEMPT_TIME.
const PERSEVERANCE: Duration = Duration::from_secs(90);
/// Least time between two handshakes on account of unknown SPIs, which strangers can make up.
const UNKNOWN_APART: Duration = Duration::from_secs(1);

/// The keeper of all sessions of one node.
///
/// Put in datagrams, notices, answers and time; after each, poll actions until there are none and ask
/// when it wants time next.
#[derive(Debug)]
pub struct Control {
    public: PublicKey,
    capabilities: Capabilities,
    up: LinkRate,
    /// How many times longer than peers were told this node's work takes, in 256ths.
    load: u16,
    lifetime: Lifetime,
    export: KeyExport,
    allowed: Arc<AllowList>,
    channels: Channels,
    owners: BTreeMap<ChannelId, Owner>,
    peers: BTreeMap<PeerId, Peer>,
    by_key: BTreeMap<PublicKey, PeerId>,
    by_endpoint: BTreeMap<SocketAddr, PeerId>,
    /// Inbound SPIs handed out and not yet taken back.
    spis: BTreeMap<Spi, PeerId>,
    /// SPIs that are in use beside the sessions.
    set_aside: BTreeSet<Spi>,
    spi_stream: Keystream,
    random: Random,
    actions: VecDeque<Action>,
    /// When associations are looked at next, if there are any.
    tick_at: Option<Time>,
    /// When a handshake was last begun on account of an unknown SPI, whoever's.
    unknown_at: Option<Time>,
    refused_at: Option<Time>,
}

impl Control {
    /// A keeper without peers.
    ///
    /// # Errors
    /// [`SetupError`] when the settings make no sense or TLS cannot be set up.
    pub fn new(settings: Settings, now: Time) -> Result<Control, SetupError> {
        let lifetime = settings.lifetime;
        if !(Lifetime::SHORTEST..=Lifetime::LONGEST).contains(&lifetime.soft) {
            return Err(SetupError::Lifetime { given: lifetime.soft });
        }
        if lifetime.bytes == 0 || lifetime.packets == 0 {
            return Err(SetupError::Volume { bytes: lifetime.bytes, packets: lifetime.packets });
        }
        if settings.capabilities.suites.is_empty() {
            return Err(SetupError::NoSuite);
        }
        let allowed = Arc::new(AllowList::default());
        let channels = Channels::new(&settings, Arc::clone(&allowed), now)?;
        Ok(Control {
            public: settings.identity.public(),
            capabilities: settings.capabilities,
            up: settings.up,
            lifetime,
            export: settings.export,
            load: Condition::USUAL,
            allowed,
            channels,
            owners: BTreeMap::new(),
            peers: BTreeMap::new(),
            by_key: BTreeMap::new(),
            by_endpoint: BTreeMap::new(),
            spis: BTreeMap::new(),
            set_aside: BTreeSet::new(),
            spi_stream: Keystream::new(&settings.seed, "spi"),
            random: Random::new(Keystream::new(&settings.seed, "jitter").next_u64()),
            actions: VecDeque::new(),
            tick_at: None,
            unknown_at: None,
            refused_at: None,
        })
    }

    /// This node's public key.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    /// Adds a peer, in place of one with the same number or key if there is one.
    pub fn add_peer(&mut self, config: PeerConfig, now: Time) {
        let id = config.spec.id;
        for taken in [Some(id), self.by_key.get(&config.key).copied()].into_iter().flatten() {
            self.remove(taken, now);
        }
        let mut peer = Peer::new(config, now);
        let endpoint = match peer.config.place {
            Where::Address(address) => Some(address),
            Where::Unknown | Where::Name(_) => None,
        };
        peer.config.spec.endpoint = endpoint;
        self.actions.push_back(Action::Out(outbound::Order::AddPeer(Box::new(peer.config.spec.clone()))));
        let counters = Arc::clone(&peer.config.spec.counters);
        self.actions.push_back(Action::In(inbound::Order::AddPeer(id, counters)));
        self.allowed.allow(peer.config.key);
        self.by_key.insert(peer.config.key, id);
        let eager = peer.config.start == Start::Eager && peer.config.place != Where::Unknown;
        self.peers.insert(id, peer);
        if let Some(endpoint) = endpoint {
            self.place(id, endpoint);
        }
        self.pace(id);
        if eager {
            self.want(id, PERSEVERANCE, now);
        }
        self.pump(now);
    }

    /// Changes what a peer was told; its associations stay unless its key or MTU changes.
    pub fn update_peer(&mut self, config: PeerConfig, now: Time) {
        let id = config.spec.id;
        let Some(peer) = self.peers.get_mut(&id) else { return self.add_peer(config, now) };
        if peer.config.key != config.key || peer.config.spec.mtu != config.spec.mtu {
            return self.add_peer(config, now);
        }
        let moved = peer.config.place != config.place;
        let eager = moved && peer.pair.is_none() && config.start == Start::Eager;
        peer.config = config;
        match peer.config.place.clone() {
            Where::Address(address) if moved => self.move_to(id, address),
            Where::Name(_) if moved => peer.look_up = true,
            _ => {}
        }
        if eager {
            self.want(id, PERSEVERANCE, now);
        }
        self.pump(now);
    }

    /// Another link: peers are paced by its rate out from now on, and told its rate in.
    pub fn set_link(&mut self, up: LinkRate, down: LinkRate, now: Time) {
        self.up = up;
        let peers: Vec<PeerId> = self.peers.keys().copied().collect();
        for id in peers {
            self.pace(id);
        }
        if core::mem::replace(&mut self.capabilities.down, down) != down {
            self.report_to_all();
        }
        self.pump(now);
    }

    /// Removes a peer: its associations go and its key is refused from now on.
    pub fn remove_peer(&mut self, peer: PeerId, now: Time) {
        self.remove(peer, now);
        self.pump(now);
    }

    /// Takes a QUIC datagram from the network.
    pub fn datagram(&mut self, from: SocketAddr, ecn: Ecn, data: &[u8], now: Time) {
        self.channels.datagram(from, ecn, data, now);
        self.pump(now);
    }

    /// Takes what the packet path noticed.
    pub fn notice(&mut self, notice: Notice, now: Time) {
        match notice {
            Notice::NeedsSa(peer) => self.packets_wait(peer, now),
            Notice::Confirmed(peer, spi) => self.promote(peer, spi, now),
            Notice::Moved(peer, to) => self.moved(peer, to),
            Notice::UnknownSpi(from, _) => self.unknown_spi(from, now),
            Notice::Exhausted(peer, spi) => self.exhausted(peer, spi, now),
            Notice::Reported(peer, condition) => self.reported(peer, condition),
            Notice::Slower(times) => self.slowed(times),
            Notice::InnerMtu(..) | Notice::Explained(_) | Notice::Decided(_) => {}
        }
        self.pump(now);
    }

    /// Takes the answer to [`Action::Resolve`]; the error is what the resolver said.
    ///
    /// # Errors
    /// None of its own: an `answer` that is an error counts as a failed attempt.
    pub fn resolved(&mut self, peer: PeerId, answer: Result<SocketAddr, String>, now: Time) {
        self.looked_up(peer, answer, now);
        self.pump(now);
    }

    /// Does what is due at `now`.
    pub fn timeout(&mut self, now: Time) {
        self.channels.timeout(now);
        self.pump(now);
        self.give_up(now);
        if self.tick_at.is_some_and(|at| at <= now) {
            self.watch(now);
        }
        let peers: Vec<PeerId> = self.peers.keys().copied().collect();
        for id in peers {
            self.keep_alive(id, now);
            self.strive(id, now);
        }
        self.pump(now);
    }

    /// When [`Control::timeout`] wants to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let tick = self.tick_at.map(|at| Deadline { at, why: "limits of security associations" });
        let peers = self.peers.values().filter_map(Peer::deadline).min_by_key(|deadline| deadline.at);
        Deadline::earliest(Deadline::earliest(self.channels.poll_timeout(), tick), peers)
    }

    /// What has to be done next, to be polled until there is nothing after every other call.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// What can be shown of a peer.
    #[must_use]
    pub fn status(&self, peer: PeerId) -> Option<PeerStatus> {
        self.peers.get(&peer).map(|peer| peer.status(self.up))
    }

    /// The peers there are, by number.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.peers.keys().copied()
    }

    /// Connections of the control channel that have not faded yet.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.channels.len()
    }

    /// Acts on every signal, then sends what came of it.
    fn pump(&mut self, now: Time) {
        loop {
            while let Some((id, signal)) = self.channels.next_signal() {
                self.signal(id, signal, now);
            }
            self.channels.flush(now);
            while let Some((to, bytes)) = self.channels.next_transmit() {
                self.sent_to(to, now);
                self.actions.push_back(Action::Out(outbound::Order::Transmit(to, bytes)));
            }
            if !self.channels.has_signals() {
                break;
            }
        }
    }

    fn remove(&mut self, id: PeerId, now: Time) {
        let Some(peer) = self.peers.remove(&id) else { return };
        self.allowed.refuse(peer.config.key);
        self.by_key.remove(&peer.config.key);
        self.by_endpoint.retain(|_, owner| *owner != id);
        let theirs: Vec<ChannelId> =
            self.owners.iter().filter(|(_, owner)| owner.peer == id).map(|(channel, _)| *channel).collect();
        for channel in theirs {
            self.owners.remove(&channel);
            self.channels.close(channel, Code::Stranger, now);
        }
        for spi in peer.inbound_spis() {
            self.actions.push_back(Action::In(inbound::Order::Withdraw(spi)));
        }
        self.spis.retain(|_, owner| *owner != id);
        self.actions.push_back(Action::Out(outbound::Order::RemovePeer(id)));
        self.actions.push_back(Action::In(inbound::Order::RemovePeer(id)));
    }

    fn log(&mut self, event: Event) {
        self.actions.push_back(Action::Log(event));
    }

    /// Remembers where datagrams to a peer go.
    fn place(&mut self, id: PeerId, to: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if let Some(before) = peer.endpoint.replace(to)
            && self.by_endpoint.get(&before) == Some(&id)
        {
            self.by_endpoint.remove(&before);
        }
        self.by_endpoint.insert(to, id);
    }

    /// Sends datagrams to a peer elsewhere from now on.
    fn move_to(&mut self, id: PeerId, to: SocketAddr) {
        if self.peers.get(&id).is_some_and(|peer| peer.endpoint != Some(to)) {
            self.place(id, to);
            self.actions.push_back(Action::Out(outbound::Order::Endpoint(id, to)));
        }
    }

    /// The receiving half follows a peer that moved, and has told the sending half already; but its order is lost
    /// when the queue is full, and it gives it once. The sending half is told again: the same address twice changes
    /// nothing there.
    fn moved(&mut self, id: PeerId, to: SocketAddr) {
        if !self.peers.contains_key(&id) {
            return;
        }
        self.actions.push_back(Action::Out(outbound::Order::Endpoint(id, to)));
        if self.peers.get(&id).is_some_and(|peer| peer.endpoint != Some(to)) {
            self.place(id, to);
            self.log(Event::Moved { peer: id, to });
        }
    }

    /// Paces a peer at what is known of both links, if that is news.
    fn pace(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let pace = peer.pace(self.up);
        if peer.paced != pace {
            peer.paced = pace;
            self.actions.push_back(Action::Out(outbound::Order::Rate(id, pace)));
        }
    }
}
