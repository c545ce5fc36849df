//! All peers of a node, and what concerns them whether a handshake is under way or not: where they are, what they are
//! told, and when their associations are looked at.

use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

use strait_clock::{Deadline, Time};
use strait_ipsec::{PeerId, Place, inbound, outbound};
use strait_scheduler::{LinkRate, Rate};
use strait_wire::Spi;
use strait_wire::condition::Condition;

use super::context::ControlContext;
use super::peer::{ATTEMPT, PeerRecord};
use super::peer_table::PeerTable;
use super::unlisted::{UnlistedPeers, is_unlisted};
use crate::{Action, ControlEvent, PublicKey, Refusal, Where};

/// Least time between two handshakes on account of unknown SPIs, which strangers can make up.
const UNKNOWN_APART: Duration = Duration::from_secs(1);

/// Time between the handshakes that a node begins at its start with peers of an earlier run, each of which costs some milliseconds of a
/// processor and 2.5 kB of the link: a hub of 256 peers has begun all of them after 13 s.
const REMEMBERED_APART: Duration = Duration::from_millis(50);

/// All peers of a node.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) peers: PeerTable,
    pub(crate) context: ControlContext,
    pub(crate) unlisted: UnlistedPeers,
    /// When a handshake was last begun on account of an unknown SPI, of any peer.
    unknown_at: Option<Time>,
    /// No handshake with a peer of an earlier run is begun before, unless something waits for it.
    remembered_at: Time,
}

impl Sessions {
    pub(crate) const fn new(peers: PeerTable, context: ControlContext) -> Sessions {
        Sessions {
            peers,
            context,
            unlisted: UnlistedPeers::new(),
            unknown_at: None,
            remembered_at: Time::ZERO,
        }
    }

    /// A peer, and what it shares with the others.
    pub(crate) fn with(&mut self, id: PeerId) -> Option<(&mut PeerRecord, &mut ControlContext)> {
        Some((self.peers.get_mut(id)?, &mut self.context))
    }

    /// The peers' numbers, for a loop that changes them.
    pub(crate) fn ids(&self) -> Vec<PeerId> {
        self.peers.ids().collect()
    }

    /// Adds a peer that is at `endpoint`, as far as its configuration says.
    pub(crate) fn add(&mut self, mut peer: PeerRecord, endpoint: Option<SocketAddr>) {
        let spec = peer.config.spec.clone();
        let (id, counters, caches) = (spec.id, Arc::clone(&spec.counters), Arc::clone(&spec.caches));
        counters.endpoint.clear();
        peer.moves.skip(counters.endpoint.moves());
        self.context.order_out(outbound::Order::AddPeer(Box::new(spec)));
        self.context.order_in(inbound::Order::AddPeer(id, counters, caches));
        self.peers.insert(peer);
        if let Some(endpoint) = endpoint {
            self.move_to(id, endpoint);
        }
        if let Some((peer, context)) = self.with(id) {
            peer.update_pace(context);
        }
    }

    /// Adds a node that the configuration does not list, at `from`, if such nodes are taken and there is room.
    pub(crate) fn admit(&mut self, key: PublicKey, from: SocketAddr, now: Time) -> Result<PeerId, Refusal> {
        let places = self.peers.iter().filter(|peer| is_unlisted(peer.id())).map(|peer| peer.endpoint);
        let config = self.unlisted.admit(key, from, places)?;
        let (id, counters) = (config.spec.id, Arc::clone(&config.spec.counters));
        let epoch = self.context.next_epoch();
        self.add(PeerRecord::new(config, now, epoch), Some(from));
        self.context.actions.push_back(Action::Unlisted(id, counters));
        Ok(id)
    }

    /// Adds a peer that the data plane has, where it was last.
    pub(crate) fn add_beside(&mut self, mut peer: PeerRecord) {
        let (id, latest) = (peer.id(), peer.config.spec.counters.endpoint.get());
        peer.moves.skip(peer.config.spec.counters.endpoint.moves());
        self.peers.insert(peer);
        if let Some(endpoint) = latest {
            self.peers.place(id, endpoint);
        }
        if let Some((peer, context)) = self.with(id) {
            peer.update_pace(context);
        }
    }

    /// Forgets a peer that the data plane keeps; gives the inbound associations that it had.
    pub(crate) fn let_go(&mut self, id: PeerId) -> Vec<Spi> {
        let peer = self.peers.remove(id);
        peer.map(|peer| peer.pairs.inbound_spis().collect()).unwrap_or_default()
    }

    /// Removes a peer with its associations; says whether there was one.
    pub(crate) fn remove(&mut self, id: PeerId) -> bool {
        let Some(peer) = self.peers.remove(id) else { return false };
        for spi in peer.pairs.inbound_spis() {
            self.context.withdraw_inbound(spi);
        }
        self.context.spis.release_all(id);
        self.context.order_out(outbound::Order::RemovePeer(id));
        self.context.order_in(inbound::Order::RemovePeer(id));
        true
    }

