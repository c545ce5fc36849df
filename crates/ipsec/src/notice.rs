//! What the packet path reports to the key manager.

use std::net::IpAddr;

use strait_compress::Decision;
use strait_scheduler::Occupation;
use strait_wire::condition::Condition;
use strait_wire::sessionless::Acknowledgement;
use strait_wire::{Esn, Spi};

use crate::{LanePacket, PeerId, Place};

/// Something that the packet path cannot decide alone. Each is sent once per cause, not per packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A packet to this address waits, and no peer has it: it is to be looked up, and [`crate::outbound::Order::NoPeer`] is to say when
    /// that is over.
    NeedsPeer(IpAddr),
    /// A packet for this peer waits and there is no security association to send it with.
    NeedsSa(PeerId),
    /// The first authentic packet arrived on this inbound SA: the peer uses it.
    Confirmed(PeerId, Spi),
    /// An authentic packet came from another address than before, which is the peer's
    /// [latest endpoint](crate::PeerCounters::endpoint) now; datagrams already follow it. At most one a second and peer: who
    /// has to know every address in the end looks there once in a while.
    Moved(PeerId),
    /// ESP from this place names an SPI that this node did not assign, or has forgotten.
    UnknownSpi(Place, Spi),
    /// The peer has said this of a header of this node's, in an authentic packet.
    Acknowledged(PeerId, Acknowledgement),
    /// The peer puts a header in front of packets of this inbound SA, the last of them with this number, though it is bound to its SPI.
    HeaderRepeats(PeerId, Spi, Esn),
    /// The numbers of the peer come near to its mark on disk: this one was authentic on this inbound SA.
    MarkLow(PeerId, Spi, Esn),
    /// The outbound SA has no sequence number left; nothing is sent until it is replaced.
    Exhausted(PeerId, Spi),
    /// The largest inner packet to the peer changed to this many bytes.
    InnerMtu(PeerId, u16),
    /// The peer reports a changed condition: its link rate, or how fast it expands.
    Reported(PeerId, Condition),
    /// The process of the peer that uses this inbound SA says that it is being stopped.
    Stopped(PeerId, Spi),
    /// Expanding takes so many times longer than calibrated: peers should know.
    Slower(f64),
    /// A piece of a stream came inside ESP, or what the peer took of one.
    Lane(Box<LanePacket>),
    /// What is compressed, how and why, was asked for.
    Explained(Box<Explanation>),
    /// What was decided on a class changed.
    Decided(Box<Decision>),
}

/// What the sender decides, and how busy its engines are.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// What is compressed and why, the busiest class first.
    pub decisions: Vec<Decision>,
    /// How busy the engines are: the thread that carries packets, then its workers; empty without workers.
    pub engines: Vec<Occupation>,
}
