//! A node: its key manager, and its packet path as far as a key manager can see it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use strait_clock::{Random, Time};
use strait_ipsec::{Notice, PeerCounters, PeerId, Usage, inbound, outbound};
use strait_keying::{
    Action, Control, ControlEvent, ControlSettings, DangerKey, KeyExport, Role, SaDirection,
};
use strait_wire::Spi;

use super::{Held, KeySettings, hold};
use crate::{NodeId, NodeSettings};

/// Inbound associations of one peer: the pair in use, one that is awaited, two that were before.
const INBOUND_MAX: usize = 4;

/// An inbound association.
#[derive(Debug)]
pub(super) struct InboundHalf {
    peer: PeerId,
    usage: Arc<Usage>,
    confirmed: bool,
    /// How many were installed before it.
    place: u64,
}

/// What a key manager has its node send.
#[derive(Debug)]
pub(super) enum KeyMessage {
    /// A datagram of the control channel.
    Control(SocketAddr, Box<[u8]>),
    /// A probe, which the peer answers.
    Probe(PeerId),
    /// An empty packet, which nothing answers.
    Alive(PeerId),
}

/// One node.
pub(super) struct KeyNode {
    pub(super) control: Control,
    pub(super) address: SocketAddr,
    pub(super) outbound: BTreeMap<PeerId, (Spi, Arc<Usage>)>,
    pub(super) inbound: BTreeMap<Spi, InboundHalf>,
    /// What its threads share of each peer, where it is above all.
    pub(super) counters: BTreeMap<PeerId, Arc<PeerCounters>>,
    /// Its peers, as it was told.
    pub(super) peers: BTreeSet<PeerId>,
    /// Peers with which it began a handshake that has not ended.
    under_way: BTreeSet<PeerId>,
    keys: BTreeMap<(bool, Spi), Vec<u8>>,
    /// Names that are to be looked up.
    pub(super) lookups: Vec<(PeerId, String)>,
    pub(super) messages: Vec<KeyMessage>,
    pub(super) established: u64,
    installed: u64,
}

impl KeyNode {
    pub(super) fn new(
        number: u8,
        settings: &KeySettings,
        (seed, base): (u64, Instant),
        now: Time,
    ) -> Result<KeyNode, String> {
        let node = NodeSettings::new(NodeId(number));
        let mut bytes = [0; 32];
        let mut random = Random::new(seed);
        bytes.chunks_mut(8).for_each(|part| part.copy_from_slice(&random.next_u64().to_be_bytes()));
        let settings = ControlSettings {
            identity: node.id.private_key(),
            capabilities: node.capabilities,
            up: node.up,
            lifetime: settings.lifetime,
            token: None,
            export: KeyExport::Danger,
            counters: Arc::default(),
            seed: bytes.into(),
            base,
        };
        Ok(KeyNode {
            control: Control::new(settings, now).map_err(|error| error.to_string())?,
            address: node.address,
            outbound: BTreeMap::new(),
            inbound: BTreeMap::new(),
            counters: BTreeMap::new(),
            peers: BTreeSet::new(),
            under_way: BTreeSet::new(),
            keys: BTreeMap::new(),
            lookups: Vec::new(),
            messages: Vec::new(),
            established: 0,
            installed: 0,
        })
    }

    /// Does what the key manager wants done, and sees whether it adds up.
    pub(super) fn act(&mut self) -> Held {
        while let Some(action) = self.control.poll_action() {
            match action {
                Action::Out(order) => self.order_out(order)?,
                Action::In(order) => self.order_in(order)?,
                Action::Resolve(peer, name) => self.lookups.push((peer, name)),
                Action::Log(event) => self.event(&event)?,
                Action::DangerKey(key) => self.key(&key)?,
                // No peer of this driver is without sessions.
                Action::PersistMark(..) => {}
                Action::LookUp(name) => hold(false, || format!("a look-up of {name:?}"))?,
                Action::Unlisted(peer, _) => hold(false, || format!("an unlisted peer {}", peer.0))?,
            }
        }
        for peer in &self.peers {
            let inbound = self.inbound_of(*peer);
            hold(inbound <= INBOUND_MAX, || format!("{inbound} inbound associations of peer {}", peer.0))?;
        }
        Ok(())
    }

    fn order_out(&mut self, order: outbound::Order) -> Held {
        match order {
            outbound::Order::AddPeer(spec) => {
                hold(self.peers.insert(spec.id), || format!("peer {} was added twice", spec.id.0))?;
                self.counters.insert(spec.id, Arc::clone(&spec.counters));
            }
            outbound::Order::RemovePeer(peer) => {
                hold(self.peers.remove(&peer), || format!("peer {} was removed twice", peer.0))?;
                self.outbound.remove(&peer);
                self.counters.remove(&peer);
                self.under_way.remove(&peer);
            }
            outbound::Order::Install(sa) => {
                hold(self.peers.contains(&sa.peer()), || "an association of no peer".to_owned())?;
                self.outbound.insert(sa.peer(), (sa.spi(), sa.usage()));
            }
            outbound::Order::Withdraw(peer, spi) => {
                let used = self.outbound.remove(&peer).map(|(used, _)| used);
                // One whose numbers are used up is gone already.
                hold(used.is_none_or(|used| used == spi), || format!("{spi} withdrawn, {used:?} is used"))?;
            }
            outbound::Order::Transmit(_, to, bytes) | outbound::Order::Answer(_, to, bytes) => {
                self.messages.push(KeyMessage::Control(to.remote, bytes));
            }
            outbound::Order::Probe(peer) => self.messages.push(KeyMessage::Probe(peer)),
            outbound::Order::Alive(peer) => self.messages.push(KeyMessage::Alive(peer)),
            _ => {}
        }
        Ok(())
    }

