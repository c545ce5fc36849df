//! The places at which peers were heard last.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use strait_keying::PublicKey;

/// Peers at most: what fits into a message to the starter beside all paths.
pub(super) const PLACES_MAX: usize = 256;
/// A peer that was heard within this time of another, in seconds, does not give way to it: while more peers than that come and go,
/// nothing would be kept for long.
const RECENT: u64 = 3600;
/// A later time at the same place is worth a write after so many seconds: a day.
const NEWS: u64 = 24 * 3600;

/// The place at which a peer was heard last, with a packet or a handshake of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceFound {
    /// The address and port.
    pub endpoint: SocketAddr,
    /// When, in seconds since 1970.
    pub at: u64,
}

impl PlaceFound {
    /// True for an address and port that a host can have.
    fn can_be(&self) -> bool {
        let address = self.endpoint.ip();
        let is_of_many = match address {
            IpAddr::V4(address) => address.is_broadcast() || address.is_multicast(),
            IpAddr::V6(address) => address.is_multicast(),
        };
        self.endpoint.port() != 0 && !address.is_unspecified() && !is_of_many
    }
}

/// The places of peers, each with the time that was last worth a write.
#[derive(Clone, Debug, Default)]
pub(super) struct PlaceMemory(Vec<(PublicKey, PlaceFound, u64)>);

/// One place in the file.
#[derive(Serialize, Deserialize)]
pub(super) struct PlaceEntry {
    peer: String,
    endpoint: SocketAddr,
    heard_at: u64,
}

impl PartialEq for PlaceMemory {
    /// By what is in the file.
    fn eq(&self, other: &PlaceMemory) -> bool {
        fn places(memory: &PlaceMemory) -> impl Iterator<Item = (&PublicKey, &PlaceFound)> {
            memory.0.iter().map(|(peer, found, _)| (peer, found))
        }
        places(self).eq(places(other))
    }
}

impl Eq for PlaceMemory {}

impl PlaceMemory {
    /// Returns the place of this peer.
    pub(super) fn get(&self, peer: &PublicKey) -> Option<PlaceFound> {
        self.0.iter().find(|(known, ..)| known == peer).map(|(_, found, _)| *found)
    }

    /// Notes a place; returns true if that is worth a write. If there is no room, the peer that was not heard for longest goes.
    /// A place that no host can have is not noted: the file would not be read again.
    pub(super) fn note(&mut self, peer: PublicKey, found: PlaceFound) -> bool {
        if !found.can_be() {
            return false;
        }
        if let Some((_, before, written)) = self.0.iter_mut().find(|(known, ..)| *known == peer) {
            let is_news = before.endpoint != found.endpoint || found.at.saturating_sub(*written) > NEWS;
            *before = found;
            *written = if is_news { found.at } else { *written };
            return is_news;
        }
        if self.0.len() >= PLACES_MAX {
            let oldest = self.0.iter().enumerate().min_by_key(|(_, (_, known, _))| known.at);
            match oldest {
                Some((index, (_, known, _))) if known.at.saturating_add(RECENT) < found.at => {
                    self.0.remove(index);
                }
                _ => return false,
            }
        }
        self.0.push((peer, found, found.at));
        true
    }

    /// The list in the file.
    pub(super) fn entries(&self) -> Vec<PlaceEntry> {
        let entry = |(peer, found, _): &(PublicKey, PlaceFound, u64)| PlaceEntry {
            peer: peer.to_string(),
            endpoint: found.endpoint,
            heard_at: found.at,
        };
        self.0.iter().map(entry).collect()
    }
}

impl PlaceEntry {
    /// Returns the peer and its place, or the name of the value that cannot be.
    pub(super) fn checked(self) -> Result<(PublicKey, PlaceFound), &'static str> {
        let peer = self.peer.parse().map_err(|_| "peer")?;
        let found = PlaceFound { endpoint: self.endpoint, at: self.heard_at };
        if found.can_be() { Ok((peer, found)) } else { Err("endpoint") }
    }
}
