//! What can be shown of keys without sessions.

use std::net::SocketAddr;

use strait_clock::Time;
use strait_crypto::Suite;
use strait_ipsec::{PeerId, ReturnPath};
use strait_scheduler::Pace;
use strait_wire::Spi;

use super::SessionlessPeers;
use crate::control::context::ControlContext;
use crate::sessionless::{CannotSend, Day, ReceiverCounts};
use crate::{PeerState, PeerStatus, PublicKey, SaStatus};

/// A peer with which keys need no session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionlessStatus {
    /// What people call it.
    pub name: String,
    /// Its public key.
    pub key: PublicKey,
    /// Where datagrams to it go.
    pub endpoint: Option<SocketAddr>,
    /// Whether it answers.
    pub path: ReturnPath,
    /// What seals packets to it.
    pub suite: Suite,
    /// Whether packet keys towards it have the secret of a key packet.
    pub hybrid: bool,
    /// The day whose keys are in the packet key in use towards it; none where its Kij is of the long-term keys alone.
    pub day: Option<Day>,
    /// The last day of which a key of the peer is known; none where daily keys are not used.
    pub daily_until: Option<Day>,
    /// The packet key in use towards it.
    pub outbound: Option<SaStatus>,
    /// When that began, and whether the peer has bound it to its SPI.
    pub began: Option<(Time, bool)>,
    /// Its packet keys that are known here, the newest packet first.
    pub inbound: Vec<SaStatus>,
    /// Packet keys that were begun towards it.
    pub begun: u64,
    /// Whether a session is still what is sent with.
    pub has_session: bool,
    /// Why nothing is sent, if packets wait.
    pub refused: Option<CannotSend>,
    /// How it is paced.
    pub pace: Pace,
}

impl SessionlessPeers {
    /// What can be shown of a peer.
    pub(crate) fn status(&self, context: &ControlContext, id: PeerId) -> Option<SessionlessStatus> {
        let peer = self.peers.get(&id)?;
        let sa = |spi: Spi, usage: &strait_ipsec::Usage| SaStatus {
            spi,
            packets: usage.packets(),
            bytes: usage.bytes(),
            last: usage.last(),
        };
        let key = peer.out.key.as_ref();
        let mut inbound: Vec<SaStatus> = self.keys.usages(id).map(|(spi, usage)| sa(spi, usage)).collect();
        inbound.sort_by_key(|sa| core::cmp::Reverse(sa.last));
        Some(SessionlessStatus {
            name: peer.config.name.clone(),
            key: peer.config.key,
            endpoint: peer.config.spec.counters.endpoint.get(),
            path: peer.terms.path,
            suite: peer.suite,
            hybrid: peer.terms.card.as_ref().is_some_and(|card| card.kem.is_some()),
            day: key.and_then(|key| key.day),
            daily_until: self.own.daily.until(&peer.config.key),
            outbound: key.map(|key| sa(key.spi, &key.usage)),
            began: key.map(|key| (key.began, key.bound)),
            inbound,
            begun: peer.out.begun,
            has_session: peer.change.has_session(),
            refused: peer.out.refused.filter(|why| !matches!(why, CannotSend::NotPersisted { .. })),
            pace: super::pace(context.node.up, &peer.config, &peer.terms),
        })
    }

    /// The same as of a peer with a session, where that makes sense.
    pub(crate) fn peer_status(&self, context: &ControlContext, id: PeerId) -> Option<PeerStatus> {
        let status = self.status(context, id)?;
        let heard = !status.inbound.is_empty();
        Some(PeerStatus {
            peer: id,
            name: status.name,
            key: status.key,
            endpoint: status.endpoint,
            remembered: None,
            state: if heard || status.outbound.is_some() { PeerState::Up } else { PeerState::Idle },
            association: None,
            away_since: None,
            unanswered_packets: None,
            last_handshake: None,
            failures: 0,
            last_failure: None,
            next_attempt: None,
            pace: status.pace,
            capabilities: self.peers.get(&id)?.terms.card.as_ref().map(|card| card.capabilities.clone()),
        })
    }

    /// What all peers share.
    pub(crate) fn counts(&self) -> ReceiverCounts {
        let mut receiver = self.receiver.counts();
        receiver.packet_keys.entries = self.keys.len();
        receiver.refusals = receiver.refusals.with(self.screen.refusals());
        receiver
    }
}
