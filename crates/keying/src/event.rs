//! What happened, for a log.

use core::fmt;
use core::time::Duration;
use std::net::{IpAddr, SocketAddr};

use strait_crypto::Suite;
use strait_ipsec::PeerId;
use strait_wire::Spi;

use crate::sessionless::{self, CannotSend};
use crate::{MessageError, PublicKey, Role};

/// A change of state worth a line in a log; [`fmt::Display`] is that line without the peer's name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlEvent {
    /// This node began a handshake.
    HandshakeStarted {
        /// With whom.
        peer: PeerId,
        /// At which address.
        to: SocketAddr,
    },
    /// A pair of associations is in use.
    Established {
        /// With whom.
        peer: PeerId,
        /// Who began.
        role: Role,
        /// What seals the packets.
        suite: Suite,
        /// The association towards this node.
        inbound: Spi,
        /// The association towards the peer.
        outbound: Spi,
        /// The pair it replaces, by its outbound half; none for a first pair.
        replaces: Option<Spi>,
    },
    /// A handshake of an unknown node was refused.
    Refused {
        /// From where.
        from: SocketAddr,
        /// Why.
        why: Refusal,
    },
    /// A handshake failed.
    Failed {
        /// With whom.
        peer: PeerId,
        /// Who began it.
        role: Role,
        /// Why.
        why: HandshakeFailure,
        /// How many that this node began failed in a row.
        failures: u32,
        /// How long until the next may begin, if it is still wanted then; none, as the peer decides, when it
        /// began this one.
        retry: Option<Duration>,
    },
    /// A handshake was dropped in favour of the one that the peer began at the same time.
    Yielded {
        /// With whom.
        peer: PeerId,
    },
    /// A pair reached its hard limit without being replaced, mostly for want of traffic, and was withdrawn.
    Expired {
        /// With whom.
        peer: PeerId,
        /// The association towards the peer.
        outbound: Spi,
    },
    /// The peer speaks from another address.
    Moved {
        /// Who.
        peer: PeerId,
        /// From where.
        to: SocketAddr,
        /// Moves before this one that have no line of their own, as they came too fast.
        unlogged: u64,
    },
    /// Packets were sent and none received; the peer is probed.
    Silent {
        /// Who.
        peer: PeerId,
    },
    /// The peer's name was not resolved.
    Unresolved {
        /// Whose.
        peer: PeerId,
        /// What was looked up.
        name: String,
        /// What the resolver said.
        why: String,
    },
    /// The first authentic packet under a packet key came from a peer.
    HeardWithoutSession {
        /// Who.
        peer: PeerId,
    },
    /// A peer said that it lacks a key of the day of a packet key of this node.
    PeerLacksDailyKey {
        /// The peer.
        peer: PeerId,
        /// Whether nothing is sent without.
        required: bool,
    },
    /// No packet key towards a peer can be begun.
    CannotSend {
        /// Towards whom.
        peer: PeerId,
        /// Why.
        why: CannotSend,
    },
    /// Packet keys towards a peer can be begun again.
    SendsAgain {
        /// Towards whom.
        peer: PeerId,
    },
    /// A datagram with a packet key was refused for something that people can mend.
    RefusedHeader {
        /// From where it came.
        from: SocketAddr,
        /// Why.
        why: sessionless::Refusal,
    },
    /// A peer said that it is being stopped.
    Stopped {
        /// The peer.
        peer: PeerId,
    },
    /// Packets wait for a peer without a known endpoint.
    NoEndpoint {
        /// Who.
        peer: PeerId,
    },
}

/// Why a handshake of an unknown node was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// No peer has this key, or none has it any longer.
    Stranger(PublicKey),
    /// No peer has this key, and there is no room for another node that is not listed.
    Full(PublicKey),
    /// The handshake ended before a key was proved.
    Handshake,
    /// So many handshakes are under way that this one was dropped.
    Crowded,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Stranger(key) => write!(f, "no peer has the public key {key}"),
            Refusal::Full(key) => write!(
                f,
                "no peer has the public key {key}, and there is no room for another node that is not listed"
            ),
            Refusal::Handshake => f.write_str("authentication failed"),
            Refusal::Crowded => f.write_str("too many handshakes in progress"),
        }
    }
}

