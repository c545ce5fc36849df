//! What can be shown of a peer.

use core::fmt;
use std::net::SocketAddr;

use strait_clock::Time;
use strait_crypto::Suite;
use strait_ipsec::{IvMode, Payloads, PeerId};
use strait_scheduler::Pace;
use strait_wire::Spi;

use crate::{Capabilities, HandshakeFailure, PublicKey};

/// Who began a handshake, as seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// This node.
    Initiator,
    /// The peer.
    Responder,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Initiator => "initiator",
            Role::Responder => "responder",
        })
    }
}

/// The state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// No association and none being made.
    Idle,
    /// No association yet; a handshake is under way or waits for its next try.
    Connecting,
    /// Packets can flow.
    Up,
    /// Packets are sent under its keys, and it does not answer.
    NoAnswer,
    /// It has said that it is being stopped.
    Down,
}

impl PeerState {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PeerState::Idle => "idle",
            PeerState::Connecting => "connecting",
            PeerState::Up => "up",
            PeerState::NoAnswer => "no-answer",
            PeerState::Down => "down",
        }
    }
}

/// The pair of associations in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationStatus {
    /// Who began it.
    pub role: Role,
    /// What seals its packets.
    pub suite: Suite,
    /// Where the IV is.
    pub iv: IvMode,
    /// What the peer may be sent.
    pub payloads: Payloads,
    /// The association towards this node; `last` counts earlier pairs too.
    pub inbound: SaStatus,
    /// The association towards the peer.
    pub outbound: SaStatus,
    /// Since when.
    pub established: Time,
    /// When it is due to be replaced if it is in use then.
    pub next_rekey: Time,
}

/// One direction of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaStatus {
    /// Its SPI.
    pub spi: Spi,
    /// ESP packets carried.
    pub packets: u64,
    /// Bytes sealed or opened.
    pub bytes: u64,
    /// When it last carried a packet.
    pub last: Option<Time>,
}

/// What can be shown of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// Its number.
    pub peer: PeerId,
    /// What people call it.
    pub name: String,
    /// Its public key.
    pub key: PublicKey,
    /// Where datagrams to it go.
    pub endpoint: Option<SocketAddr>,
    /// Its place in an earlier run; none once there was a session, and where nothing is remembered.
    pub remembered: Option<SocketAddr>,
    /// Its state.
    pub state: PeerState,
    /// The pair in use.
    pub association: Option<AssociationStatus>,
    /// The first packet that it has not answered, or when it said that it is being stopped.
    pub away_since: Option<Time>,
    /// The least number of inner packets that it has not answered; none while it answers.
    pub unanswered_packets: Option<u64>,
    /// When the last handshake succeeded.
    pub last_handshake: Option<Time>,
    /// How many handshakes failed since.
    pub failures: u32,
    /// The reason and the time of the last failure.
    pub last_failure: Option<(HandshakeFailure, Time)>,
    /// The time of the next one, if one waits for it.
    pub next_attempt: Option<Time>,
    /// How it is paced.
    pub pace: Pace,
    /// What it offered in the last handshake.
    pub capabilities: Option<Capabilities>,
}
