//! The peers of the configuration with the numbers that the packet path knows them by.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use strait_compress::history::{KeptMemory, PeerMemory};
use strait_ipsec::{PeerCaches, PeerCounters, PeerId, PeerSpec};
use strait_keying::{PayloadFormat, PeerConfig, PublicKey, Where};

use crate::config::{Endpoint, PeerKeys, PeerPayloads, PeerSection};

/// What makes a peer the same one in another configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    /// It has this key.
    Key(PublicKey),
    /// Its keys are in the file, under this name.
    Name(String),
}

impl Who {
    fn is(peer: &PeerSection) -> Who {
        peer.public_key().map_or_else(|| Who::Name(peer.name.clone()), |key| Who::Key(*key))
    }
}

/// Whether `one` and `other` are what two configurations say of the same peer.
pub(super) fn is_same(one: &PeerSection, other: &PeerSection) -> bool {
    Who::is(one) == Who::is(other)
}

/// A peer with what is shared of it.
#[derive(Debug)]
struct KnownPeer {
    id: PeerId,
    counters: Arc<PeerCounters>,
    caches: Arc<PeerCaches>,
}

/// Who has which number; a number is never given twice.
#[derive(Debug, Default)]
pub(super) struct Roster {
    known: BTreeMap<Who, KnownPeer>,
    last: u32,
    /// The memory for what is kept of all peers' data.
    memory: Arc<KeptMemory>,
}

impl Roster {
    /// An empty roster. History and byte caches of its peers take this memory.
    pub(super) fn new(memory: Arc<KeptMemory>) -> Roster {
        Roster { memory, ..Roster::default() }
    }

    /// The peer as the packet path wants it, with its number, a new one if it is new.
    pub(super) fn enter(&mut self, peer: &PeerSection) -> PeerSpec {
        let (last, memory) = (&mut self.last, &self.memory);
        let KnownPeer { id, counters, caches } = self.known.entry(Who::is(peer)).or_insert_with(|| {
            *last += 1;
            let caches = PeerCaches::within(Arc::new(PeerMemory::of(Arc::clone(memory))));
            KnownPeer { id: PeerId(*last), counters: Arc::default(), caches: Arc::new(caches) }
        });
        PeerSpec {
            id: *id,
            allowed: peer.allowed_ips.clone(),
            endpoint: match (&peer.keys, &peer.endpoint) {
                (PeerKeys::Manual(_), Some(Endpoint::Address(address))) => Some(*address),
                (PeerKeys::Manual(_), Some(Endpoint::Host(address))) => Some(SocketAddr::new(*address, 0)),
                // The key manager knows its endpoint.
                _ => None,
            },
            mtu: peer.mtu,
            counters: Arc::clone(counters),
            caches: Arc::clone(caches),
        }
    }

    /// Forgets a peer; says which number it had.
    pub(super) fn strike(&mut self, peer: &PeerSection) -> Option<PeerId> {
        self.known.remove(&Who::is(peer)).map(|known| known.id)
    }

    /// The number of a peer.
    pub(super) fn number(&self, peer: &PeerSection) -> Option<PeerId> {
        self.known.get(&Who::is(peer)).map(|known| known.id)
    }

    /// Which of `peers` has this number.
    pub(super) fn whose<'a>(&self, id: PeerId, peers: &'a [PeerSection]) -> Option<&'a PeerSection> {
        peers.iter().find(|peer| self.number(peer) == Some(id))
    }

    /// The same, to be looked at from another thread.
    pub(super) fn shared_counters(&self, peer: &PeerSection) -> Option<Arc<PeerCounters>> {
        self.known.get(&Who::is(peer)).map(|known| Arc::clone(&known.counters))
    }

    /// Bytes of memory that are taken for a peer's history and byte caches.
    pub(super) fn kept_bytes(&self, peer: &PeerSection) -> usize {
        self.known.get(&Who::is(peer)).map_or(0, |known| known.caches.kept_bytes())
    }

    /// What was counted for a peer.
    pub(super) fn counters(&self, peer: &PeerSection) -> Option<&PeerCounters> {
        self.known.get(&Who::is(peer)).map(|known| &*known.counters)
    }
}

/// The peer as the key manager takes it, if keys are agreed in sessions.
pub(super) fn session(peer: &PeerSection, spec: PeerSpec) -> Option<PeerConfig> {
    if peer.sessionless.is_some() { None } else { keyed(peer, spec) }
}

/// The peer as the key manager takes it, if its keys are not in the file.
pub(super) fn keyed(peer: &PeerSection, spec: PeerSpec) -> Option<PeerConfig> {
    let PeerKeys::Session { public_key, payloads, repair, carrier } = &peer.keys else { return None };
    Some(PeerConfig {
        spec,
        name: peer.name.clone(),
        key: *public_key,
        place: place(peer.endpoint.as_ref()),
        start: peer.start,
        keepalive: peer.keepalive,
        format: match payloads {
            PeerPayloads::Strait => PayloadFormat::Strait,
            PeerPayloads::Standard => PayloadFormat::Standard,
        },
        repair: *repair,
        carrier: *carrier,
    })
}

fn place(endpoint: Option<&Endpoint>) -> Where {
    match endpoint {
        // Without ports there is no handshake.
        None | Some(Endpoint::Host(_)) => Where::Unknown,
        Some(Endpoint::Address(address)) => Where::Address(*address),
        Some(Endpoint::Name(name)) => Where::Name(name.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;
    use strait_keying::{RepairMode, Start};

    fn peer(key: u8, endpoint: &str) -> PeerSection {
        let key = PublicKey::from_bytes([key; 32]);
        let text = format!(
            "[node]\nprivate_key_file = \"k\"\naddress = \"10.0.0.1\"\n[[peer]]\npublic_key = \"{key}\"\n\
             allowed_ips = \"10.0.0.2\"\npayloads = \"standard\"\nrepair = \"off\"\nendpoint = \"{endpoint}\"\n"
        );
        Config::parse(&text, Path::new("x.toml")).unwrap().peers.remove(0)
    }

    #[test]
    fn a_number_is_kept_while_the_peer_is_there_and_never_given_again() {
        let mut roster = Roster::default();
        let (one, other) = (peer(1, "192.0.2.1:9"), peer(2, "host.example:9"));
        let (first, second) = (roster.enter(&one), roster.enter(&other));
        assert_ne!(first.id, second.id);
        assert_eq!(roster.enter(&one).id, first.id);
        assert!(Arc::ptr_eq(&roster.enter(&one).counters, &first.counters), "counts go on");
        assert_eq!(roster.strike(&one), Some(first.id));
        assert_eq!((roster.number(&one), roster.strike(&one)), (None, None));
        let again = roster.enter(&one).id;
        assert!(again != first.id && again != second.id);
    }

    #[test]
    fn configuration_reaches_the_key_manager() {
        let mut roster = Roster::default();
        let mut entry = |peer: &PeerSection| session(peer, roster.enter(peer)).unwrap();
        let first = entry(&peer(1, "192.0.2.1:9"));
        assert_eq!(first.place, Where::Address("192.0.2.1:9".parse().unwrap()));
        assert_eq!((first.format, first.start), (PayloadFormat::Standard, Start::Eager));
        assert_eq!(first.repair, RepairMode::Off);
        assert_eq!(first.name, first.key.to_string(), "without a name people see the key");
        assert_eq!(entry(&peer(2, "host.example:9")).place, Where::Name("host.example:9".to_owned()));
    }
}
