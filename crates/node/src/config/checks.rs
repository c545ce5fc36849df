//! What only the whole file shows: two peers with the same key, name, endpoint, network or number; what a node needs
//! for the peers it has.

use std::collections::BTreeMap;
use std::ops::Range;

use ipnet::IpNet;
use strait_keying::sessionless::DailyPolicy;
use strait_keying::{PrivateKey, PublicKey};

use super::manual::{FoundManual, ManualProblem};
use super::problem::Problem;
use super::reader::{Findings, Placed, Section};
use super::{DirectoryKeying, DirectorySection, Endpoint, NodeSection, PeerSection};

/// A peer as far as it could be read, with the places of what must be unique.
pub(super) struct FoundPeer {
    pub(super) peer: Option<PeerSection>,
    pub(super) key: Option<Placed<PublicKey>>,
    pub(super) name: Option<Placed<String>>,
    pub(super) endpoint: Option<Placed<Endpoint>>,
    pub(super) prefixes: Vec<Placed<IpNet>>,
    /// The broker by way of which it gets files.
    pub(super) via: Option<Placed<String>>,
    /// Its keys, if they are in the file.
    pub(super) manual: Option<FoundManual>,
}

impl FoundPeer {
    pub(super) fn into_peer(self) -> Option<PeerSection> {
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
    via(findings, peers);
    manual(findings, peers);
}

/// Numbers, files, keys and addresses that belong to one peer with manual keys only.
fn manual(findings: &Findings<'_>, peers: &[FoundPeer]) {
    let found = || peers.iter().filter_map(|peer| peer.manual.as_ref());
    // One peer may use a number for both of its protocols.
    let mut seen: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    for (owner, peer) in found().enumerate() {
        for Placed { value: spi, span } in &peer.spis {
            let (first, line) = *seen.entry(*spi).or_insert((owner, findings.line_of(span.start)));
            if first != owner {
                findings.note(span.clone(), ManualProblem::DuplicateSpi { spi: *spi, line });
            }
        }
    }
    let files = found().filter_map(|peer| peer.counter_file.as_ref());
    unique(findings, files, |_, line| ManualProblem::DuplicateCounterFile { line }.into());
    let alone = found().filter_map(|peer| peer.alone.as_ref());
    unique(findings, alone, |remote, line| ManualProblem::DuplicateRemote { remote: *remote, line }.into());
    let keys = found().flat_map(|peer| &peer.sealing);
    unique(findings, keys, |(_, suite), line| ManualProblem::SameKey { suite: *suite, line }.into());
}

/// Peers that are not in the file need a directory, and a directory is for them.
pub(super) fn directory(node: &Section<'_>, directory: Option<&Section<'_>>) {
    let wanted = node.choice("peers", &["file", "directory"], &[false, true]).unwrap_or(false);
    match directory {
        None if wanted => node.note(
            node.value("peers").map_or(node.span(), toml::Spanned::span),
            Problem::Missing { key: "[directory]", section: "the file", example: "[directory]" },
        ),
        Some(section) if !wanted => section.note(section.span(), Problem::UnusedDirectory),
        _ => {}
    }
}

/// Daily keys are for peers with which keys need no session.
pub(super) fn daily_keys(directory: &Section<'_>, read: &DirectorySection, peers: &[FoundPeer]) {
    let found = || peers.iter().map(|peer| peer.peer.as_ref());
    // A peer that could not be read has been complained about.
    let is_used = read.keying == DirectoryKeying::Sessionless
        || found().any(|peer| peer.is_none_or(|peer| peer.sessionless.is_some()));
    if read.daily_keys != DailyPolicy::Off && !is_used {
        directory.note(
            directory.value("daily_keys").map_or(directory.span(), toml::Spanned::span),
            Problem::UnusedDailyKeys,
        );
    }
}

/// A broker has streams only.
pub(super) fn without_tunnel(section: &Section<'_>) {
    let wrong = [
        section.value("tunnel").filter(|value| value.get_ref().as_bool() != Some(false)),
        section.value("address"),
    ];
    for value in wrong.into_iter().flatten() {
        section.note(value.span(), Problem::BrokerTunnel);
    }
}

/// By way of which broker a peer gets files: one that is marked as a broker.
fn via(findings: &Findings<'_>, peers: &[FoundPeer]) {
    let found = || peers.iter().filter_map(|peer| peer.peer.as_ref());
    for peer in peers {
        let Some(Placed { value: name, span }) = &peer.via else { continue };
        let is_itself = peer.name.as_ref().is_some_and(|own| own.value == *name);
        let is_broker = found().any(|other| other.name == *name && other.broker);
        // A peer that could not be read has been complained about.
        if is_itself || !is_broker && peers.iter().all(|peer| peer.peer.is_some()) {
            findings.note(span.clone(), Problem::NoBroker { name: name.clone() });
        }
    }
}

/// What `[node]` must say, which depends on the peers: a key of its own for those with which keys are agreed,
/// addresses inside for all but those in transport mode, and a port that peers with manual keys can know.
pub(super) fn needs(section: &Section<'_>, node: &NodeSection, peers: &[FoundPeer]) {
    let manual = || peers.iter().filter_map(|peer| peer.manual.as_ref());
    let all_manual = !peers.is_empty() && manual().count() == peers.len();
    if !all_manual {
        section.require("private_key_file", "private_key_file = \"strait.key\"");
    }
    if node.tunnel && !all_manual || manual().any(|peer| peer.is_tunnel) {
        section.require("address", "address = [\"10.77.0.1/24\"]");
    }
    if node.listen.port() == 0
        && let Some(peer) = manual().find(|peer| peer.is_udp)
    {
        section.note(peer.place.clone(), ManualProblem::NoListen);
    }
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

/// A network twice with one peer is only clumsy; with two peers it would be ambiguous.
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

/// Notes the node's own key in the place of a peer's: the public one, or the private one, which looks the same.
pub(super) fn own_key(findings: &Findings<'_>, peers: &[FoundPeer], own: Option<PublicKey>) {
    let Some(own) = own else { return };
    for Placed { value: key, span } in peers.iter().filter_map(|peer| peer.key.as_ref()) {
        if *key == own {
            findings.note(span.clone(), Problem::OwnKey { key: *key });
        } else if PrivateKey::generate(key.as_bytes()).public() == own {
            findings.note(span.clone(), Problem::OwnPrivateKey);
        }
    }
}
