//! Keys without sessions in the document of `strait show --json`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use strait_keying::sessionless::CacheCounts;

/// What all peers with keys that need no session share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionlessReport {
    /// Packet keys of peers that are in use here.
    pub packet_keys: usize,
    /// The caches.
    pub caches: Vec<CacheReport>,
    /// Datagrams refused, by reason, also reasons with a count of 0.
    pub refusals: Vec<RefusalReport>,
}

/// One cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheReport {
    /// `packet-keys`, `epoch-keys` (Kijn), `secrets` (Kij), `daily-secrets` (those of days), `senders` or `unknown-names`; of a directory `peers`, `certificates` (on disk) or
    /// `unknown-names`.
    pub cache: String,
    /// Entries it has.
    pub entries: usize,
    /// Entries that are pinned.
    pub pinned: usize,
    /// Look-ups that found something.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Entries that made room for others.
    pub evicted: u64,
    /// Seconds that deriving or fetching took of what was not there; none where a miss itself takes no time.
    pub miss_seconds: Option<f64>,
}

impl CacheReport {
    /// Returns how a cache did, and what its misses took.
    pub(crate) fn new(cache: &str, counts: CacheCounts, took: Option<Duration>) -> CacheReport {
        CacheReport {
            cache: cache.to_owned(),
            entries: counts.entries,
            pinned: counts.pinned,
            hits: counts.hits,
            misses: counts.misses,
            evicted: counts.evicted,
            miss_seconds: took.map(|took| took.as_secs_f64()),
        }
    }
}

/// Datagrams refused for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalReport {
    /// The reason.
    pub reason: String,
    /// Datagrams refused.
    pub datagrams: u64,
}

/// Keys with one peer that need no session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionlessPeerReport {
    /// Whether nothing comes back from it.
    pub one_way: bool,
    /// Cipher suite of packets to it.
    pub suite: String,
    /// Whether packet keys towards it have a secret from its ML-KEM-768 key.
    pub hybrid: bool,
    /// The day whose daily keys are in the packet key towards it, `2026-01-31`; none where its Kij is of the long-term keys alone.
    pub daily_key: Option<String>,
    /// The last day for which a daily key of the peer is known.
    pub daily_keys_until: Option<String>,
    /// Whether a session is still what is sent with, after a change of the configuration.
    pub has_session: bool,
    /// SPI of the packet key towards it; none before the first packet, and while nothing is sent.
    pub outbound_spi: Option<String>,
    /// Whether it has acknowledged that key, so that packets need no header.
    pub acknowledged: bool,
    /// Seconds since that key was begun.
    pub key_age_seconds: Option<f64>,
    /// Packet keys begun towards it.
    pub keys_begun: u64,
    /// SPIs of its packet keys that are known here, the one heard last first.
    pub inbound_spis: Vec<String>,
    /// Seconds since the last authentic packet was received.
    pub last_received_age_seconds: Option<f64>,
    /// Seconds since the last packet was sent under the key in use.
    pub last_sent_age_seconds: Option<f64>,
    /// Why nothing is sent to it; none if packets can be sent.
    pub refused: Option<String>,
}
