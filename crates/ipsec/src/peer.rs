//! The peer at the other end of a tunnel.

use std::net::SocketAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::{PeerCaches, PeerCounters};

/// A peer's number within one node, never reused while the node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

/// What the packet path has to know of a peer before there is a security association.
#[derive(Clone, Debug)]
pub struct PeerSpec {
    /// Its number.
    pub id: PeerId,
    /// Addresses that packets from it may come from and packets to it may go to.
    pub allowed: Vec<IpNet>,
    /// Where datagrams to it go, if that is known before it sends any.
    pub endpoint: Option<SocketAddr>,
    /// Largest outer IP packet to it when the file says so; discovered otherwise.
    pub mtu: Option<u16>,
    /// Its counters, shared with the threads that show them.
    pub counters: Arc<PeerCounters>,
    /// Its byte caches, shared with the receiver and with what stores them.
    pub caches: Arc<PeerCaches>,
}
