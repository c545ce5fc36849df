//! What simulated nodes are told.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use strait_compress::history::KeptMemory;
use strait_ipsec::inbound::{Forwarding, UdpOffload};
use strait_ipsec::outbound::Queueing;
use strait_ipsec::{PeerCounters, PeerId, PeerSpec, Rule};
use strait_keying::{
    Capabilities, CarrierMode, Lifetime, PayloadFormat, PeerConfig, PresharedToken, PrivateKey, PublicKey,
    RepairMode, Start, Where,
};
use strait_scheduler::LinkRate;

use crate::LinkSettings;

/// A node's number in its network, which is also its number as a peer of every other node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u8);

impl NodeId {
    /// The node in this place of those of a simulation.
    pub(crate) fn of(place: usize) -> NodeId {
        NodeId(u8::try_from(place).unwrap_or(u8::MAX))
    }

    /// The place of the node that is this peer.
    pub(crate) fn of_peer(peer: PeerId) -> Option<usize> {
        usize::try_from(peer.0).ok()
    }

    /// It as a peer.
    #[must_use]
    pub fn peer(self) -> PeerId {
        PeerId(self.0.into())
    }

    /// Its key pair, always the same.
    #[must_use]
    pub fn private_key(self) -> PrivateKey {
        let mut random = *b"the identity of a simulated node";
        random[0] = self.0;
        PrivateKey::generate(&random)
    }

    /// Its public key.
    #[must_use]
    pub fn public_key(self) -> PublicKey {
        self.private_key().public()
    }

    /// The address it has on an outer network of IPv4.
    #[must_use]
    pub fn outer_v4(self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::new(192, 0, 2, self.0 + 1), 51_820))
    }

    /// The address it has on an outer network of IPv6.
    #[must_use]
    pub fn outer_v6(self) -> SocketAddr {
        SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(self.0) + 1), 51_820))
    }

    /// A host's socket in its IPv4 prefix.
    #[must_use]
    pub fn inner_v4(self, port: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::new(10, 0, self.0 + 1, 1), port))
    }

    /// A host's socket in its IPv6 prefix.
    #[must_use]
    pub fn inner_v6(self, port: u16) -> SocketAddr {
        SocketAddr::from((Ipv6Addr::new(0xfd00, 0, 0, u16::from(self.0) + 1, 0, 0, 0, 1), port))
    }
}

/// The prefixes behind a node, of both families, in text.
#[must_use]
pub fn prefixes(node: NodeId) -> [String; 2] {
    let number = u16::from(node.0) + 1;
    [format!("10.0.{number}.0/24"), format!("fd00:0:0:{number:x}::/64")]
}

/// What one node is.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Its number.
    pub id: NodeId,
    /// The node whose keys it has: where that is another one, it is a second process with them.
    pub keys: NodeId,
    /// The source address of what it sends, as others see it.
    pub address: SocketAddr,
    /// What it offers.
    pub capabilities: Capabilities,
    /// The rate of its own link out.
    pub up: LinkRate,
    /// How packets wait for it.
    pub queueing: Queueing,
    /// Bytes of the link layer that its pacer counts.
    pub overhead: u16,
    /// Largest outer IP packet, as it was told.
    pub link_mtu: u16,
    /// Largest outer IP packet that its system takes.
    pub interface_mtu: u16,
    /// How long its keys serve.
    pub lifetime: Lifetime,
    /// What its peers have to have beside their keys.
    pub token: Option<PresharedToken>,
    /// What may be compressed.
    pub rules: Vec<Rule>,
    /// Whether it is a hub.
    pub forwarding: Forwarding,
    /// Hosts behind it that have addresses of a peer; every address that no peer has is behind it anyway.
    pub behind: Vec<IpAddr>,
    /// What its host takes.
    pub udp_offload: UdpOffload,
    /// Threads of its receiver beside the one that carries datagrams.
    pub receive_workers: usize,
    /// Whether it sends nothing unasked.
    pub quiet: bool,
    /// Bytes of memory for what it keeps of all peers' data.
    pub memory: usize,
}

impl NodeSettings {
    /// A node with every suite and codec, no rate, no rules, on IPv4.
    #[must_use]
    pub fn new(id: NodeId) -> NodeSettings {
        NodeSettings {
            id,
            keys: id,
            address: id.outer_v4(),
            capabilities: Capabilities::typical(),
            up: LinkRate::Unpaced,
            queueing: Queueing::default(),
            overhead: 0,
            link_mtu: 1500,
            interface_mtu: 1500,
            lifetime: Lifetime::default(),
            token: None,
            rules: Vec::new(),
            forwarding: Forwarding::None,
            behind: Vec::new(),
            udp_offload: UdpOffload::Unsupported,
            receive_workers: 0,
            quiet: false,
            memory: KeptMemory::default().bytes(),
        }
    }

    /// This node as a peer of another: its prefixes and key, found at `place`.
    #[must_use]
    pub fn as_peer(&self, place: Where, start: Start) -> PeerConfig {
        let allowed = prefixes(self.id).iter().filter_map(|prefix| prefix.parse().ok()).collect();
        PeerConfig {
            spec: PeerSpec {
                id: self.id.peer(),
                allowed,
                endpoint: None,
                mtu: None,
                counters: Arc::new(PeerCounters::default()),
                caches: Arc::default(),
            },
            name: format!("node-{}", self.id.0),
            key: self.id.public_key(),
            place,
            start,
            keepalive: None,
            format: PayloadFormat::Strait,
            repair: RepairMode::Auto,
            carrier: CarrierMode::Udp,
        }
    }
}

/// Two nodes and what lies between; the first knows where the second is and begins at once.
#[derive(Clone, Debug)]
pub struct PairSettings {
    /// The first node, number 0.
    pub a: NodeSettings,
    /// The second node, number 1.
    pub b: NodeSettings,
    /// The way from the first to the second.
    pub forth: LinkSettings,
    /// The way back.
    pub back: LinkSettings,
    /// When the first begins.
    pub start: Start,
    /// Whether the second knows where the first is, and when it begins; otherwise it waits to be spoken to.
    pub answer: Option<Start>,
}

impl Default for PairSettings {
    fn default() -> PairSettings {
        PairSettings {
            a: NodeSettings::new(NodeId(0)),
            b: NodeSettings::new(NodeId(1)),
            forth: LinkSettings::default(),
            back: LinkSettings::default(),
            start: Start::Eager,
            answer: None,
        }
    }
}
