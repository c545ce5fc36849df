//! Advice on caches of keys: which sizes and pins a hub needs that speaks with the hosts of the captures without sessions.

use core::cmp::Reverse;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeSet;

use serde::Serialize;
use strait_model::Seconds;

use super::Conditions;
use crate::keys::{Plan, Returns};
use crate::{MachineModel, TunnelReplay};

/// The part of the time of encryption that misses may take: a gain of so little is named in no verdict either.
const SHARE: f64 = 0.01;
/// Time of a miss at one end: a packet key under Kijn, and Kij with a certificate that is at hand. Half of what a ping takes longer than
/// with packet keys at hand (docs/lab.md, pings by cache, AES-256-GCM: 10 µs; 30 and 340).
const PACKET_KEY: Seconds = Seconds(10e-6);
const PEER: Seconds = Seconds(165e-6);
/// Time for a certificate besides that is not at hand, from a directory without a link between (869 µs in that table).
const DIRECTORY: Seconds = Seconds(265e-6);

/// Entries that caches have at a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheSizes {
    /// Peers, with their packet keys, Kijn and Kij.
    pub peers: usize,
    /// Certificates on disk.
    pub certificates: usize,
}

/// Sizes of caches, where the configuration says nothing and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheBounds {
    /// Without a word in the configuration.
    pub today: CacheSizes,
    /// At most.
    pub most: CacheSizes,
}

/// Advice on the caches of keys of a hub.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyCacheAdvice {
    /// Peers: pairs of hosts.
    pub peers: usize,
    /// Packets of another peer than the one before.
    pub changes: usize,
    /// Packets and changes beyond what is kept of a capture; they are not in the figures.
    pub left_out: u64,
    /// Seconds that encryption takes for all packets at one end.
    pub crypto_seconds: f64,
    /// Seconds that the misses of a tier may take.
    pub allowed_seconds: f64,
    /// The tiers, that with the cheapest misses first.
    pub tiers: Vec<KeyTier>,
    /// Peers to pin.
    pub pins: Vec<PinnedHost>,
    /// Keys for `[directory]` in the configuration, in TOML.
    pub toml: String,
}

/// A tier of the caches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyTier {
    /// `packet-keys`, `peers` (with Kij) or `certificates` (on disk), as `strait show` has them.
    pub cache: &'static str,
    /// Entries at most where the configuration says nothing; none where time alone ends them.
    pub today: Option<usize>,
    /// Entries that are enough.
    pub enough: Option<usize>,
    /// Seconds of one miss.
    pub miss_seconds: f64,
    /// Misses with both sizes, but for the first of each peer.
    pub misses: TierMisses,
    /// Seconds of all of them.
    pub seconds: TierSeconds,
}

/// Misses with two sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TierMisses {
    /// With those of today.
    pub today: u64,
    /// With those that are enough.
    pub enough: u64,
}

/// The time of misses with two sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TierSeconds {
    /// With those of today.
    pub today: f64,
    /// With those that are enough.
    pub enough: f64,
}

/// A peer that comes often enough to be missed, and so rarely that others push it out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PinnedHost {
    /// The address of its host.
    pub address: IpAddr,
    /// Packets of it behind one of another peer.
    pub returns: usize,
}

impl KeyTier {
    fn new(
        cache: &'static str,
        sizes: Option<(usize, usize)>,
        misses: TierMisses,
        Seconds(miss_seconds): Seconds,
    ) -> KeyTier {
        let time = |count: u64| count as f64 * miss_seconds;
        let seconds = TierSeconds { today: time(misses.today), enough: time(misses.enough) };
        let (today, enough) = sizes.unzip();
        KeyTier { cache, today, enough, miss_seconds, misses, seconds }
    }
}

impl KeyCacheAdvice {
    /// The advice for what was replayed; none where there are fewer than two peers.
    pub(super) fn new(
        replay: &TunnelReplay,
        machine: &MachineModel,
        conditions: &Conditions,
    ) -> Option<KeyCacheAdvice> {
        if replay.peers.peers() < 2 {
            return None;
        }
        let round_trip = conditions.round_trip.unwrap_or(replay.link().round_trip);
        let crypto = machine.ends.here.crypto * replay.bytes() as f64;
        Some(Advised { replay, crypto, round_trip, bounds: conditions.caches }.advice())
    }

