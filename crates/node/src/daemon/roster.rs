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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    fn peer(key: u8, endpoint: &str) -> Peer {
        let key = PublicKey::from_bytes([key; 32]);
        let text = format!(
            "[node]\nprivate_key_file = \"k\"\naddress = \"10.0.0.1\"\n[[peer]]\npublic_key = \"{key}\"\n\
             allowed_ips = \"10.0.0.2\"\npayloads = \"standard\"\nendpoint = \"{endpoint}\"\n"
        );
        Config::parse(&text, Path::new("x.toml")).unwrap().peers.remove(0)
    }

    #[test]
    fn a_number_is_kept_while_the_peer_is_there_and_never_given_again() {
        let mut roster = Roster::default();
        let (one, other) = (peer(1, "192.0.2.1:9"), peer(2, "host.example:9"));
        let (first, second) = (roster.enter(&one), roster.enter(&other));
        assert_ne!(first.spec.id, second.spec.id);
        assert_eq!(roster.enter(&one).spec.id, first.spec.id);
        assert!(Arc::ptr_eq(&roster.enter(&one).spec.counters, &first.spec.counters), "counts go on");
        assert_eq!(roster.strike(&one.public_key), Some(first.spec.id));
        assert_eq!((roster.number(&one.public_key), roster.strike(&one.public_key)), (None, None));
        let again = roster.enter(&one).spec.id;
        assert!(again != first.spec.id && again != second.spec.id);
    }

    #[test]
    fn what_the_file_says_reaches_the_keeper_of_keys() {
        let mut roster = Roster::default();
        let entry = roster.enter(&peer(1, "192.0.2.1:9"));
        assert_eq!(entry.place, Where::Address("192.0.2.1:9".parse().unwrap()));
        assert_eq!((entry.format, entry.start), (Format::Standard, Start::Eager));
        assert_eq!(entry.name, entry.key.to_string(), "without a name people see the key");
        assert_eq!(roster.enter(&peer(2, "host.example:9")).place, Where::Name("host.example:9".to_owned()));
    }
}
