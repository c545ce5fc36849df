//! What the receiving half is told.

use std::sync::Arc;

use strait_wire::Spi;

use crate::{InboundSa, PeerCounters, PeerId, Policies};

/// A change to the receiving half, made between two datagrams.
#[derive(Debug)]
pub enum Order {
    /// A peer appears; what is received from it is counted there.
    AddPeer(PeerId, Arc<PeerCounters>),
    /// A peer goes, with all its associations.
    RemovePeer(PeerId),
    /// Who owns which inner addresses.
    Policies(Arc<Policies>),
    /// Accept this association, beside those there are.
    Install(Box<InboundSa>),
    /// Accept the association with this SPI in UDP no longer and wipe its key; others go with their peers.
    Withdraw(Spi),
}
