//! What can be shown of a peer.

use strait_scheduler::LinkRate;

use super::pairs::Pair;
use super::peer::Peer;
use crate::{AssociationStatus, PeerState, PeerStatus};

impl Peer {
    pub(super) fn status(&self, up: LinkRate) -> PeerStatus {
        let state = match (&self.pair, &self.attempt) {
            (Some(_), _) => PeerState::Up,
            (None, Some(_)) => PeerState::Connecting,
            (None, None) if self.awaited.is_some() || self.wanted_until.is_some() => PeerState::Connecting,
            (None, None) => PeerState::Idle,
        };
        PeerStatus {
            peer: self.config.spec.id,
            name: self.config.name.clone(),
            key: self.config.key,
            endpoint: self.endpoint,
            state,
            association: self.pair.as_ref().map(|pair| self.association(pair)),
            last_handshake: self.last_handshake,
            failures: self.failures,
            pace: self.pace(up),
            capabilities: self.capabilities.clone(),
        }
    }

    fn association(&self, pair: &Pair) -> AssociationStatus {
        let (inbound, outbound) = (&pair.inbound, &pair.outbound);
        AssociationStatus {
            role: pair.role,
            suite: pair.suite,
            iv: pair.iv,
            inbound: inbound.spi,
            outbound: outbound.spi,
            payloads: pair.payloads,
            established: pair.established,
            next_rekey: pair.rekey_at,
            in_packets: inbound.usage.packets(),
            in_bytes: inbound.usage.bytes(),
            out_packets: outbound.usage.packets(),
            out_bytes: outbound.usage.bytes(),
            last_received: self.last_heard(),
            last_sent: outbound.usage.last(),
        }
    }
}