    /// Sends datagrams to a peer elsewhere from now on, as this node decided: that is no move of the peer.
    pub(crate) fn move_to(&mut self, id: PeerId, to: impl Into<Place>) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let (latest, place) = (&peer.config.spec.counters.endpoint, to.into());
        let to = place.remote;
        if latest.set(place) != Some(to) {
            peer.moves.skip(latest.moves());
            self.context.order_out(outbound::Order::Endpoint(id));
        }
        self.peers.place(id, to);
    }

    /// A peer that there was no session with was heard at `at` in an earlier run.
    pub(crate) fn remember_place(&mut self, id: PeerId, at: SocketAddr, now: Time) {
        let Some(peer) = self.peers.get(id) else { return };
        if peer.pairs.in_use().is_some() || peer.last_handshake().is_some() {
            return;
        }
        let is_unknown = peer.endpoint.is_none() && peer.config.place == Where::Unknown;
        self.peers.remember(id, at);
        if !is_unknown {
            return;
        }
        self.move_to(id, at);
        if self.context.node.quiet {
            return;
        }
        let begin = self.remembered_at.max(now);
        self.remembered_at = begin + REMEMBERED_APART;
        if let Some(peer) = self.peers.get_mut(id) {
            peer.initiation.put_off(now, begin);
            peer.initiation.want(begin + ATTEMPT);
        }
    }

    /// The peer is where its end of a handshake is.
    pub(crate) fn follow(&mut self, id: PeerId, from: Place, now: Time) {
        let Some(peer) = self.peers.get(id) else { return };
        let latest = &peer.config.spec.counters.endpoint;
        if latest.get().is_none() {
            return self.move_to(id, from);
        }
        if latest.set(from) != Some(from.remote) {
            self.context.order_out(outbound::Order::Endpoint(id));
        }
        self.note_endpoint(id, now);
    }

    /// Looks where the peer is, which the receiver has noted and the sender knows already; logs that it moved.
    pub(crate) fn note_endpoint(&mut self, id: PeerId, now: Time) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let latest = &peer.config.spec.counters.endpoint;
        let Some(to) = latest.get() else { return };
        let line = peer.moves.line(latest.moves(), now);
        let is_found = peer.pairs.in_use().is_some();
        if peer.endpoint != Some(to) {
            self.peers.place(id, to);
        }
        if is_found {
            self.peers.forget_remembered(id);
        }
        if let Some(unlogged) = line {
            self.context.log(ControlEvent::Moved { peer: id, to, unlogged });
        }
    }

    /// ESP came that no association here is for: its sender may be a peer that missed a restart. Returns the peer that
    /// a handshake is wanted with.
    pub(crate) fn unknown_spi(&mut self, from: Place, now: Time) -> Option<PeerId> {
        let id = self.peers.by_endpoint(from.remote)?;
        let apart = self.unknown_at.is_none_or(|at| at + UNKNOWN_APART <= now);
        let peer = self.peers.get_mut(id)?;
        if !apart
            || !peer.unknown_spis.permits(now)
            || peer.initiation.is_under_way()
            || peer.is_settling(now)
        {
            return None;
        }
        peer.unknown_spis.note(now);
        peer.initiation.want(now + ATTEMPT);
        self.unknown_at = Some(now);
        let is_there =
            [peer.remembered, peer.config.spec.counters.endpoint.get()].contains(&Some(from.remote));
        if peer.pairs.in_use().is_none() && is_there {
            // The handshake leaves with the address at which the peer expects this node.
            self.move_to(id, from);
        }
        Some(id)
    }

    /// Another link: peers are paced by its rate out from now on, and told its rate in.
    pub(crate) fn set_link(&mut self, up: LinkRate, down: LinkRate) {
        let before = self.context.node.reports();
        self.context.node.up = up;
        let told = core::mem::replace(&mut self.context.node.capabilities.down, down);
        for id in self.ids() {
            if let Some((peer, context)) = self.with(id) {
                peer.update_pace(context);
            }
        }
        if told != down || self.context.node.reports() != before {
            self.report_to_all();
        }
    }

    /// The rate that this node's own link has at least, as far as one of its peers' paths is known.
    pub(crate) fn estimate(&self) -> Option<Rate> {
        let paths = self.peers.iter().filter_map(|peer| peer.config.spec.counters.path.get());
        paths.filter_map(|path| path.estimate?.rate).max()
    }

    /// Everything takes this node so many times longer than its peers were told.
    pub(crate) fn slowed(&mut self, times: f64) {
        // As a float becomes an integer: nonsense becomes the nearest end of the range.
        self.context.node.load = ((times * f64::from(Condition::USUAL)) as u16).max(1);
        self.report_to_all();
    }

    /// Tells all peers what changed, now and a few times more.
    fn report_to_all(&mut self) {
        for id in self.ids() {
            if let Some((peer, context)) = self.with(id) {
                peer.report_change(context);
            }
        }
    }

    /// A control datagram went out, which keeps a NAT's binding as well as any.
    pub(crate) fn sent_to(&mut self, to: SocketAddr, now: Time) {
        let id = self.peers.by_endpoint(to);
        if let Some(peer) = id.and_then(|id| self.peers.get_mut(id)) {
            peer.sent_at = now;
        }
    }

    /// Looks at associations again a tick later, unless there are none.
    pub(crate) fn tick_again(&mut self, now: Time) {
        let any = self.peers.iter().any(|peer| peer.pairs.inbound_spis().next().is_some());
        self.context.tick_again(any, now);
    }

    /// When something of any peer is due.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let tick = self.context.tick_at.map(|at| Deadline { at, why: "limits of security associations" });
        let peers = self.peers.iter().filter_map(PeerRecord::deadline).min_by_key(|deadline| deadline.at);
        Deadline::earliest(tick, peers)
    }

    /// This node's public key.
    pub(crate) const fn public(&self) -> PublicKey {
        self.context.node.public
    }
}