/// Why a handshake failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeFailure {
    /// No answer in time.
    #[error("no answer; is the peer running, is its endpoint right, does a firewall pass UDP to it?")]
    TimedOut,
    /// The node there has another key than the peer should.
    #[error("the node at this endpoint has another public key; check `public_key` and `endpoint`")]
    WrongKey,
    /// The peer does not know this node's key.
    #[error("the peer refuses this node's public key; is {key} configured at the peer?")]
    RefusedThere {
        /// This node's key.
        key: PublicKey,
    },
    /// A message that cannot be read.
    #[error("malformed message from the peer: {0}")]
    BadMessage(#[from] MessageError),
    /// A message that does not belong where it came.
    #[error("the peer sent {got}, expected {expected}")]
    OutOfTurn {
        /// What came.
        got: &'static str,
        /// What should have.
        expected: &'static str,
    },
    /// No suite that both allow.
    #[error("no cipher suite is allowed at both ends; compare `suites`")]
    NoCommonSuite,
    /// The peer ended it.
    #[error("the peer closed the handshake: {0}")]
    Closed(String),
    /// The address cannot be used.
    #[error("{to} is not a valid destination address")]
    BadAddress {
        /// The address.
        to: SocketAddr,
    },
    /// Datagrams to the peer could leave only with an address of the tunnel itself, which no answer comes back to.
    #[error(
        "the tunnel's own address {tunnel} is the only one of this host that datagrams to the peer could leave with; give an outer \
         interface an address of the same kind"
    )]
    NoSource {
        /// The address of the tunnel.
        tunnel: IpAddr,
    },
    /// The name was not resolved.
    #[error("the endpoint's name was not found: {0}")]
    Unresolved(String),
    /// The TLS library failed in a way that no input should make it.
    #[error("the TLS library failed: {0}")]
    Tls(String),
}

impl fmt::Display for ControlEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlEvent::HandshakeStarted { to, .. } => write!(f, "handshake with {to} started"),
            ControlEvent::Established { role, suite, inbound, outbound, replaces, .. } => {
                let what = if replaces.is_some() { "rekeyed" } else { "session established" };
                write!(f, "{what} as {role}: {suite}, SPI {inbound} in, {outbound} out")
            }
            ControlEvent::Refused { from, why } => write!(f, "{from} refused: {why}"),
            ControlEvent::Failed { why, failures, retry: Some(retry), .. } => {
                let pause = retry.as_secs_f32();
                write!(
                    f,
                    "handshake failed ({failures} in a row): {why}; next attempt in {pause:.1} s at the earliest"
                )
            }
            ControlEvent::Failed { why, .. } => write!(f, "handshake started by the peer failed: {why}"),
            ControlEvent::Yielded { .. } => {
                f.write_str("both ends started a handshake; the peer's continues")
            }
            ControlEvent::Expired { outbound, .. } => {
                write!(f, "session (SPI {outbound} out) unused and closed; the next packet starts a new one")
            }
            ControlEvent::Moved { to, unlogged: 0, .. } => write!(f, "peer moved to {to}"),
            ControlEvent::Moved { to, unlogged, .. } => {
                write!(f, "peer moved to {to} (after {unlogged} moves that are not logged)")
            }
            ControlEvent::Stopped { .. } => f.write_str("the peer is being stopped"),
            ControlEvent::Silent { .. } => {
                f.write_str("nothing received from the peer; sending a liveness probe")
            }
            ControlEvent::Unresolved { name, why, .. } => write!(f, "cannot look up {name}: {why}"),
            ControlEvent::HeardWithoutSession { .. } => {
                f.write_str("first packet from the peer under a key without a session")
            }
            ControlEvent::CannotSend { why, .. } => write!(f, "nothing is sent to the peer: {why}"),
            ControlEvent::PeerLacksDailyKey { required: false, .. } => {
                f.write_str("the peer lacks a key of this day: packets to it have no forward secrecy for a while")
            }
            ControlEvent::PeerLacksDailyKey { required: true, .. } => f.write_str(
                "the peer lacks a key of this day, and daily keys are required: it takes nothing until it has followed its directory",
            ),
            ControlEvent::SendsAgain { .. } => f.write_str("packets are sent to the peer again"),
            ControlEvent::RefusedHeader { from, why } => {
                write!(f, "a datagram from {from} was refused: {}", why.name())
            }
            ControlEvent::NoEndpoint { .. } => f.write_str(
                "packets are queued, but the peer has no `endpoint` and has not sent anything yet",
            ),
        }
    }
}

impl ControlEvent {
    /// Which peer it is about, if it is about one.
    #[must_use]
    pub const fn peer(&self) -> Option<PeerId> {
        match self {
            ControlEvent::HandshakeStarted { peer, .. }
            | ControlEvent::Established { peer, .. }
            | ControlEvent::Failed { peer, .. }
            | ControlEvent::Yielded { peer }
            | ControlEvent::Expired { peer, .. }
            | ControlEvent::Moved { peer, .. }
            | ControlEvent::Silent { peer }
            | ControlEvent::Stopped { peer }
            | ControlEvent::Unresolved { peer, .. }
            | ControlEvent::HeardWithoutSession { peer }
            | ControlEvent::CannotSend { peer, .. }
            | ControlEvent::PeerLacksDailyKey { peer, .. }
            | ControlEvent::SendsAgain { peer }
            | ControlEvent::NoEndpoint { peer } => Some(*peer),
            ControlEvent::Refused { .. } | ControlEvent::RefusedHeader { .. } => None,
        }
    }
}
