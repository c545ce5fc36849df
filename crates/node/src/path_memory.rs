//! The figures of the paths to peers, and the places of peers, kept across restarts: the first guess of the next transfer, and the first
//! place of a peer that nothing else tells the place of.
//!
//! A path is known by the peer, the interface and gateway by which datagrams leave, and the network of the peer's
//! endpoint: what a node learns without privileges, and what differs where a laptop or a ship changes its link. Behind a
//! router that changes its own uplink a node sees no difference; there the estimate corrects the first guess.
//!
//! The file is JSON, at most 104 KiB. [`PathMemory::parse`] checks every value, and drops what is old.

mod file;
mod places;

use core::time::Duration;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};
use strait_ipsec::LossPattern;
use strait_keying::PublicKey;
use strait_scheduler::Rate;

pub(crate) use file::PathFile;
pub use file::unix_time;
pub use places::PlaceFound;
use places::{PlaceEntry, PlaceMemory};

/// Paths at most; the one that was not used for longest goes first.
const PATHS_MAX: usize = 128;
/// Most bytes of a file: 128 paths with 400 bytes each and 256 places with 200, and some room.
pub const PATH_FILE_MAX: usize = 104 << 10;
/// What was found longer ago than this, in seconds, is forgotten: 90 days, a season of a ship or of a holiday home.
const AGE_MAX: u64 = 90 * 24 * 3600;
/// The form of the file.
const VERSION: u32 = 1;
/// Bytes of an interface's name at most (`IFNAMSIZ` less the zero).
const NAME_MAX: usize = 15;
/// The networks of endpoints: what one site or provider mostly has of IPv4 and of IPv6.
const NETWORKS: (u8, u8) = (24, 48);
/// A longer round trip is none, in microseconds.
const ROUND_TRIP_MAX: u64 = 60_000_000;
/// Shares are kept in millionths.
const MILLION: u32 = 1_000_000;
/// Longer bursts of losses than this are outages.
const BURST_MAX: f64 = 1000.0;
/// A change of the rate or of the loss that is worth a write: an estimate varies by less.
const NEWS: (f64, f64) = (0.1, 0.005);

/// What makes a path the same one at another time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathKey {
    /// The peer.
    pub peer: PublicKey,
    /// The name of the interface by which datagrams leave.
    pub interface: String,
    /// The gateway to which they go there, if there is one.
    pub gateway: Option<IpAddr>,
    /// The network of the peer's endpoint: a /24 of IPv4, a /48 of IPv6.
    pub network: IpNet,
}

/// What was found on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFound {
    /// The rate above which the link took no more, in wire bytes; nothing where no limit was met.
    pub rate: Option<Rate>,
    /// The least round-trip time, in microseconds.
    pub round_trip: Option<u64>,
    /// The share of datagrams that was lost, in millionths.
    pub loss: u32,
    /// How many were lost one after another on average, in thousandths; at least 1,000.
    pub burst: u32,
    /// When, in seconds since 1970.
    pub at: u64,
}

/// The memory of all paths, those used last at the end, and of all peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathMemory {
    paths: Vec<(PathKey, PathFound)>,
    places: PlaceMemory,
}

/// Why a file is not what was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathMemoryError {
    /// It is longer than anything that is written.
    #[error("it has more than {PATH_FILE_MAX} bytes")]
    TooLong,
    /// It is not the JSON that is written.
    #[error("it is not what Strait writes: {0}")]
    Json(#[from] serde_json::Error),
    /// A later release wrote it.
    #[error("it has version {0}, and this release reads version {VERSION}")]
    Version(u32),
    /// Some value cannot be.
    #[error("entry {entry} of its {list} has an impossible {what}")]
    Value {
        /// Which list.
        list: &'static str,
        /// Which entry, from 1 on.
        entry: usize,
        /// Which value.
        what: &'static str,
    },
}

/// The file as it stands on disk.
#[derive(Serialize, Deserialize)]
struct PathDocument {
    version: u32,
    paths: Vec<PathEntry>,
    /// Earlier releases did not write it, and do not read it.
    #[serde(default)]
    places: Vec<PlaceEntry>,
}

/// One path of it.
#[derive(Serialize, Deserialize)]
struct PathEntry {
    peer: String,
    interface: String,
    gateway: Option<IpAddr>,
    endpoint_network: IpNet,
    rate_bits_per_second: Option<u64>,
    min_rtt_microseconds: Option<u64>,
    lost_per_million: u32,
    mean_burst_thousandths: u32,
    found_at: u64,
}

impl PathKey {
    /// The path to `peer` at `endpoint`.
    #[must_use]
    pub fn new(peer: PublicKey, interface: String, gateway: Option<IpAddr>, endpoint: IpAddr) -> PathKey {
        let network = match endpoint.to_canonical() {
            IpAddr::V4(address) => Ipv4Net::new(address, NETWORKS.0).map(|net| IpNet::V4(net.trunc())),
            IpAddr::V6(address) => Ipv6Net::new(address, NETWORKS.1).map(|net| IpNet::V6(net.trunc())),
        };
        // Both lengths are lengths of a prefix.
        let network = network.unwrap_or_else(|_| endpoint.into());
        PathKey { peer, interface, gateway, network }
    }
}

impl PathFound {
    /// What delivery reports said, at `at` seconds since 1970.
    #[must_use]
    pub fn new(rate: Option<Rate>, round_trip: Option<Duration>, losses: LossPattern, at: u64) -> PathFound {
        let micros = round_trip.and_then(|span| u64::try_from(span.as_micros()).ok());
        PathFound {
            rate,
            round_trip: micros.filter(|micros| *micros <= ROUND_TRIP_MAX),
            loss: (losses.share.clamp(0.0, 1.0) * f64::from(MILLION)) as u32,
            burst: (losses.burst.clamp(1.0, BURST_MAX) * 1000.0) as u32,
            at,
        }
    }

