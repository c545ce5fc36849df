//! The peers of the configuration with the numbers that the packet path knows them by.

use std::collections::BTreeMap;
use std::sync::Arc;

use strait_ipsec::{PeerCounters, PeerId, PeerSpec};
use strait_keying::{Format, PeerConfig, PublicKey, Start, Where};

use crate::config::{Endpoint, Peer, PeerPayloads};

/// Who has which number; a number is never given twice.
#[derive(Debug, Default)]
pub(super) struct Roster {
    known: BTreeMap<PublicKey, (PeerId, Arc<PeerCounters>)>,
    last: u32,
}

impl Roster {
    /// The peer as the keeper of keys wants it, with its number, a new one if it is new.
    pub(super) fn enter(&mut self, peer: &Peer) -> PeerConfig {
        let last = &mut self.last;
        let (id, counters) = self.known.entry(peer.public_key).or_insert_with(|| {
            *last += 1;
            (PeerId(*last), Arc::default())
        });
        let spec = PeerSpec {
            id: *id,
            allowed: peer.allowed_ips.clone(),
            endpoint: None,
            mtu: peer.mtu,
            counters: Arc::clone(counters),
        };
        PeerConfig {
            spec,
            name: peer.name.clone(),
            key: peer.public_key,
            place: place(peer.endpoint.as_ref()),
            start: Start::Eager,
            keepalive: peer.keepalive,
            format: match peer.payloads {
                PeerPayloads::Strait => Format::Strait,
                PeerPayloads::Standard => Format::Standard,
            },
        }
    }

    /// Forgets a peer; says which number it had.
    pub(super) fn strike(&mut self, key: &PublicKey) -> Option<PeerId> {
        self.known.remove(key).map(|(id, _)| id)
    }

    /// The number of a peer.
    pub(super) fn number(&self, key: &PublicKey) -> Option<PeerId> {
        self.known.get(key).map(|(id, _)| *id)
    }

    /// What was counted for a peer.
    pub(super) fn counters(&self, key: &PublicKey) -> Option<&PeerCounters> {
        self.known.get(key).map(|(_, counters)| &**counters)
    }
}

fn place(endpoint: Option<&Endpoint>) -> Where {
    match endpoint {
        None => Where::Unknown,
        Some(Endpoint::Address(address)) => Where::Address(*address),
        Some(Endpoint::Name(name)) => Where::Name(name.clone()),
    }
}
