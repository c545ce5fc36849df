//! What can be shown of a peer.

use strait_scheduler::LinkRate;

use super::PeerRecord;
use super::initiation::InitiationState;
use super::pairs::SaPair;
use crate::{AssociationStatus, PeerState, PeerStatus};

impl PeerRecord {
    pub(crate) fn status(&self, up: LinkRate) -> PeerStatus {
        let begun = self.initiation.state() != InitiationState::Idle || self.pairs.unconfirmed().is_some();
        let state = match self.pairs.in_use() {
            Some(_) => PeerState::Up,
            None if begun => PeerState::Connecting,
            None => PeerState::Idle,
        };
        PeerStatus {
            peer: self.config.spec.id,
            name: self.config.name.clone(),
            key: self.config.key,
            endpoint: self.endpoint,
            state,
            association: self.pairs.in_use().map(|pair| self.association(pair)),
            last_handshake: self.last_handshake,
            failures: self.initiation.failures(),
            pace: self.pace(up),
            capabilities: self.theirs.capabilities.clone(),
        }
    }

    fn association(&self, pair: &SaPair) -> AssociationStatus {
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
            last_received: self.pairs.last_heard(),
            last_sent: outbound.usage.last(),
        }
    }
}
