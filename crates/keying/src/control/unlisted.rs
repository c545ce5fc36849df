//! Nodes that the configuration does not list, where it takes such: each is a peer for its time, with keys like any other and
//! without addresses, so that no packet of it passes. What it may do with its streams, others decide.

use std::net::SocketAddr;
use std::sync::Arc;

use strait_ipsec::{PeerId, PeerSpec, Source};

use crate::{CarrierMode, PayloadFormat, PeerConfig, PublicKey, Refusal, RepairMode, Start, Where};

/// Their numbers begin here: the configuration's peers are counted from one.
const FIRST: u32 = 1 << 31;
/// Of all places, those at one site have at most one in so many: it keeps no others out.
const SHARE: usize = 4;

/// Whether this is the number of a node that is not listed.
pub(crate) const fn is_unlisted(id: PeerId) -> bool {
    id.0 >= FIRST
}

/// How many of them there may be, and the number of the next.
#[derive(Debug)]
pub(crate) struct UnlistedPeers {
    most: usize,
    next: u32,
}

impl UnlistedPeers {
    /// None are taken.
    pub(crate) const fn new() -> UnlistedPeers {
        UnlistedPeers { most: 0, next: FIRST }
    }

    /// So many are taken at once from now on.
    pub(crate) const fn take_at_most(&mut self, most: usize) {
        self.most = most;
    }

    /// What the node with `key` is as a peer, or why it is none. `places` are where those are that are there.
    pub(crate) fn admit(
        &mut self,
        key: PublicKey,
        from: SocketAddr,
        places: impl Iterator<Item = Option<SocketAddr>>,
    ) -> Result<PeerConfig, Refusal> {
        if self.most == 0 {
            return Err(Refusal::Stranger(key));
        }
        let (mut all, mut near) = (0, 0);
        for place in places {
            all += 1;
            near +=
                usize::from(place.is_some_and(|place| Source::site(place.ip()) == Source::site(from.ip())));
        }
        // A number is never given twice: what was said of one node is not said of another.
        let next = self.next.checked_add(1);
        let Some(next) = next.filter(|_| all < self.most && near < self.most.div_ceil(SHARE)) else {
            return Err(Refusal::Full(key));
        };
        let id = PeerId(core::mem::replace(&mut self.next, next));
        Ok(PeerConfig {
            spec: PeerSpec {
                id,
                allowed: Vec::new(),
                endpoint: None,
                mtu: None,
                counters: Arc::default(),
                caches: Arc::default(),
            },
            name: key.to_string(),
            key,
            place: Where::Unknown,
            start: Start::OnTraffic,
            keepalive: None,
            format: PayloadFormat::Strait,
            repair: RepairMode::Off,
            carrier: CarrierMode::Udp,
        })
    }
}
