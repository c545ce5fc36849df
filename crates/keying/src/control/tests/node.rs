//! A node: its key manager, and its data plane as far as a key manager sees it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use strait_clock::Time;
use strait_compress::EndpointCosts;
use strait_ipsec::{Counters, InboundSa, OutboundSa, PeerCounters, PeerId, PeerSpec, ReportWish, inbound};
use strait_scheduler::{LinkRate, Pace};
use strait_wire::Spi;
use zeroize::Zeroizing;

use crate::{
    Capabilities, CarrierMode, Control, ControlEvent, ControlSettings, DangerKey, KeyExport, Lifetime,
    PayloadFormat, PeerConfig, PrivateKey, RepairMode, SaDirection, Start, Where,
};

/// One node: its key manager, and what its data plane was told.
pub(super) struct ControlNode {
    pub(super) control: Control,
    /// What it counts.
    pub(super) totals: Arc<Counters>,
    pub(super) address: SocketAddr,
    pub(super) outbound: BTreeMap<PeerId, Box<OutboundSa>>,
    pub(super) inbound: BTreeMap<Spi, Box<InboundSa>>,
    pub(super) owners: BTreeMap<Spi, PeerId>,
    pub(super) confirmed: BTreeMap<Spi, bool>,
    /// What its threads share of each peer, where it is above all.
    pub(super) counters: BTreeMap<PeerId, Arc<PeerCounters>>,
    /// Whether the queue to its key manager is full, so that notices are lost.
    pub(super) notices_full: bool,
    pub(super) paces: BTreeMap<PeerId, Pace>,
    /// What the sender was told that both ends do.
    pub(super) ends: BTreeMap<PeerId, EndpointCosts>,
    /// When it told peers what changed.
    pub(super) reports: Vec<Time>,
    /// What its receiver was told that peers do with delivery reports.
    pub(super) wishes: BTreeMap<PeerId, ReportWish>,
    pub(super) keys: Vec<DangerKey>,
    pub(super) events: Vec<(Time, ControlEvent)>,
    /// Nodes that are not listed, which it was told of.
    pub(super) unlisted: Vec<PeerId>,
    /// Certificates that are to be looked up.
    pub(super) certificates: Vec<strait_wire::sessionless::Name>,
    pub(super) datagrams: u64,
    /// Bytes that keep a NAT's mapping, and empty packets.
    pub(super) keepalives: Vec<Time>,
    pub(super) signs: Vec<Time>,
    pub(super) probes: Vec<Time>,
    pub(super) lookups: Vec<(Time, String)>,
    /// What its resolver answers; nothing: it does not answer at all.
    pub(super) names: BTreeMap<String, Result<Vec<SocketAddr>, String>>,
    /// Most inbound associations it had at once.
    pub(super) most_inbound: usize,
    /// Whether its network is cut.
    pub(super) cut: bool,
}

pub(crate) fn key(node: u8) -> PrivateKey {
    PrivateKey::generate(&[node + 1; 32])
}

pub(crate) fn address(node: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, node + 1], 51_820))
}

pub(crate) fn settings(node: u8, seed: u64, base: Instant) -> ControlSettings {
    let mut bytes = [node; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    ControlSettings {
        identity: key(node),
        capabilities: Capabilities::typical(),
        up: LinkRate::Unpaced,
        lifetime: Lifetime::default(),
        token: None,
        export: KeyExport::Danger,
        counters: Arc::default(),
        seed: Zeroizing::new(bytes),
        base,
    }
}

/// Node `other` as a peer of any node: its number is its index.
pub(crate) fn peer(other: u8, place: Where, start: Start) -> PeerConfig {
    PeerConfig {
        spec: PeerSpec {
            id: PeerId(other.into()),
            allowed: Vec::new(),
            endpoint: None,
            mtu: None,
            counters: Arc::new(PeerCounters::default()),
            caches: Arc::default(),
        },
        name: format!("node-{other}"),
        key: key(other).public(),
        place,
        start,
        keepalive: None,
        format: PayloadFormat::Strait,
        repair: RepairMode::Auto,
        carrier: CarrierMode::Udp,
    }
}

pub(crate) fn base() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "an origin is needed, not the time")]
    Instant::now()
}

impl ControlNode {
    pub(super) fn new(settings: ControlSettings, address: SocketAddr, now: Time) -> ControlNode {
        ControlNode {
            totals: Arc::clone(&settings.counters),
            control: Control::new(settings, now).unwrap(),
            address,
            outbound: BTreeMap::new(),
            inbound: BTreeMap::new(),
            owners: BTreeMap::new(),
            confirmed: BTreeMap::new(),
            counters: BTreeMap::new(),
            notices_full: false,
            paces: BTreeMap::new(),
            ends: BTreeMap::new(),
            reports: Vec::new(),
            wishes: BTreeMap::new(),
            keys: Vec::new(),
            events: Vec::new(),
            unlisted: Vec::new(),
            certificates: Vec::new(),
            datagrams: 0,
            keepalives: Vec::new(),
            signs: Vec::new(),
            probes: Vec::new(),
            lookups: Vec::new(),
            names: BTreeMap::new(),
            most_inbound: 0,
            cut: false,
        }
    }

    pub(crate) fn key(&self, direction: SaDirection, spi: Spi) -> &DangerKey {
        self.keys.iter().find(|key| key.direction == direction && key.spi == spi).expect("no such key")
    }

    /// Where its sender sends.
    pub(super) fn endpoint(&self, peer: PeerId) -> Option<SocketAddr> {
        self.counters.get(&peer)?.endpoint.get()
    }

    pub(super) fn inbound(&mut self, order: inbound::Order) {
        use inbound::Order;
        match order {
            Order::Install(sa) => {
                self.owners.insert(sa.spi(), sa.peer());
                assert!(self.inbound.insert(sa.spi(), sa).is_none(), "an SPI twice");
                self.most_inbound = self.most_inbound.max(self.inbound.len());
            }
            Order::Withdraw(spi) => assert!(self.inbound.remove(&spi).is_some(), "{spi} was not there"),
            Order::AddPeer(..)
            | Order::Policies(_)
            | Order::Again(_)
            | Order::WithdrawKeyed(..)
            | Order::Known(_)
            | Order::Streams(_)
            | Order::HeaderGate(_)
            | Order::Place(..)
            | Order::Gate(_) => {}
            Order::Reports(peer, wish) => drop(self.wishes.insert(peer, wish)),
            Order::RemovePeer(peer) => {
                self.wishes.remove(&peer);
                assert!(!self.inbound.keys().any(|spi| self.owners[spi] == peer), "associations left behind");
            }
        }
    }
}
