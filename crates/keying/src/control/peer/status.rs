//! What can be shown of a peer.

use strait_scheduler::LinkRate;

use super::PeerRecord;
use super::initiation::InitiationState;
use super::pairs::{SaHalf, SaPair};
use crate::{AssociationStatus, PeerState, PeerStatus, SaStatus};

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
            endpoint: self.config.spec.counters.endpoint.get(),
            state,
            association: self.pairs.in_use().map(|pair| self.association(pair)),
            last_handshake: self.last_handshake,
            failures: self.initiation.failures(),
            pace: self.pace(up),
            capabilities: self.theirs.capabilities.clone(),
        }
    }

    fn association(&self, pair: &SaPair) -> AssociationStatus {
        AssociationStatus {
            role: pair.role,
            suite: pair.suite,
            iv: pair.iv,
            payloads: pair.payloads,
            inbound: SaStatus { last: self.pairs.last_heard(), ..pair.inbound.status() },
            outbound: pair.outbound.status(),
            established: pair.established,
            next_rekey: pair.rekey_at,
        }
    }
}

impl SaHalf {
    fn status(&self) -> SaStatus {
        SaStatus {
            spi: self.spi,
            packets: self.usage.packets(),
            bytes: self.usage.bytes(),
            last: self.usage.last(),
        }
    }
}