    fn order_in(&mut self, order: inbound::Order) -> Held {
        match order {
            inbound::Order::Install(sa) => {
                let (spi, peer, usage) = (sa.spi(), sa.peer(), sa.usage());
                hold(self.peers.contains(&peer), || "an association of no peer".to_owned())?;
                let half = InboundHalf { peer, usage, confirmed: false, place: self.installed };
                self.installed += 1;
                let before = self.inbound.insert(spi, half);
                hold(before.is_none(), || format!("{spi} was installed twice"))
            }
            inbound::Order::Withdraw(spi) => {
                hold(self.inbound.remove(&spi).is_some(), || format!("{spi} was withdrawn and is not there"))
            }
            inbound::Order::RemovePeer(peer) => {
                let left = self.inbound.values().any(|half| half.peer == peer);
                hold(!left, || format!("associations of peer {} are left behind", peer.0))
            }
            inbound::Order::AddPeer(..)
            | inbound::Order::Reports(..)
            | inbound::Order::Policies(_)
            | inbound::Order::Known(_)
            | inbound::Order::Streams(_)
            | inbound::Order::Gate(_)
            | inbound::Order::HeaderGate(_)
            | inbound::Order::Place(..)
            // No peer of this driver is without sessions.
            | inbound::Order::Again(_)
            | inbound::Order::WithdrawKeyed(..) => Ok(()),
        }
    }

    /// Handshakes begin and end in turn.
    fn event(&mut self, event: &ControlEvent) -> Held {
        match event {
            ControlEvent::HandshakeStarted { peer, .. } => {
                hold(self.under_way.insert(*peer), || {
                    format!("two handshakes with peer {} at once", peer.0)
                })?;
            }
            ControlEvent::Established { peer, role, .. } => {
                self.established += 1;
                if *role == Role::Initiator {
                    let began = self.under_way.remove(peer);
                    hold(began, || format!("a handshake with peer {} ended that never began", peer.0))?;
                }
            }
            ControlEvent::Failed { peer, role: Role::Initiator, .. } | ControlEvent::Yielded { peer } => {
                self.under_way.remove(peer);
            }
            _ => {}
        }
        Ok(())
    }

    fn key(&mut self, key: &DangerKey) -> Held {
        let place = (key.direction == SaDirection::In, key.spi);
        let before = self.keys.insert(place, key.material.expose().to_vec());
        hold(before.is_none(), || format!("two keys for {}", key.spi))
    }

    /// The key with which it opens, or seals, what has this SPI.
    pub(super) fn key_of(&self, inbound: bool, spi: Spi) -> Option<&[u8]> {
        self.keys.get(&(inbound, spi)).map(Vec::as_slice)
    }

    /// What the receiving half does with an ESP packet; whom it is from.
    pub(super) fn esp(&mut self, from: SocketAddr, spi: Spi, now: Time) -> Option<PeerId> {
        let Some(half) = self.inbound.get_mut(&spi) else {
            self.control.notice(Notice::UnknownSpi(from.into(), spi), now);
            return None;
        };
        half.usage.note(1, 1_400, now);
        let (peer, first) = (half.peer, !core::mem::replace(&mut half.confirmed, true));
        let shared = self.counters.get(&peer);
        let moved = shared.is_some_and(|counters| counters.endpoint.set(from) != Some(from));
        if first {
            self.control.notice(Notice::Confirmed(peer, spi), now);
        }
        if moved {
            self.control.notice(Notice::Moved(peer), now);
        }
        Some(peer)
    }

    /// The peer sent on `spi`: this node uses the pair of that association, or one that came later.
    pub(super) fn follows(&self, peer: PeerId, spi: Spi) -> Held {
        let Some(half) = self.inbound.get(&spi) else { return Ok(()) };
        let pair = self.control.status(peer).and_then(|status| status.association);
        let used = pair.and_then(|pair| self.inbound.get(&pair.inbound.spi));
        // A pair that expired leaves nothing but what was there before.
        hold(used.is_none_or(|used| used.place >= half.place), || {
            format!("peer {} sends on {spi}, and an earlier pair is in use", peer.0)
        })
    }

    /// Inbound associations of a peer.
    pub(super) fn inbound_of(&self, peer: PeerId) -> usize {
        self.inbound.values().filter(|half| half.peer == peer).count()
    }

    /// Counts an inner packet.
    pub(super) fn note_packet(&self, peer: PeerId) {
        if let Some(counters) = self.counters.get(&peer) {
            counters.out_packets.add(1);
        }
    }

    /// The association with which a packet for `peer` leaves, and where to.
    pub(super) fn seal(&self, peer: PeerId, now: Time) -> Option<(Spi, SocketAddr)> {
        let (spi, usage) = self.outbound.get(&peer)?;
        let to = self.counters.get(&peer)?.endpoint.get()?;
        usage.note(1, 1_400, now);
        Some((*spi, to))
    }
}
