//! What the packet path tells whoever keeps the keys.

use std::net::SocketAddr;

use strait_compress::Decision;
use strait_scheduler::Occupation;
use strait_wire::Spi;
use strait_wire::condition::Condition;

use crate::PeerId;

/// Something that the packet path cannot decide alone. Each is said once per cause, not per packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A packet for this peer waits and there is no security association to send it with.
    NeedsSa(PeerId),
    /// The first authentic packet arrived on this inbound SA: the peer uses it.
    Confirmed(PeerId, Spi),
    /// An authentic packet came from another address than before; datagrams already follow it.
    Moved(PeerId, SocketAddr),
    /// ESP from `from` names an SPI that nobody here handed out (or forgot).
    UnknownSpi(SocketAddr, Spi),
    /// The outbound SA has no sequence number left; nothing is sent until it is replaced.
    Exhausted(PeerId, Spi),
    /// The largest inner packet to the peer changed to this many bytes.
    InnerMtu(PeerId, u16),
    /// The peer says that something changed there.
    Reported(PeerId, Condition),
    /// Expanding takes so many times longer than calibrated: peers should know.
    Slower(f64),
    /// What is compressed, how and why, was asked for.
    Explained(Box<Explanation>),
    /// What was decided on a class changed.
    Decided(Box<Decision>),
}

/// What the sending half decides, and who compresses for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// What is compressed and why, the busiest class first.
    pub decisions: Vec<Decision>,
    /// How busy those are who compress: the thread that carries packets, and its workers; nothing where it is alone.
    pub engines: Vec<Occupation>,
}