    /// Returns true if the sizes of today take no more time than may be.
    #[must_use]
    pub fn holds_today(&self) -> bool {
        let mut sized = self.tiers.iter().filter(|tier| tier.today.is_some());
        sized.all(|tier| tier.seconds.today <= self.allowed_seconds)
    }
}

/// The facts that advice follows from.
struct Advised<'a> {
    replay: &'a TunnelReplay,
    crypto: Seconds,
    round_trip: Duration,
    bounds: CacheBounds,
}

impl Advised<'_> {
    fn allowed(&self) -> Seconds {
        self.crypto * SHARE
    }

    /// The number of misses of this cost that are allowed.
    fn allowed_misses(&self, Seconds(each): Seconds) -> u64 {
        (self.allowed().0 / each) as u64
    }

    fn advice(&self) -> KeyCacheAdvice {
        let peers = &self.replay.peers;
        let fetched = Seconds(DIRECTORY.0 + self.round_trip.as_secs_f64());
        let plan = Plan::best(peers.changes(), self.allowed_misses(PEER));
        let enough = self.enough(&plan, fetched);
        let today = Returns::count(peers.changes(), &BTreeSet::new());
        let misses = |size: fn(&CacheSizes) -> usize| TierMisses {
            today: today.missed(size(&self.bounds.today)),
            enough: plan.missed(size(&enough)),
        };
        let keys = TierMisses { today: peers.packet_keys(), enough: peers.packet_keys() };
        let sizes = |size: fn(&CacheSizes) -> usize| Some((size(&self.bounds.today), size(&enough)));
        let pins = self.pins(&plan);
        KeyCacheAdvice {
            peers: peers.peers(),
            changes: peers.changes().len(),
            left_out: peers.left_out(),
            crypto_seconds: self.crypto.0,
            allowed_seconds: self.allowed().0,
            tiers: vec![
                KeyTier::new("packet-keys", None, keys, PACKET_KEY),
                KeyTier::new("peers", sizes(|it| it.peers), misses(|it| it.peers), PEER),
                KeyTier::new(
                    "certificates",
                    sizes(|it| it.certificates),
                    misses(|it| it.certificates),
                    fetched,
                ),
            ],
            toml: toml(&enough, &pins),
            pins,
        }
    }

    /// The sizes that are enough, as far as a node can have them.
    fn enough(&self, plan: &Plan, fetched: Seconds) -> CacheSizes {
        let CacheSizes { peers, certificates } = self.bounds.most;
        let peers = plan.size(self.allowed_misses(PEER)).min(peers);
        // Each peer has a certificate.
        let certificates = plan.size(self.allowed_misses(fetched)).clamp(peers, certificates.max(peers));
        CacheSizes { peers, certificates }
    }

    fn pins(&self, plan: &Plan) -> Vec<PinnedHost> {
        let peers = &self.replay.peers;
        let host = |index: &u16| {
            let times = peers.changes().iter().filter(|change| *change == index).count();
            Some(PinnedHost { address: peers.far_host(*index)?, returns: times - 1 })
        };
        let mut pins: Vec<PinnedHost> = plan.pinned.iter().filter_map(host).collect();
        pins.sort_unstable_by_key(|pin| (pin.address, Reverse(pin.returns)));
        pins.dedup_by_key(|pin| pin.address);
        pins.sort_by_key(|pin| Reverse(pin.returns));
        pins
    }
}

/// The keys of `[directory]`.
fn toml(sizes: &CacheSizes, pins: &[PinnedHost]) -> String {
    let CacheSizes { peers, certificates } = sizes;
    let mut toml = format!(
        "[directory]\ncertificates = \"on demand\"\nmax_peers = {peers}\nmax_certificates = {certificates}\n"
    );
    if !pins.is_empty() {
        let pins: Vec<String> = pins.iter().map(|pin| format!("\"{}\"", pin.address)).collect();
        toml += &format!("pin = [{}]\n", pins.join(", "));
    }
    toml
}
