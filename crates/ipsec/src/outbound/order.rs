//! What the sending half is told.

use std::net::SocketAddr;
use std::sync::Arc;

use strait_compress::Ends;
use strait_scheduler::{Pace, Rate};
use strait_wire::Spi;
use strait_wire::condition::Condition;

use super::queue::Queueing;
use super::{Heard, Reception};
use crate::{OutboundSa, PeerId, PeerSpec, Policies, RuleSet};

/// A change to the sending half, made between two packets.
#[derive(Debug)]
pub enum Order {
    /// A peer appears, without an association.
    AddPeer(Box<PeerSpec>),
    /// A peer goes; what is queued for it is dropped.
    RemovePeer(PeerId),
    /// Who owns which inner addresses.
    Policies(Arc<Policies>),
    /// What may be compressed.
    Rules(Arc<RuleSet>),
    /// Datagrams to the peer go there from now on.
    Endpoint(PeerId, SocketAddr),
    /// How to pace towards the peer.
    Rate(PeerId, Pace),
    /// The node's own link has this rate from now on, and adds so many bytes to each datagram.
    Link(Option<Rate>, u16),
    /// How packets are to wait.
    Queueing(Queueing),
    /// What this end and the peer's do with every byte, and how long that takes.
    Ends(PeerId, Box<Ends>),
    /// Say what is decided, and why: [`crate::Notice::Explained`].
    Explain,
    /// Send with this association from now on; the one before is forgotten and its key wiped.
    Install(Box<OutboundSa>),
    /// Stop sending with this association, if it is still the peer's.
    Withdraw(PeerId, Spi),
    /// A control datagram, ahead of everything that waits.
    Transmit(SocketAddr, Box<[u8]>),
    /// A NAT keepalive (RFC 3948 section 2.3) to the peer.
    Keepalive(PeerId),
    /// Tell the peer what changed here.
    Report(PeerId, Condition),
    /// Tell the peer what arrived from it.
    Received(PeerId, Reception),
    /// The peer says what arrived there.
    Delivered(PeerId, Heard),
    /// Ask the peer for a sign of life.
    Probe(PeerId),
    /// The peer asked with a probe of this number and outer size: answer.
    AnswerProbe(PeerId, u16, u16),
    /// The peer answered the probe of this number and outer size.
    ProbeAnswered(PeerId, u16, u16),
}
