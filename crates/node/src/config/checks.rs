//! What only the whole file shows: two peers with the same key, name, endpoint or network.

use std::collections::BTreeMap;
use std::ops::Range;

use ipnet::IpNet;
use strait_keying::PublicKey;

use super::problem::Problem;
use super::reader::{Findings, Placed};
use super::{Endpoint, Peer};

/// A peer as far as it could be read, with the places of what must be unique.
pub(super) struct FoundPeer {
    pub(super) peer: Option<Peer>,
    pub(super) key: Option<Placed<PublicKey>>,
    pub(super) name: Option<Placed<String>>,
    pub(super) endpoint: Option<Placed<Endpoint>>,
    pub(super) prefixes: Vec<Placed<IpNet>>,
}

impl FoundPeer {
    pub(super) fn into_peer(self) -> Option<Peer> {
        self.peer
    }
}

pub(super) fn peers(findings: &Findings<'_>, peers: &[FoundPeer]) {
    let keys = peers.iter().filter_map(|peer| peer.key.as_ref());
    unique(findings, keys, |_, line| Problem::DuplicatePeer { line });
    let names = peers.iter().filter_map(|peer| peer.name.as_ref());
    unique(findings, names, |name, line| Problem::DuplicateName { name: name.clone(), line });
    let written =
        |placed: &Placed<Endpoint>| Placed { value: placed.value.to_string(), span: placed.span.clone() };
    let endpoints: Vec<_> = peers.iter().filter_map(|peer| peer.endpoint.as_ref()).map(written).collect();
    unique(findings, endpoints.iter(), |endpoint, line| Problem::DuplicateEndpoint {
        endpoint: endpoint.clone(),
        line,
    });
    prefixes(findings, peers);
}

fn unique<'p, T: Ord + 'p>(
    findings: &Findings<'_>,
    values: impl Iterator<Item = &'p Placed<T>>,
    problem: impl Fn(&T, usize) -> Problem,
) {
    let mut seen: BTreeMap<&T, usize> = BTreeMap::new();
    for Placed { value, span } in values {
        match seen.get(value) {
            Some(line) => findings.note(span.clone(), problem(value, *line)),
            None => {
                seen.insert(value, findings.line_of(span.start));
            }
        }
    }
}

/// A network twice with one peer is only clumsy; with two peers nobody could tell whose it is.
fn prefixes(findings: &Findings<'_>, peers: &[FoundPeer]) {
    let mut seen: BTreeMap<IpNet, (usize, &Range<usize>)> = BTreeMap::new();
    for (owner, peer) in peers.iter().enumerate() {
        for Placed { value, span } in &peer.prefixes {
            let (first, place) = *seen.entry(*value).or_insert((owner, span));
            if first != owner {
                let line = findings.line_of(place.start);
                findings.note(span.clone(), Problem::DuplicatePrefix { prefix: *value, line });
            }
        }
    }
}

pub(super) fn own_key(findings: &Findings<'_>, peers: &[FoundPeer], own: Option<PublicKey>) {
    let keys = peers.iter().filter_map(|peer| peer.key.as_ref());
    for Placed { value: key, span } in keys.filter(|key| Some(key.value) == own) {
        findings.note(span.clone(), Problem::OwnKey { key: *key });
    }
}
