//! What can be shown of a peer.

use strait_scheduler::LinkRate;

use super::PeerRecord;
use super::initiation::InitiationState;
use super::pairs::{SaHalf, SaPair};
use crate::{AssociationStatus, PeerState, PeerStatus, SaStatus};

impl PeerRecord {
    pub(crate) fn status(&self, up: LinkRate) -> PeerStatus {
        let begun = self.initiation.state() != InitiationState::Idle || self.pairs.unconfirmed().is_some();
        let unanswered_since = self.unanswered_since();
        let state = match self.pairs.in_use() {
            Some(_) if unanswered_since.is_some() => PeerState::NoAnswer,
            Some(_) => PeerState::Up,
            None if self.stopped.is_some() => PeerState::Down,
            None if begun => PeerState::Connecting,
            None => PeerState::Idle,
        };
        PeerStatus {
            peer: self.config.spec.id,
            name: self.config.name.clone(),
            key: self.config.key,
            endpoint: self.config.spec.counters.endpoint.get(),
            // The table forgets it a moment later.
            remembered: self.remembered.filter(|_| self.last_handshake.is_none()),
            state,
            association: self.pairs.in_use().map(|pair| self.association(pair)),
            away_since: unanswered_since.or(self.stopped),
            unanswered_packets: self.unanswered_packets(),
            last_handshake: self.last_handshake,
            failures: self.initiation.failures(),
            last_failure: self.initiation.last_failure().cloned(),
            next_attempt: self.initiation.waits_until(self.answered_until()),
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