    /// How datagrams were lost.
    #[must_use]
    pub fn losses(&self) -> LossPattern {
        let share = f64::from(self.loss) / f64::from(MILLION);
        LossPattern { share, burst: f64::from(self.burst) / 1000.0 }
    }

    /// Whether what was found is so far from `before` that it is worth a write.
    fn is_news(&self, before: &PathFound) -> bool {
        let bits = |found: &PathFound| found.rate.map_or(0.0, |rate| rate.bits() as f64);
        (bits(self) - bits(before)).abs() > NEWS.0 * bits(before)
            || (self.losses().share - before.losses().share).abs() > NEWS.1
            || self.at.saturating_sub(before.at) > AGE_MAX / 90
    }
}

impl PathMemory {
    /// What a file says, without what is older than 90 days at `now`, in seconds since 1970.
    ///
    /// # Errors
    /// [`PathMemoryError`] when any of it was not written by this release or an earlier one.
    pub fn parse(bytes: &[u8], now: u64) -> Result<PathMemory, PathMemoryError> {
        if bytes.len() > PATH_FILE_MAX {
            return Err(PathMemoryError::TooLong);
        }
        let document: PathDocument = serde_json::from_slice(bytes)?;
        if document.version != VERSION {
            return Err(PathMemoryError::Version(document.version));
        }
        let mut memory = PathMemory::default();
        for (entry, number) in document.paths.into_iter().zip(1..) {
            let value = |what| PathMemoryError::Value { list: "paths", entry: number, what };
            let (key, found) = entry.checked().map_err(value)?;
            // A clock that went back is no reason to forget.
            if now.saturating_sub(found.at) <= AGE_MAX {
                memory.note(key, found);
            }
        }
        for (entry, number) in document.places.into_iter().zip(1..) {
            let value = |what| PathMemoryError::Value { list: "places", entry: number, what };
            let (peer, found) = entry.checked().map_err(value)?;
            if now.saturating_sub(found.at) <= AGE_MAX {
                memory.note_place(peer, found);
            }
        }
        Ok(memory)
    }

    /// The file.
    #[must_use]
    pub fn render(&self) -> Vec<u8> {
        let paths = self.paths.iter().map(PathEntry::of).collect();
        let places = self.places.entries();
        // Text, numbers and lists are always written.
        let document = PathDocument { version: VERSION, paths, places };
        let mut bytes = serde_json::to_vec_pretty(&document).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// What was found on a path.
    #[must_use]
    pub fn get(&self, key: &PathKey) -> Option<PathFound> {
        self.paths.iter().find(|(known, _)| known == key).map(|(_, found)| *found)
    }

    /// Paths that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns the place at which a peer was heard last.
    #[must_use]
    pub fn place(&self, peer: &PublicKey) -> Option<PlaceFound> {
        self.places.get(peer)
    }

    /// Notes the place of a peer; returns true if that is worth a write.
    pub fn note_place(&mut self, peer: PublicKey, found: PlaceFound) -> bool {
        self.places.note(peer, found)
    }

    /// Something was found on a path; whether that is worth a write. A rate that was found before stays where only the loss is
    /// known now.
    pub fn note(&mut self, key: PathKey, found: PathFound) -> bool {
        let place = self.paths.iter().position(|(known, _)| *known == key);
        let before = place.map(|place| self.paths.remove(place).1);
        let found = PathFound { rate: found.rate.or(before.and_then(|before| before.rate)), ..found };
        if self.paths.len() >= PATHS_MAX {
            self.paths.remove(0);
        }
        self.paths.push((key, found));
        before.is_none_or(|before| found.is_news(&before))
    }
}

impl PathEntry {
    fn of((key, found): &(PathKey, PathFound)) -> PathEntry {
        PathEntry {
            peer: key.peer.to_string(),
            interface: key.interface.clone(),
            gateway: key.gateway,
            endpoint_network: key.network,
            rate_bits_per_second: found.rate.map(Rate::bits),
            min_rtt_microseconds: found.round_trip,
            lost_per_million: found.loss,
            mean_burst_thousandths: found.burst,
            found_at: found.at,
        }
    }

    /// The path and what was found, or which value cannot be.
    fn checked(self) -> Result<(PathKey, PathFound), &'static str> {
        let peer = self.peer.parse().map_err(|_| "peer")?;
        let name = self.interface.as_str();
        let is_name =
            !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(|byte| byte.is_ascii_graphic());
        let key = PathKey::new(peer, self.interface, self.gateway, self.endpoint_network.addr());
        if !is_name {
            return Err("interface");
        }
        if key.network != self.endpoint_network {
            return Err("endpoint_network");
        }
        let rate = self.rate_bits_per_second.map(|bits| Rate::from_bits(bits).ok_or("rate_bits_per_second"));
        if self.min_rtt_microseconds.is_some_and(|micros| micros > ROUND_TRIP_MAX) {
            return Err("min_rtt_microseconds");
        }
        if self.lost_per_million > MILLION {
            return Err("lost_per_million");
        }
        let burst = self.mean_burst_thousandths;
        if !(1000..=(BURST_MAX * 1000.0) as u32).contains(&burst) {
            return Err("mean_burst_thousandths");
        }
        let (round_trip, loss, at) = (self.min_rtt_microseconds, self.lost_per_million, self.found_at);
        Ok((key, PathFound { rate: rate.transpose()?, round_trip, loss, burst, at }))
    }
}

#[cfg(test)]
mod tests;
