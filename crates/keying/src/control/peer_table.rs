//! A node's peers, found by number, key or endpoint.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use strait_ipsec::{PeerId, Source};

use super::peer::PeerRecord;
use crate::tls::AllowList;
use crate::{PublicKey, Where};

/// A node's peers; a key that is here may shake hands, and no other.
#[derive(Debug)]
pub(crate) struct PeerTable {
    peers: BTreeMap<PeerId, PeerRecord>,
    by_key: BTreeMap<PublicKey, PeerId>,
    by_endpoint: BTreeMap<SocketAddr, PeerId>,
    allowed: Arc<AllowList>,
    /// Whether a peer came, went or moved.
    moved: bool,
}

impl PeerTable {
    /// An empty table that keeps `allowed` as its keys are.
    pub(crate) const fn new(allowed: Arc<AllowList>) -> PeerTable {
        PeerTable {
            peers: BTreeMap::new(),
            by_key: BTreeMap::new(),
            by_endpoint: BTreeMap::new(),
            allowed,
            moved: false,
        }
    }

    pub(crate) fn insert(&mut self, peer: PeerRecord) {
        let (id, key) = (peer.config.spec.id, peer.config.key);
        self.allowed.allow(key);
        self.moved = true;
        self.by_key.insert(key, id);
        self.peers.insert(id, peer);
    }

    pub(crate) fn remove(&mut self, id: PeerId) -> Option<PeerRecord> {
        let peer = self.peers.remove(&id)?;
        self.allowed.refuse(peer.config.key);
        self.moved = true;
        self.by_key.remove(&peer.config.key);
        self.by_endpoint.retain(|_, owner| *owner != id);
        Some(peer)
    }

    pub(crate) fn get(&self, id: PeerId) -> Option<&PeerRecord> {
        self.peers.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: PeerId) -> Option<&mut PeerRecord> {
        self.peers.get_mut(&id)
    }

    /// The peer with this key.
    pub(crate) fn by_key(&self, key: PublicKey) -> Option<PeerId> {
        self.by_key.get(&key).copied()
    }

    /// The peer that datagrams to `endpoint` go to.
    pub(crate) fn by_endpoint(&self, endpoint: SocketAddr) -> Option<PeerId> {
        self.by_endpoint.get(&endpoint).copied()
    }

    /// Their numbers, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = PeerId> + use<'_> {
        self.peers.keys().copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PeerRecord> {
        self.peers.values()
    }

    /// Remembers where datagrams to a peer go.
    pub(crate) fn place(&mut self, id: PeerId, to: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        self.moved = true;
        if let Some(before) = peer.endpoint.replace(to)
            && self.by_endpoint.get(&before) == Some(&id)
        {
            self.by_endpoint.remove(&before);
        }
        self.by_endpoint.insert(to, id);
    }

    /// A peer is expected at other addresses than before.
    pub(crate) const fn note_moved(&mut self) {
        self.moved = true;
    }

    /// Keeps where a peer was in an earlier run, as a second place of it.
    pub(crate) fn remember(&mut self, id: PeerId, at: SocketAddr) {
        self.forget_remembered(id);
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.remembered = Some(at);
        self.moved = true;
        self.by_endpoint.entry(at).or_insert(id);
    }

    /// Forgets that place.
    pub(crate) fn forget_remembered(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(at) = peer.remembered.take() else { return };
        self.moved = true;
        if peer.endpoint != Some(at) && self.by_endpoint.get(&at) == Some(&id) {
            self.by_endpoint.remove(&at);
        }
    }

    /// Whether a peer came, went or moved since this was asked.
    pub(crate) const fn take_moved(&mut self) -> bool {
        core::mem::replace(&mut self.moved, false)
    }

    /// Where peers are, or are said to be.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Source> {
        let homes = self.peers.values().filter_map(|peer| match peer.config.place {
            Where::Address(home) => Some(home),
            Where::Unknown | Where::Name(_) => None,
        });
        let last = self.peers.values().flat_map(|peer| [peer.endpoint, peer.remembered]).flatten();
        let tried = self.peers.values().flat_map(|peer| peer.race.addresses());
        homes.chain(last).chain(tried).map(|address| Source::of(address.ip()))
    }

    /// Whether keys of no peer may shake hands.
    pub(crate) fn allow_any(&self, any: bool) {
        self.allowed.allow_any(any);
    }

    /// The key that TLS turned away last, once.
    pub(crate) fn take_stranger(&self) -> Option<PublicKey> {
        self.allowed.take_stranger()
    }
}
