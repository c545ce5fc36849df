//! Which peers are there, and which brokers are used for those that are not.

use std::collections::{BTreeMap, BTreeSet};

use strait_keying::PublicKey;
use strait_node::client;
use strait_node::config::Config;
use strait_node::report::{MeteredReport, PeerReport};
use strait_transfer::outbox::ReachablePeers;

/// A peer that a stream can be opened to: its name now, and the daemon that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeerHere {
    pub(super) name: String,
    pub(super) interface: String,
    /// Whether a session is up.
    pub(super) up: bool,
    /// Whether it can hardly be reached: the last handshake failed, or it is not known where it is.
    pub(super) doubtful: bool,
    /// Until when the link to it takes urgent files only, because it is metered; nothing where it takes all.
    pub(super) urgent_until: Option<i64>,
}

impl PeerHere {
    /// Whether the name is still that of the peer with this key: the configuration may have been read again.
    pub(super) fn is_still(&self, key: &PublicKey) -> bool {
        let is = |peer: &PeerReport| {
            let its = peer.public_key.as_ref().and_then(|its| its.parse().ok());
            peer.name == self.name && its.as_ref() == Some(key)
        };
        client::show(&self.interface).is_ok_and(|report| report.peers.iter().any(is))
    }
}

/// Finds the peers that the daemons of these interfaces can open a stream to; the words say why no daemon answers, if none does.
pub(super) fn peers_here(interfaces: Vec<String>) -> (BTreeMap<PublicKey, PeerHere>, Option<String>) {
    let mut there = BTreeMap::new();
    let mut silent = Some("no tunnel is running".to_owned());
    for interface in interfaces {
        let report = match client::show(&interface) {
            Ok(report) => report,
            Err(error) => {
                silent = silent.map(|_| error.to_string());
                continue;
            }
        };
        silent = None;
        let metered = report.metered;
        for peer in report.peers {
            // With an idle peer the daemon begins a session when a stream is wanted.
            let (up, idle) = (peer.is_up(), peer.state == "idle");
            let silent = matches!(peer.state.as_str(), "no-answer" | "down");
            let key = peer.public_key.filter(|_| up || idle || silent);
            let Some(key) = key.and_then(|key| key.parse().ok()) else { continue };
            let doubtful = silent || idle && (peer.handshake_failures > 0 || peer.endpoint.is_none());
            let urgent_until = urgent_until(&metered, &peer.name);
            let interface = interface.clone();
            there.insert(key, PeerHere { name: peer.name, interface, up, doubtful, urgent_until });
        }
    }
    (there, silent)
}

/// Until when a cap or a daily window lets only urgent files go to the peer of this name, if one does.
fn urgent_until(metered: &[MeteredReport], name: &str) -> Option<i64> {
    let of_it = metered.iter().filter(|one| one.peer.as_deref().is_none_or(|peer| peer == name));
    // Where nothing is said, it is looked again when the daemon is asked again.
    of_it.filter(|one| one.admission != "all").map(|one| one.changes_at.unwrap_or(i64::MAX)).max()
}

/// Brokers by the peers that they are used for (`via`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BrokerRoutes(pub(super) BTreeMap<PublicKey, PublicKey>);

impl BrokerRoutes {
    pub(super) fn of(config: &Config) -> BrokerRoutes {
        let key = |name: &str| config.peers.iter().find(|peer| peer.name == name)?.public_key().copied();
        let route =
            |peer: &strait_node::config::PeerSection| Some((*peer.public_key()?, key(peer.via.as_deref()?)?));
        BrokerRoutes(config.peers.iter().filter_map(route).collect())
    }

    /// All brokers.
    pub(super) fn brokers(&self) -> BTreeSet<PublicKey> {
        self.0.values().copied().collect()
    }

    /// Where transfers can go: a peer with a broker that can hardly be reached counts as away, and so does one of those to which
    /// the last try found no way.
    pub(super) fn reachable(
        &self,
        here: &BTreeMap<PublicKey, PeerHere>,
        unreached: &BTreeSet<PublicKey>,
    ) -> ReachablePeers {
        let is_away = |(key, peer): (&PublicKey, &PeerHere)| {
            !peer.up && (peer.doubtful || unreached.contains(key)) && self.0.contains_key(key)
        };
        let there = here.iter().filter(|(key, peer)| !is_away((key, peer)));
        let brokers = self.0.iter().filter(|(_, broker)| here.contains_key(broker));
        ReachablePeers {
            there: there.map(|(key, _)| *key).collect(),
            brokers: brokers.map(|(peer, broker)| (*peer, *broker)).collect(),
            urgent_only: here.iter().filter_map(|(key, peer)| Some((*key, peer.urgent_until?))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use strait_keying::PrivateKey;

    use super::*;

    #[test]
    fn a_peer_that_did_not_answer_is_away_only_if_it_has_a_broker() {
        let key = |seed: u8| PrivateKey::generate(&[seed; 32]).public();
        let here = |up, doubtful| PeerHere {
            name: String::new(),
            interface: String::new(),
            up,
            doubtful,
            urgent_until: None,
        };
        let routes = [(1, 9), (2, 9), (3, 8), (5, 9), (6, 9)].map(|(peer, broker)| (key(peer), key(broker)));
        let routes = BrokerRoutes(routes.into());
        let there = [
            (key(1), here(false, true)),
            (key(2), here(false, false)),
            (key(4), here(false, true)),
            (key(5), here(false, false)),
            (key(6), here(true, false)),
            (key(9), here(false, true)),
        ];
        let unreached = [key(4), key(5), key(6)].into();
        let reachable = routes.reachable(&there.into(), &unreached);
        assert_eq!(reachable.there, [key(2), key(4), key(6), key(9)].into());
        let brokers = [1, 2, 5, 6].map(|peer| (key(peer), key(9)));
        assert_eq!(reachable.brokers, brokers.into());
    }
}
